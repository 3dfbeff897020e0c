//! What an answer states and none of its documents does (R0-14.8): numbers, prices, dates, addresses and names, unless
//! code recomputes them. Plain functions of texts; `derived` recomputes numbers, `amounts` reads currencies and
//! words such as "million", `names` finds names.

mod amounts;
mod derived;
mod names;

use std::collections::BTreeSet;
use std::ops::Range;

use larder_condense::salience::{self, ErrorSense, SalientSpan, SpanKind};
use larder_text::months;

use self::amounts::{Amount, Currencies, amounts};
use self::derived::Derived;

/// Numbers with more digits before their decimals are not computed with.
const MOST_DIGITS: usize = 15;
/// Findings that are reported.
const MAX_FOUND: usize = 20;
/// Top-level domains that make a word an address; others are rather parts of names of files or of code.
const TOP_LEVEL: [&str; 16] = [
    "com", "org", "net", "edu", "gov", "dev", "shop", "example", "eu", "uk", "ca", "de", "ch", "fr", "nl",
    "jp",
];
/// Words of time after which a quantity is an age, which follows from a date and the present.
const AGE_ENDS: [&str; 4] = ["ago", "old", "alt", "earlier"];
/// Words of time before which it is one.
const AGE_STARTS: [&str; 3] = ["vor", "seit", "since"];

/// The values and names of `answer` that `known` neither states nor yields, in order; at most twenty.
pub fn unsupported(known: &str, answer: &str) -> Vec<String> {
    let mut found = find(known, answer);
    let text = without_citations(answer);
    let words = names::Words::of(known);
    let is_english = names::is_english(&text);
    found.extend(names::of(&text).into_iter().filter(|(_, name)| !words.know(name, is_english)));
    found.sort();
    found.dedup_by(|a, b| a.1 == b.1);
    found.into_iter().map(|(_, value)| value).take(MAX_FOUND).collect()
}

/// Of each line, read together, whether `known` states or yields its values. Names are not checked: what only looks like one
/// is no reason to drop a line.
pub fn are_stated(known: &str, lines: &[&str]) -> Vec<bool> {
    let found = find(known, &lines.join("\n"));
    let mut start = 0;
    let of_line = |line: &&str| {
        let range = start..start + line.len() + 1;
        start = range.end;
        !found.iter().any(|(at, _)| range.contains(at))
    };
    lines.iter().map(of_line).collect()
}

/// The values of `answer` that `known` neither states nor yields, with their places.
fn find(known: &str, answer: &str) -> Vec<(usize, String)> {
    let text = without_citations(answer);
    let currencies = Currencies::of(known);
    let known_numbers: BTreeSet<i128> = amounts::readings(known).collect();
    let spans = salience::scan(&text, ErrorSense::Strict);
    let derived = Derived::new(&text, &spans, &known_numbers, known);
    let mut found: Vec<(usize, String)> = Vec::new();
    for span in &spans {
        let value = &text[span.range.clone()];
        let is_supported = match span.kind {
            SpanKind::Error => true,
            SpanKind::Number if value.bytes().filter(u8::is_ascii_digit).count() == 1 => {
                !is_count(&text, &span.range) || derived.yields_count(&span.range)
            }
            SpanKind::Date => stands_in(known, value) || states_date(known, value),
            SpanKind::Number | SpanKind::Quantity | SpanKind::Price => {
                let shown: Vec<_> = amounts(&text, &span.range).collect();
                let is_known = |number| {
                    known_numbers.contains(&number) || derived.yields(span.kind, &span.range, number)
                };
                let is_shown = |shown: &Amount| {
                    shown.readings().any(is_known)
                        || currencies.scales.contains(&shown.scale)
                            && known_numbers.contains(&(shown.number / shown.scale))
                };
                let is_stated = shown.is_empty() && stands_in(known, value)
                    || !shown.is_empty() && shown.iter().all(is_shown);
                is_stated && shown.iter().all(|shown| currencies.allow(shown)) || is_age(&text, &span.range)
            }
            // Ids may be cut.
            SpanKind::Hash | SpanKind::Id => known.contains(value),
            _ => stands_in(known, value),
        };
        if !is_supported {
            let whole = whole_date(&text, &spans, span);
            found.push((whole.start, text[whole].to_owned()));
        }
    }
    let lower = known.to_lowercase();
    found.extend(sites(&text).filter(|(_, site)| !stands_in(&lower, &site.to_lowercase())));
    found
}

/// Whether a value is in a text by itself: `$69` is not in `$697`, and `1.5` not in `11.5`.
fn stands_in(text: &str, value: &str) -> bool {
    places(text, value).next().is_some()
}

/// Where a value is in a text by itself.
fn places<'t>(text: &'t str, value: &'t str) -> impl Iterator<Item = usize> + 't {
    let joins = |near: Option<char>, far: Option<char>, edge: Option<char>| {
        let is_digit = |char: Option<char>| char.is_some_and(|char| char.is_ascii_digit());
        edge.is_some_and(char::is_alphanumeric) && near.is_some_and(char::is_alphanumeric)
            || is_digit(edge) && matches!(near, Some('.' | ',')) && is_digit(far)
    };
    let stands = move |at: &usize| {
        let (mut before, mut after) = (text[..*at].chars().rev(), text[at + value.len()..].chars());
        let (left, right) = (before.next(), after.next());
        !joins(left, before.next(), value.chars().next())
            && !joins(right, after.next(), value.chars().next_back())
    };
    text.match_indices(value).map(|(at, _)| at).filter(stands)
}

/// Addresses of sites without a scheme, such as `shop.example`, with their places. What stands between backticks is code.
fn sites(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut at = 0;
    let pieces = text.split('`').enumerate().map(move |(number, piece)| {
        let start = at;
        at += piece.len() + 1;
        (start, if number % 2 == 0 { piece } else { "" })
    });
    let words = pieces.flat_map(|(start, piece)| {
        let mut at = start;
        piece.split_inclusive(char::is_whitespace).map(move |word| {
            let start = at;
            at += word.len();
            (start, word.trim_matches(|char: char| !char.is_alphanumeric()))
        })
    });
    let is_site = |word: &str| {
        let host = word.split('/').next().unwrap_or_default();
        let labels: Vec<&str> = host.split('.').collect();
        let is_label = |label: &&str| {
            !label.is_empty() && label.chars().all(|char| char.is_ascii_alphanumeric() || char == '-')
        };
        labels.len() > 1
            && labels.iter().all(is_label)
            && labels.last().is_some_and(|last| TOP_LEVEL.contains(&last.to_ascii_lowercase().as_str()))
    };
    words.filter(move |(_, word)| is_site(word)).map(|(start, word)| (start, word.to_owned()))
}

/// The date that a value is a part of, such as `3 May 2031` of `May 2031`; or the value itself.
fn whole_date(text: &str, spans: &[SalientSpan], part: &SalientSpan) -> Range<usize> {
    let mut whole = part.range.clone();
    let is_year = |span: &SalientSpan| span.kind == SpanKind::Number && span.range.len() == 4;
    let is_next = |first: &SalientSpan, second: &SalientSpan| {
        let between = text.get(first.range.end..second.range.start);
        first.kind == SpanKind::Date && is_year(second) && matches!(between, Some(" " | ", "))
    };
    if let Some(year) = spans.iter().find(|span| is_next(part, span)) {
        whole.end = year.range.end;
    }
    if let Some(date) = spans.iter().find(|span| is_next(span, part)) {
        whole.start = date.range.start;
    }
    if part.kind == SpanKind::Date && text[whole.start..].starts_with(char::is_alphabetic) {
        // The day before a month is too short a number to be a value by itself.
        let before = text[..whole.start].trim_end_matches(' ');
        let word = |char: char| char.is_alphanumeric() || char == '.';
        let day = before.rsplit(|char| !word(char)).next().unwrap_or_default();
        let digits = day.bytes().take_while(u8::is_ascii_digit).count();
        if (1..=2).contains(&digits) && ["", ".", "st", "nd", "rd", "th"].contains(&&day[digits..]) {
            whole.start = before.len() - day.len();
        }
    }
    whole
}

/// A text with spaces in place of these values, wherever they stand by themselves, also as they are otherwise written:
/// amounts and dates in another notation, names in another letter case or after a title.
pub fn without(text: &str, values: &[String]) -> String {
    let mut left = text.to_owned();
    let mut blank = |range: Range<usize>| {
        let spaces = " ".repeat(range.len());
        left.replace_range(range, &spaces);
    };
    let (dates, others): (Vec<&String>, Vec<&String>) =
        values.iter().filter(|value| !value.is_empty()).partition(|value| is_date(value));
    let shown: Vec<Amount> = others
        .iter()
        .flat_map(|value| amounts(value, &(0..value.len())))
        .filter(Amount::is_distinct)
        .collect();
    for (at, end) in numbers(text).map(|(at, _)| (at, amounts::end(text, at))) {
        let written = amounts(text, &(at..end)).next();
        if written.is_some_and(|written| shown.iter().any(|amount| amount.is_same(&written))) {
            blank(at..end);
        }
    }
    if !dates.is_empty() {
        let words = dated_words(text);
        dates.iter().flat_map(|date| date_places(&words, date)).for_each(&mut blank);
    }
    names::places(text, &others).into_iter().for_each(&mut blank);
    for value in dates.iter().chain(&others) {
        places(text, value).for_each(|at| blank(at..at + value.len()));
    }
    left
}

/// Whether a value is a date that names more than a month.
fn is_date(value: &str) -> bool {
    let spans = salience::scan(value, ErrorSense::Strict);
    spans.iter().any(|span| span.kind == SpanKind::Date) && date_numbers(value).len() > 1
}

/// Whether an answer states nothing that could be checked: no number, price, date, address or name, and nothing about
/// documents.
pub fn states_nothing(answer: &str) -> bool {
    const ABOUT_DOCUMENTS: [&str; 7] =
        ["document", "source", "file", "page", "report", "according", "result"];
    let lower = answer.to_lowercase();
    salience::scan(answer, ErrorSense::Strict).is_empty()
        && names::within(answer).is_empty()
        && !ABOUT_DOCUMENTS.iter().any(|word| lower.contains(word))
}

/// The answer with its markers of citations, such as `[1, 2]` and `[context.md§2]`, replaced by spaces.
fn without_citations(answer: &str) -> String {
    let mut text = answer.to_owned();
    let mut from = 0;
    while let Some(start) = text[from..].find('[').map(|at| from + at) {
        let Some(end) = text[start..].find(']').map(|at| start + at + 1) else { break };
        let inner = &text[start + 1..end - 1];
        let numbers = |char: char| char.is_ascii_digit() || matches!(char, ',' | ' ' | 'p' | '-');
        let is_citation =
            !text[end..].starts_with('(') && (inner.chars().all(numbers) || inner.contains('§'));
        if is_citation {
            text.replace_range(start..end, &" ".repeat(end - start));
        }
        from = if is_citation { end } else { start + 1 };
    }
    text
}

/// Whether a text states a date in any format.
fn states_date(text: &str, date: &str) -> bool {
    !date_places(&dated_words(text), date).is_empty()
}

/// The words of a text with their numbers, as of dates.
fn dated_words(text: &str) -> Vec<(Range<usize>, BTreeSet<u32>)> {
    let mut at = 0;
    let words = text.split_inclusive(char::is_whitespace).map(|word| {
        let start = at;
        at += word.len();
        (start..start + word.trim_end().len(), date_numbers(word))
    });
    words.filter(|(place, _)| !place.is_empty()).collect()
}

/// Where a date is in any format: its numbers, with those of named months, are in at most three words next to each other.
fn date_places(words: &[(Range<usize>, BTreeSet<u32>)], date: &str) -> Vec<Range<usize>> {
    let wanted = date_numbers(date);
    let place = |from: usize| {
        let date: Vec<_> =
            words[from..].iter().take(3).take_while(|(_, numbers)| !numbers.is_empty()).collect();
        let states = |part: &[&(Range<usize>, BTreeSet<u32>)]| {
            wanted.is_subset(&part.iter().flat_map(|(_, numbers)| numbers).copied().collect())
        };
        let length = (1..=date.len()).find(|length| states(&date[..*length]))?;
        // A number before the date is not of it.
        let is_first = !states(&date[1..length]);
        is_first.then(|| date[0].0.start..date[length - 1].0.end)
    };
    if wanted.is_empty() { Vec::new() } else { (0..words.len()).filter_map(place).collect() }
}

/// The numbers of a date, such as 2026, 1 and 5 for `2026-01-05` and for `5 January 2026`.
fn date_numbers(text: &str) -> BTreeSet<u32> {
    let parts = text.split(|char: char| !char.is_alphanumeric()).filter(|part| !part.is_empty());
    let numbers = parts.flat_map(|part| {
        let digits = part.split(|char: char| !char.is_ascii_digit()).filter(|run| !run.is_empty());
        digits.filter_map(|run| run.parse().ok()).chain(month(part)).collect::<Vec<u32>>()
    });
    numbers.collect()
}

fn month(word: &str) -> Option<u32> {
    /// The month of each name in [`months::GERMAN`].
    const GERMAN: [u32; 10] = [1, 1, 2, 2, 3, 5, 6, 7, 10, 12];
    let word = word.to_lowercase();
    let is_named = |month: &&str| **month == word || word.len() == 3 && month.starts_with(&word);
    let english = (1..).zip(&months::ENGLISH).find(|(_, month)| is_named(month)).map(|(number, _)| number);
    let german = || GERMAN.into_iter().zip(&months::GERMAN).find(|(_, month)| **month == word);
    english.or_else(|| german().map(|(number, _)| number))
}

/// Every number of a text with its place, in thousandths, except ids and the like with too many digits to count with.
/// `1,299.50` and `1.299,50` are the same, and so are `$12k`, `12 thousand` and `12,000`.
fn numbers(text: &str) -> impl Iterator<Item = (usize, i128)> {
    let is_part = |char: char| char.is_ascii_digit() || matches!(char, '.' | ',');
    let mut at = 0;
    let runs = text.split_inclusive(move |char: char| !is_part(char)).map(move |run| {
        let start = at;
        at += run.len();
        (start, run.trim_end_matches(|char: char| !is_part(char)))
    });
    let has_digit = |run: &str| run.contains(|char: char| char.is_ascii_digit());
    let scaled = |start: usize, run: &str| {
        let end = start + run.trim_end_matches(['.', ',']).len();
        number(run)?.checked_mul(amounts::scale(text, end))
    };
    runs.filter(move |(_, run)| has_digit(run))
        .filter_map(move |(start, run)| Some((start, scaled(start, run)?)))
}

fn number(text: &str) -> Option<i128> {
    let text = text.trim_matches(['.', ',']);
    let marks: Vec<(usize, char)> = text.char_indices().filter(|(_, char)| !char.is_ascii_digit()).collect();
    // The last mark separates decimals unless exactly three digits follow it or it occurs twice.
    let decimal = marks.last().filter(|(at, mark)| {
        text.len() - at - 1 != 3 && marks.iter().filter(|(_, other)| other == mark).count() == 1
    });
    let (whole, decimals) = decimal.map_or((text, ""), |(at, _)| (&text[..*at], &text[at + 1..]));
    let digits: String = whole.chars().filter(char::is_ascii_digit).collect();
    let decimals: String = decimals.chars().chain("000".chars()).take(3).collect();
    (digits.len() <= MOST_DIGITS).then(|| format!("{digits}{decimals}").parse().ok()).flatten()
}

/// Whether a digit counts something, as in `9 are in stock`: not the number of a list item or a part of a name.
fn is_count(text: &str, range: &Range<usize>) -> bool {
    let (before, after) = (&text[..range.start], &text[range.end..]);
    let stands_alone = range.len() == 1
        && before
            .chars()
            .next_back()
            .is_none_or(|char| char.is_whitespace() || matches!(char, '(' | '*' | '|'));
    let unit = after.trim_start_matches('*').strip_prefix(' ').unwrap_or_default();
    let follows_name = before.split_whitespace().next_back().is_some_and(|word| {
        let is_sentence_end = word.ends_with(['.', '!', '?', ':', '|', '*', '-']);
        !is_sentence_end && word.chars().all(char::is_alphanumeric) && word.starts_with(char::is_uppercase)
    });
    stands_alone && !follows_name && unit.starts_with(char::is_alphabetic)
}

/// Whether the quantity is an age, such as `2 hours ago`.
fn is_age(text: &str, range: &Range<usize>) -> bool {
    let word = |text: &str| text.trim_matches(|char: char| !char.is_alphanumeric()).to_lowercase();
    let mut after = text[range.end..].split_whitespace().take(2).map(word);
    let before = text[..range.start].split_whitespace().next_back().map(word).unwrap_or_default();
    AGE_STARTS.contains(&before.as_str()) || after.any(|word| AGE_ENDS.contains(&word.as_str()))
}

#[cfg(test)]
#[path = "figures_tests.rs"]
mod tests;
