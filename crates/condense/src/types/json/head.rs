//! Writes what is said above the rows of a table: its columns, what holds for all rows, and what is not listed.
//!
//! Knows columns and their rules; does not choose which are listed.

use super::columns::TableColumn;
use super::facts::Sort;
use super::grid::{Grid, Shown, push_apart};
use super::view::JsonView;
use super::wanted::Wanted;
use super::write;
use larder_text::json::Kind;
use larder_text::words::joined;

/// The share of a table's budget for what holds for all rows, as one part in this many.
const RULES: usize = 16;
/// The share for names of columns that are not listed.
const NAMES: usize = 20;
/// Tokens for these names that are never too many, unless the whole budget is small.
const FEW_NAMES: usize = 48;
/// Longer constants, in bytes, are not repeated.
const LONGEST_CONSTANT: usize = 200;

pub(super) struct TableHead<'a> {
    pub(super) view: &'a JsonView<'a>,
    pub(super) grid: &'a Grid,
}

impl TableHead<'_> {
    /// The head of a table of which nothing is omitted.
    pub(super) fn of_whole(&self, shown: &[Shown]) -> String {
        let common = (0..self.columns().len()).filter(|&place| self.is_common(place));
        self.text(shown, &common.map(|place| self.rule(place)).collect::<Vec<_>>())
    }

    /// The head of a table of which columns are omitted, the most wanted first, and whether it names every column.
    pub(super) fn of_part(&self, shown: &[Shown], wanted: &[Wanted], budget: usize) -> (String, bool) {
        let listed = |place: usize| shown.iter().any(|shown| shown.place == place);
        let (mut rules, mut names, mut omitted) = (Vec::new(), Vec::new(), 0);
        let (mut for_rules, mut for_names) =
            (budget / RULES, (budget / NAMES).max(FEW_NAMES.min(budget / 4)));
        let take = |text: String, left: &mut usize, taken: &mut Vec<String>| {
            let room = left.checked_sub(self.view.estimate(text.len()) + 1);
            if let Some(room) = room {
                *left = room;
                taken.push(text);
            }
            room.is_some()
        };
        for place in wanted.iter().map(|wanted| wanted.place).filter(|&place| !listed(place)) {
            let ruled = self.is_common(place) && take(self.rule(place), &mut for_rules, &mut rules);
            if !ruled && !take(self.described(place), &mut for_names, &mut names) {
                omitted += 1;
            }
        }
        let mut head = self.text(shown, &rules);
        if omitted > 0 {
            names.push(format!("… {omitted} more"));
        }
        if !names.is_empty() {
            head.push_str(&format!("\nnot listed: {}; a mark is the rows above it in full", joined(&names)));
        }
        (head, omitted == 0)
    }

    fn text(&self, shown: &[Shown], rules: &[String]) -> String {
        let names: Vec<&str> = shown.iter().map(|shown| self.columns()[shown.place].name.as_str()).collect();
        let mut head =
            format!("rows 0-{}: {}", self.grid.table.rows.len().saturating_sub(1), names.join("|"));
        if !rules.is_empty() {
            head.push_str("\nin every row: ");
            head.push_str(&joined(rules));
        }
        head
    }

    fn columns(&self) -> &[TableColumn] {
        &self.grid.table.columns
    }

    /// Whether a column is stated once for all rows.
    pub(super) fn is_common(&self, place: usize) -> bool {
        let (column, rows) = (&self.columns()[place], self.grid.table.rows.len());
        column.is_constant(rows) && column.bytes <= rows * LONGEST_CONSTANT || column.derived.is_some()
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
