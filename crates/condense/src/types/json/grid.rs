//! A table with the data for decisions about it, costs and outliers, and its cells as they are written.
//!
//! Knows columns and tokens; does not know which of them are shown.

use std::cell::{OnceCell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use hashbrown::HashMap;

use super::columns::{JsonTable, TableColumn};
use super::facts::{FEW, Sort, rare};
use super::wanted::Wanted;
use super::write;
use larder_text::json::{Document, Kind, encode, is_number};
use larder_text::parallel::Workers;
use larder_text::words::separator;

/// With fewer rows, nothing counts as rare.
const MIN_ROWS: usize = 12;
/// From this many distinct numbers on, the smallest and the largest are outliers.
const MIN_NUMBERS: usize = 8;
/// So many characters beyond the width are shown if a word or the text then ends.
const SHORTEST_REST: usize = 6;

#[derive(Debug)]
pub(crate) struct Grid {
    /// The value whose children are the rows.
    pub(super) node: usize,
    pub(super) table: JsonTable,
    /// Row, column and weight of outliers, sorted by row.
    pub(super) outliers: Vec<(usize, usize, f32)>,
    /// Whether the identifying column contains consecutive integers.
    pub(super) counts_up: bool,
    /// Rows by how well they answer the query, computed on demand.
    pub(super) answers: OnceCell<Vec<usize>>,
    /// Columns by how much a reader wants them, computed on demand.
    pub(super) wanted: OnceCell<Vec<Wanted>>,
    /// By column: the limit it was counted up to, and the tokens if fewer.
    pub(super) costs: RefCell<HashMap<Shown, (usize, Option<usize>)>>,
}

impl Grid {
    pub(super) fn of(tree: &Document<'_>, node: usize, workers: &Workers) -> Option<Self> {
        let table = JsonTable::of(tree, node, workers)?;
        let counts_up = table.id.is_some_and(|id| counts_up(tree, &table.columns[id]));
        let mut outliers: Vec<_> = (0..table.columns.len())
            .flat_map(|place| standing_out(tree, &table, place).into_iter().map(move |(r, w)| (r, place, w)))
            .collect();
        outliers.sort_by_key(|&(row, place, _)| (row, place));
        let (answers, wanted) = (OnceCell::new(), OnceCell::new());
        Some(Self { node, table, outliers, counts_up, answers, wanted, costs: RefCell::default() })
    }

    /// What is written between these rows where only this column is shown.
    pub(super) fn separator(&self, tree: &Document<'_>, shown: Shown, rows: Range<usize>) -> &'static str {
        let column = &self.table.columns[shown.place];
        let cells = rows.flat_map(|row| column.cells.of_row(row));
        separator(cells.map(|(_, cell)| column.text(tree, cell)))
    }

    /// Writes the cell of `row`; list items are separated by `;`.
    pub(super) fn write_cell(&self, tree: &Document<'_>, shown: Shown, row: usize, out: &mut String) {
        let column = &self.table.columns[shown.place];
        let cells = column.cells.of_row(row).map(|(_, cell)| cell);
        let Form::Readable(width) = shown.form else {
            for (index, cell) in cells.enumerate() {
                if index > 0 {
                    out.push(';');
                }
                write_value(tree, column, cell, out);
            }
            return;
        };
        let mut text = String::new();
        for (index, cell) in cells.enumerate() {
            if index > 0 {
                text.push(';');
            }
            push_readable(tree, column, cell, width, &mut text);
            if text.len() > width.saturating_mul(4) {
                break;
            }
        }
        cut(&mut text, width);
        let word = column.sort != Sort::Text && column.sort != Sort::Word || column.is_list;
        let is_string = |(_, cell)| column.is_key || tree.kind(cell) == Kind::String;
        let string = column.cells.of_row(row).next().is_some_and(is_string);
        // A nested value written as a string needs no quotes either.
        let nested = text.starts_with(['{', '[']) && !text.contains("[…");
        let clashes = text.contains(['|', '\n'])
            || !nested && text.contains(['{', '['])
            || text.starts_with('"')
            || text.trim() != text;
        if string && (clashes || word && is_number(text.as_bytes())) {
            encode(&text, out);
        } else {
            out.push_str(&text);
        }
    }
}

/// A column as it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Shown {
    pub(super) place: usize,
    pub(super) form: Form,
}

/// How values are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// As written, so that no byte is lost.
    Written,
    /// Decoded, and shortened to about so many characters; the marker of the rows leads to what is written.
    Readable(usize),
}

/// Appends a value for reading: strings without escapes, control characters as spaces.
fn push_readable(tree: &Document<'_>, column: &TableColumn, cell: usize, width: usize, out: &mut String) {
    let most = width.saturating_mul(8).saturating_add(64);
    if column.is_key || tree.is_container(cell) {
        let before = out.len();
        if column.is_key {
            out.push_str(tree.name(cell));
        } else if !write::value(tree, cell, most.min(usize::MAX / 2), out) && out.len() == before {
            out.push('…');
        }
        return;
    }
    for c in tree.beginning(cell, most).chars() {
        match c {
            c if !c.is_control() => out.push(c),
            _ if out.ends_with(' ') => {}
            _ => out.push(' '),
        }
    }
}

/// Shortens `text` to about `width` characters: up to the end of a word, if that is near.
fn cut(text: &mut String, width: usize) {
    let Some((from, _)) = text.char_indices().nth(width) else { return };
    let most = text[from..].char_indices().nth(SHORTEST_REST).map_or(text.len(), |(at, _)| from + at);
    match text[from..most].find([' ', ';']) {
        Some(at) => text.truncate(from + at),
        // A mark that takes the place of a few letters would save nothing.
        None if most == text.len() => return,
        None => text.truncate(from),
    }
    text.push('…');
}

/// Tables by the value whose children are their rows, each computed once.
pub(super) struct Grids<'w> {
    workers: &'w Workers,
    known: RefCell<HashMap<usize, Option<Rc<Grid>>>>,
}

impl<'w> Grids<'w> {
    /// The table that makes up most of the text, if there is one.
    pub(super) fn largest(tree: &Document<'_>, workers: &'w Workers) -> Self {
        let grids = Self { workers, known: RefCell::default() };
        let mut node = 0;
        while grids.of(tree, node).is_none() {
            let largest = tree.children(node).max_by_key(|&child| tree.dense(child));
            match largest.filter(|&child| 2 * tree.dense(child) > tree.dense(node)) {
                Some(child) => node = child,
                None => break,
            }
        }
        grids
    }

    pub(super) fn of(&self, tree: &Document<'_>, node: usize) -> Option<Rc<Grid>> {
        if let Some(known) = self.known.borrow().get(&node) {
            return known.clone();
        }
        let grid = Grid::of(tree, node, self.workers).map(Rc::new);
        self.known.borrow_mut().insert(node, grid.clone());
        grid
    }
}

pub(super) fn write_value(tree: &Document<'_>, column: &TableColumn, cell: usize, out: &mut String) {
    if column.is_key {
        push_apart(tree.name(cell), out);
    } else if tree.is_container(cell) {
        write::value(tree, cell, usize::MAX / 2, out);
    } else {
        push_apart(write::cell(tree, cell, column.sort == Sort::Text), out);
    }
}

/// Writes a value, quoted if it could be mistaken for its neighbours or a marker, since table fields are unquoted.
pub(super) fn push_apart(text: &str, out: &mut String) {
    let clashes = ['|', ';', '{', '[', '…', '\n'];
    let quotes = if !text.starts_with('"') && text.contains(clashes) { "\"" } else { "" };
    for piece in [quotes, text, quotes] {
        out.push_str(piece);
    }
}

fn counts_up(tree: &Document<'_>, column: &TableColumn) -> bool {
    let number = |(_, cell): (usize, usize)| {
        let text = column.text(tree, cell);
        let whole = is_number(text.as_bytes()) && !text.contains(['.', 'e', 'E', '+']);
        (whole && (text == "0" || !text.starts_with('0'))).then(|| text.parse::<i64>().ok()).flatten()
    };
    let numbers: Option<Vec<i64>> = column.cells.iter().map(number).collect();
    numbers.is_some_and(|numbers| numbers.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1])))
}

/// The rows whose value in a column differs from most others, with weights.
fn standing_out(tree: &Document<'_>, table: &JsonTable, place: usize) -> Vec<(usize, f32)> {
    let (column, rows) = (&table.columns[place], table.rows.len());
    if column.is_key || column.is_list || rows < MIN_ROWS || Some(place) == table.id {
        return Vec::new();
    }
    let rare = rare(rows);
    if column.cells.len() <= rare {
        return column.cells.iter().map(|(row, _)| (row, 2.0)).collect();
    }
    if matches!(column.sort, Sort::Mixed | Sort::Nested) {
        // All words count as one kind: in a column of `true`, `false` and `null`, none is rare.
        let kind = |cell: usize| match tree.kind(cell) {
            Kind::Bool | Kind::Null => Kind::Word,
            kind => kind,
        };
        let of = |wanted: Kind| column.cells.iter().filter(|&(_, cell)| kind(cell) == wanted).count();
        let kinds = [Kind::Object, Kind::Array, Kind::String, Kind::Number, Kind::Word];
        let rare_kinds: Vec<Kind> =
            kinds.into_iter().filter(|&kind| (1..=rare).contains(&of(kind))).collect();
        let cells = column.cells.iter().filter(|&(_, cell)| rare_kinds.contains(&kind(cell)));
        return cells.map(|(row, _)| (row, 3.0)).collect();
    }
    if column.distinct > 1 && column.distinct <= FEW {
        return column.rare.iter().map(|&row| (row, 2.0)).collect();
    }
    match column.extremes.filter(|_| column.distinct >= MIN_NUMBERS) {
        Some((low, high)) => {
            column.cells.iter().filter(|&(_, c)| c == low || c == high).map(|(r, _)| (r, 1.0)).collect()
        }
        None => Vec::new(),
    }
}
