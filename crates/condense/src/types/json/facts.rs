//! Statistics of the values under one name: their sort, how many are distinct, which are rare, and the smallest and
//! largest number.
//!
//! Knows values; does not know rows' meaning or what is shown.

use std::cmp::Ordering;

use xxhash_rust::xxh3::xxh3_64;

use larder_text::hash::has_repeat;
use larder_text::json::{Document, Kind};

/// A value is rare if at most one row in this many has it.
const RARE: usize = 50;
/// The limit up to which distinct values are tracked individually.
pub(super) const FEW: usize = 16;
/// The size of a table in which values are kept by hash, which finds most duplicates early.
const LATEST: usize = 1 << 10;

/// The sort of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Text,
    Number,
    /// `true`, `false`, `null`.
    Word,
    Mixed,
    /// At least one object or array.
    Nested,
}

impl Sort {
    /// The sort that covers both.
    fn with(self, other: Self) -> Self {
        match (self, other) {
            (one, other) if one == other => one,
            (Self::Nested, _) | (_, Self::Nested) => Self::Nested,
            _ => Self::Mixed,
        }
    }
}

/// Statistics collected as values are met, because a second pass per column would reread the text. Call
/// [`settle`](Self::settle) after the last one.
pub(super) struct ColumnFacts {
    /// The distinct values, while there are few.
    few: Vec<FewValue>,
    /// Hashes of all values beyond that, until a duplicate is found.
    many: Vec<u64>,
    /// Some of them, in slots by hash.
    latest: Vec<u64>,
    /// Whether some value occurred twice.
    again: bool,
    pub(super) sort: Option<Sort>,
    pub(super) bytes: usize,
    extremes: Option<Extremes>,
    rare: usize,
}

/// One of few distinct values.
struct FewValue {
    hash: u64,
    /// The first rows that have it, up to the number at which it is no longer rare.
    rows: Vec<usize>,
}

impl ColumnFacts {
    pub(super) fn new(rare: usize) -> Self {
        let (few, many, latest) = (Vec::new(), Vec::new(), Vec::new());
        Self { few, many, latest, again: false, sort: None, bytes: 0, extremes: None, rare }
    }

    pub(super) fn distinct(&self) -> usize {
        self.few.len().max(self.many.len())
    }

    pub(super) fn rare_rows(&self) -> Vec<usize> {
        if self.distinct() < 2 || self.distinct() > FEW {
            return Vec::new();
        }
        let rare = self.few.iter().filter(|value| value.rows.len() <= self.rare);
        let mut rows: Vec<usize> = rare.flat_map(|value| value.rows.iter().copied()).collect();
        rows.sort_unstable();
        rows
    }

    pub(super) fn add(&mut self, tree: &Document<'_>, row: usize, cell: usize) {
        if !tree.is_container(cell) {
            self.see(row, tree.raw(cell));
        }
        self.bytes += tree.dense(cell);
        let sort = match tree.kind(cell) {
            Kind::String => Sort::Text,
            Kind::Number => Sort::Number,
            Kind::Bool | Kind::Null | Kind::Word => Sort::Word,
            Kind::Object | Kind::Array | Kind::Stream => Sort::Nested,
        };
        if sort == Sort::Number {
            Extremes::stretch(&mut self.extremes, tree, (cell, Number::of(tree.raw(cell))));
        }
        self.sort = Some(self.sort.map_or(sort, |before| before.with(sort)));
    }

    pub(super) fn add_name(&mut self, row: usize, name: &str) {
        self.see(row, name);
        self.bytes += name.len();
        self.sort = Some(Sort::Text);
    }

    /// The smallest and the largest number.
    pub(super) fn extremes(&self) -> Option<(usize, usize)> {
        self.extremes.as_ref().map(|Extremes { low, high }| (low.0, high.0))
    }

    /// Adds the statistics of further rows.
    pub(super) fn join(&mut self, tree: &Document<'_>, further: Self) {
        self.bytes += further.bytes;
        if let Some(Extremes { low, high }) = further.extremes {
            Extremes::stretch(&mut self.extremes, tree, low);
            Extremes::stretch(&mut self.extremes, tree, high);
        }
        if let Some(sort) = further.sort {
            self.sort = Some(self.sort.map_or(sort, |before| before.with(sort)));
        }
        self.again |= further.again;
        if further.many.is_empty() {
            further.few.iter().for_each(|value| self.note(value.hash, &value.rows));
        } else {
            further.many.iter().for_each(|&hash| self.note(hash, &[]));
        }
    }

    /// Determines whether one of many values occurs twice: at the end, one column after the other, so that the table
    /// of each stays in the processor's cache.
    pub(super) fn settle(&mut self) {
        if !self.again && has_repeat(&self.many) {
            self.again = true;
            self.many.sort_unstable();
            self.many.dedup();
        }
    }

    fn see(&mut self, row: usize, value: &str) {
        if !self.again || self.distinct() <= FEW {
            self.note(xxh3_64(value.as_bytes()), &[row]);
        }
    }

    /// Adds a value that occurs in the given rows.
    fn note(&mut self, hash: u64, rows: &[usize]) {
        if self.again && self.distinct() > FEW {
            return;
        }
        if self.few.len() <= FEW {
            match self.few.iter_mut().find(|value| value.hash == hash) {
                Some(value) => {
                    self.again = true;
                    let room = (self.rare + 1).saturating_sub(value.rows.len());
                    value.rows.extend_from_slice(&rows[..room.min(rows.len())]);
                }
                None => self.few.push(FewValue { hash, rows: rows.to_vec() }),
            }
            return;
        }
        if self.many.is_empty() {
            self.many = self.few.iter().map(|value| value.hash).collect();
        }
        // Allocated late: there may be as many columns as values.
        if self.many.len() == LATEST && self.latest.is_empty() {
            self.latest = vec![0; LATEST];
        }
        let place = (hash >> (u64::BITS - LATEST.ilog2())) as usize;
        let latest = self.latest.get_mut(place).map(|latest| std::mem::replace(latest, hash));
        if latest == Some(hash) {
            self.again = true;
        } else {
            self.many.push(hash);
        }
    }
}

/// The maximum number of rows, out of so many, with a rare value.
pub(super) fn rare(rows: usize) -> usize {
    (rows / RARE).max(1)
}

/// The smallest and the largest number, each with its position.
struct Extremes {
    low: (usize, Number),
    high: (usize, Number),
}

impl Extremes {
    fn stretch(extremes: &mut Option<Self>, tree: &Document<'_>, (cell, number): (usize, Number)) {
        let Some(Self { low, high }) = extremes else {
            *extremes = Some(Self { low: (cell, number), high: (cell, number) });
            return;
        };
        let less = |a: (usize, Number), b: (usize, Number)| {
            a.1.compared(b.1).unwrap_or_else(|| compared(tree.raw(a.0), tree.raw(b.0))).is_lt()
        };
        if less((cell, number), *low) {
            *low = (cell, number);
        }
        if less(*high, (cell, number)) {
            *high = (cell, number);
        }
    }
}

/// A number, parsed once for many comparisons.
#[derive(Clone, Copy)]
enum Number {
    Whole(i64),
    /// An integer with more digits.
    Long,
    Float(f64),
}

impl Number {
    fn of(text: &str) -> Self {
        match text.parse() {
            Ok(whole) => Self::Whole(whole),
            Err(_) if is_whole(text) => Self::Long,
            Err(_) => Self::Float(text.parse().unwrap_or(f64::NAN)),
        }
    }

    /// As [`compared`]; `None` if the digits have to be compared.
    fn compared(self, other: Self) -> Option<Ordering> {
        let float = |number| match number {
            Self::Whole(whole) => Some(whole as f64),
            Self::Float(float) => Some(float),
            Self::Long => None,
        };
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => Some(a.cmp(&b)),
            (a, b) => Some(float(a)?.partial_cmp(&float(b)?).unwrap_or(Ordering::Equal)),
        }
    }
}

fn is_whole(text: &str) -> bool {
    text.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit())
}

/// Compares two numbers as written, exactly if they are integers: beyond 2^53 a float cannot distinguish neighbours.
pub(super) fn compared(a: &str, b: &str) -> Ordering {
    if !is_whole(a) || !is_whole(b) {
        let float = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
        return float(a).partial_cmp(&float(b)).unwrap_or(Ordering::Equal);
    }
    let size = |text: &'_ str| {
        let digits = text.trim_start_matches('-').trim_start_matches('0').to_owned();
        (digits.len(), digits)
    };
    let is_negative = |text: &str, digits: usize| digits > 0 && text.starts_with('-');
    let (left, right) = (size(a), size(b));
    match (is_negative(a, left.0), is_negative(b, right.0)) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (true, true) => right.cmp(&left),
        (false, false) => left.cmp(&right),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(rows: std::ops::Range<usize>) -> ColumnFacts {
        let mut facts = ColumnFacts::new(1);
        rows.for_each(|row| facts.see(row, &row.to_string()));
        facts
    }

    #[test]
    fn duplicate_values_are_found_at_any_distance() {
        for count in [2, FEW, FEW + 1, LATEST, 5 * LATEST] {
            let mut facts = seen(0..count);
            facts.settle();
            assert_eq!((facts.distinct(), facts.again), (count, false));
            let mut facts = seen(0..count);
            facts.see(count, "0");
            facts.settle();
            assert!(
                facts.again && facts.distinct() <= count && facts.distinct() >= count.min(FEW + 1),
                "{count}"
            );
        }
    }

    #[test]
    fn halves_say_together_what_the_whole_says() {
        let tree = Document::parse_lenient("[]").unwrap();
        for (middle, end) in [(1, 3), (3, 900), (900, 903), (2_000, 5_000)] {
            let mut halves = seen(0..middle);
            halves.join(&tree, seen(middle..end));
            halves.settle();
            assert_eq!((halves.distinct(), halves.again), (end, false));
            let mut halves = seen(0..middle);
            halves.join(&tree, seen(middle - 1..end));
            halves.settle();
            assert!(halves.again && halves.distinct() <= end, "{middle} of {end}");
        }
    }
}
