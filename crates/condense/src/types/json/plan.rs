//! Plans what of a table is worth its tokens: columns for all rows, answers, outliers, examples.
//!
//! Knows columns, costs and the budget; does not know how rows are written.

use hashbrown::HashSet;

use super::columns::TableColumn;
use super::facts::Sort;
use super::grid::{Grid, push_apart, write_value};
use super::view::JsonView;
use super::write;
use larder_text::json::Kind;

/// The share of a table's budget for its head, as one part in this many.
const HEAD: usize = 3;
/// The share of what names leave over for markers.
const MARKS: usize = 6;
/// The share for full rows that answer the query.
const ANSWERS: usize = 3;
/// The share for outliers.
const OUTLIERS: usize = 4;
/// Rows below this share of the best answer's weight do not count as answers.
const CLOSE: f32 = 0.5;
/// If not all names fit, one part in this many is listed from the end.
const TAIL: usize = 8;
/// Longer constants, in bytes, are not repeated in the head.
const LONGEST_CONSTANT: usize = 200;

/// Tokens of the punctuation around a row's note.
const NOTE: usize = 4;

/// What to write of a table.
pub(super) struct TablePlan {
    /// Columns shown for every listed row, in order.
    pub(super) columns: Vec<usize>,
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

    /// Whether a column is stated once for all rows.
    fn is_common(&self, place: usize) -> bool {
        let column = &self.columns()[place];
        let is_constant = column.is_constant(self.rows()) && column.bytes <= self.rows() * LONGEST_CONSTANT;
        is_constant || column.derived.is_some()
    }

    fn whole(&self) -> Option<TablePlan> {
        if !self.grid.table.exact {
            return None;
        }
        let columns: Vec<usize> = (0..self.columns().len()).filter(|&place| !self.is_common(place)).collect();
        let head = self.head(&columns, true, &[]);
        let mut left = self.budget.checked_sub(self.view.count_up_to(&head, self.budget)? + self.rows())?;
        for &place in &columns {
            left = left.checked_sub(self.view.column_cost(self.grid, place, left)?)?;
        }
        let listed = vec![true; self.rows()];
        Some(TablePlan {
            columns,
            listed,
            notes: Vec::new(),
            group: self.rows(),
            head,
            named: true,
            whole: true,
        })
    }

    fn part(&self) -> Option<TablePlan> {
        let id: Vec<usize> = self.grid.table.id.into_iter().collect();
        let mut hidden: Vec<usize> = (0..self.columns().len()).filter(|place| !id.contains(place)).collect();
        let mut head = self.head(&id, true, &hidden);
        let most = self.budget / HEAD;
        let mut common = true;
        if self.view.count_up_to(&head, most).is_none() {
            common = false;
            hidden.truncate(most / 6);
            head = self.head(&id, false, &hidden);
        }
        let spent = self.view.count_up_to(&head, self.budget)? + self.view.mark;
        let left = self.budget.checked_sub(spent)?;
        let names = match id.first() {
            Some(_) if self.grid.counts_up => Some(6),
            Some(&id) => self.view.column_cost(self.grid, id, left),
            None => Some(0),
        };
        let Some(names) = names else { return self.some_names(&id, head, common, left) };
        let mut left = left - names.min(left);
        let group = self.group(left);
        left = left.saturating_sub(self.rows().div_ceil(group) * (self.view.mark + 1));
        Some(self.fill(id, common, group, left))
    }

    /// Rows per marker, so that markers take their share.
    fn group(&self, left: usize) -> usize {
        let marks = (left / MARKS / (self.view.mark + 1)).max(1);
        self.rows().div_ceil(marks).max(1)
    }

    /// Spends what names leave over: answers, columns, outliers, more full rows.
    fn fill(&self, id: Vec<usize>, common: bool, group: usize, mut left: usize) -> TablePlan {
        let mut notes: Vec<(usize, String)> = Vec::new();
        self.answers(&mut notes, &mut left, NOTE);
        let reserve = if self.grid.outliers.is_empty() { 0 } else { left / OUTLIERS };
        left -= reserve;
        let mut columns = id.clone();
        // With another column, every row has a line, so there are no ranges.
        let mut lines = match id.first() {
            Some(&id) if self.grid.counts_up => self.view.column_cost(self.grid, id, left),
            _ => Some(0),
        };
        for place in self.ranked() {
            let Some(more) = lines else { break };
            let room = left.saturating_sub(more);
            let Some(cost) = self.view.column_cost(self.grid, place, room) else { continue };
            left -= cost + more;
            lines = Some(0);
            columns.push(place);
        }
        left += reserve;
        columns.sort_unstable();
        let some = self.outliers(&columns, &mut notes, &mut left, NOTE);
        self.samples(&columns, &mut notes, &mut left);
        notes.sort_unstable();
        let hidden: Vec<usize> = (0..self.columns().len()).filter(|place| !columns.contains(place)).collect();
        let hidden =
            if common { hidden } else { hidden[..hidden.len().min(self.budget / HEAD / 6)].to_vec() };
        let mut head = self.head(&columns, common, &hidden);
        if some {
            head.push_str(&self.some_marked(&columns, &notes));
        }
        let mut listed = vec![true; self.rows()];
        if columns.is_empty() {
            // Without names, only rows with content have a line.
            listed = vec![false; self.rows()];
            notes.iter().for_each(|&(row, _)| listed[row] = true);
        }
        TablePlan { columns, listed, notes, group, head, named: common, whole: false }
    }

    /// The names of the first and last rows and of those that answer the query.
    fn some_names(&self, id: &[usize], mut head: String, named: bool, left: usize) -> Option<TablePlan> {
        let rows = self.rows();
        // A row between unlisted ones needs two markers of its own.
        let alone = 2 * (self.view.mark + 8);
        let mut share = left / (2 * OUTLIERS);
        let left = left - share;
        let mut notes: Vec<(usize, String)> = Vec::new();
        self.answers(&mut notes, &mut share, alone);
        let some = self.outliers(id, &mut notes, &mut share, alone);
        notes.sort_unstable();
        if some {
            head.push_str(&self.some_marked(id, &notes));
        }
        let bytes = id.iter().map(|&id| self.columns()[id].bytes).sum::<usize>();
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
        Some(TablePlan { columns: id.to_vec(), listed, notes, group: rows, head, named, whole: false })
    }

    /// Columns worth showing in every row, the most informative per token first.
    fn ranked(&self) -> Vec<usize> {
        let value = |place: usize| {
            let column = &self.columns()[place];
            let asked = column.cells.first().map_or(0.0, |_| self.asked(column));
            let base = match column.sort {
                Sort::Nested => 1.0,
                _ if column.is_list => 1.5,
                _ if column.distinct <= 1 => 0.1,
                _ if column.distinct == self.rows() => 4.0,
                Sort::Number => 3.0,
                _ => 2.5,
            };
            let rows = self.rows().max(1) as f32;
            let depth = column.name.matches('.').count() as f32;
            let filled = (column.cells.len() as f32 / rows).min(1.0);
            let names = if column.names_things() { 2.0 } else { 0.0 };
            let value = (base + names) * filled / (1.0 + depth / 2.0) + asked;
            value / (column.bytes as f32 / rows + 4.0)
        };
        let mut places: Vec<(f32, usize)> = (0..self.columns().len())
            .filter(|&place| Some(place) != self.grid.table.id && !self.is_common(place))
            .map(|place| (value(place), place))
            .collect();
        places.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        places.into_iter().map(|(_, place)| place).collect()
    }

    /// Whether the query names the column.
    fn asked(&self, column: &TableColumn) -> f32 {
        let query = self.view.job.request.query.unwrap_or_default().to_lowercase();
        let named = |part: &str| part.len() > 2 && query.contains(&part.to_lowercase());
        if column.name.split(['.', '_', '[', ']']).any(named) { 8.0 } else { 0.0 }
    }

    /// Rows by how well they answer, best first.
    fn best_rows(&self) -> &[usize] {
        self.grid.answers.get_or_init(|| {
            let weight = |&row: &usize| {
                let (key, span) = (self.view.tree.name_span(row), self.view.tree.span(row));
                let from = if key.is_empty() { span.start } else { key.start };
                self.view.hits.weight(&(from..span.end))
            };
            let mut rows: Vec<(usize, f32)> =
                self.grid.table.rows.iter().map(weight).enumerate().filter(|&(_, w)| w > 0.0).collect();
            let best = rows.iter().map(|&(_, weight)| weight).fold(0.0, f32::max);
            rows.retain(|&(_, weight)| weight >= best * CLOSE);
            rows.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            rows.into_iter().map(|(row, _)| row).collect()
        })
    }

    fn answers(&self, notes: &mut Vec<(usize, String)>, left: &mut usize, each: usize) {
        let mut share = *left / ANSWERS;
        for &row in self.best_rows() {
            if !self.whole_row(row, &mut share, left, notes, each) {
                break;
            }
        }
    }

    /// The first rows in full, as examples.
    fn samples(&self, columns: &[usize], notes: &mut Vec<(usize, String)>, left: &mut usize) {
        let shown = (0..self.columns().len()).all(|place| columns.contains(&place) || self.is_common(place));
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
        let mut rows: Vec<(f32, usize, String)> = Vec::new();
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
                    notes.push_str(", ");
                    notes.push_str(&text);
                }
                _ => rows.push((weight, row, text)),
            }
        }
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

    /// The text above the rows.
    fn head(&self, shown: &[usize], common: bool, hidden: &[usize]) -> String {
        let columns = self.columns();
        let names: Vec<&str> = shown.iter().map(|&place| columns[place].name.as_str()).collect();
        let last = self.rows().saturating_sub(1);
        let mut head = format!("rows 0-{last}: {}", names.join("|"));
        let all: Vec<String> =
            (0..columns.len()).filter(|&place| self.is_common(place)).map(|p| self.rule(p)).collect();
        if common && !all.is_empty() {
            head.push_str("\nin every row: ");
            head.push_str(&all.join(", "));
        }
        let rest: Vec<String> = hidden
            .iter()
            .filter(|&&place| !(common && self.is_common(place)))
            .map(|&p| self.described(p))
            .collect();
        if !rest.is_empty() {
            let more = if rest.len() + shown.len() + all.len() < columns.len() { ", …" } else { "" };
            head.push_str(&format!(
                "\nnot listed: {}{more}; a mark is the rows above it in full",
                rest.join(", ")
            ));
        }
        head
    }

    /// The rule of a column that is constant or derived in every row.
    fn rule(&self, place: usize) -> String {
        let column = &self.columns()[place];
        match &column.derived {
            Some(derived) => {
                let from = &self.columns()[derived.from].name;
                format!("{}={}{{{from}}}{}", column.name, derived.before, derived.after)
            }
            None => {
                let mut text = format!("{}=", column.name);
                if let Some((_, cell)) = column.cells.first() {
                    push_apart(write::scalar(self.view.tree, cell), &mut text);
                }
                text
            }
        }
    }

    /// The name of a column and a description of its values.
    fn described(&self, place: usize) -> String {
        let column = &self.columns()[place];
        let kind = column.cells.first().map(|(_, cell)| self.view.tree.kind(cell));
        match (column.sort, column.extremes) {
            (Sort::Number, Some((low, high))) => {
                format!("{} {} to {}", column.name, self.view.tree.raw(low), self.view.tree.raw(high))
            }
            (Sort::Word, _) => {
                format!("{} {}", column.name, column.cells.first().map_or("", |_| "true/false/null"))
            }
            (Sort::Nested, _) if kind == Some(Kind::Array) => {
                format!("{} […]", column.name).replace('…', "..")
            }
            (Sort::Nested, _) => format!("{} {{..}}", column.name),
            _ => column.name.clone(),
        }
    }
}

/// The line that says how many of the rows with outliers have a note.
fn some_marked(marked: usize, all: usize) -> String {
    format!("\n{marked} of {all} rows that stand out are marked {{}}")
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
