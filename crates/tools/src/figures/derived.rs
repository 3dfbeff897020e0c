//! What code can recompute from the known numbers that an answer shows. Prices follow from prices only: as a sum, a
//! difference, an average that is called one, a price times a number of its line, or a percentage of one. Other numbers
//! also as counts, percentages and means.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;

use larder_condense::salience::{SalientSpan, SpanKind};

use super::counts::HYPHENS;
use super::products::factor;
use super::{amounts, currencies, numbers, units, window, worded};

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
/// What follows from the known numbers that an answer shows.
pub(super) struct Derived<'t> {
    text: &'t str,
    /// Its lines, long ones in several pieces.
    lines: Vec<Range<usize>>,
    /// The line that was last asked for.
    last: RefCell<Rc<Line>>,
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
    /// Of the longest table of the documents.
    most_rows: i128,
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
        let prices = price_places.iter().flat_map(|place| {
            numbers(&text[place.clone()]).map(move |(at, price)| (place.start + at, price))
        });
        let prices: Vec<(usize, i128)> =
            prices.filter(|(_, price)| known.contains(price)).take(MOST_SHOWN).collect();
        // `3 × €89.00 + €4.95`: what is multiplied is no addend by itself.
        let terms: Vec<i128> = prices
            .iter()
            .map(|(at, price)| {
                factor(text, *at).map_or(*price, |factor| price.saturating_mul(factor) / 1_000)
            })
            .collect();
        let prices: Vec<i128> = prices.into_iter().map(|(_, price)| price).collect();
        let all: Vec<i128> = numbers(text).filter_map(shown).take(MOST_SHOWN).collect();
        let distinct: BTreeSet<i128> = all.iter().copied().collect();
        let mean = (distinct.len() > 1).then(|| distinct.iter().sum::<i128>() / distinct.len() as i128);
        let shown_prices: BTreeSet<i128> = prices.iter().copied().collect();
        let several = Some(shown_prices.len() as i128).filter(|count| *count > 1);
        let price_mean = several.map(|count| shown_prices.iter().sum::<i128>() / count);
        let own: Vec<i128> = lengths(text).into_iter().flatten().collect();
        let others = lengths(documents);
        let whole = stated.filter(|number| number % 1_000 == 0).map(|number| number / 1_000);
        let known_digits = whole.filter(|number| *number <= MOST_WORDED).collect();
        Self {
            text,
            lines: lines(text),
            last: RefCell::default(),
            known,
            known_digits,
            price_places,
            price_sums: sums(&terms),
            sums: sums(&all),
            mean,
            price_mean,
            longest: own.iter().max().copied().unwrap_or_default(),
            most_rows: others.iter().map(|[_, rows]| rows / 1_000).max().unwrap_or_default(),
            lengths: own
                .into_iter()
                .chain(others.into_iter().flatten())
                .filter(|length| *length > 0)
                .collect(),
        }
    }

    /// Whether a number of the answer, in thousandths, follows from others.
    pub(super) fn yields(&self, kind: SpanKind, range: &Range<usize>, number: i128) -> bool {
        let is_length =
            || self.lengths.contains(&number) && !self.is_joined(amounts::end(self.text, range.start));
        if kind == SpanKind::Price && self.price_sums.contains(&number)
            || kind != SpanKind::Price && (self.sums.contains(&number) || is_length())
        {
            return true;
        }
        let line = self.line(range);
        if kind == SpanKind::Price {
            let is_mean = self.price_mean.is_some_and(|mean| rounded(mean).contains(&number));
            return line.totals(self).binary_search(&number).is_ok()
                || line.parts(self).round_to(number)
                || is_mean && line.says(&AVERAGES);
        }
        let states_mean = || line.says(&AVERAGES) || line.says(&["mean"]);
        let is_per_cent = || {
            let value = &self.text[range.start..];
            let value =
                value.trim_start_matches(|char: char| char.is_ascii_digit() || matches!(char, '.' | ','));
            value.trim_start().starts_with('%') || value.trim_start().starts_with("percent")
        };
        line.products().round_to(number)
            || line.parts(self).round_to(number)
            || line.says(&PER) && line.quotients().round_to(number)
            || is_per_cent() && line.ratios().round_to(number)
            || self.mean.is_some_and(|mean| rounded(mean).contains(&number)) && states_mean()
    }

    /// Whether a number that ends here is joined to its unit, as in `5-year`: no length of a list, as `5 days` may be.
    fn is_joined(&self, end: usize) -> bool {
        let after = &self.text[end..];
        !after.starts_with([' ', '\u{a0}']) && units::is_unit(&units::unit_from(after))
    }

    /// The numbers of each sum that the line of a price shows and that comes to it, as in `€976.50 (329 + 449.50 + 198)`.
    pub(super) fn written_sums(&self, range: &Range<usize>, number: i128) -> Vec<Vec<i128>> {
        let line = self.line(range);
        let of_line = line.written_sums(&self.text[line.range.clone()]);
        of_line.iter().filter(|(sum, _)| *sum == number).map(|(_, addends)| addends.clone()).collect()
    }

    /// Whether the documents state a small number, or the answer shows as many things; what a hyphen joins to a number, as in
    /// `6-person`, counts no others.
    pub(super) fn yields_count(&self, range: &Range<usize>, count: i128) -> bool {
        if self.known_digits.contains(&count) || self.lengths.contains(&(count * 1_000)) {
            return true;
        }
        if self.text[range.end..].starts_with(HYPHENS) {
            return false;
        }
        if count * 1_000 <= self.longest {
            return true;
        }
        let line = self.line(range);
        let others = line.numbers.iter().filter(|(at, _)| !range.contains(at)).map(|(_, number)| *number);
        let others: Vec<i128> = others.collect();
        count <= line.listed(&self.text[line.range.clone()])
            || others.windows(2).any(|two| two[0] + two[1] == count * 1_000)
    }

    /// The same of a number in words, which may also be of some rows of a table.
    pub(super) fn yields_some(&self, range: &Range<usize>, count: i128) -> bool {
        self.yields_count(range, count)
            || !self.text[range.end..].starts_with(HYPHENS) && count < self.most_rows
    }

    /// Whether a number in words follows from the documents or the answer, or multiplies a price of the documents to one of
    /// its line.
    pub(super) fn yields_worded(&self, range: &Range<usize>, number: i128) -> bool {
        let is_times = |all: i128| all % number == 0 && self.known.contains(&(all / number));
        self.known_digits.contains(&number)
            || self.sums.contains(&(number * 1_000))
            || self.lengths.contains(&(number * 1_000)) && !self.is_joined(range.end)
            || self.line(range).shown.iter().any(|(_, all)| is_times(*all))
    }

    /// The line of a stretch.
    fn line(&self, range: &Range<usize>) -> Rc<Line> {
        let at = self.lines.partition_point(|line| line.end <= range.start);
        let place = self.lines.get(at).cloned().unwrap_or_else(|| range.clone());
        if place.is_empty() || self.last.borrow().range != place {
            self.last.replace(Rc::new(self.read(place)));
        }
        Rc::clone(&self.last.borrow())
    }

    fn read(&self, range: Range<usize>) -> Line {
        let text = &self.text[range.clone()];
        let shown: Vec<(usize, i128)> =
            numbers(text).map(|(at, number)| (range.start + at, number)).collect();
        let words = in_words(text).map(|number| (usize::MAX, number * 1_000));
        let is_known = |number: i128| {
            self.known.contains(&number)
                || number % 1_000 == 0 && self.known_digits.contains(&(number / 1_000))
        };
        let all = shown.iter().copied().chain(words);
        Line {
            numbers: all.filter(|(_, number)| is_known(*number)).take(MOST_SHOWN).collect(),
            shown,
            lower: text.to_lowercase(),
            range,
            ..Line::default()
        }
    }

    /// Whether a price is at a place.
    fn is_price(&self, at: usize) -> bool {
        let next = self.price_places.partition_point(|place| place.end <= at);
        self.price_places.get(next).is_some_and(|place| place.contains(&at))
    }
}

/// A line of an answer, and what follows from its numbers, which is computed once for all of them.
#[derive(Default)]
struct Line {
    range: Range<usize>,
    lower: String,
    /// Its numbers with their places.
    shown: Vec<(usize, i128)>,
    /// Those that are known, and those in words.
    numbers: Vec<(usize, i128)>,
    totals: OnceCell<Vec<i128>>,
    parts: OnceCell<Exact>,
    products: OnceCell<Exact>,
    quotients: OnceCell<Exact>,
    ratios: OnceCell<Exact>,
    listed: OnceCell<i128>,
    sums: OnceCell<Vec<(i128, Vec<i128>)>>,
}

impl Line {
    fn says(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.lower.contains(word))
    }

    /// Its prices times numbers of it that are none.
    fn totals(&self, of: &Derived<'_>) -> &[i128] {
        self.totals.get_or_init(|| {
            let (prices, factors): (Vec<(usize, i128)>, Vec<_>) =
                self.numbers.iter().copied().partition(|(at, _)| of.is_price(*at));
            let of_price = |(at, price): &(usize, i128)| {
                let factors = factors.iter().map(|(_, factor)| *factor).chain(factor(of.text, *at));
                factors.filter_map(|factor| Some(price.checked_mul(factor)? / 1_000)).collect::<Vec<_>>()
            };
            sorted(prices.iter().flat_map(of_price))
        })
    }

    /// What percentages of it are of its other numbers, and these numbers with that added or taken off.
    fn parts(&self, of: &Derived<'_>) -> &Exact {
        self.parts.get_or_init(|| {
            let per_cent = |at: usize| {
                let after = of.text.get(at..).map(|_| of.text[amounts::end(of.text, at)..].trim_start());
                after.is_some_and(|after| {
                    ["%", "percent", "Prozent"].iter().any(|word| after.starts_with(word))
                })
            };
            let (shares, wholes): (Vec<(usize, i128)>, Vec<_>) =
                self.numbers.iter().copied().partition(|(at, _)| per_cent(*at));
            let of_share = |(_, share): &(usize, i128)| {
                let part = |whole: i128| Some((whole, share.checked_mul(whole)? / 100_000));
                let parts = wholes.iter().filter_map(|(_, whole)| part(*whole));
                parts.flat_map(|(whole, part)| [part, whole + part, whole - part]).collect::<Vec<_>>()
            };
            Exact::of(shares.iter().flat_map(of_share))
        })
    }

    fn products(&self) -> &Exact {
        let product = |(a, b): (i128, i128)| Some(a.checked_mul(b)? / 1_000);
        self.products.get_or_init(|| Exact::of(self.pairs().into_iter().filter_map(product)))
    }

    fn quotients(&self) -> &Exact {
        let quotient = |part: i128, whole| part.checked_mul(1_000)?.checked_div(whole);
        self.quotients.get_or_init(|| {
            Exact::of(self.pairs().into_iter().flat_map(|(a, b)| [quotient(a, b), quotient(b, a)]).flatten())
        })
    }

    /// What one number is of another, and their difference of either, in per cent.
    fn ratios(&self) -> &Exact {
        let ratio = |part: i128, whole| part.checked_mul(100_000)?.checked_div(whole);
        let of_pair = |(a, b): (i128, i128)| {
            let change = (a - b).abs();
            [ratio(a, b), ratio(b, a), ratio(change, a), ratio(change, b)]
        };
        self.ratios.get_or_init(|| Exact::of(self.pairs().into_iter().flat_map(of_pair).flatten()))
    }

    fn pairs(&self) -> Vec<(i128, i128)> {
        pairs(&self.numbers.iter().map(|(_, number)| *number).collect::<Vec<_>>())
    }

    /// How many things it lists.
    fn listed(&self, text: &str) -> i128 {
        *self.listed.get_or_init(|| {
            let between = [", ", "; ", " and ", " or ", " und ", " oder "];
            let listed: usize = between.iter().map(|between| text.matches(between).count()).sum();
            if listed == 0 { 0 } else { listed as i128 + 1 }
        })
    }

    /// The sums that it writes out, with their addends.
    fn written_sums(&self, text: &str) -> &[(i128, Vec<i128>)] {
        self.sums.get_or_init(|| {
            let mut sums: Vec<Vec<i128>> = Vec::new();
            let mut last: Option<usize> = None;
            for (at, addend) in self.shown.iter().take(MOST_SHOWN) {
                let at = at - self.range.start;
                // Of what is multiplied, only the product is added.
                if factor(text, at).is_some() {
                    last = None;
                    continue;
                }
                let is_added = last.is_some_and(|end| is_plus(&text[end..at]));
                match sums.last_mut().filter(|_| is_added) {
                    Some(sum) => sum.push(*addend),
                    None => sums.push(vec![*addend]),
                }
                last = Some(amounts::end(text, at));
            }
            sums.retain(|sum| sum.len() > 1);
            sums.into_iter().map(|sum| (sum.iter().sum(), sum)).collect()
        })
    }
}

/// Exact results, sorted.
struct Exact(Vec<i128>);

impl Exact {
    fn of(results: impl Iterator<Item = i128>) -> Self {
        Self(sorted(results))
    }

    /// Whether a number is one of these, exactly or as people round it.
    fn round_to(&self, number: i128) -> bool {
        let has = |range: Range<usize>| !range.is_empty();
        let from = |least: i128| self.0.partition_point(|exact| *exact < least);
        // A result is rounded to the nearest multiple of a unit.
        let is_near =
            |unit: i128| number % unit == 0 && has(from(number - unit / 2)..from(number + unit - unit / 2));
        [1, 10, 100, 1_000].into_iter().any(is_near)
    }
}

fn sorted(numbers: impl Iterator<Item = i128>) -> Vec<i128> {
    numbers.collect::<BTreeSet<i128>>().into_iter().collect()
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
fn lengths(text: &str) -> Vec<[i128; 2]> {
    let is_item = |line: &str| {
        let line = line.trim_start();
        ["- ", "* ", "+ ", "• "].iter().any(|mark| line.starts_with(mark)) || starts_with_number(line)
    };
    let is_row = |line: &&str| line.trim_start().starts_with('|');
    let is_rule = |line: &str| {
        line.contains('-') && line.chars().all(|char| matches!(char, '|' | '-' | ':' | ' ' | '\t'))
    };
    let lengths = text.split("\n\n").map(|list| {
        let rows: Vec<&str> = list.lines().filter(is_row).collect();
        let heading = rows.iter().position(|row| is_rule(row)).map_or(0, |rule| rule + 1);
        let items = list.lines().filter(|line| is_item(line)).count();
        [items, rows.len() - heading].map(|length| length as i128 * 1_000)
    });
    lengths.collect()
}

/// Whether nothing but a plus, and currencies, is between two numbers.
fn is_plus(between: &str) -> bool {
    let words =
        between.split(|char: char| char.is_whitespace() || char == '+').filter(|word| !word.is_empty());
    between.matches('+').count() == 1 && words.into_iter().all(currencies::is_currency)
}

fn starts_with_number(line: &str) -> bool {
    let rest = line.trim_start().trim_start_matches(|char: char| char.is_ascii_digit());
    rest.len() < line.trim_start().len() && rest.starts_with(['.', ')'])
}

/// The numbers from 2 to 12 that a text states in words.
fn in_words(text: &str) -> impl Iterator<Item = i128> {
    worded::of(text).into_iter().map(|worded| worded.number).filter(|number| *number <= MOST_WORDED)
}
