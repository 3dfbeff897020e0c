//! The tables of a text: what the heading of its column says of a number. Every heading is read once, since a table has as
//! many numbers as a text has room for.

use std::ops::Range;

use super::{amounts, counts, units};

/// Bytes of a row before a number.
const ROW: usize = 4_096;
/// Columns that have a heading.
const COLUMNS: usize = 200;

/// The tables of a text that have rows below their heading.
#[derive(Default)]
pub(super) struct Tables {
    tables: Vec<Table>,
    /// Where each of their rows begins.
    rows: Vec<usize>,
}

struct Table {
    /// Its rows below the heading.
    rows: Range<usize>,
    /// By the number of marks before them.
    columns: Vec<Column>,
}

/// What the heading of a column says of the numbers below it.
pub(super) struct Column {
    pub(super) currency: Option<usize>,
    /// Whether they are prices, by any of the words that prices stand under, and by those that stand over little else.
    pub(super) says_price: bool,
    pub(super) is_called_price: bool,
    /// Whether they count reviews, or pieces in stock.
    pub(super) is_count: bool,
    /// The unit: in brackets, or the last word.
    pub(super) units: Vec<usize>,
}

impl Column {
    fn of(heading: &str) -> Self {
        Self {
            currency: amounts::currency_of_heading(heading),
            says_price: amounts::says_price(heading),
            is_called_price: amounts::is_name_of_price(heading),
            is_count: counts::heads_counts(heading),
            units: units::rows_of_heading(heading),
        }
    }
}

impl Tables {
    pub(super) fn of(text: &str) -> Self {
        let (mut tables, mut rows): (Vec<Table>, Vec<usize>) = Default::default();
        let mut at = 0;
        let mut heading: Option<Range<usize>> = None;
        for line in text.split_inclusive('\n') {
            let row = at..at + line.len();
            at = row.end;
            if !line.trim_start().starts_with('|') {
                heading = None;
                continue;
            }
            let Some(heading) = &heading else {
                heading = Some(row);
                continue;
            };
            rows.push(row.start);
            match tables.last_mut().filter(|table| table.rows.start == heading.end) {
                Some(table) => table.rows.end = row.end,
                None => {
                    let cells = text[heading.clone()].trim_end().split('|').take(COLUMNS + 1);
                    tables.push(Table { rows: row, columns: cells.map(Column::of).collect() });
                }
            }
        }
        Self { tables, rows }
    }

    /// The column of a table in which a place of the text is.
    pub(super) fn column(&self, text: &str, at: usize) -> Option<&Column> {
        let table = self.tables.get(self.tables.partition_point(|table| table.rows.end <= at))?;
        let row = self.rows.get(self.rows.partition_point(|row| *row <= at).checked_sub(1)?)?;
        if !table.rows.contains(&at) || at - row > ROW {
            return None;
        }
        let before = &text.as_bytes()[*row..at];
        table.columns.get(before.iter().filter(|byte| **byte == b'|').count())
    }
}
