//! Writes a table: what applies to all rows, then the rows, naming as many as fit.
//!
//! Knows tables and budgets; does not know the text around the table. The form:
//!
//! ```text
//! rows 0-199: order_id|user_id|status
//! in every row: address.country=USA, url=https://example.org/{order_id}
//! not listed: items[].name, items[].price 12.5 to 998.1; a mark is the rows above it in full
//! 12 of 48 rows that stand out are marked {}
//! #W2611340|james_li_5688|processed
//! #W4817420|ava_moore_2033|pending {status=pending}
//! [… B1-1520]
//! ```

use super::grid::Grid;
use super::out::JsonDraft;
use super::plan::{TablePlan, TablePlanner};
use super::view::JsonView;

/// Writes the table in `node` with about `budget` tokens; false if that is too little, and nothing is written.
pub(super) fn write(
    view: &JsonView<'_>,
    out: &mut JsonDraft<'_>,
    node: usize,
    grid: &Grid,
    budget: usize,
) -> bool {
    let Some(plan) = (TablePlanner { view, grid, budget }).plan() else { return false };
    out.text.push_str(&plan.head);
    if plan.whole {
        for row in 0..plan.listed.len() {
            out.text.push('\n');
            line(view, grid, &plan, row, &mut out.text);
        }
        let in_words: Vec<usize> = grid.table.in_words();
        out.covered(view.tree, node, &in_words);
        return true;
    }
    if plan.named && !view.tree.is_irregular(node) {
        let first = grid.table.rows.first().map_or(0, |&row| start(view, row));
        out.told_to(out.boundary(first));
    }
    groups(view, out, node, grid, &plan);
    true
}

/// The start of a row, its name included.
fn start(view: &JsonView<'_>, row: usize) -> usize {
    let key = view.tree.name_span(row);
    if key.is_empty() { view.tree.span(row).start } else { key.start }
}

fn groups(view: &JsonView<'_>, out: &mut JsonDraft<'_>, node: usize, grid: &Grid, plan: &TablePlan) {
    let (rows, end) = (&grid.table.rows, view.tree.span(node).end);
    let mut from = 0;
    while from < rows.len() {
        let listed = plan.listed[from];
        let most = if listed { plan.group } else { usize::MAX };
        let to = from + plan.listed[from..].iter().take(most).take_while(|&&other| other == listed).count();
        out.text.push('\n');
        if listed {
            write_group(view, out, grid, plan, from..to);
            out.text.push('\n');
        }
        let reach = match rows.get(to) {
            Some(&next) => out.boundary(start(view, next)),
            None if view.tree.is_irregular(node) => end,
            None => last_line(view.tree.text(), view.tree.span(rows[to - 1]).end).min(end),
        };
        out.gap_to(reach);
        if !listed {
            out.text.push_str(&format!(" rows {from}-{} and their names", to - 1));
        }
        from = to;
    }
    out.told_to(end);
}

/// The position after the line break that ends the line of `at`, if only white space is between.
fn last_line(text: &str, at: usize) -> usize {
    let blanks = text.as_bytes()[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count();
    if text.as_bytes().get(at + blanks) == Some(&b'\n') { at + blanks + 1 } else { at }
}

fn write_group(
    view: &JsonView<'_>,
    out: &mut JsonDraft<'_>,
    grid: &Grid,
    plan: &TablePlan,
    rows: std::ops::Range<usize>,
) {
    let noted = |row: usize| plan.notes.binary_search_by_key(&row, |(row, _)| *row).is_ok();
    if plan.columns.len() > 1 || plan.columns.is_empty() {
        for row in rows.clone() {
            if row > rows.start {
                out.text.push('\n');
            }
            line(view, grid, plan, row, &mut out.text);
        }
        return;
    }
    let mut row = rows.start;
    let between = grid.separator(view.tree, plan.columns[0], rows.clone());
    while row < rows.end {
        if row > rows.start {
            out.text.push_str(between);
        }
        // Consecutive integers are written as a range.
        let run = (row..rows.end).take_while(|&row| grid.counts_up && !noted(row)).count();
        if run > 2 {
            line(view, grid, plan, row, &mut out.text);
            out.text.push('-');
            line(view, grid, plan, row + run - 1, &mut out.text);
            row += run;
        } else {
            line(view, grid, plan, row, &mut out.text);
            row += 1;
        }
    }
}

/// Writes one row; without columns, its position.
fn line(view: &JsonView<'_>, grid: &Grid, plan: &TablePlan, row: usize, out: &mut String) {
    if plan.columns.is_empty() {
        out.push_str(&row.to_string());
    }
    for (index, &shown) in plan.columns.iter().enumerate() {
        if index > 0 {
            out.push('|');
        }
        grid.write_cell(view.tree, shown, row, out);
    }
    if let Ok(at) = plan.notes.binary_search_by_key(&row, |(row, _)| *row) {
        out.push_str(" {");
        out.push_str(&plan.notes[at].1);
        out.push('}');
    }
}
