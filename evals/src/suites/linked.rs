//! Linked records: which share of the records that a question needs a turn is offered, with references followed and
//! without.
//!
//! Every file is a note in a vault. A record is a block from `### ` to the next, and is reached when passages contain all
//! of it. Its id is what its heading names as `ID:`, or begins with.

use std::collections::HashSet;
use std::ops::Range;

use larder_retrieval::index::{Limits, LinkLimits};
use larder_vault::DocumentTime;
use serde_json::Value;

use super::vault::{self, NoteVault};
use crate::report::{Report, ReportColumn};
use crate::{Failure, corpora};

/// Budgets in tokens.
const BUDGETS: [usize; 2] = [2_000, 4_000];
/// When questions are asked; none depends on it.
const NOW: &str = "2026-01-01T00:00:00Z";
/// The steps of a question, which are reported apart.
const STEPS: [&str; 4] = ["anchors", "owners", "link_records", "answer_records"];

/// A record: where it is and what it is called.
struct LinkedRecord {
    file: String,
    id: String,
    bytes: Range<usize>,
}

struct LinkedQuestion {
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
    let files = files()?;
    let rows: Vec<LinkedRecord> = files.iter().flat_map(|(name, text)| rows(name, text)).collect();
    let notes: Vec<(String, String)> =
        files.iter().map(|(name, text)| (note_of(name), text.clone())).collect();
    let vault = NoteVault::new(&notes)?;
    let questions = questions()?;
    let mut faults = Vec::new();
    let mut asked: Vec<(&str, Vec<Option<f64>>)> = Vec::new();
    for question in &questions {
        asked.push((question.kind.as_str(), ask(&vault, &rows, question, &mut faults)?));
    }
    let mut kinds: Vec<&str> = asked.iter().map(|asked| asked.0).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let mean = |of: &dyn Fn(&str) -> bool| {
        let some: Vec<&Vec<Option<f64>>> =
            asked.iter().filter(|asked| of(asked.0)).map(|asked| &asked.1).collect();
        means(&some)
    };
    let columns = vec![
        ReportColumn::shown("questions", 0),
        ReportColumn::higher("files @2000", 0.5),
        ReportColumn::higher("records @2000", 0.5),
        ReportColumn::higher("files @4000", 0.5),
        ReportColumn::higher("records @4000", 0.5).least(50.0),
        ReportColumn::higher("off: files @2000", 0.5),
        ReportColumn::higher("off: records @2000", 0.5),
        ReportColumn::higher("off: files @4000", 0.5),
        ReportColumn::higher("off: records @4000", 0.5),
        ReportColumn::higher("anchors", 0.5),
        ReportColumn::higher("owners", 0.5),
        ReportColumn::higher("links", 0.5),
        ReportColumn::higher("answers", 0.5),
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

fn ask(
    vault: &NoteVault,
    rows: &[LinkedRecord],
    question: &LinkedQuestion,
    faults: &mut Vec<String>,
) -> Result<Vec<Option<f64>>, Failure> {
    let now: DocumentTime = NOW.parse().map_err(|_| format!("{NOW} is not a moment"))?;
    let (mut figures, mut steps) = (Vec::new(), Vec::new());
    for links in [Some(LinkLimits::default()), None] {
        for tokens in BUDGETS {
            let passages = vault.passages(&question.text, now, Limits { tokens, links })?;
            if vault::tokens(&passages) > tokens {
                faults.push(format!("more than {tokens} tokens: {}", question.text));
            }
            let is_reached = |row: &&LinkedRecord| vault::shows(&passages, &note_of(&row.file), &row.bytes);
            let reached: Vec<&LinkedRecord> = rows.iter().filter(is_reached).collect();
            let files = reached.iter().map(|row| row.file.as_str()).collect();
            let ids = reached.iter().map(|row| row.id.as_str()).collect();
            figures.extend([share(&question.files, &files), share(&question.gold, &ids)]);
            if links.is_some() && tokens == BUDGETS[0] {
                steps = question.steps.iter().map(|step| share(step, &ids)).collect();
            }
        }
    }
    figures.extend(steps);
    Ok(figures)
}

/// The share of what is needed; none if nothing is.
fn share(needed: &[String], reached: &HashSet<&str>) -> Option<f64> {
    let there = needed.iter().filter(|needed| reached.contains(needed.as_str())).count();
    (!needed.is_empty()).then(|| there as f64 / needed.len() as f64)
}

/// Name and text of every file.
fn files() -> Result<Vec<(String, String)>, Failure> {
    let folder = corpora::folder("memory")?.join("context-bench/files");
    let paths = corpora::files(&folder, &[".txt"])?;
    paths.iter().map(|path| Ok((corpora::name(path), corpora::text(path)?))).collect()
}

/// The note that a file is in the vault: only Markdown is searched.
fn note_of(file: &str) -> String {
    file.replace(".txt", ".md")
}

/// The records of a file.
fn rows(file: &str, text: &str) -> Vec<LinkedRecord> {
    let starts =
        text.match_indices("### ").map(|(at, _)| at).filter(|&at| text[..at].ends_with('\n') || at == 0);
    let starts: Vec<usize> = starts.chain([text.len()]).collect();
    let row = |bounds: &[usize]| {
        let block = text[bounds[0]..bounds[1]].trim_end();
        let heading = block.lines().next().unwrap_or_default().trim_start_matches("### ");
        let named = heading.split_once("(ID: ").and_then(|(_, rest)| rest.split_once(')'));
        let id = named.map_or_else(|| heading.split(' ').next().unwrap_or_default(), |(id, _)| id);
        LinkedRecord { file: file.to_owned(), id: id.to_owned(), bytes: bounds[0]..bounds[0] + block.len() }
    };
    starts.windows(2).map(row).collect()
}

fn questions() -> Result<Vec<LinkedQuestion>, Failure> {
    let folder = corpora::folder("memory")?.join("context-bench");
    // The names end with the selection of questions; the gold records have the same order.
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
        questions.push(LinkedQuestion {
            text: question["input"].as_str().unwrap_or_default().to_owned(),
            kind: extra["question_type"].as_str().unwrap_or_default().to_owned(),
            files: list(&extra["required_files"]),
            gold: list(&gold["gold_records"]),
            steps: STEPS.map(|step| list(&gold[step])),
        });
    }
    Ok(questions)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PETS: &str = "### pet-1 (owner: per-1)\nname: Rex\n\n### pet-2 (owner: per-2)\nname: Tom\n";
    const PEOPLE: &str = "Every person in town.\n\n### Ann Lee (ID: per-1)\nborn: 1980\n\n### Bob Ray (ID: per-2)\nborn: 1990\n";

    #[test]
    fn records_have_ids_and_end_before_the_next() {
        let ids: Vec<String> =
            [PETS, PEOPLE].iter().flat_map(|text| rows("x.txt", text)).map(|row| row.id).collect();
        assert_eq!(ids, ["pet-1", "pet-2", "per-1", "per-2"]);
        assert_eq!(&PETS[rows("pets.txt", PETS)[0].bytes.clone()], "### pet-1 (owner: per-1)\nname: Rex");
    }

    #[test]
    fn figures_are_shares_of_what_is_needed() {
        let reached = HashSet::from(["a", "c"]);
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(share(&names(&["a", "b"]), &reached), Some(0.5));
        assert_eq!(share(&[], &reached), None, "nothing was needed");
        let (one, other) = (vec![Some(0.5), None], vec![Some(1.0), Some(0.25)]);
        assert_eq!(means(&[&one, &other]), [Some(2.0), Some(75.0), Some(25.0)]);
        assert_eq!(means(&[]), [Some(0.0)]);
    }

    #[test]
    fn an_owner_is_reached_from_a_pet_only_along_references() {
        let files = [("pets.txt", PETS), ("people.txt", PEOPLE)];
        let rows: Vec<LinkedRecord> = files.iter().flat_map(|(name, text)| rows(name, text)).collect();
        let vault = NoteVault::new(&files.map(|(name, text)| (note_of(name), text.to_owned()))).unwrap();
        let question = LinkedQuestion {
            text: "Which person owns Rex?".to_owned(),
            kind: "multi_hop_chain".to_owned(),
            files: vec!["people.txt".to_owned(), "pets.txt".to_owned()],
            gold: vec!["pet-1".to_owned(), "per-1".to_owned()],
            steps: Default::default(),
        };
        let mut faults = Vec::new();
        let figures = ask(&vault, &rows, &question, &mut faults).unwrap();
        assert_eq!(figures[..4], [Some(1.0); 4], "with references");
        assert_eq!(figures[4..8], [Some(0.5); 4], "without");
        assert!(faults.is_empty(), "{faults:?}");
    }
}
