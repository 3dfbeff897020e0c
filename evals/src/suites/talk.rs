//! A long conversation: 2,000 messages of two people over 40 sessions through `larder serve`, with consent, so that every
//! message looks up what was said in earlier sessions. What Larder adds before it asks the model, what is cached, what a turn
//! costs and how much memory the server takes, by quarter of the conversation: none of it may grow.
//!
//! The program is the one next to this one. Without vectors, and with those of the embedded model.

use std::path::PathBuf;

use larder_testkit::long_talk::{LongTalk, Talked, Turn};

use super::locomo;
use crate::Failure;
use crate::report::{Report, ReportColumn};

const MESSAGES: usize = 2_000;
const SESSIONS: usize = 40;
/// The newest messages of each quarter whose times count.
const NEWEST: usize = 100;
/// The most that Larder may add to 95 of 100 messages before it asks the model, in milliseconds: by words alone, and with
/// vectors.
const MOST_MS: [f64; 2] = [15.0, 60.0];
/// How much more the last quarter may cost than the second, in per cent: the first has the stages with less to look up.
const MOST_GROWTH: f64 = 10.0;
/// How far the counted tokens of a prompt may be off those that the provider reports, in per cent (R4-9.6).
const MOST_OFF: f64 = 2.0;
/// The quarter that the last one is compared with.
const HALF: usize = 1;

/// Measures both forms.
///
/// # Errors
/// The corpus, the program or the embedding model is missing, or something fails.
pub fn measure() -> Result<Report, Failure> {
    let conversations = locomo::conversations()?;
    let turns = conversations.iter().flat_map(|one| one.turns.chunks_exact(2));
    let said: Vec<(String, String)> =
        turns.map(|pair| (pair[0].text.trim().to_owned(), pair[1].text.trim().to_owned())).collect();
    let larder = program()?;
    let (mut rows, mut faults, mut total) = (Vec::new(), Vec::new(), Vec::new());
    for (vectors, most) in [false, true].into_iter().zip(MOST_MS) {
        let name = if vectors { "with vectors" } else { "words alone" };
        let talk = LongTalk { larder: &larder, messages: MESSAGES, sessions: SESSIONS, said: &said, vectors };
        let talked = talk.hold();
        faults.extend(talked.faults.iter().map(|fault| format!("{name}: {fault}")));
        let quarters = quarters(&talked);
        for (number, quarter) in (1..).zip(&quarters) {
            rows.push((format!("{name}, quarter {number}"), quarter.clone()));
        }
        let Some(last) = quarters.last() else { continue };
        if last[1].is_some_and(|slowest| slowest > most) {
            faults.push(format!("{name}: {:.1} ms before the model is asked", last[1].unwrap_or_default()));
        }
        if quarters.iter().any(|quarter| quarter[12].is_some_and(|off| off > MOST_OFF)) {
            faults.push(format!("{name}: tokens are counted more than {MOST_OFF} % off (R4-9.6)"));
        }
        let growth = |column: usize| {
            let (before, last) = (quarters[HALF][column]?, last[column]?);
            Some((last / before - 1.0) * 100.0)
        };
        for (column, what) in [(3, "tokens"), (5, "dollars"), (7, "memory")] {
            if growth(column).is_some_and(|growth| growth > MOST_GROWTH) {
                faults.push(format!(
                    "{name}: {what} of a turn grow by {:.0} %",
                    growth(column).unwrap_or_default()
                ));
            }
        }
        total = all(&talked);
    }
    Ok(Report {
        suite: "talk",
        title: format!("{MESSAGES} messages of two people over {SESSIONS} sessions"),
        columns: vec![
            ReportColumn::shown("p50 ms", 1),
            ReportColumn::shown("p95 ms", 1),
            ReportColumn::higher("repeated", 0.0).least(100.0),
            ReportColumn::shown("tokens a turn", 0),
            ReportColumn::higher("cached", 1.0).least(60.0),
            ReportColumn::shown("$ a 1,000 turns", 2),
            ReportColumn::shown("looked up", 1),
            ReportColumn::shown("MiB", 0),
            ReportColumn::shown("sent", 1),
            ReportColumn::shown("in summary", 1),
            ReportColumn::shown("withheld", 1),
            ReportColumn::shown("most tokens", 0),
            ReportColumn::shown("counted off by %", 2),
        ],
        rows,
        total,
        faults,
    })
}

/// The program to measure.
fn program() -> Result<PathBuf, Failure> {
    let larder = std::env::current_exe()?.with_file_name("larder");
    if larder.exists() {
        Ok(larder)
    } else {
        Err(format!("{} is missing: build it first", larder.display()).into())
    }
}

fn quarters(talked: &Talked) -> Vec<Vec<Option<f64>>> {
    let (mut start, mut spent) = (0, 0.0);
    let mut quarters = Vec::new();
    for mark in &talked.marks {
        let turns = &talked.turns[start..mark.turns];
        let cost = (mark.cost - spent) / turns.len() as f64 * 1_000.0;
        quarters.push(figures(turns, Some(cost), Some(mark.memory as f64 / 1024.0)));
        (start, spent) = (mark.turns, mark.cost);
    }
    quarters
}

/// Everything but times.
fn all(talked: &Talked) -> Vec<Option<f64>> {
    let last = talked.marks.last().copied().unwrap_or_default();
    let cost = last.cost / talked.turns.len() as f64 * 1_000.0;
    let mut figures = figures(&talked.turns, Some(cost), Some(last.memory as f64 / 1024.0));
    (figures[0], figures[1]) = (None, None);
    figures
}

fn figures(turns: &[Turn], cost: Option<f64>, memory: Option<f64>) -> Vec<Option<f64>> {
    let mut added: Vec<f64> =
        turns.iter().rev().take(NEWEST).map(|turn| turn.added.as_secs_f64() * 1e3).collect();
    added.sort_by(f64::total_cmp);
    let at = |share: usize| added.get((added.len() * share).div_ceil(100).saturating_sub(1)).copied();
    let sum = |of: &dyn Fn(&Turn) -> u64| turns.iter().map(of).sum::<u64>() as f64;
    let mean = |of: &dyn Fn(&Turn) -> u64| Some(sum(of) / turns.len() as f64);
    let compared = turns.iter().filter(|turn| turn.repeats.is_some()).count() as f64;
    let repeated = turns.iter().filter(|turn| turn.repeats == Some(true)).count() as f64;
    vec![
        at(50),
        at(95),
        Some(100.0 * repeated / compared),
        mean(&|turn| turn.input),
        Some(100.0 * sum(&|turn| turn.cached) / sum(&|turn| turn.input)),
        cost,
        mean(&|turn| turn.retrieved as u64),
        memory,
        mean(&|turn| turn.coverage[0]),
        mean(&|turn| turn.coverage[1]),
        mean(&|turn| turn.coverage[2]),
        turns.iter().map(|turn| turn.input as f64).reduce(f64::max),
        turns
            .iter()
            .map(|turn| 100.0 * turn.counted.abs_diff(turn.input) as f64 / turn.input as f64)
            .reduce(f64::max),
    ]
}
