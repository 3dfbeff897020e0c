//! `larder policy tune --conversation`: proposes budgets of a conversation type, and writes them as a revision.

use std::process::ExitCode;

use larder_conversation::{BudgetTuning, Conversations, TunedBudget};
use serde::Serialize;

use crate::args::Format;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output;

/// What was found, and the revision that was written.
#[derive(Serialize)]
struct Tuned {
    #[serde(flatten)]
    tuning: BudgetTuning,
    /// The revision with the proposal; `null` if none was written.
    revision: Option<u64>,
}

pub fn run(context: &CommandContext, kind: &str, apply: bool, most: usize) -> Result<ExitCode, CliError> {
    let engine = if apply { context.engine()? } else { context.engine_to_read()? };
    let tuning = Conversations::new(engine, None).tune(kind, most)?;
    let revision = match apply && !tuning.changes.is_empty() {
        true => {
            let cause =
                format!("budgets of conversations of type {kind} by {} recorded replies", tuning.replies);
            Some(context.whole_store()?.revisions().write(&cause, &tuning.changes)?)
        }
        false => None,
    };
    let tuned = Tuned { tuning, revision };
    match context.global.format {
        Format::Json => output::json(&tuned)?,
        Format::Plain => print(&tuned)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn print(Tuned { tuning, revision }: &Tuned) -> Result<(), CliError> {
    let BudgetTuning { conversation, replies, budgets, changes } = tuning;
    output::line(&format!("{replies} recorded replies in conversations of type {conversation}"))?;
    if budgets.is_empty() {
        return output::line("Nothing is proposed: there is nothing to judge by.");
    }
    let width = budgets.iter().map(|budget| budget.key.len()).max().unwrap_or(0);
    let named = |key: &str| format!("{key:<width$}");
    output::line(&format!(
        "\n{}  {:>7}  {:>7}  {:>7}  {:>7}  {:>8}  {:>8}",
        named("tokens"),
        "p50",
        "p95",
        "most",
        "allowed",
        "learned",
        "proposed"
    ))?;
    for TunedBudget { key, p50, p95, most, allowed, learned, proposed, note, .. } in budgets {
        let learned = learned.map_or("-".to_owned(), |tokens| tokens.to_string());
        let proposed = proposed.map_or("-".to_owned(), |tokens| tokens.to_string());
        let note = note.as_ref().map(|note| format!("  ({note})")).unwrap_or_default();
        output::line(&format!(
            "{}  {p50:>7}  {p95:>7}  {most:>7}  {allowed:>7}  {learned:>8}  {proposed:>8}{note}",
            named(key)
        ))?;
    }
    output::line(&match revision {
        Some(number) => format!(
            "\nWritten as revision {number}; `larder revisions revert {}` undoes it.",
            number.saturating_sub(1)
        ),
        None if changes.is_empty() => "\nNothing is to be changed.".to_owned(),
        None => "\nWrite it with --apply.".to_owned(),
    })
}
