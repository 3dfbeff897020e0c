//! What an answer states and none of its documents does (R0-14.8): numbers, prices, dates, addresses and names, unless
//! code recomputes them. Plain functions of texts; `plain` takes markup away, `derived` recomputes numbers, `amounts`
//! reads amounts of `currencies`, `units` reads units, `worded` numbers in words, `dates`, `weekdays`, `times` and `ages`
//! read those, `phones` numbers to call, `lists` separates numbers that commas join, `implied` recomputes what an answer
//! does not show, `scales` reads words such as "million", `products` factors of prices, `tables` the headings of columns,
//! `axes` whether the rows or the columns of a table are things, `rows`, `cells`, `former` and `options` find values of
//! something else, `names` finds names, `cues` what says that they are of somebody, and `strangers` those of which the documents
//! have no word, `present` says what the time of the answer supports, `known` puts them together.

mod ages;
mod amounts;
mod axes;
mod cells;
mod counts;
mod cues;
mod currencies;
mod dates;
mod derived;
mod former;
mod implied;
mod known;
mod lists;
mod names;
mod options;
mod phones;
mod plain;
mod present;
mod products;
mod rows;
mod scales;
mod sites;
mod starts;
mod strangers;
mod tables;
mod times;
mod units;
mod weekdays;
mod worded;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use larder_condense::salience::{self, ErrorSense, SalientSpan, SpanKind};

use self::amounts::{Amount, amounts};
use self::known::Known;
use self::plain::with_joined_groups;
use self::tables::Tables;

/// Numbers with more digits before their decimals are not computed with.
const MOST_DIGITS: usize = 15;
/// Stands between two documents.
pub const BOUNDARY: &str = "\n\u{c}\n";
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
/// Bytes in which such words are.
const ABOUT_BYTES: usize = 64;
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
        let words = words::Words::of(self.names.unwrap_or(&known.text));
        let with_nouns = names::capitalises_nouns(&text);
        let unknown = names::of(&text, &known.text).into_iter().filter(|name| !words.know(name, with_nouns));
        let unknown: Vec<(usize, String)> =
            unknown.map(|name| (name.line, name.text)).take(MAX_FOUND).collect();
        let strangers = strangers::of(&text, &words).into_iter();
        let others = strangers.filter(|(_, name)| {
            !unknown.iter().any(|(_, known)| known.contains(name) || name.contains(known))
        });
        found.extend(others.take(MAX_FOUND));
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
    words::Words::of(known).lack(text)
}

/// A text without these words, whatever their letter case.
pub fn without_words(text: &str, words: &[String]) -> String {
    names::without_words(text, words)
}

/// Whether a text ends with a word that says that a number is rounded.
fn says_about(before: &str) -> bool {
    let before = &before[window(before, &(before.len()..before.len()), ABOUT_BYTES).start..];
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

/// A text with a mark in place of each price, and of each number that its name in data or the heading of its column calls
/// one.
pub fn without_prices(text: &str) -> String {
    without_some_prices(text, |_| true)
}

/// A text with a mark in place of those of its prices that another text states as well.
pub fn without_prices_of(text: &str, other: &str) -> String {
    let other = &with_joined_groups(other, |_| false);
    let numbers: BTreeMap<usize, i128> = numbers(other).collect();
    let places = places_of_prices(other).into_iter();
    let prices: BTreeSet<i128> =
        places.flat_map(|place| numbers.range(place)).map(|(_, number)| *number).collect();
    without_some_prices(text, |number| prices.contains(&number))
}

fn without_some_prices(text: &str, is_meant: impl Fn(i128) -> bool) -> String {
    let text = &with_joined_groups(text, |_| false);
    let numbers: BTreeMap<usize, i128> = numbers(text).collect();
    let mut without = String::with_capacity(text.len());
    let mut done = 0;
    for range in places_of_prices(text) {
        // A price whose number is not read is one of those.
        let mut numbers = numbers.range(range.clone()).map(|(_, number)| *number).peekable();
        if numbers.peek().is_none() || numbers.any(&is_meant) {
            without.push_str(&text[done..range.start]);
            without.push_str("(old price)");
            done = range.end;
        }
    }
    without.push_str(&text[done..]);
    without
}

/// Where the prices of a text are, with the numbers that their names in data or the headings of their columns call prices.
fn places_of_prices(text: &str) -> Vec<Range<usize>> {
    let mut found = prices(text);
    let tables = Tables::of(text);
    let is_price =
        |at: usize| amounts::is_called_price(text, &tables, at) || amounts::is_money(text, &tables, at);
    let named = numbers(text).filter(|(at, _)| is_price(*at));
    found.extend(named.map(|(at, _)| at..amounts::end(text, at)));
    found.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
    found.dedup_by(|later, range| later.start < range.end);
    found
}

/// Whether a text states a price, with its currency before or after it.
pub fn states_price(text: &str) -> bool {
    !prices(text).is_empty()
}

/// Whether a text states an amount of money, also with the name of the currency in front (`EUR 329`) or over a column.
pub fn states_money(text: &str) -> bool {
    let tables = Tables::of(text);
    states_price(text) || numbers(text).any(|(at, _)| amounts::is_money(text, &tables, at))
}

/// Whether a text states the amounts of a price as prices, and in their currency: a year or a house number is no price. All
/// numbers of a price without a currency count as amounts.
pub fn has_price(text: &str, price: &str) -> bool {
    let [text, price] = [text, price].map(|text| with_joined_groups(text, |_| false));
    let [tables, columns] = [&text, &price].map(|text| Tables::of(text));
    let is_price =
        |at: usize| amounts::is_money(&text, &tables, at) || amounts::is_called_price(&text, &tables, at);
    let has_currency = numbers(&price).any(|(at, _)| amounts::is_money(&price, &columns, at));
    let mut asked =
        numbers(&price).filter(|(at, _)| !has_currency || amounts::is_money(&price, &columns, *at));
    asked.all(|(_, number)| numbers(&text).any(|(at, other)| other == number && is_price(at)))
        && are_stated(&text, &[&format!("It costs {price}.")]) == [true]
}

/// Whether a text calls an amount of money a price, a cost or the like.
pub fn offers(text: &str) -> bool {
    let tables = Tables::of(text);
    let is_offer =
        |at: usize| amounts::is_called_price(text, &tables, at) && amounts::is_money(text, &tables, at);
    numbers(text).any(|(at, _)| is_offer(at))
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

/// Whether a text says how many days or weeks ago something was that was `days` ago: `3 days ago`, `vor drei Tagen`.
pub fn says_ago(text: &str, days: &[i64]) -> bool {
    ages::says_ago(text, days)
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
        // A comma before it separates it from what precedes.
        let number = run.trim_start_matches(['.', ',']);
        (start + run.len() - number.len(), number.trim_end_matches(|char: char| !is_part(char)))
    });
    let has_digit = |run: &str| run.contains(|char: char| char.is_ascii_digit());
    let scaled = |start: usize, run: &str| {
        let end = start + run.trim_end_matches(['.', ',']).len();
        // `.045`
        let before = text[..start].strip_suffix('.');
        let is_decimal = before
            .is_some_and(|before| !before.ends_with(|char: char| char == '.' || char.is_alphanumeric()));
        let number = if is_decimal { number(&format!("0.{run}")) } else { number(run) };
        number?.checked_mul(amounts::scale(text, end))
    };
    runs.filter(move |(_, run)| has_digit(run))
        .filter_map(move |(start, run)| Some((start, scaled(start, run)?)))
}

/// A stretch of a text with this many bytes before and after it, and no part of a character.
fn window(text: &str, range: &Range<usize>, bytes: usize) -> Range<usize> {
    let start = (range.start.saturating_sub(bytes)..range.start).find(|at| text.is_char_boundary(*at));
    let most = range.end.saturating_add(bytes).min(text.len());
    let end = (range.end..=most).rev().find(|at| text.is_char_boundary(*at));
    start.unwrap_or(range.start)..end.unwrap_or(range.end)
}

/// How many digits a text begins with.
fn digits(text: &str) -> usize {
    text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len())
}

fn number(text: &str) -> Option<i128> {
    let text = text.trim_matches(['.', ',']);
    let marks: Vec<(usize, char)> = text.char_indices().filter(|(_, char)| !char.is_ascii_digit()).collect();
    // The last mark separates decimals unless it occurs twice or exactly three digits follow it, which no zero leads.
    let decimal = marks.last().filter(|(at, mark)| {
        (text.len() - at - 1 != 3 || &text[..*at] == "0")
            && marks.iter().filter(|(_, other)| other == mark).count() == 1
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

#[cfg(test)]
#[path = "figures_names_tests.rs"]
mod names_tests;

#[cfg(test)]
#[path = "figures_readings_tests.rs"]
mod readings_tests;

#[cfg(test)]
#[path = "figures_rules_tests.rs"]
mod rules_tests;
