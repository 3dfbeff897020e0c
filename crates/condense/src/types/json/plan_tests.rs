//! What of a table is written for how many tokens.

use super::*;
use crate::content_type::ContentType;
use crate::engine::job::Job;
use crate::engine::render::{Header, Renderer};
use crate::request::{CondenseRequest, KnownText};
use crate::types::json::grid::Grids;
use crate::types::json::view::TextWords;
use larder_text::json::Document;
use larder_text::pointer::PointerKey;
use larder_text::tokens::Counter;

/// Calls `check` with the plan for the first value of `text` in `budget` tokens.
fn with_plan(text: &str, query: Option<&str>, budget: usize, check: impl FnOnce(Option<TablePlan>, &Grid)) {
    let (counter, key) = (Counter::o200k(), PointerKey::new([1; 32]));
    let (content_type, target, pins) = (ContentType::Json, budget, &[][..]);
    let request = CondenseRequest { text, content_type, target, query, pins, counter: &counter, key: &key };
    let job = Job::new(&request, KnownText::from_request(&request));
    let renderer = Renderer::new(&job, Header::Full);
    let tree = Document::parse_lenient(text).unwrap();
    let view = JsonView::new(
        &job,
        &tree,
        Grids::largest(&tree, counter.workers()),
        TextWords::of(text, query),
        &renderer,
    );
    let grid = view.grid(1).unwrap();
    check(TablePlanner { view: &view, grid: &grid, budget }.plan(), &grid);
}

fn orders(rows: usize) -> String {
    let row = |n: usize| {
        let (city, state) = (["Oslo", "Rome", "Bern"][n % 3], if n == 17 { "refused" } else { "paid" });
        format!(
            r#"{{"order": "ord-{n}", "currency": "EUR", "city": "{city}", "cents": {}, "state": "{state}"}}"#,
            n * 37
        )
    };
    format!("[{}]", (0..rows).map(row).collect::<Vec<_>>().join(","))
}

#[test]
fn a_table_that_fits_is_written_whole() {
    with_plan(&orders(20), None, 5_000, |plan, grid| {
        let plan = plan.unwrap();
        assert!(
            plan.whole && plan.named && plan.listed.iter().all(|&listed| listed) && plan.notes.is_empty()
        );
        let names: Vec<&str> =
            plan.columns.iter().map(|shown| grid.table.columns[shown.place].name.as_str()).collect();
        assert_eq!(names, ["order", "city", "cents", "state"], "the constant column is in the head");
        assert!(plan.head.starts_with("rows 0-19: order|") && plan.head.contains("in every row: currency="));
    });
}

#[test]
fn with_less_room_every_row_keeps_its_name_and_some_columns() {
    with_plan(&orders(60), None, 550, |plan, grid| {
        let plan = plan.unwrap();
        assert!(!plan.whole && plan.listed.iter().all(|&listed| listed));
        assert!(plan.columns.iter().any(|shown| Some(shown.place) == grid.table.id));
        assert!(
            plan.columns.len() < grid.table.columns.len() - 1 && plan.head.contains("not listed:"),
            "{}",
            plan.head
        );
    });
}

#[test]
fn with_little_room_the_first_and_the_last_rows_are_listed() {
    with_plan(&orders(600), None, 300, |plan, _| {
        let plan = plan.unwrap();
        let listed = plan.listed.iter().filter(|&&listed| listed).count();
        assert!((1..600).contains(&listed), "{listed}");
        assert!(plan.listed[0] && plan.listed[599] && !plan.listed[300]);
    });
}

#[test]
fn no_plan_without_room_for_a_name() {
    with_plan(&orders(600), None, 10, |plan, _| assert!(plan.is_none()));
}

#[test]
fn rows_that_answer_the_query_are_noted_in_full() {
    with_plan(&orders(60), Some("Why was ord-42 delayed?"), 700, |plan, _| {
        let notes = plan.unwrap().notes;
        let answer = notes.iter().find(|(row, _)| *row == 42);
        assert!(answer.is_some_and(|(_, note)| note.contains("1554")), "{notes:?}");
    });
}

#[test]
fn a_larger_budget_shows_no_fewer_columns() {
    let text = orders(60);
    let mut last = 0;
    for budget in [400, 700, 1_000, 1_500, 3_000] {
        with_plan(&text, None, budget, |plan, _| {
            let columns = plan.map_or(0, |plan| plan.columns.len());
            assert!(columns >= last, "{budget}");
            last = columns;
        });
    }
}

#[test]
fn with_room_for_few_names_the_row_that_the_query_means_comes_first() {
    // The largest number stands out, too.
    let row = |n: usize| {
        let note = if n == 777 { "DISCONTINUED by vendor" } else { "" };
        format!(
            r#"{{"sku": "A{n:05}", "quantity": {}, "note": "{note}"}}"#,
            if n == 181 { 5_000 } else { n % 400 }
        )
    };
    let text = format!("[{}]", (0..1_500).map(row).collect::<Vec<_>>().join(","));
    with_plan(&text, Some("which is discontinued?"), 250, |plan, _| {
        let plan = plan.unwrap();
        assert!(plan.listed.iter().any(|&listed| !listed), "not all names fit");
        let note = plan.notes.iter().find(|&&(row, _)| row == 777);
        assert!(note.is_some_and(|(_, note)| note.contains("DISCONTINUED")), "{:?}", plan.notes);
    });
}
