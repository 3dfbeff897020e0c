//! Values that an answer gives to the wrong cell of a table. Its clause names a row and a column and states one value, which
//! the documents have only in another cell of that row or column. Plain functions of texts.

use std::collections::{BTreeMap, BTreeSet};

use super::axes::{are_alike, cells, is_attribute, is_rule};
use super::rows::{clauses, compares, is_row};
use super::{amounts, numbers};

/// Rows and columns of all tables whose cells are compared.
const MOST_NAMES: usize = 1_000;
/// Bytes of a row before a number.
const ROW: usize = 4_096;
/// Letters of a word that hints at another row or column.
const HINT: usize = 4;

/// The tables of the documents.
pub(super) struct Cells {
    tables: Vec<Table>,
    /// The tables that have a number, and nothing for one outside them.
    homes: BTreeMap<i128, BTreeSet<Option<usize>>>,
}

#[derive(Default)]
struct Table {
    /// The names of its rows, and of its columns but for the first.
    rows: Vec<String>,
    columns: Vec<String>,
    /// The numbers of each cell.
    numbers: BTreeMap<(usize, usize), BTreeSet<i128>>,
    /// The rows and columns whose values are of one kind.
    like_rows: BTreeSet<usize>,
    like_columns: BTreeSet<usize>,
}

impl Cells {
    /// The tables of a text with these numbers.
    pub(super) fn of(text: &str, numbers: &[(usize, i128)]) -> Self {
        let mut found = Self { tables: Vec::new(), homes: BTreeMap::new() };
        let mut numbers = numbers.iter().peekable();
        let mut lines: Vec<(usize, &str)> = Vec::new();
        let mut at = 0;
        // A line that is no row ends the last table.
        for line in text.split_inclusive('\n').chain(std::iter::once("\n")) {
            if is_row(line) {
                lines.push((at, line));
            } else if !lines.is_empty() {
                found.add(&std::mem::take(&mut lines), &mut numbers);
            }
            at += line.len();
            if lines.is_empty() {
                while let Some((_, number)) = numbers.next_if(|(place, _)| *place < at) {
                    found.homes.entry(*number).or_default().insert(None);
                }
            }
        }
        found
    }

    fn add<'n>(
        &mut self,
        lines: &[(usize, &str)],
        numbers: &mut std::iter::Peekable<impl Iterator<Item = &'n (usize, i128)>>,
    ) {
        let mut table = Table::of(lines);
        let names = self.tables.iter().chain([&table]).map(|table| table.rows.len() + table.columns.len());
        let is_read = names.sum::<usize>() <= MOST_NAMES;
        for (row, (start, line)) in lines.iter().enumerate() {
            while let Some((place, number)) = numbers.next_if(|(place, _)| *place < start + line.len()) {
                let before =
                    line.as_bytes().get(..place - start).filter(|before| is_read && before.len() <= ROW);
                let home = before.map(|_| self.tables.len());
                self.homes.entry(*number).or_default().insert(home);
                let column = before.map(|before| before.iter().filter(|byte| **byte == b'|').count());
                // The first row is the heading, and the first column has the names of the rows.
                let cell = row.checked_sub(1).zip(column.and_then(|column| column.checked_sub(2)));
                cell.map(|cell| table.numbers.entry(cell).or_default().insert(*number));
            }
        }
        self.tables.extend(is_read.then_some(table));
    }

    /// The values that an answer gives to the wrong cell, with their places.
    pub(super) fn swapped(&self, text: &str) -> Vec<(usize, String)> {
        if self.tables.is_empty() {
            return Vec::new();
        }
        let mut found = Vec::new();
        for (start, clause) in clauses(text) {
            if !clause.contains(|char: char| char.is_ascii_digit()) || compares(clause) {
                continue;
            }
            let said = words(clause);
            let wrong = self.tables.iter().enumerate().find_map(|(home, table)| {
                let (at, number) = table.wrong(&said, clause)?;
                (self.homes.get(&number)?.iter().eq([&Some(home)])).then_some(at)
            });
            found.extend(wrong.map(|at| (start + at, clause[at..amounts::end(clause, at)].to_owned())));
        }
        found
    }
}

impl Table {
    /// The names of a table, and which of its values are alike.
    fn of(lines: &[(usize, &str)]) -> Self {
        let rows: Vec<Vec<&str>> = lines.iter().map(|(_, line)| cells(line)).collect();
        let Some((heading, rows)) = rows.split_first() else { return Self::default() };
        // Columns such as prices and weights have values of several kinds, whatever their cells say.
        let of_things = !heading.iter().skip(2).any(|name| is_attribute(name));
        let is_like_row = |row: &Vec<&str>| of_things && are_alike(row.iter().skip(2).copied());
        let in_column = |column: usize| rows.iter().filter_map(move |row| row.get(column + 2)).copied();
        Self {
            // The rule below the heading has no name.
            rows: rows
                .iter()
                .map(|row| row.get(1).filter(|_| !is_rule(row)).map_or_else(String::new, |name| words(name)))
                .collect(),
            columns: heading.iter().skip(2).map(|name| words(name)).collect(),
            numbers: BTreeMap::new(),
            like_rows: (0..rows.len()).filter(|row| is_like_row(&rows[*row])).collect(),
            like_columns: (0..heading.len()).filter(|column| are_alike(in_column(*column))).collect(),
        }
    }

    /// The only value of a clause with these words, and where it stands, if the clause names another cell than that.
    fn wrong(&self, said: &str, clause: &str) -> Option<(usize, i128)> {
        let (row, column) = (named(&self.rows, said)?, named(&self.columns, said)?);
        let names = [&self.rows[row], &self.columns[column]];
        let is_of_name = |at: usize| {
            let number = words(&clause[at..amounts::end(clause, at)]);
            names.iter().any(|name| name.contains(&number))
        };
        let mut values = numbers(clause).filter(|(at, _)| !is_of_name(*at));
        let value = values.next().filter(|_| values.next().is_none())?;
        let has = |cell: &(usize, usize)| self.numbers.get(cell).is_some_and(|cell| cell.contains(&value.1));
        let in_column =
            || self.like_columns.contains(&column) && (0..self.rows.len()).any(|other| has(&(other, column)));
        let is_of_row = (0..self.columns.len()).any(|other| has(&(row, other)));
        // `Users on the Basic plan get 10 GB` names a column in passing and takes the value from another of the row.
        let is_wrong = if is_of_row { self.like_rows.contains(&row) } else { in_column() };
        (!has(&(row, column)) && is_wrong).then_some(value)
    }
}

/// The one of some names that a text of words has: the longest, which contains all others that it has, and the text has no
/// word of another.
fn named(names: &[String], said: &str) -> Option<usize> {
    let of_text = |name: &String| name.len() > 2 && said.contains(name.as_str());
    let found = (0..names.len()).filter(|at| of_text(&names[*at]));
    let longest = found.max_by_key(|at| names[*at].len())?;
    let name = &names[longest];
    let hints = |word: &str| {
        word.len() >= HINT && !name.contains(&format!(" {word} ")) && said.contains(&format!(" {word} "))
    };
    let is_other = |at: usize| {
        let other = &names[at];
        if of_text(other) {
            !name.contains(other.as_str()) || other == name
        } else {
            other.split(' ').any(hints)
        }
    };
    (0..names.len()).all(|at| at == longest || !is_other(at)).then_some(longest)
}

/// The words of a text in small letters and without the s of plurals, each between spaces.
fn words(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty());
    let words = words.map(|word| if word.len() > HINT { word.trim_end_matches('s') } else { word });
    format!(" {} ", words.collect::<Vec<_>>().join(" "))
}
