//! Pasted bulk in a query (C30): which stretches of a long query are a mail, a log or a listing, and which are the
//! user's own words. By rule, the same each time. Knows only text; a short query is never divided.
//!
//! What separates the two: fences, quotation marks, headers, salutations and closings of mails, rules, an introduction
//! that ends in a colon, and lines that are no sentences. Where nothing does, everything is attached, and the user's
//! words are the first paragraph and the sentences that ask. The first paragraph is not where a request introduces the
//! text, or follows data.
//!
//! A request may stand at both ends. The first paragraph is the user's. The last may also be the closing sentence of a
//! mail or a page, which must not become an instruction: where something separates it, whatever reads as a request is
//! the user's. Where nothing does, it is if nothing else asks; next to an introduction, only one paragraph. Anybody can
//! write below a mail's closing: if the user asks before a mail, what ends it is theirs only behind a rule or a fence.
//! Next to an introduction nothing with an address is theirs. What is behind a mail, or separated by nothing, stays in
//! the attachment as well: a request that is lost costs the user the answer, one that the user did not make is theirs to
//! see in the query.

use std::ops::Range;

use larder_condense::{ContentType, structure_of};
use larder_text::tokens::Counter;

use super::paragraphs::{
    Paragraph, fence_of, has_headers, is_bulk, is_code, is_rule, is_salutation, paragraphs,
};
use super::requests::{asks, is_closing, reads_as_request};
use crate::ask::sentences::sentences;

/// Tokens up to which a query is the user's own words, whatever is in it.
const OWN_WORDS: usize = 300;
/// Tokens of a first or last paragraph that may be the user's own next to a mail.
const PARAGRAPH: usize = 150;
/// Words of an introduction that is no request.
const INTRODUCTION: usize = 30;
/// Paragraphs that a request at one end may have.
const REQUEST: usize = 3;
const QUOTATION_MARKS: [char; 7] = ['"', '“', '”', '„', '«', '»', '‘'];

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
    let text = Divided::new(typed, &|text| is_short(text, PARAGRAPH));
    let words = text.own_words();
    if text.paragraphs.iter().any(|paragraph| paragraph.is_bulk)
        && words.contains(char::is_alphanumeric)
        && is_short(&words, OWN_WORDS)
    {
        return DividedQuery { words, pasted: runs(typed, &text.paragraphs) };
    }
    let all = 0..typed.len();
    DividedQuery {
        words: text.unseparated(counter),
        pasted: vec![Pasted { kind: kind(typed, false), bytes: all }],
    }
}

/// A text with what of it is whose.
struct Divided<'t> {
    text: &'t str,
    paragraphs: Vec<Paragraph>,
    /// Paragraphs at the beginning that introduce what is pasted.
    head: usize,
    /// Where the request at the end begins; the number of paragraphs without one.
    tail: usize,
    /// The request at the end may be what was pasted, too.
    is_tail_attached: bool,
}

impl<'t> Divided<'t> {
    fn new(text: &'t str, is_short: &dyn Fn(&str) -> bool) -> Self {
        let paragraphs = paragraphs(text);
        let tail = paragraphs.len();
        let mut divided = Self { text, paragraphs, head: 0, tail, is_tail_attached: false };
        divided.mark_quotations(is_short);
        divided.head = divided.head(is_short);
        let mail = divided.mail(is_short);
        divided.find_tail(mail, is_short);
        divided.mark(mail, is_short);
        divided
    }

    fn of(&self, at: usize) -> &'t str {
        self.paragraphs.get(at).map_or("", |paragraph| &self.text[paragraph.bytes.clone()])
    }

    fn between(&self, from: usize, to: usize) -> &'t str {
        match (self.paragraphs.get(from), self.paragraphs[..to].last()) {
            (Some(first), Some(last)) if from < to => &self.text[first.bytes.start..last.bytes.end],
            _ => "",
        }
    }

    fn own_words(&self) -> String {
        let own = self.paragraphs.iter().filter(|paragraph| paragraph.is_own || !paragraph.is_bulk);
        own.map(|own| &self.text[own.bytes.clone()]).collect::<Vec<_>>().join("\n\n")
    }

    /// Marks paragraphs between quotation marks.
    fn mark_quotations(&mut self, is_short: &dyn Fn(&str) -> bool) {
        let mut at = 0;
        while at < self.paragraphs.len() {
            if self.of(at).starts_with(QUOTATION_MARKS) {
                let end = (at..self.paragraphs.len()).find(|end| self.of(*end).ends_with(QUOTATION_MARKS));
                let Some(end) = end else { return };
                let is_bulk = !is_short(self.between(at, end + 1));
                self.paragraphs[at..=end].iter_mut().for_each(|quoted| quoted.is_bulk |= is_bulk);
                at = end;
            }
            at += 1;
        }
    }

    /// The paragraphs at the beginning that ask, or introduce what follows.
    fn head(&self, is_short: &dyn Fn(&str) -> bool) -> usize {
        let introduces = |at: usize| {
            let text = self.of(at);
            let is_introduction = text.ends_with(':')
                || text.ends_with(['.', '!', '?', ',']) && text.split_whitespace().count() <= INTRODUCTION;
            // Who greets before a request greets us; otherwise a greeting begins what was pasted.
            let is_pasted = is_salutation(text) && !reads_as_request(self.of(at + 1), true);
            !self.paragraphs[at].is_bulk
                && !is_pasted
                && text.starts_with(char::is_alphabetic)
                && !is_code(text)
                && (is_introduction || reads_as_request(text, false))
        };
        let most = REQUEST.min(self.paragraphs.len().saturating_sub(1));
        (0..most).take_while(|at| introduces(*at) && is_short(self.between(0, at + 1))).count()
    }

    /// Where a mail, or what a rule or a colon separates, begins.
    fn mail(&self, is_short: &dyn Fn(&str) -> bool) -> Option<usize> {
        (0..self.paragraphs.len()).find(|at| {
            let first = self.of(*at).lines().next().unwrap_or_default().trim();
            let is_after_colon = *at == 1 && self.of(0).ends_with(':') && is_short(self.of(0));
            // Who greets before a request greets us.
            let is_greeting = is_salutation(first) && (*at > 0 || !reads_as_request(self.of(1), true));
            is_after_colon || is_rule(first) || has_headers(self.of(*at)) || is_greeting
        })
    }

    /// Finds the request at the end.
    fn find_tail(&mut self, mail: Option<usize>, is_short: &dyn Fn(&str) -> bool) {
        let count = self.paragraphs.len();
        let thanks = |text: &str| is_closing(text) && text.lines().count() == 1;
        let end = count - usize::from(count > 1 && thanks(self.of(count - 1)));
        let is_request = |at: usize, is_apart| {
            !self.paragraphs[at].is_bulk && !is_code(self.of(at)) && reads_as_request(self.of(at), is_apart)
        };
        let is_letter = |to: usize| mail.is_some_and(|begin| self.is_letter(begin..to));
        let has_asked = (0..self.head).any(|at| reads_as_request(self.of(at), false));
        let has_address = |at: usize| self.of(at).contains("://") || self.of(at).contains('@');
        let may_be = |at: usize, is_apart| {
            is_request(at, is_apart)
                && is_short(self.between(at, count))
                && (self.head == 0 || !has_address(at))
        };
        let apart = (self.head.max(1)..end)
            .rev()
            .take(REQUEST)
            .take_while(|at| may_be(*at, true))
            .filter(|at| match has_asked && is_letter(*at) {
                true => self.is_behind_rule(*at),
                false => self.is_apart(*at, mail),
            })
            .last();
        if let Some(tail) = apart {
            self.is_tail_attached = is_letter(tail);
            self.tail = tail;
            return;
        }
        if self.head > 0 && is_letter(count) {
            return;
        }
        // What a text says at its end is taken for the only request, but not easily for another one.
        let most = if self.head > 0 { 1 } else { REQUEST };
        let tail = (self.head.max(1)..end).rev().take(most).take_while(|at| may_be(*at, false)).last();
        if let Some(tail) = tail {
            self.tail = tail;
            self.is_tail_attached = true;
        }
    }

    fn is_letter(&self, mut within: Range<usize>) -> bool {
        within.any(|at| self.begins_letter(at))
    }

    fn begins_letter(&self, at: usize) -> bool {
        has_headers(self.of(at)) || self.of(at).lines().next().is_some_and(|line| is_salutation(line.trim()))
    }

    fn last_line_before(&self, at: usize) -> &'t str {
        self.of(at - 1).lines().last().unwrap_or_default().trim()
    }

    /// Whether a rule or a fence separates what is before a paragraph from it.
    fn is_behind_rule(&self, at: usize) -> bool {
        let last = self.last_line_before(at);
        is_rule(last) && !last.ends_with(':') || fence_of(last).is_some()
    }

    /// Whether something separates what is before a paragraph from it: data, a quotation, a rule, or the end of a mail.
    fn is_apart(&self, at: usize, mail: Option<usize>) -> bool {
        if self.is_behind_rule(at) || self.last_line_before(at).starts_with('>') {
            return true;
        }
        match mail.filter(|begin| self.is_letter(*begin..at)) {
            Some(begin) => {
                let is_name = |line: &str| {
                    line.split_whitespace().count() <= 5
                        && !line.trim_end().ends_with(['.', '!', '?', ':', ','])
                };
                let begin = (begin..at).rev().find(|at| self.begins_letter(*at)).unwrap_or(begin);
                (begin..at).any(|at| self.of(at).lines().any(is_closing))
                    || at - 1 > begin && self.of(at - 1).lines().all(is_name)
            }
            None => {
                let pasted = self.between(self.head.min(at - 1), at);
                self.paragraphs[at - 1].is_bulk || is_code(pasted) || structure_of(pasted).is_some()
            }
        }
    }

    /// Marks what is between the requests at both ends, where something tells it apart.
    fn mark(&mut self, mail: Option<usize>, is_short: &dyn Fn(&str) -> bool) {
        let count = self.paragraphs.len();
        let is_asked = self.tail < count;
        // A text that a greeting begins is a mail only if a request follows it. What begins in the request is none.
        let mail = mail.filter(|begin| {
            let is_mail = *begin > 0 || is_asked || has_headers(self.of(0)) || is_rule(self.of(0));
            *begin < self.tail && is_mail
        });
        if let Some(begin) = mail {
            self.paragraphs[begin..self.tail].iter_mut().for_each(|paragraph| paragraph.is_bulk = true);
        }
        let pasted = self.between(self.head, self.tail);
        let is_fenced = (self.head..self.tail).any(|at| matches!(fence_of(self.of(at)), Some("```" | "~~~")));
        let is_separated = mail.is_some() || is_short(&self.own_words());
        if !is_fenced && is_code(pasted) || !is_separated && structure_of(pasted).is_some() {
            self.paragraphs[self.head..self.tail].iter_mut().for_each(|paragraph| paragraph.is_bulk = true);
        }
        let is_attached = self.is_tail_attached && self.paragraphs[self.tail - 1].is_bulk;
        for paragraph in &mut self.paragraphs[self.tail..] {
            paragraph.is_own = true;
            paragraph.is_bulk = is_attached;
        }
    }

    /// The user's words where nothing separates them: those at both ends, or the first paragraph, and the sentences
    /// that ask, the last ones first if not all fit.
    fn unseparated(&self, counter: &Counter) -> String {
        let count = self.paragraphs.len();
        let tail = self.between(self.tail, count);
        let first = self.paragraphs.first().map_or(0..0, |first| first.bytes.clone());
        let whole = &self.text[first.clone()];
        let opening = match whole {
            _ if self.head > 0 => self.between(0, self.head),
            _ if tail.is_empty() || self.is_tail_attached || begins_with_request(whole) => {
                beginning(whole, counter)
            }
            _ => "",
        };
        let mut left = OWN_WORDS.saturating_sub(counter.count(opening) + counter.count(tail) + 2);
        let mut asked = vec![tail];
        let from = first.start + opening.len();
        for paragraph in self.paragraphs[..self.tail].iter().rev() {
            let range = paragraph.bytes.start.max(from)..paragraph.bytes.end;
            if paragraph.is_bulk && !tail.is_empty() || range.is_empty() {
                continue;
            }
            let asking: Vec<&str> = sentences_that_ask(&self.text[range]).collect();
            for sentence in asking.into_iter().rev() {
                let Some(tokens) = counter.count_up_to(sentence, left.saturating_sub(2)) else { continue };
                left -= tokens + 2;
                asked.push(sentence);
            }
        }
        asked.push(opening.trim_end());
        asked.reverse();
        asked.retain(|part| !part.is_empty());
        asked.join("\n\n")
    }
}

/// Whether what is before a colon, or the first sentence, reads as a request.
fn begins_with_request(paragraph: &str) -> bool {
    let first = sentences(paragraph).into_iter().next().map_or("", |first| &paragraph[first]);
    let before_colon = paragraph.split_once(':').map_or("", |(before, _)| before);
    [first, before_colon].into_iter().any(|text| !is_bulk(text) && reads_as_request(text, false))
}

/// The first sentences of a paragraph, or what of the first one fits.
fn beginning<'t>(paragraph: &'t str, counter: &Counter) -> &'t str {
    let fits = |end: &usize| counter.count_up_to(&paragraph[..*end], PARAGRAPH).is_some();
    let ends = sentences(paragraph).into_iter().map(|sentence| sentence.end).chain([paragraph.len()]);
    let end = ends.take_while(fits).last();
    end.map_or_else(|| counter.prefix(paragraph, PARAGRAPH), |end| &paragraph[..end])
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
        _ if is_separated && is_code(inner) => "code",
        _ if has_headers(inner) || is_salutation(first) || first.starts_with('>') => "mail",
        _ if is_separated && is_bulk(inner) => "listing",
        _ => "text",
    }
}

fn sentences_that_ask(text: &str) -> impl Iterator<Item = &str> {
    // Lines without full stops before a question are not part of it.
    let own = |range: Range<usize>| match text[range.clone()].lines().count() {
        0..=3 => &text[range],
        _ => text[range].lines().last().unwrap_or_default().trim(),
    };
    sentences(text).into_iter().map(own).filter(|sentence| asks(sentence))
}

#[cfg(test)]
#[path = "pasted_tests.rs"]
mod tests;
