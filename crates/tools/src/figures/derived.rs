//! What code can recompute from the known numbers that an answer shows. Prices follow from prices only: as a sum, a
//! difference, an average that is called one, a price times a number of its line, or a percentage of one. Other numbers
//! also as counts, percentages and means.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;

use larder_condense::salience::{SalientSpan, SpanKind};

use super::{amounts, numbers, window, worded};

/// Numbers of an answer that are added up.
const MOST_SHOWN: usize = 100;
/// Bytes of a line that are read together.
const LINE: usize = 4_096;
/// The largest number in words that counts as a digit does.
const MOST_WORDED: i128 = 12;
/// Words of a line that states an average.
const AVERAGES: [&str; 4] = ["average", "durchschnitt", "mittel", "schnitt"];
/// Words of a line that states how much one of several is.
const PER: [&str; 14] = [
    "average",
    "durchschnitt",
    "schnitt",
    " per ",
    "each",
    " a day",
    " a night",
    " pro ",
    " je ",
    " par ",
    "moyen",
    "promedio",
    " por ",
    "media",
];
/// A line and its known numbers with their places.
type NumbersOfLine = (Range<usize>, Vec<(usize, i128)>);

/// What follows from the known numbers that an answer shows.
pub(super) struct Derived<'t> {
    text: &'t str,
    /// Its lines, long ones in several pieces.
    lines: Vec<Range<usize>>,
    /// The known numbers of the line that was last asked for.
    last: RefCell<NumbersOfLine>,
    known: &'t BTreeSet<i128>,
    /// Digits that the documents state, or numbers to 12 in words.
    known_digits: BTreeSet<i128>,
    price_places: Vec<Range<usize>>,
    price_sums: BTreeSet<i128>,
    sums: BTreeSet<i128>,
    mean: Option<i128>,
    /// The mean of the prices.
    price_mean: Option<i128>,
    /// The lengths of all lists, and of the longest of the answer.
    lengths: BTreeSet<i128>,
    longest: i128,
}

impl<'t> Derived<'t> {
    pub(super) fn new(
        text: &'t str,
        spans: &[SalientSpan],
        known: &'t BTreeSet<i128>,
        documents: &str,
        stated: impl Iterator<Item = i128>,
    ) -> Self {
        let is_price = |span: &&SalientSpan| span.kind == SpanKind::Price;
        let price_places: Vec<Range<usize>> =
            spans.iter().filter(is_price).map(|span| span.range.clone()).collect();
        let shown = |(_, number): (usize, i128)| Some(number).filter(|number| known.contains(number));
        let prices = price_places.iter().flat_map(|place| numbers(&text[place.clone()]));
        let prices: Vec<i128> = prices.filter_map(shown).take(MOST_SHOWN).collect();
        let all: Vec<i128> = numbers(text).filter_map(shown).take(MOST_SHOWN).collect();
        let distinct: BTreeSet<i128> = all.iter().copied().collect();
        let mean = (distinct.len() > 1).then(|| distinct.iter().sum::<i128>() / distinct.len() as i128);
        let shown_prices: BTreeSet<i128> = prices.iter().copied().collect();
        let several = Some(shown_prices.len() as i128).filter(|count| *count > 1);
        let price_mean = several.map(|count| shown_prices.iter().sum::<i128>() / count);
        let own = list_lengths(text);
        let whole = stated.filter(|number| number % 1_000 == 0).map(|number| number / 1_000);
        let known_digits = whole.filter(|number| *number <= MOST_WORDED).collect();
        Self {
            text,
            lines: lines(text),
            last: RefCell::default(),
            known,
            known_digits,
            price_places,
            price_sums: sums(&prices),
            sums: sums(&all),
            mean,
            price_mean,
            longest: own.iter().max().copied().unwrap_or_default(),
            lengths: own.into_iter().chain(list_lengths(documents)).collect(),
        }
    }

    /// Whether a number of the answer, in thousandths, follows from others.
    pub(super) fn yields(&self, kind: SpanKind, range: &Range<usize>, number: i128) -> bool {
        let line = self.line(range);
        if kind == SpanKind::Price {
            let is_mean = self.price_mean.is_some_and(|mean| rounded(mean).contains(&number));
            return self.price_sums.contains(&number)
                || self.is_total(&line, number)
                || self.is_part(&line, number)
                || is_mean && self.line_says(&line, &AVERAGES);
        }
        let states_mean = || self.line_says(&line, &AVERAGES) || self.line_says(&line, &["mean"]);
        let is_per_cent = || {
            let value = &self.text[range.start..];
            let value =
                value.trim_start_matches(|char: char| char.is_ascii_digit() || matches!(char, '.' | ','));
            value.trim_start().starts_with('%') || value.trim_start().starts_with("percent")
        };
        self.sums.contains(&number)
            || self.lengths.contains(&number)
            || self.is_product(&line, number)
            || self.is_part(&line, number)
            || self.line_says(&line, &PER) && self.is_quotient(&line, number)
            || is_per_cent() && self.is_ratio(&line, number)
            || self.mean.is_some_and(|mean| rounded(mean).contains(&number)) && states_mean()
    }

    /// The numbers of each sum that the line of a price shows and that comes to it, as in `€976.50 (329 + 449.50 + 198)`.
    pub(super) fn written_sums(&self, range: &Range<usize>, number: i128) -> impl Iterator<Item = Vec<i128>> {
        let line = &self.text[self.line(range)];
        let mut sums: Vec<Vec<i128>> = Vec::new();
        let mut last: Option<usize> = None;
        for (at, addend) in numbers(line).take(MOST_SHOWN) {
            let is_added = last.is_some_and(|end| is_plus(&line[end..at]));
            match sums.last_mut().filter(|_| is_added) {
                Some(sum) => sum.push(addend),
                None => sums.push(vec![addend]),
            }
            last = Some(amounts::end(line, at));
        }
        sums.into_iter().filter(move |sum| sum.len() > 1 && sum.iter().sum::<i128>() == number)
    }

    /// Whether the documents state a number of one digit, or the answer shows as many things.
    pub(super) fn yields_count(&self, range: &Range<usize>) -> bool {
        let Ok(count) = self.text[range.clone()].parse::<i128>() else { return true };
        let line = &self.text[self.line(range)];
        let listed: usize = [", ", "; ", " and ", " or ", " und ", " oder "]
            .iter()
            .map(|between| line.matches(between).count())
            .sum();
        let shown = if listed == 0 { 0 } else { listed as i128 + 1 };
        let others: Vec<i128> = self
            .of_line(&self.line(range))
            .into_iter()
            .filter(|(at, _)| !range.contains(at))
            .map(|(_, number)| number)
            .collect();
        self.known_digits.contains(&count)
            || others.windows(2).any(|two| two[0] + two[1] == count * 1_000)
            || self.lengths.contains(&(count * 1_000))
            || count * 1_000 <= self.longest
            || count <= shown
    }

    /// Whether a number in words follows from the documents or the answer, or multiplies a price of the documents to one of
    /// its line.
    pub(super) fn yields_worded(&self, range: &Range<usize>, number: i128) -> bool {
        let line = &self.text[self.line(range)];
        let is_times = |all: i128| all % number == 0 && self.known.contains(&(all / number));
        self.known_digits.contains(&number)
            || self.sums.contains(&(number * 1_000))
            || self.lengths.contains(&(number * 1_000))
            || numbers(line).any(|(_, all)| is_times(all))
    }

    fn line_says(&self, line: &Range<usize>, words: &[&str]) -> bool {
        let line = self.text[line.clone()].to_lowercase();
        words.iter().any(|word| line.contains(word))
    }

    fn line(&self, range: &Range<usize>) -> Range<usize> {
        let at = self.lines.partition_point(|line| line.end <= range.start);
        self.lines.get(at).cloned().unwrap_or_else(|| range.clone())
    }

    /// The known numbers of a line with their places, those in words too.
    fn of_line(&self, line: &Range<usize>) -> Vec<(usize, i128)> {
        if !line.is_empty() && self.last.borrow().0 == *line {
            return self.last.borrow().1.clone();
        }
        let text = &self.text[line.clone()];
        let words = in_words(text).map(|number| (usize::MAX, number * 1_000));
        let all = numbers(text).map(|(at, number)| (line.start + at, number)).chain(words);
        let is_known = |number: i128| {
            self.known.contains(&number)
                || number % 1_000 == 0 && self.known_digits.contains(&(number / 1_000))
        };
        let found: Vec<_> = all.filter(|(_, number)| is_known(*number)).take(MOST_SHOWN).collect();
        self.last.replace((line.clone(), found.clone()));
        found
    }

    /// Whether a price is another of its line times a number of its line.
    fn is_total(&self, line: &Range<usize>, number: i128) -> bool {
        let shown = self.of_line(line);
        let is_price = |at: usize| self.price_places.iter().any(|place| place.contains(&at));
        let (prices, factors): (Vec<_>, Vec<_>) = shown.into_iter().partition(|(at, _)| is_price(*at));
        let times =
            |price: i128, factor: i128| price.checked_mul(factor).is_some_and(|all| all / 1_000 == number);
        prices.iter().any(|(_, price)| factors.iter().any(|(_, factor)| times(*price, *factor)))
            || prices.iter().any(|(at, price)| self.factor(*at).is_some_and(|factor| times(*price, factor)))
    }

    /// The digit that the answer shows to multiply the price at a place, as in `7 × 25 €`.
    fn factor(&self, at: usize) -> Option<i128> {
        let before = self.text[..at].trim_end_matches(|char: char| !char.is_alphanumeric() && char != '×');
        let before =
            before.strip_suffix(['×', 'x']).or_else(|| self.text[..at].trim_end().strip_suffix('*'))?;
        let before = before.trim_end();
        let digit = before.chars().next_back()?.to_digit(10)?;
        let is_longer =
            before[..before.len() - 1].ends_with(|char: char| char.is_alphanumeric() || char == '.');
        (!is_longer).then_some(i128::from(digit) * 1_000)
    }

    fn is_product(&self, line: &Range<usize>, number: i128) -> bool {
        let shown = self.of_line(line);
        let pairs = pairs(&shown);
        let product =
            |a: i128, b: i128| a.checked_mul(b).is_some_and(|all| rounded(all / 1_000).contains(&number));
        pairs.into_iter().any(|(a, b)| product(a.1, b.1))
    }

    /// Whether a number is what a percentage of its line is of another number there, or that number with it added or taken
    /// off.
    fn is_part(&self, line: &Range<usize>, number: i128) -> bool {
        let shown = self.of_line(line);
        let per_cent = |at: usize| {
            let after = self.text.get(at..).map(|_| self.text[amounts::end(self.text, at)..].trim_start());
            after.is_some_and(|after| ["%", "percent", "Prozent"].iter().any(|word| after.starts_with(word)))
        };
        let (shares, wholes): (Vec<_>, Vec<_>) = shown.into_iter().partition(|(at, _)| per_cent(*at));
        let is_of = |share: i128, whole: i128| {
            let part = share.checked_mul(whole).map(|part| part / 100_000);
            part.is_some_and(|part| {
                [part, whole + part, whole - part].into_iter().any(|value| rounded(value).contains(&number))
            })
        };
        shares.iter().any(|(_, share)| wholes.iter().any(|(_, whole)| is_of(*share, *whole)))
    }

    fn is_quotient(&self, line: &Range<usize>, number: i128) -> bool {
        let is_one = |part: i128, whole: i128| {
            let quotient = part.checked_mul(1_000).and_then(|part| part.checked_div(whole));
            quotient.is_some_and(|quotient| rounded(quotient).contains(&number))
        };
        pairs(&self.of_line(line)).into_iter().any(|(a, b)| is_one(a.1, b.1) || is_one(b.1, a.1))
    }

    fn is_ratio(&self, line: &Range<usize>, number: i128) -> bool {
        let shown = self.of_line(line);
        let is_ratio = |part: i128, whole: i128| {
            let share = part.checked_mul(100_000).and_then(|part| part.checked_div(whole));
            share.is_some_and(|share| rounded(share).contains(&number))
        };
        pairs(&shown).into_iter().any(|(a, b)| {
            let (a, b, change) = (a.1, b.1, (a.1 - b.1).abs());
            [is_ratio(a, b), is_ratio(b, a), is_ratio(change, a), is_ratio(change, b)].contains(&true)
        })
    }
}

/// The lines of a text, those that are longer than [`LINE`] in pieces that end after a space where one is near.
fn lines(text: &str) -> Vec<Range<usize>> {
    let mut lines = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        while start < end {
            let near = window(text, &(start..start), LINE).end;
            let to = if near >= end {
                end
            } else {
                text[start..near].rfind(' ').map_or(near, |space| start + space + 1)
            };
            lines.push(start..to);
            start = to;
        }
    }
    lines
}

pub(super) fn pairs<T: Copy>(values: &[T]) -> Vec<(T, T)> {
    let rest = |(at, a): (usize, &T)| values[at + 1..].iter().map(|b| (*a, *b)).collect::<Vec<_>>();
    values.iter().enumerate().flat_map(rest).collect()
}

/// Sums and differences of any two, and sums of neighbours.
fn sums(values: &[i128]) -> BTreeSet<i128> {
    let mut sums: BTreeSet<i128> =
        pairs(values).into_iter().flat_map(|(a, b)| [a + b, (a - b).abs()]).collect();
    for start in 0..values.len() {
        let mut sum = 0;
        for (at, value) in values[start..].iter().enumerate() {
            sum += value;
            if at > 0 {
                sums.insert(sum);
            }
        }
    }
    sums
}

/// A number of thousandths, and as people round it.
pub(super) fn rounded(exact: i128) -> [i128; 4] {
    let to = |unit: i128| (exact + unit / 2) / unit * unit;
    [exact, to(10), to(100), to(1_000)]
}

/// The lengths of the lists and tables of a text, in thousandths: of a table the rows below the rule under its heading.
fn list_lengths(text: &str) -> Vec<i128> {
    let is_item = |line: &str| {
        let line = line.trim_start();
        ["- ", "* ", "+ ", "• "].iter().any(|mark| line.starts_with(mark)) || starts_with_number(line)
    };
    let is_row = |line: &&str| line.trim_start().starts_with('|');
    let is_rule = |line: &str| {
        line.contains('-') && line.chars().all(|char| matches!(char, '|' | '-' | ':' | ' ' | '\t'))
    };
    let lengths = text.split("\n\n").flat_map(|list| {
        let rows: Vec<&str> = list.lines().filter(is_row).collect();
        let heading = rows.iter().position(|row| is_rule(row)).map_or(0, |rule| rule + 1);
        [list.lines().filter(|line| is_item(line)).count(), rows.len() - heading]
    });
    lengths.filter(|length| *length > 0).map(|length| length as i128 * 1_000).collect()
}

/// Whether nothing but a plus, and currencies, is between two numbers.
fn is_plus(between: &str) -> bool {
    let words =
        between.split(|char: char| char.is_whitespace() || char == '+').filter(|word| !word.is_empty());
    between.matches('+').count() == 1 && words.into_iter().all(amounts::is_currency)
}

fn starts_with_number(line: &str) -> bool {
    let rest = line.trim_start().trim_start_matches(|char: char| char.is_ascii_digit());
    rest.len() < line.trim_start().len() && rest.starts_with(['.', ')'])
}

/// The numbers from 2 to 12 that a text states in words.
fn in_words(text: &str) -> impl Iterator<Item = i128> {
    worded::of(text).into_iter().map(|worded| worded.number).filter(|number| *number <= MOST_WORDED)
}
