//! Pasted bulk in a query (C30): which stretches of a long query are a mail, a log or a listing, and which are the
//! user's own words. By rule, the same each time. Knows only text; a short query is never divided.
//!
//! What separates the two: fences, quotation marks of mails, headers and salutations of mails, rules, an introduction
//! that ends in a colon, and lines that are no sentences. Where nothing does, the first paragraph and the sentences
//! that ask are the user's words, and everything is attached.

use std::ops::Range;

use larder_condense::{ContentType, structure_of};
use larder_text::tokens::Counter;

use crate::ask::sentences::sentences;

/// Tokens up to which a query is the user's own words, whatever is in it.
const OWN_WORDS: usize = 300;
/// Tokens of a first or last paragraph that may be the user's own next to a mail.
const PARAGRAPH: usize = 150;
/// Lines from which a paragraph may be a listing.
const LISTING: usize = 4;
/// Lines of a list from which on nobody has typed it: shorter ones may be what the user asks for.
const LIST: usize = 25;
/// Names of mail headers, in the languages of the common mail programs.
const HEADERS: [&str; 14] = [
    "from", "to", "cc", "sent", "date", "subject", "reply-to", "von", "an", "gesendet", "datum", "betreff",
    "de", "objet",
];
/// How a mail greets, in lower case.
const SALUTATIONS: [&str; 12] = [
    "dear ",
    "hi ",
    "hello ",
    "hey ",
    "good morning",
    "sehr geehrte",
    "liebe ",
    "lieber ",
    "hallo ",
    "guten tag",
    "guten morgen",
    "moin ",
];

/// A query that was divided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DividedQuery {
    /// The user's own words.
    pub(super) words: String,
    /// What was pasted, as ranges of the typed text. May include the user's words where nothing separates the two.
    pub(super) pasted: Vec<Pasted>,
}

/// A pasted stretch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pasted {
    pub(super) bytes: Range<usize>,
    /// A word for people, such as `mail`.
    pub(super) kind: &'static str,
}

/// Divides a query. `counter` is the same for all models, so that the result is too.
pub(super) fn divide(typed: &str, counter: &Counter) -> DividedQuery {
    let is_short = |text: &str, limit| counter.count_up_to(text, limit).is_some();
    if is_short(typed, OWN_WORDS) {
        return DividedQuery { words: typed.to_owned(), pasted: Vec::new() };
    }
    let mut paragraphs = paragraphs(typed);
    mark_mail(typed, &mut paragraphs, |text| is_short(text, PARAGRAPH));
    let own: Vec<&str> =
        paragraphs.iter().filter(|own| !own.is_bulk).map(|own| &typed[own.bytes.clone()]).collect();
    let words = own.join("\n\n");
    if own.len() < paragraphs.len() && words.contains(char::is_alphanumeric) && is_short(&words, OWN_WORDS) {
        return DividedQuery { words, pasted: runs(typed, &paragraphs) };
    }
    let all = 0..typed.len();
    DividedQuery {
        words: unseparated(typed, &paragraphs, counter),
        pasted: vec![Pasted { kind: kind(typed, false), bytes: all }],
    }
}

#[derive(Debug)]
struct Paragraph {
    bytes: Range<usize>,
    is_bulk: bool,
}

/// The paragraphs of a text; a fenced block is one.
fn paragraphs(text: &str) -> Vec<Paragraph> {
    let mut found: Vec<Paragraph> = Vec::new();
    let (mut at, mut fence, mut is_new) = (0, None, true);
    for line in text.split_inclusive('\n') {
        let bytes = at..at + line.trim_end().len();
        at += line.len();
        let mark = fence_of(line);
        let is_inside = fence.is_some();
        if line.trim().is_empty() && !is_inside {
            is_new = true;
            continue;
        }
        match found.last_mut().filter(|_| is_inside || !is_new && mark.is_none()) {
            Some(last) => last.bytes.end = bytes.end.max(last.bytes.end),
            None => found.push(Paragraph { bytes, is_bulk: mark.is_some() }),
        }
        if is_inside && mark == fence {
            (fence, is_new) = (None, true);
        } else if !is_inside {
            (fence, is_new) = (mark, false);
        }
    }
    for paragraph in &mut found {
        paragraph.is_bulk |= is_bulk(&text[paragraph.bytes.clone()]);
    }
    found
}

fn fence_of(line: &str) -> Option<&'static str> {
    ["```", "~~~", "\"\"\""].into_iter().find(|mark| line.trim_start().starts_with(mark))
}

/// Whether a paragraph by itself is no prose of the user: quoted lines, headers of a mail, records of a program, or a
/// listing.
fn is_bulk(text: &str) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let most = |test: fn(&str) -> bool| lines.iter().filter(|line| test(line)).count() * 2 > lines.len();
    let is_entry = |line: &str| {
        let line = line.trim();
        let columns =
            line.contains("  ") || line.contains('\t') || line.contains(" | ") || line.contains(';');
        columns || line.starts_with(['-', '*', '+', '•']) || line.contains(|char: char| char.is_ascii_digit())
    };
    most(|line| line.starts_with('>'))
        || has_headers(text)
        || lines.len() >= LISTING && structure_of(text).is_some()
        || lines.len() >= LIST && most(is_entry)
}

fn has_headers(text: &str) -> bool {
    let is_header = |line: &&str| {
        let name = line.trim_start_matches(['*', '>', ' ']).split_once(':').map(|(name, _)| name);
        name.is_some_and(|name| HEADERS.contains(&name.trim_matches('*').to_lowercase().as_str()))
    };
    text.lines().filter(is_header).count() >= 2
}

/// Marks a mail as bulk: everything from its beginning on but a last paragraph that asks.
fn mark_mail(text: &str, paragraphs: &mut [Paragraph], is_short: impl Fn(&str) -> bool) {
    let of = |paragraph: &Paragraph| &text[paragraph.bytes.clone()];
    let begins = |at: usize, paragraph: &Paragraph| {
        let first = of(paragraph).lines().next().unwrap_or_default().trim();
        let is_after_colon = at == 1 && of(&paragraphs[0]).ends_with(':') && is_short(of(&paragraphs[0]));
        is_after_colon || is_rule(first) || has_headers(of(paragraph)) || at > 0 && is_salutation(first)
    };
    let begin = paragraphs.iter().enumerate().find(|(at, paragraph)| begins(*at, paragraph));
    let Some(begin) = begin.map(|(at, _)| at) else { return };
    let last = paragraphs.len() - 1;
    let asks =
        |paragraph: &Paragraph| is_short(of(paragraph)) && sentences_that_ask(of(paragraph)).next().is_some();
    let is_own = last > begin && asks(&paragraphs[last]);
    for paragraph in &mut paragraphs[begin..last + usize::from(!is_own)] {
        paragraph.is_bulk = true;
    }
}

/// A line of dashes, `-----Original Message-----`, or a line that attributes a quotation.
fn is_rule(line: &str) -> bool {
    let dashes = line.len() - line.trim_start_matches(['-', '=', '_', '*']).len();
    let lower = line.to_lowercase();
    let is_attribution = line.ends_with(':') && (lower.contains(" wrote") || lower.contains(" schrieb"));
    dashes >= 3 && !line.contains('|') || is_attribution || lower.starts_with("begin forwarded message")
}

fn is_salutation(line: &str) -> bool {
    let lower = line.to_lowercase();
    line.ends_with([',', '!', ':']) && SALUTATIONS.iter().any(|start| lower.starts_with(start))
}

/// The bulk as runs of adjacent paragraphs, with the white space between them.
fn runs(text: &str, paragraphs: &[Paragraph]) -> Vec<Pasted> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut is_open = false;
    for paragraph in paragraphs {
        match runs.last_mut().filter(|_| is_open && paragraph.is_bulk) {
            Some(run) => run.end = paragraph.bytes.end,
            None if paragraph.is_bulk => runs.push(paragraph.bytes.clone()),
            None => {}
        }
        is_open = paragraph.is_bulk;
    }
    runs.into_iter().map(|bytes| Pasted { kind: kind(&text[bytes.clone()], true), bytes }).collect()
}

/// What a text is, for people. A separated text that is neither data nor a listing is a mail if it has a mail's form.
fn kind(text: &str, is_separated: bool) -> &'static str {
    let inner = text.trim_start_matches("```").trim_start_matches("\"\"\"").trim();
    let first = inner.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    match structure_of(inner) {
        Some(ContentType::Log) => "log",
        Some(ContentType::Json) => "JSON",
        Some(ContentType::Diff) => "diff",
        Some(ContentType::Html) => "web page",
        Some(ContentType::Table) => "table",
        Some(ContentType::Chat) => "conversation",
        _ if has_headers(inner) || is_salutation(first) || first.starts_with('>') => "mail",
        _ if is_separated && is_bulk(inner) => "listing",
        _ => "text",
    }
}

/// The first paragraph and the sentences that ask, the last ones first if not all fit.
fn unseparated(text: &str, paragraphs: &[Paragraph], counter: &Counter) -> String {
    let first = paragraphs.first().map_or(0..0, |first| first.bytes.clone());
    let opening = &text[first.clone()];
    // A first paragraph that is too long is its first sentences, or what of the first one fits.
    let fits = |end: &usize| counter.count_up_to(&opening[..*end], PARAGRAPH).is_some();
    let ends = sentences(opening).into_iter().map(|sentence| sentence.end).chain([opening.len()]);
    let kept = ends
        .take_while(fits)
        .last()
        .map_or_else(|| counter.prefix(opening, PARAGRAPH), |end| &opening[..end]);
    let mut left = OWN_WORDS.saturating_sub(counter.count(kept));
    let mut asked = Vec::new();
    let rest: Vec<&str> = sentences_that_ask(&text[first.start + kept.len()..]).collect();
    for sentence in rest.into_iter().rev() {
        let Some(tokens) = counter.count_up_to(sentence, left.saturating_sub(2)) else { continue };
        left -= tokens + 2;
        asked.push(sentence);
    }
    asked.push(kept.trim_end());
    asked.reverse();
    asked.join("\n\n")
}

fn sentences_that_ask(text: &str) -> impl Iterator<Item = &str> {
    let asks = |sentence: &&str| {
        let end =
            sentence.trim_end_matches(|char: char| !char.is_alphanumeric() && !matches!(char, '?' | '？'));
        end.ends_with(['?', '？'])
    };
    // Lines without full stops before a question are not part of it.
    let own = |range: Range<usize>| match text[range.clone()].lines().count() {
        0..=3 => &text[range],
        _ => text[range].lines().last().unwrap_or_default().trim(),
    };
    sentences(text).into_iter().map(own).filter(asks)
}

#[cfg(test)]
#[path = "pasted_tests.rs"]
mod tests;
