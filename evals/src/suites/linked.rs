//! Linked records: which share of the records that a question needs is reached, with links followed and without.
//!
//! A record is a block from `### ` to the next, and is reached when all of it is gathered. Its id is what its heading
//! names as `ID:`, or begins with.

use std::collections::HashSet;

use larder_retrieval::recall::{Index, Limits, LinkLimits, Query, Record};
use larder_text::tokens::Counter;
use serde_json::Value;

use crate::report::{Column, Report};
use crate::{Failure, corpora};

/// Budgets in tokens.
const BUDGETS: [usize; 2] = [2_000, 4_000];
/// The steps of a question, which are reported apart.
const STEPS: [&str; 4] = ["anchors", "owners", "link_records", "answer_records"];

struct Row {
    file: String,
    id: String,
    text: String,
    tokens: usize,
}

struct Question {
    text: String,
    kind: String,
    files: Vec<String>,
    gold: Vec<String>,
    steps: [Vec<String>; STEPS.len()],
}

/// Measures all questions.
///
/// # Errors
/// The corpus is missing or not as expected.
pub fn measure() -> Result<Report, Failure> {
    let rows = rows()?;
    let questions = questions()?;
    let index = index(&rows);
    let mut faults = Vec::new();
    let asked: Vec<(&str, Vec<Option<f64>>)> = questions
        .iter()
        .map(|question| (question.kind.as_str(), ask(&index, &rows, question, &mut faults)))
        .collect();
    let mut kinds: Vec<&str> = asked.iter().map(|asked| asked.0).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let mean = |of: &dyn Fn(&str) -> bool| {
        let some: Vec<&Vec<Option<f64>>> =
            asked.iter().filter(|asked| of(asked.0)).map(|asked| &asked.1).collect();
        means(&some)
    };
    let columns = vec![
        Column::shown("questions", 0),
        Column::higher("files @2000", 0.5),
        Column::higher("records @2000", 0.5),
        Column::higher("files @4000", 0.5),
        Column::higher("records @4000", 0.5).least(50.0),
        Column::higher("off: files @2000", 0.5),
        Column::higher("off: records @2000", 0.5),
        Column::higher("off: files @4000", 0.5),
        Column::higher("off: records @4000", 0.5),
        Column::higher("anchors", 0.5),
        Column::higher("owners", 0.5),
        Column::higher("links", 0.5),
        Column::higher("answers", 0.5),
    ];
    Ok(Report {
        suite: "linked",
        title: "Records and files that a question needs, in per cent, with links followed and off; steps at 2,000 tokens"
            .to_owned(),
        columns,
        rows: kinds.iter().map(|kind| ((*kind).to_owned(), mean(&|of| of == *kind))).collect(),
        total: mean(&|_| true),
        faults,
    })
}

/// How many questions, and the mean of each figure over those that have it.
fn means(some: &[&Vec<Option<f64>>]) -> Vec<Option<f64>> {
    let width = some.first().map_or(0, |figures| figures.len());
    let mean = |at: usize| {
        let values: Vec<f64> = some.iter().filter_map(|figures| figures[at]).collect();
        (!values.is_empty()).then(|| 100.0 * values.iter().sum::<f64>() / values.len() as f64)
    };
    std::iter::once(Some(some.len() as f64)).chain((0..width).map(mean)).collect()
}

fn ask(index: &Index, rows: &[Row], question: &Question, faults: &mut Vec<String>) -> Vec<Option<f64>> {
    let (mut figures, mut steps) = (Vec::new(), Vec::new());
    for links in [Some(LinkLimits::default()), None] {
        for tokens in BUDGETS {
            let gathered =
                index.gather(&Query::of(&question.text), &Limits { tokens, links }, |row| &rows[row].text);
            let text: String = gathered.taken.iter().map(|taken| rows[taken.record].text.as_str()).collect();
            if Counter::o200k().count(&text) > tokens {
                faults.push(format!("more than {tokens} tokens: {}", question.text));
            }
            let reached: Vec<&Row> = gathered.taken.iter().map(|taken| &rows[taken.record]).collect();
            let files = reached.iter().map(|row| row.file.as_str()).collect();
            let ids = reached.iter().map(|row| row.id.as_str()).collect();
            figures.extend([share(&question.files, &files), share(&question.gold, &ids)]);
            if links.is_some() && tokens == BUDGETS[0] {
                steps = question.steps.iter().map(|step| share(step, &ids)).collect();
            }
        }
    }
    figures.extend(steps);
    figures
}

/// The share of what is needed; none if nothing is.
fn share(needed: &[String], reached: &HashSet<&str>) -> Option<f64> {
    let there = needed.iter().filter(|needed| reached.contains(needed.as_str())).count();
    (!needed.is_empty()).then(|| there as f64 / needed.len() as f64)
}

fn index(rows: &[Row]) -> Index {
    let mut index = Index::default();
    for row in rows {
        index.start_section();
        index.add(&Record {
            text: &row.text,
            tokens: row.tokens,
            document: &row.file,
            id: Some(&row.id),
            ..Record::default()
        });
    }
    index
}

fn rows() -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for path in corpora::files(&corpora::folder("memory")?.join("context-bench/files"), &[".txt"])? {
        let text = corpora::text(&path)?;
        let starts =
            text.match_indices("### ").map(|(at, _)| at).filter(|&at| text[..at].ends_with('\n') || at == 0);
        let starts: Vec<usize> = starts.chain([text.len()]).collect();
        for bounds in starts.windows(2) {
            let block = &text[bounds[0]..bounds[1]];
            let heading = block.lines().next().unwrap_or_default().trim_start_matches("### ");
            let named = heading.split_once("(ID: ").and_then(|(_, rest)| rest.split_once(')'));
            let id = named.map_or_else(|| heading.split(' ').next().unwrap_or_default(), |(id, _)| id);
            let tokens = Counter::o200k().count(block);
            rows.push(Row { file: corpora::name(&path), id: id.to_owned(), text: block.to_owned(), tokens });
        }
    }
    Ok(rows)
}

fn questions() -> Result<Vec<Question>, Failure> {
    let folder = corpora::folder("memory")?.join("context-bench");
    // The names end in which of the questions these are; the gold records stand in the same order.
    let lines = |begins: &str| -> Result<Vec<Value>, Failure> {
        let mut lines = Vec::new();
        for path in corpora::files(&folder, &[".jsonl"])? {
            if corpora::name(&path).starts_with(begins) {
                for line in corpora::text(&path)?.lines() {
                    lines.push(serde_json::from_str(line)?);
                }
            }
        }
        Ok(lines)
    };
    let (asked, gold) = (lines("questions")?, lines("gold-records")?);
    if asked.len() != gold.len() || asked.is_empty() {
        return Err(format!("{} questions, gold records of {}", asked.len(), gold.len()).into());
    }
    let list = |value: &Value| -> Vec<String> {
        let items = value.as_array().into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut questions = Vec::new();
    for (question, gold) in asked.iter().zip(&gold) {
        let extra = &question["agent_args"]["extra"];
        questions.push(Question {
            text: question["input"].as_str().unwrap_or_default().to_owned(),
            kind: extra["question_type"].as_str().unwrap_or_default().to_owned(),
            files: list(&extra["required_files"]),
            gold: list(&gold["gold_records"]),
            steps: STEPS.map(|step| list(&gold[step])),
        });
    }
    Ok(questions)
}
