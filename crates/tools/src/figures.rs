//! What an answer states and none of its documents does (R0-14.8): numbers, prices, dates, addresses and names, unless
//! code recomputes them. Plain functions of texts; `derived` recomputes numbers, `amounts` reads currencies and
//! words such as "million", `units` reads units, `dates` reads dates, `names` finds names.

mod amounts;
mod dates;
mod derived;
mod names;
mod units;

use std::collections::BTreeSet;
use std::ops::Range;

use larder_condense::salience::{self, ErrorSense, SalientSpan, SpanKind};

use self::amounts::{Amount, Currencies, amounts};
use self::derived::Derived;
use self::units::Measures;

/// Numbers with more digits before their decimals are not computed with.
const MOST_DIGITS: usize = 15;
/// Findings that are reported.
const MAX_FOUND: usize = 20;
/// Top-level domains that make a word an address; others are rather parts of names of files or of code.
const TOP_LEVEL: [&str; 16] = [
    "com", "org", "net", "edu", "gov", "dev", "shop", "example", "eu", "uk", "ca", "de", "ch", "fr", "nl",
    "jp",
];
/// Words before a price that is rounded.
const ABOUT: [&str; 9] =
    ["about", "around", "roughly", "approximately", "approx", "rund", "etwa", "circa", "ca"];
/// The part of a price by which it may then differ.
const ROUNDING: i128 = 50;
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
    let measures = Measures::of(known);
    let known_dates = dates::of(known);
    let states = |date: &dates::Written| known_dates.iter().any(|known| date.is_stated_by(known));
    let (stated, unstated): (Vec<_>, Vec<_>) = dates::of(&text).into_iter().partition(states);
    let mut found: Vec<(usize, String)> = Vec::new();
    // A month by itself is rather a word than a date.
    for date in unstated.iter().filter(|date| !date.is_doubtful && date.is_distinct()) {
        found.push((date.range.start, text[date.range.clone()].to_owned()));
    }
    let is_part = |date: &dates::Written, place: &Range<usize>| {
        date.range.start < place.end && place.start < date.range.end
    };
    let mut spans = salience::scan(&text, ErrorSense::Strict);
    spans.retain(|span| {
        let mut of_dates = stated.iter().chain(unstated.iter().filter(|date| !date.is_doubtful));
        span.kind == SpanKind::Error || !of_dates.any(|date| date.is_distinct() && is_part(date, &span.range))
    });
    for span in &mut spans {
        if let Some(price) = amounts::with_currency(&text, span) {
            (span.kind, span.range) = (SpanKind::Price, price);
        }
    }
    let derived = Derived::new(&text, &spans, &known_numbers, known);
    for span in &spans {
        let value = &text[span.range.clone()];
        let is_supported = match span.kind {
            SpanKind::Error => true,
            SpanKind::Number if value.bytes().filter(u8::is_ascii_digit).count() == 1 => {
                !is_count(&text, &span.range) || derived.yields_count(&span.range)
            }
            SpanKind::Date => stands_in(known, value) || states_month(&known_dates, value),
            SpanKind::Number | SpanKind::Quantity | SpanKind::Price => {
                let shown: Vec<_> = amounts(&text, &span.range).collect();
                let is_about = says_about(&text[..span.range.start]);
                let is_rounded = |shown: &Amount, number: i128| {
                    let room = number / ROUNDING;
                    let mut near = known_numbers.range(number - room..=number + room);
                    span.kind == SpanKind::Price && near.any(|near| currencies.allow(shown, *near))
                };
                let is_known = |shown: &Amount, number| {
                    known_numbers.contains(&number) && currencies.allow(shown, number)
                        || derived.yields(span.kind, &span.range, number)
                        || is_about && is_rounded(shown, number)
                };
                let is_shown = |shown: &Amount| {
                    shown.readings().any(|number| is_known(shown, number))
                        || currencies.scales.contains(&shown.scale)
                            && known_numbers.contains(&(shown.number / shown.scale))
                };
                shown.is_empty() && stands_in(known, value)
                    || !shown.is_empty() && shown.iter().all(is_shown)
                    || measures.state(&text, &span.range)
                    || is_age(&text, &span.range)
            }
            // Ids may be cut.
            SpanKind::Hash | SpanKind::Id => known.contains(value),
            _ => stands_in(known, value),
        };
        if !is_supported {
            let doubtful = unstated.iter().find(|date| is_part(date, &span.range));
            let whole = doubtful.map_or(&span.range, |date| &date.range).clone();
            found.push((whole.start, text[whole].to_owned()));
        }
    }
    found.sort();
    found.dedup();
    let lower = known.to_lowercase();
    found.extend(sites(&text).filter(|(_, site)| !stands_in(&lower, &site.to_lowercase())));
    found
}

/// Whether a text ends with a word that says that a number is rounded.
fn says_about(before: &str) -> bool {
    let before = before.trim_end().trim_end_matches(['*', '_', '$', '€', '£']).trim_end();
    let word = before.rsplit(char::is_whitespace).next().unwrap_or_default().to_lowercase();
    before.ends_with(['~', '≈']) || ABOUT.contains(&word.trim_matches(|char: char| !char.is_alphanumeric()))
}

/// Whether a date names a month, and nothing else, that one of these does.
fn states_month(known: &[dates::Written], value: &str) -> bool {
    let dates = dates::of(value);
    !dates.is_empty() && dates.iter().all(|date| known.iter().any(|known| date.is_stated_by(known)))
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
    let dated: Vec<dates::Written> = dates.iter().flat_map(|value| dates::of(value)).collect();
    for written in dates::of(text) {
        if dated.iter().any(|date| date.is_distinct() && date.is_stated_by(&written)) {
            blank(written.range);
        }
    }
    names::places(text, &others).into_iter().for_each(&mut blank);
    for value in dates.iter().chain(&others) {
        places(text, value).for_each(|at| blank(at..at + value.len()));
    }
    left
}

/// A text with a mark in place of each price.
pub fn without_prices(text: &str) -> String {
    let mut left = text.to_owned();
    for range in prices(text).into_iter().rev() {
        left.replace_range(range, "(old price)");
    }
    left
}

/// Whether a text states a price, with its currency before or after it.
pub fn states_price(text: &str) -> bool {
    !prices(text).is_empty()
}

/// Where the prices of a text are.
fn prices(text: &str) -> Vec<Range<usize>> {
    let price = |span: SalientSpan| {
        let with_currency = amounts::with_currency(text, &span);
        with_currency.or_else(|| Some(span.range).filter(|_| span.kind == SpanKind::Price))
    };
    salience::scan(text, ErrorSense::Strict).into_iter().filter_map(price).collect()
}

/// Whether a value is a date that names more than a month.
fn is_date(value: &str) -> bool {
    dates::of(value).iter().any(dates::Written::is_distinct)
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
    let is_factor = unit.starts_with("x ");
    stands_alone && !follows_name && !is_factor && unit.starts_with(char::is_alphabetic)
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
