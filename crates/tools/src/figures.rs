//! What an answer states and none of its documents does (R0-14.8): numbers, prices, dates, addresses and names, unless
//! code recomputes them. Plain functions of texts; `plain` takes markup away, `derived` recomputes numbers, `amounts` reads
//! currencies and words such as "million", `units` reads units, `dates`, `times` and `ages` read those, `names` finds names.

mod ages;
mod amounts;
mod dates;
mod derived;
mod names;
mod plain;
mod times;
mod units;

use std::collections::BTreeSet;
use std::ops::Range;

use larder_condense::salience::{self, ErrorSense, SalientSpan, SpanKind};

use self::ages::Moments;
use self::amounts::{Amount, Currencies, amounts};
use self::derived::Derived;
use self::plain::{with_joined_groups, without_markup};
use self::units::Measures;

/// Numbers with more digits before their decimals are not computed with.
const MOST_DIGITS: usize = 15;
/// Numbers from this, in thousandths, on may be years.
const YEARS: i128 = 1_000 * 1_000;
/// Findings that are reported.
const MAX_FOUND: usize = 20;
/// Top-level domains that make a word an address; others are rather parts of names of files or of code.
const TOP_LEVEL: [&str; 16] = [
    "com", "org", "net", "edu", "gov", "dev", "shop", "example", "eu", "uk", "ca", "de", "ch", "fr", "nl",
    "jp",
];
/// Words before a price that is rounded.
const ABOUT: [&str; 15] = [
    "about",
    "around",
    "roughly",
    "approximately",
    "approx",
    "almost",
    "nearly",
    "just under",
    "just over",
    "rund",
    "etwa",
    "circa",
    "ca",
    "knapp",
    "fast",
];
/// The part of a price by which it may then differ.
const ROUNDING: i128 = 50;

/// The values and names of `answer` that `known` neither states nor yields, in order; at most twenty.
pub fn unsupported(known: &str, answer: &str) -> Vec<String> {
    let known = Known::of(known);
    let text = known.read(answer);
    let mut found = known.unsupported_values(&text);
    let words = names::Words::of(&known.text);
    let is_english = names::is_english(&text);
    found.extend(names::of(&text).into_iter().filter(|(_, name)| !words.know(name, is_english)));
    found.sort();
    found.dedup_by(|a, b| a.1 == b.1);
    found.into_iter().map(|(_, value)| value).take(MAX_FOUND).collect()
}

/// Of each line, read together, whether `known` states or yields its values. Names are not checked: what only looks like one
/// is no reason to drop a line.
pub fn are_stated(known: &str, lines: &[&str]) -> Vec<bool> {
    let known = Known::of(known);
    let lines: Vec<String> = lines.iter().map(|line| known.read(line)).collect();
    let found = known.unsupported_values(&lines.join("\n"));
    let mut start = 0;
    let of_line = |line: &String| {
        let range = start..start + line.len() + 1;
        start = range.end;
        !found.iter().any(|(at, _)| range.contains(at))
    };
    lines.iter().map(of_line).collect()
}

/// What the documents say, as it is read.
struct Known {
    text: String,
    numbers: BTreeSet<i128>,
    dates: Vec<dates::Written>,
    times: Vec<times::Written>,
    currencies: Currencies,
    measures: Measures,
    moments: Moments,
}

impl Known {
    fn of(documents: &str) -> Self {
        let text = with_joined_groups(documents, |_| false);
        let dates = dates::stated(&text);
        let is_part = |at: usize| {
            let date = dates.get(dates.partition_point(|date| date.range.end <= at));
            date.is_some_and(|date| {
                date.range.start <= at && !date.is_doubtful && date.days().next().is_some()
            })
        };
        // The day and the month of a whole date are no numbers of something else.
        let stated = amounts::readings(&text).filter(|(at, number)| *number >= YEARS || !is_part(*at));
        // Plain spaces may group digits.
        let loose = with_joined_groups(documents, |_| true);
        let loose = amounts::readings(&loose).filter(|(_, number)| *number >= YEARS);
        let numbers: BTreeSet<i128> = stated.chain(loose).map(|(_, number)| number).collect();
        Self {
            times: times::of(&text),
            currencies: Currencies::of(&text),
            measures: Measures::of(&text),
            moments: Moments::new(&numbers, &dates),
            text,
            numbers,
            dates,
        }
    }

    /// An answer as it is read next to the documents.
    fn read(&self, answer: &str) -> String {
        let knows = |digits: &str| {
            digits.parse().is_ok_and(|number: i128| self.numbers.contains(&number.saturating_mul(1_000)))
        };
        with_joined_groups(&without_markup(answer), knows)
    }

    /// The values of an answer that the documents neither state nor yield, with their places.
    fn unsupported_values(&self, text: &str) -> Vec<(usize, String)> {
        let states = |date: &dates::Written| self.dates.iter().any(|known| date.is_stated_by(known));
        let (stated, unstated): (Vec<_>, Vec<_>) = dates::of(text).into_iter().partition(states);
        let mut found: Vec<(usize, String)> = Vec::new();
        // A month by itself is rather a word than a date.
        for date in unstated.iter().filter(|date| !date.is_doubtful && date.is_distinct()) {
            found.push((date.range.start, text[date.range.clone()].to_owned()));
        }
        let times = times::of(text);
        for time in times.iter().filter(|time| !self.times.iter().any(|known| time.is(known))) {
            let value = &text[time.range.clone()];
            if !stands_in(&self.text, value) {
                found.push((time.range.start, value.to_owned()));
            }
        }
        let overlap =
            |one: &Range<usize>, other: &Range<usize>| one.start < other.end && other.start < one.end;
        let is_part = |date: &dates::Written, place: &Range<usize>| overlap(&date.range, place);
        let mut spans = salience::scan(text, ErrorSense::Strict);
        spans.retain(|span| {
            let mut of_dates = stated.iter().chain(unstated.iter().filter(|date| !date.is_doubtful));
            span.kind == SpanKind::Error
                || !of_dates.any(|date| date.is_distinct() && is_part(date, &span.range))
                    && !times.iter().any(|time| overlap(&time.range, &span.range))
        });
        for span in &mut spans {
            if let Some(price) = amounts::with_currency(text, span) {
                (span.kind, span.range) = (SpanKind::Price, price);
            }
        }
        let derived = Derived::new(text, &spans, &self.numbers, &self.text);
        for span in &spans {
            let value = &text[span.range.clone()];
            let is_supported = match span.kind {
                SpanKind::Error => true,
                SpanKind::Number if value.bytes().filter(u8::is_ascii_digit).count() == 1 => {
                    !is_count(text, &span.range) || derived.yields_count(&span.range)
                }
                SpanKind::Date => stands_in(&self.text, value) || states_month(&self.dates, value),
                SpanKind::Number | SpanKind::Quantity | SpanKind::Price => {
                    let shown: Vec<_> = amounts(text, &span.range).collect();
                    let is_about = says_about(&text[..span.range.start]);
                    let is_rounded = |shown: &Amount, number: i128| {
                        let room = number / ROUNDING;
                        let mut near = self.numbers.range(number - room..=number + room);
                        span.kind == SpanKind::Price && near.any(|near| self.currencies.allow(shown, *near))
                    };
                    let is_known = |shown: &Amount, number| {
                        self.numbers.contains(&number) && self.currencies.allow(shown, number)
                            || derived.yields(span.kind, &span.range, number)
                            || is_about && is_rounded(shown, number)
                    };
                    let is_shown = |shown: &Amount| {
                        shown.readings().any(|number| is_known(shown, number))
                            || self.currencies.scales.contains(&shown.scale)
                                && self.numbers.contains(&(shown.number / shown.scale))
                    };
                    shown.is_empty() && stands_in(&self.text, value)
                        || !shown.is_empty() && shown.iter().all(is_shown)
                        || self.measures.state(text, &span.range)
                        || self.moments.yield_age(text, &span.range)
                }
                // Ids may be cut.
                SpanKind::Hash | SpanKind::Id => self.text.contains(value),
                _ => stands_in(&self.text, value),
            };
            if !is_supported {
                let doubtful = unstated.iter().find(|date| is_part(date, &span.range));
                let whole = doubtful.map_or(&span.range, |date| &date.range).clone();
                found.push((whole.start, text[whole].to_owned()));
            }
        }
        found.sort();
        found.dedup();
        let lower = self.text.to_lowercase();
        found.extend(sites(text).filter(|(_, site)| !stands_in(&lower, &site.to_lowercase())));
        found
    }
}

/// Whether a text ends with a word that says that a number is rounded.
fn says_about(before: &str) -> bool {
    let before = before.trim_end().trim_end_matches(['*', '_', '$', '€', '£']).trim_end().to_lowercase();
    let ends_with = |word: &&str| {
        let start = before.strip_suffix(word).or_else(|| before.strip_suffix('.')?.strip_suffix(word));
        start.is_some_and(|start| !start.ends_with(char::is_alphanumeric))
    };
    before.ends_with(['~', '≈']) || ABOUT.iter().any(ends_with)
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
    let text = &with_joined_groups(text, |_| false);
    let mut left = text.clone();
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
    let mut left = with_joined_groups(text, |_| false);
    for range in prices(&left).into_iter().rev() {
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

/// Whether a text names the day of a date.
pub fn names_day(text: &str, date: &str) -> bool {
    let known = dates::of(date);
    let names =
        |written: &dates::Written| written.has_day() && known.iter().any(|known| written.is_stated_by(known));
    dates::of(text).iter().any(names)
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

/// How many digits a text begins with.
fn digits(text: &str) -> usize {
    text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len())
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

#[cfg(test)]
#[path = "figures_tests.rs"]
mod tests;
