//! Plans what of a table is worth its tokens: columns for all rows, answers, outliers, examples.
//!
//! Knows columns, costs and the budget; does not know how rows are written.

use hashbrown::HashSet;

use super::columns::TableColumn;
use super::grid::{Form, Grid, Shown, write_value};
use super::head::TableHead;
use super::view::JsonView;
use super::wanted::{self, Wanted};
use super::write;
use larder_text::words::joined;

/// The share of what names leave over for markers, as one part in this many.
const MARKS: usize = 24;
/// The share kept free of columns that the query asks for, if rows answer it.
const FOR_ANSWERS: usize = 10;
/// The share for full rows that answer the query.
const ANSWERS: usize = 3;
/// The same where not even all names fit: those of the first rows say less than an answer.
const ANSWERS_OR_NAMES: usize = 2;
/// The share kept free of columns, for outliers.
const KEPT_FREE: usize = 12;
/// The share of what columns leave over for outliers.
const OUTLIERS: usize = 4;
/// Columns that a reader wants less are shown after the others have their full width.
const WORTH: f32 = 1.0;
/// The widths of shortened columns, in characters, after the first.
const WIDTHS: [usize; 5] = [24, 60, 160, 500, usize::MAX];
/// Rows below this share of the best answer's weight do not count as answers.
const CLOSE: f32 = 0.5;
/// If not all names fit, one part in this many is listed from the end.
const TAIL: usize = 8;
/// Tokens of the punctuation around a row's note.
const NOTE: usize = 4;

/// What to write of a table.
pub(super) struct TablePlan {
    /// Columns shown for every listed row, in order.
    pub(super) columns: Vec<Shown>,
    /// Whether each row has a line.
    pub(super) listed: Vec<bool>,
    /// Notes added to rows: row index and text, sorted by row.
    pub(super) notes: Vec<(usize, String)>,
    /// Rows per marker.
    pub(super) group: usize,
    pub(super) head: String,
    /// Whether the head names every column.
    pub(super) named: bool,
    /// Whether nothing is omitted.
    pub(super) whole: bool,
}

pub(super) struct TablePlanner<'a> {
    pub(super) view: &'a JsonView<'a>,
    pub(super) grid: &'a Grid,
    pub(super) budget: usize,
}

impl TablePlanner<'_> {
    /// The plan that fits, if at least one name does.
    pub(super) fn plan(&self) -> Option<TablePlan> {
        self.whole().or_else(|| self.part())
    }

    fn rows(&self) -> usize {
        self.grid.table.rows.len()
    }

    fn columns(&self) -> &[TableColumn] {
        &self.grid.table.columns
    }

    fn head(&self) -> TableHead<'_> {
        TableHead { view: self.view, grid: self.grid }
    }

    fn is_common(&self, place: usize) -> bool {
        self.head().is_common(place)
    }

    /// Columns by how much a reader wants them.
    fn wanted(&self) -> &[Wanted] {
        self.grid.wanted.get_or_init(|| wanted::ranked(self.view, self.grid))
    }

    fn whole(&self) -> Option<TablePlan> {
        if !self.grid.table.exact {
            return None;
        }
        let places = (0..self.columns().len()).filter(|&place| !self.is_common(place));
        let columns: Vec<Shown> = places.map(|place| Shown { place, form: Form::Written }).collect();
        let head = self.head().of_whole(&columns);
        let mut left = self.budget.checked_sub(self.view.count_up_to(&head, self.budget)? + self.rows())?;
        for &shown in &columns {
            left = left.checked_sub(self.view.column_cost(self.grid, shown, left)?)?;
        }
        let listed = vec![true; self.rows()];
        let (notes, group) = (Vec::new(), self.rows());
        Some(TablePlan { columns, listed, notes, group, head, named: true, whole: true })
    }

    fn part(&self) -> Option<TablePlan> {
        let id: Vec<Shown> = self
            .grid
            .table
            .id
            .iter()
            .map(|&place| Shown { place, form: Form::Readable(usize::MAX) })
            .collect();
        let (head, named) = self.head().of_part(&id, self.wanted(), self.budget);
        let spent = self.view.count_up_to(&head, self.budget)? + self.view.mark;
        let left = self.budget.checked_sub(spent)?;
        let names = match id.first() {
            Some(_) if self.grid.counts_up => Some(6),
            Some(&id) => self.view.column_cost(self.grid, id, left),
            None => Some(0),
        };
        let Some(names) = names else { return self.some_names(id, head, named, left) };
        let mut left = left - names.min(left);
        let group = self.group(left);
        left = left.saturating_sub(self.rows().div_ceil(group) * (self.view.mark + 1));
        Some(self.fill(id, group, left))
    }

    /// Rows per marker, so that markers take their share.
    fn group(&self, left: usize) -> usize {
        let marks = (left / MARKS / (self.view.mark + 1)).max(1);
        self.rows().div_ceil(marks).max(1)
    }

    /// Spends what names leave over: answers, a glance at what readers want, outliers, more of the same, full rows.
    fn fill(&self, mut columns: Vec<Shown>, group: usize, mut left: usize) -> TablePlan {
        let mut notes: Vec<(usize, String)> = Vec::new();
        let for_answers = if self.best_rows().is_empty() { 0 } else { left / FOR_ANSWERS };
        left -= for_answers;
        self.show(&mut columns, &mut left, wanted::ASKED);
        left += for_answers;
        let share = left / ANSWERS;
        self.answers(&mut notes, &mut left, share, NOTE);
        let reserve = if self.grid.outliers.is_empty() { 0 } else { left / KEPT_FREE };
        left -= reserve;
        self.show(&mut columns, &mut left, WORTH);
        let mut share = reserve + left / OUTLIERS;
        left -= left / OUTLIERS;
        let places: Vec<usize> = columns.iter().map(|shown| shown.place).collect();
        let some = self.outliers(&places, &mut notes, &mut share, NOTE);
        left += share;
        self.widen(&mut columns, &mut left);
        self.show(&mut columns, &mut left, f32::MIN);
        columns.sort_unstable_by_key(|shown| shown.place);
        let places: Vec<usize> = columns.iter().map(|shown| shown.place).collect();
        self.samples(&columns, &mut notes, &mut left);
        notes.sort_unstable();
        let (mut head, named) = self.head().of_part(&columns, self.wanted(), self.budget);
        if some {
            head.push_str(&self.some_marked(&places, &notes));
        }
        let mut listed = vec![true; self.rows()];
        if columns.is_empty() {
            // Without names, only rows with content have a line.
            listed = vec![false; self.rows()];
            notes.iter().for_each(|&(row, _)| listed[row] = true);
        }
        TablePlan { columns, listed, notes, group, head, named, whole: false }
    }

    /// Adds the columns that a reader wants at least this much and that fit, each at its first width.
    fn show(&self, columns: &mut Vec<Shown>, left: &mut usize, least: f32) {
        for &Wanted { place, score, width } in self.wanted() {
            if score < least {
                break;
            }
            if self.is_common(place) || columns.iter().any(|shown| shown.place == place) {
                continue;
            }
            // With another column, every row has a line, so there are no ranges.
            let lines = match columns[..] {
                [id] if self.grid.counts_up => self.view.column_cost(self.grid, id, *left),
                _ => Some(0),
            };
            let Some(lines) = lines else { break };
            let extra = lines + self.view.estimate(self.columns()[place].name.len()) + 1;
            let Some(room) = left.checked_sub(extra) else { continue };
            let shown = Shown { place, form: Form::Readable(width) };
            let Some(cost) = self.view.column_cost(self.grid, shown, room) else { continue };
            *left -= cost + extra;
            columns.push(shown);
        }
    }

    /// Shows more of shortened columns, step by step, the most wanted first.
    fn widen(&self, columns: &mut [Shown], left: &mut usize) {
        for width in WIDTHS {
            for shown in &mut *columns {
                let wider = Shown { form: Form::Readable(width), ..*shown };
                let narrow = matches!(shown.form, Form::Readable(now) if now < width);
                let Some(now) =
                    narrow.then(|| self.view.column_cost(self.grid, *shown, usize::MAX / 2)).flatten()
                else {
                    continue;
                };
                if let Some(cost) = self.view.column_cost(self.grid, wider, *left + now) {
                    *left = *left + now - cost.max(now);
                    *shown = wider;
                }
            }
        }
    }

    /// The names of the first and last rows and of those that answer the query.
    fn some_names(
        &self,
        id: Vec<Shown>,
        mut head: String,
        named: bool,
        mut left: usize,
    ) -> Option<TablePlan> {
        let rows = self.rows();
        // A row between unlisted ones needs two markers of its own.
        let alone = 2 * (self.view.mark + 8);
        let mut notes: Vec<(usize, String)> = Vec::new();
        let share = left / ANSWERS_OR_NAMES;
        self.answers(&mut notes, &mut left, share, alone);
        let mut share = left / (2 * OUTLIERS);
        let left = left - share;
        let places: Vec<usize> = id.iter().map(|id| id.place).collect();
        let some = self.outliers(&places, &mut notes, &mut share, alone);
        notes.sort_unstable();
        if some {
            head.push_str(&self.some_marked(&places, &notes));
        }
        let bytes = places.iter().map(|&id| self.columns()[id].bytes).sum::<usize>();
        let each = self.view.estimate(bytes / rows.max(1) + 2) + 1;
        let fit = ((left + share).checked_sub(alone)? / each).min(rows);
        if fit == 0 {
            return None;
        }
        let mut listed = vec![false; rows];
        let tail = fit / TAIL;
        listed[..fit - tail].fill(true);
        listed[rows - tail..].fill(true);
        notes.iter().for_each(|&(row, _)| listed[row] = true);
        Some(TablePlan { columns: id, listed, notes, group: rows, head, named, whole: false })
    }

    /// Rows by how well they answer, best first.
    fn best_rows(&self) -> &[usize] {
        self.grid.answers.get_or_init(|| {
            let naming = wanted::naming(self.view, self.grid);
            let weight = |&row: &usize| {
                let (key, span) = (self.view.tree.name_span(row), self.view.tree.span(row));
                let from = if key.is_empty() { span.start } else { key.start };
                let hits = self.view.hits.within(&(from..span.end)).iter();
                hits.filter(|(_, word, _)| naming.get(*word) != Some(&true)).map(|(.., weight)| weight).sum()
            };
            let mut rows: Vec<(usize, f32)> =
                self.grid.table.rows.iter().map(weight).enumerate().filter(|&(_, w)| w > 0.0).collect();
            let best = rows.iter().map(|&(_, weight)| weight).fold(0.0, f32::max);
            rows.retain(|&(_, weight)| weight >= best * CLOSE);
            rows.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            rows.into_iter().map(|(row, _)| row).collect()
        })
    }

    fn answers(&self, notes: &mut Vec<(usize, String)>, left: &mut usize, mut share: usize, each: usize) {
        for &row in self.best_rows() {
            if !self.whole_row(row, &mut share, left, notes, each) {
                break;
            }
        }
    }

    /// The first rows in full, as examples.
    fn samples(&self, columns: &[Shown], notes: &mut Vec<(usize, String)>, left: &mut usize) {
        let is_full = |place| columns.contains(&Shown { place, form: Form::Readable(usize::MAX) });
        let shown = (0..self.columns().len()).all(|place| is_full(place) || self.is_common(place));
        if shown && self.grid.table.exact {
            return;
        }
        let noted: HashSet<usize> = notes.iter().map(|&(row, _)| row).collect();
        for row in (0..self.rows()).filter(|row| !noted.contains(row)) {
            let mut share = *left;
            if !self.whole_row(row, &mut share, left, notes, NOTE) {
                break;
            }
        }
    }

    fn whole_row(
        &self,
        row: usize,
        share: &mut usize,
        left: &mut usize,
        notes: &mut Vec<(usize, String)>,
        each: usize,
    ) -> bool {
        let mut text = String::new();
        let node = self.grid.table.rows[row];
        if !write::value(self.view.tree, node, self.view.bytes_for(*share), &mut text) {
            return false;
        }
        let Some(cost) = self.view.count_up_to(&text, *share).map(|cost| cost + each) else { return false };
        if cost > *share || cost > *left {
            return false;
        }
        *share -= cost;
        *left -= cost;
        let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(&text);
        notes.push((row, inner.to_owned()));
        true
    }

    /// Notes outliers that are not shown, heaviest rows first; true if there is no room for all of them, except for
    /// the line that says so.
    fn outliers(
        &self,
        columns: &[usize],
        notes: &mut Vec<(usize, String)>,
        left: &mut usize,
        each: usize,
    ) -> bool {
        let mut rows: Vec<(f32, usize, Vec<String>)> = Vec::new();
        let noted: HashSet<usize> = notes.iter().map(|&(row, _)| row).collect();
        for &(row, place, weight) in &self.grid.outliers {
            if self.is_covered(place, columns) || noted.contains(&row) {
                continue;
            }
            let mut text = format!("{}=", self.columns()[place].name);
            let Some((_, cell)) = self.columns()[place].cells.of_row(row).next() else { continue };
            write_value(self.view.tree, &self.columns()[place], cell, &mut text);
            match rows.last_mut() {
                Some((sum, last, notes)) if *last == row => {
                    *sum += weight;
                    notes.push(text);
                }
                _ => rows.push((weight, row, vec![text])),
            }
        }
        let noted = rows.into_iter().map(|(weight, row, notes)| (weight, row, joined(&notes)));
        let mut rows: Vec<(f32, usize, String)> = noted.collect();
        rows.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let fit = |mut left: usize| {
            let mut fitting = Vec::new();
            for (_, row, text) in &rows {
                let Some(cost) = self.view.count_up_to(text, left).map(|cost| cost + each) else { continue };
                if cost <= left {
                    left -= cost;
                    fitting.push((*row, text.clone()));
                }
            }
            (fitting, left)
        };
        let (mut fitting, mut rest) = fit(*left);
        let line = || self.view.count(&some_marked(rows.len(), rows.len()));
        let room = if fitting.len() < rows.len() { left.checked_sub(line()) } else { None };
        if let Some(room) = room {
            (fitting, rest) = fit(room);
        }
        *left = rest;
        notes.extend(fitting);
        room.is_some()
    }

    /// Whether the cells of a column are given for every row.
    fn is_covered(&self, place: usize, shown: &[usize]) -> bool {
        shown.contains(&place) || self.is_common(place)
    }

    /// How many of the rows with hidden outliers have a note; `None` if all have.
    fn some_marked(&self, shown: &[usize], notes: &[(usize, String)]) -> String {
        let hidden = self.grid.outliers.iter().filter(|&&(_, place, _)| !self.is_covered(place, shown));
        let rows: HashSet<usize> = hidden.map(|&(row, ..)| row).collect();
        let marked = notes.iter().filter(|(row, _)| rows.contains(row)).count();
        if marked < rows.len() { some_marked(marked, rows.len()) } else { String::new() }
    }
}

/// The line that says how many of the rows with outliers have a note.
fn some_marked(marked: usize, all: usize) -> String {
    format!("\n{marked} of {all} rows that stand out are marked {{}}")
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
