//! What an answer states and none of its documents does (R0-14.8): numbers, prices, dates, addresses and names, unless
//! code recomputes them. Plain functions of texts; `plain` takes markup away, `derived` recomputes numbers, `amounts` reads
//! currencies and words such as "million", `units` reads units, `dates`, `times` and `ages` read those, `names` finds names
//! and `strangers` those of which the documents have no word, `present` says what the time of the answer supports.

mod ages;
mod amounts;
mod counts;
mod dates;
mod derived;
mod names;
mod plain;
mod present;
mod sites;
mod starts;
mod strangers;
mod times;
mod units;

use std::collections::BTreeSet;
use std::ops::Range;

use larder_condense::salience::{self, ErrorSense, SalientSpan, SpanKind};

use self::ages::Moments;
use self::amounts::{Amount, Currencies, amounts};
use self::counts::{is_count, says_lines};
use self::derived::Derived;
use self::plain::{with_joined_groups, without_markup};
use self::present::Present;
use self::sites::sites;
use self::units::Measures;

/// Numbers with more digits before their decimals are not computed with.
const MOST_DIGITS: usize = 15;
/// Numbers from this, in thousandths, on may be years.
const YEARS: i128 = 1_000 * 1_000;
/// Findings that are reported.
const MAX_FOUND: usize = 20;
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

/// What an answer may state.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'e> {
    /// The documents: their values, and their names unless `names` replaces them.
    text: &'e str,
    names: Option<&'e str>,
    now: &'e str,
    lines: &'e [usize],
}

impl<'e> Evidence<'e> {
    /// What these documents state.
    pub const fn new(text: &'e str) -> Self {
        Self { text, names: None, now: "", lines: &[] }
    }

    /// With another text for names: `text` has some that nothing states.
    #[must_use]
    pub const fn with_names(self, names: &'e str) -> Self {
        Self { names: Some(names), ..self }
    }

    /// At a time, which supports ages, and its date where an answer says that it is of today; nothing else.
    #[must_use]
    pub const fn at(self, now: &'e str) -> Self {
        Self { now, ..self }
    }

    /// With the numbers of lines of the documents, which support what an answer says of lines and rows.
    #[must_use]
    pub const fn with_lines(self, lines: &'e [usize]) -> Self {
        Self { lines, ..self }
    }

    /// The values and names of `answer` that this neither states nor yields, in order; at most twenty.
    pub fn unsupported(self, answer: &str) -> Vec<String> {
        let known = Known::of(self);
        let text = known.read(answer);
        let mut found = known.unsupported_values(&text);
        let words = names::Words::of(self.names.unwrap_or(&known.text));
        let is_english = names::is_english(&text);
        let mut unknown: Vec<(usize, String)> =
            names::of(&text).into_iter().filter(|(_, name)| !words.know(name, is_english)).collect();
        for (at, name) in strangers::of(&text, &words) {
            if !unknown.iter().any(|(_, known)| known.contains(&name)) {
                unknown.push((at, name));
            }
        }
        found.extend(unknown);
        found.sort();
        found.dedup_by(|a, b| a.1 == b.1);
        found.into_iter().map(|(_, value)| value).take(MAX_FOUND).collect()
    }

    /// Of each line, read together, whether this states or yields its values. Names are not checked: what only looks like
    /// one is no reason to drop a line.
    pub fn are_stated(self, lines: &[&str]) -> Vec<bool> {
        let known = Known::of(self);
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
}

/// The values and names of `answer` that `known` neither states nor yields, in order; at most twenty.
pub fn unsupported(known: &str, answer: &str) -> Vec<String> {
    Evidence::new(known).unsupported(answer)
}

/// Of each line, read together, whether `known` states or yields its values.
pub fn are_stated(known: &str, lines: &[&str]) -> Vec<bool> {
    Evidence::new(known).are_stated(lines)
}

/// The words of a text that may be of a name, in lower case, and that `known` does not have.
pub fn unstated_words(text: &str, known: &str) -> Vec<String> {
    names::Words::of(known).lack(text)
}

/// A text without these words, whatever their letter case.
pub fn without_words(text: &str, words: &[String]) -> String {
    names::without_words(text, words)
}

/// What the documents say, as it is read.
struct Known<'e> {
    text: String,
    numbers: BTreeSet<i128>,
    dates: Vec<dates::Written>,
    times: Vec<times::Written>,
    currencies: Currencies,
    measures: Measures,
    moments: Moments,
    present: Present,
    lines: &'e [usize],
}

impl<'e> Known<'e> {
    fn of(evidence: Evidence<'e>) -> Self {
        let documents = evidence.text;
        let present = Present::new(evidence.now);
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
            moments: Moments::new(&numbers, dates.iter().chain(&present.dates)),
            present,
            lines: evidence.lines,
            text,
            numbers,
            dates,
        }
    }

    /// Whether a number is how many lines a document has, with or without a heading, and the answer says so.
    fn counts_lines(&self, text: &str, range: &Range<usize>) -> bool {
        let end = amounts::end(text, range.start);
        let number = numbers(&text[range.start..end]).next().map(|(_, number)| number / 1_000);
        let lines = || self.lines.iter().flat_map(|lines| [*lines, lines.saturating_sub(1)]);
        says_lines(&text[end..]) && lines().any(|lines| number == Some(lines as i128))
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
        let states = |date: &dates::Written| {
            self.dates.iter().any(|known| date.is_stated_by(known)) || self.present.states(text, date)
        };
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
        let is_english = names::is_english(text);
        for span in &spans {
            let value = &text[span.range.clone()];
            let is_supported = match span.kind {
                SpanKind::Error => true,
                SpanKind::Number if value.bytes().filter(u8::is_ascii_digit).count() == 1 => {
                    !is_count(text, &span.range, is_english)
                        || derived.yields_count(&span.range)
                        || self.counts_lines(text, &span.range)
                        || self.moments.yield_age(text, &span.range)
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
                    let are_prices = |shown: &Amount, addends: &[i128]| {
                        let is_price =
                            |one: &i128| self.numbers.contains(one) && self.currencies.allow(shown, *one);
                        addends.iter().all(is_price)
                    };
                    let is_known = |shown: &Amount, number| {
                        self.numbers.contains(&number) && self.currencies.allow(shown, number)
                            || derived.yields(span.kind, &span.range, number)
                            || derived
                                .written_sums(&span.range, number)
                                .any(|addends| are_prices(shown, &addends))
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
                        || self.present.is_year(text, &span.range)
                        || self.counts_lines(text, &span.range)
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

#[cfg(test)]
#[path = "figures_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "figures_languages_tests.rs"]
mod languages_tests;
