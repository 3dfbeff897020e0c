//! What follows from few values of one document that an answer need not show: a difference, a sum, an average or a small
//! multiple of prices in one currency or of measures in one unit, where the words of the sentence say which. A document
//! with more values of a kind yields nothing, since then many numbers are near the result of something.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use super::BOUNDARY;
use super::amounts::{Amount, Currencies};
use super::derived::{pairs, rounded};
use super::tables::Tables;
use super::units::{self, Measures};
use super::{numbers, window, worded};

/// Values of a kind that a document may state. Of 5 prices of two to four digits, an invented price is by chance the
/// difference or the sum of two in fewer than 2 of 100 answers (`implied_tests`).
const MOST_VALUES: usize = 5;
/// Groups with such values.
const MOST_GROUPS: usize = 4;
/// Columns of tables that are added up, and the smallest sum of one, in thousandths.
const MOST_COLUMNS: usize = 10;
const SMALLEST_SUM: i128 = 10 * 1_000;
/// Cells of a row that are read.
const MOST_CELLS: usize = 64;
/// Bytes of a sentence before and after a value.
const SENTENCE: usize = 1_000;
/// The largest number that multiplies a price.
const MOST_TIMES: i128 = 12;
/// Letters of a word that its beginning tells.
const LONG: usize = 4;
/// What begins the words of a sentence that states a difference.
const LESS: [&str; 70] = [
    "save",
    "saves",
    "saved",
    "saving",
    "less",
    "more",
    "cheap",
    "dearer",
    "dearest",
    "differ",
    "discount",
    "reduc",
    "below",
    "above",
    "left",
    "remain",
    "besides",
    "heavier",
    "lighter",
    "longer",
    "shorter",
    "taller",
    "wider",
    "higher",
    "lower",
    "expensive",
    "extra",
    "apart",
    "drop",
    "fell",
    "rose",
    "rise",
    "increase",
    "decrease",
    "weniger",
    "mehr",
    "günstiger",
    "billiger",
    "teurer",
    "spart",
    "sparen",
    "sparst",
    "ersparnis",
    "unterschied",
    "rabatt",
    "nachlass",
    "leichter",
    "schwerer",
    "länger",
    "kürzer",
    "übrig",
    "bleib",
    "moins",
    "économ",
    "différence",
    "remise",
    "rédu",
    "reste",
    "menos",
    "más",
    "ahorr",
    "descuento",
    "risparm",
    "meno",
    "sconto",
    "minder",
    "verschil",
    "korting",
    "duurder",
    "goedkoper",
];
/// What begins the words of one that states a sum.
const SUM: [&str; 30] = [
    "total",
    "together",
    "altogether",
    "sum",
    "combined",
    "includ",
    "incl",
    "plus",
    "both",
    "all",
    "with",
    "insgesamt",
    "zusammen",
    "gesamt",
    "summe",
    "inklusive",
    "inkl",
    "mit",
    "beide",
    "alle",
    "ensemble",
    "tout",
    "compris",
    "avec",
    "juntos",
    "todo",
    "con",
    "insieme",
    "samen",
    "totaal",
];
/// What begins the words of one that states an average.
const AVERAGE: [&str; 7] = ["average", "durchschnitt", "schnitt", "moyen", "promedio", "media", "gemiddeld"];

/// Sets of few values, by their currency or unit.
type Sets = BTreeMap<(Option<usize>, String), Rc<Vec<Vec<i128>>>>;

/// The values of each document, and of each of its tables.
pub(super) struct Groups {
    of_documents: Vec<(Currencies, Measures)>,
    /// The sum of each column of a table of numbers, with its units.
    columns: BTreeSet<(Vec<usize>, i128)>,
    /// Those that were asked for.
    sets: RefCell<Sets>,
}

impl Groups {
    pub(super) fn of(text: &str, tables_of_text: &Tables) -> Self {
        let read = |part: &str, tables: &Tables| {
            let numbers: Vec<(usize, i128)> = numbers(part).collect();
            (Currencies::of(part, tables, "", &[]), Measures::of(part, tables, &numbers, &[]))
        };
        let whole = |part: &str| read(part, &Tables::of(part));
        let tables = |part: &str| {
            let blocks = part.split("\n\n").filter(|block| block.trim_start().starts_with('|'));
            blocks.map(whole).collect::<Vec<_>>()
        };
        let parts: Vec<&str> = text.split(BOUNDARY).filter(|part| !part.trim().is_empty()).collect();
        // Few values of several documents may be compared, too.
        let all = (parts.len() > 1).then(|| read(text, tables_of_text));
        let parts = parts.into_iter().flat_map(|part| std::iter::once(whole(part)).chain(tables(part)));
        Self {
            of_documents: parts.chain(all).collect(),
            columns: columns(text, tables_of_text),
            sets: RefCell::default(),
        }
    }

    /// Whether a price or a measure of an answer follows from those of a document, as its sentence says.
    pub(super) fn yield_value(
        &self,
        text: &str,
        sayings: &Sayings,
        range: &Range<usize>,
        shown: &Amount,
    ) -> bool {
        let said = || Said::of(text, sayings, range);
        let any = |sets: &[Vec<i128>], follows: &dyn Fn(&Said, &[i128]) -> bool| {
            !sets.is_empty() && {
                let said = said();
                sets.iter().any(|values| follows(&said, values))
            }
        };
        let unit = units::unit_after(text, shown.at);
        if unit == "%" || unit == "percent" || unit == "prozent" {
            let prices = self.sets((None, String::new()), |(currencies, _)| currencies.of_each());
            return any(&prices, &|said, values| said.is_share(values, shown.number));
        }
        if ["cent", "cents", "ct"].contains(&unit.as_str()) {
            let prices = self.sets((None, String::new()), |(currencies, _)| currencies.of_each());
            return any(&prices, &|said, values| said.yields(values, shown.number / 100));
        }
        let is_sum = |(units, sum): &(Vec<usize>, i128)| {
            let is_same = units.is_empty() || units::rows(&unit).any(|row| units.contains(&row));
            is_same && *sum == shown.number
        };
        let is_column = || self.columns.len() <= MOST_COLUMNS && self.columns.iter().any(is_sum);
        if !shown.is_money() && shown.number >= SMALLEST_SUM && is_column() {
            return true;
        }
        let currency = shown.currency();
        if currency.is_none() && !units::is_unit(&unit) {
            return false;
        }
        let key = if currency.is_some() { String::new() } else { unit.clone() };
        let values = self.sets((currency, key), |(currencies, measures)| match shown.is_money() {
            true => vec![currencies.of_same(shown)],
            false => measures.in_unit(&unit),
        });
        any(&values, &|said, values| said.yields(values, shown.number))
    }

    /// The sets of few values of a currency, or of a unit, or of each currency; the first of many.
    fn sets(
        &self,
        key: (Option<usize>, String),
        values: impl Fn(&(Currencies, Measures)) -> Vec<Vec<i128>>,
    ) -> Rc<Vec<Vec<i128>>> {
        let find = || {
            let few = |values: &Vec<i128>| (1..=MOST_VALUES).contains(&values.len());
            let mut sets: Vec<Vec<i128>> = Vec::new();
            for set in self.of_documents.iter().flat_map(values).filter(few) {
                if sets.len() < MOST_GROUPS && !sets.contains(&set) {
                    sets.push(set);
                }
            }
            Rc::new(sets)
        };
        Rc::clone(self.sets.borrow_mut().entry(key).or_insert_with(find))
    }
}

/// The sums of the columns of tables that have a number in each of several rows.
fn columns(text: &str, tables: &Tables) -> BTreeSet<(Vec<usize>, i128)> {
    let is_row = |line: &str| line.trim_start().starts_with('|');
    let mut sums = BTreeSet::new();
    let mut at = 0;
    let mut rows: Vec<Range<usize>> = Vec::new();
    for line in text.split_inclusive('\n').chain(std::iter::once("\n")) {
        let range = at..at + line.len();
        at = range.end;
        if is_row(line) {
            rows.push(range);
            continue;
        }
        let body: Vec<Vec<Range<usize>>> = rows
            .drain(..)
            .skip(1)
            .filter(|row| !text[row.clone()].contains("--"))
            .map(|row| cells(text, &row))
            .collect();
        let count = body.first().map_or(0, Vec::len);
        for column in 1..count {
            let numbers: Option<Vec<(usize, i128)>> =
                body.iter().map(|row| number_in(text, row.get(column)?)).collect();
            let Some(numbers) = numbers.filter(|numbers| numbers.len() > 1) else { continue };
            let sum = numbers.iter().map(|(_, number)| number).sum();
            let units = tables.column(text, numbers[0].0).map(|column| column.units.clone());
            sums.insert((units.unwrap_or_default(), sum));
        }
    }
    sums
}

/// The first cells of a row.
fn cells(text: &str, row: &Range<usize>) -> Vec<Range<usize>> {
    let marks = text[row.clone()].match_indices('|').map(|(at, _)| row.start + at);
    let marks: Vec<usize> = marks.take(MOST_CELLS).collect();
    marks.windows(2).map(|two| two[0] + 1..two[1]).collect()
}

/// The only number of a cell, and its place.
fn number_in(text: &str, cell: &Range<usize>) -> Option<(usize, i128)> {
    let mut found = numbers(&text[cell.clone()]);
    let (at, number) = found.next()?;
    found.next().is_none().then_some((cell.start + at, number))
}

/// The words of an answer that say what follows from what, with their places.
pub(super) struct Sayings {
    words: Vec<(usize, Says)>,
    /// Numbers in words, which may multiply.
    times: Vec<(usize, i128)>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Says {
    less: bool,
    sum: bool,
    average: bool,
}

impl Sayings {
    pub(super) fn of(text: &str) -> Self {
        let mut at = 0;
        let words = text.split_inclusive(|char: char| !char.is_alphabetic()).filter_map(|piece| {
            let start = at;
            at += piece.len();
            let word = piece.trim_end_matches(|char: char| !char.is_alphabetic()).to_lowercase();
            let says = |stems: &[&str]| {
                stems.iter().any(|stem| word == *stem || stem.len() > LONG && word.starts_with(stem))
            };
            let said = Says { less: says(&LESS), sum: says(&SUM), average: says(&AVERAGE) };
            (said.less || said.sum || said.average).then_some((start, said))
        });
        let times = worded::of(text).into_iter().filter(|worded| worded.number <= MOST_TIMES);
        Self {
            words: words.collect(),
            times: times.map(|worded| (worded.range.start, worded.number)).collect(),
        }
    }
}

/// Those of a list that are at these places.
fn within<'l, T>(list: &'l [(usize, T)], places: &Range<usize>) -> &'l [(usize, T)] {
    let before = |end: usize| list.partition_point(|(at, _)| *at < end);
    &list[before(places.start)..before(places.end)]
}

/// What the sentence of a value says of it.
struct Said<'t> {
    says: Says,
    times: &'t [(usize, i128)],
    sentence: &'t str,
    /// The place of the value in it.
    place: Range<usize>,
}

impl<'t> Said<'t> {
    fn of(text: &'t str, sayings: &'t Sayings, range: &Range<usize>) -> Self {
        let ends = ["\n", ". ", "! ", "? "];
        let near = window(text, range, SENTENCE);
        let (before, after) = (&text[near.start..range.start], &text[range.end..near.end]);
        let start = ends.iter().filter_map(|end| Some(before.rfind(end)? + end.len())).max();
        let end = ends.iter().filter_map(|end| after.find(end)).min();
        let start = near.start + start.unwrap_or(0);
        let places = start..end.map_or(near.end, |end| range.end + end);
        let mut says = Says::default();
        for (_, said) in within(&sayings.words, &places) {
            says.less |= said.less;
            says.sum |= said.sum;
            says.average |= said.average;
        }
        Self {
            says,
            times: within(&sayings.times, &places),
            place: range.start - start..range.end - start,
            sentence: &text[places],
        }
    }

    fn yields(&self, values: &[i128], number: i128) -> bool {
        let pairs = || pairs(values).into_iter();
        let sum: i128 = values.iter().sum();
        let count = values.len() as i128;
        self.says.less && pairs().any(|(a, b)| (a - b).abs() == number)
            || self.says.sum && count > 1 && (sum == number || pairs().any(|(a, b)| a + b == number))
            || self.says.average && count > 1 && rounded(sum / count).contains(&number)
            || self.times.iter().any(|(_, times)| values.iter().any(|value| value * times == number))
    }

    /// Whether a number is how much of a price another is less, or more, where the sentence shows the difference.
    fn is_share(&self, values: &[i128], number: i128) -> bool {
        let others = numbers(self.sentence).filter(|(at, _)| !self.place.contains(at));
        let others: Vec<i128> = others.map(|(_, number)| number).collect();
        pairs(values).into_iter().any(|(a, b)| {
            let change = (a - b).abs();
            let is_of = |whole: i128| {
                let share = (change * 100_000).checked_div(whole);
                share.is_some_and(|share| rounded(share).contains(&number))
            };
            others.contains(&change) && (is_of(a) || is_of(b))
        })
    }
}

#[cfg(test)]
#[path = "implied_tests.rs"]
mod tests;
