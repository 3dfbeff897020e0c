//! `larder policy tune`: proposes settings from recorded transcripts, and writes them as a revision.

use std::collections::BTreeMap;
use std::process::ExitCode;

use larder_gateway::tune::{ToolTuning, Trial, Tuning, tune};
use larder_text::words::counted;
use serde::Serialize;

use crate::args::Format;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::{output, progress};

/// What was found, and the revision that was written.
#[derive(Serialize)]
struct Tuned {
    #[serde(flatten)]
    tuning: Tuning,
    /// The revision with the proposal; `null` if none was written.
    revision: Option<u64>,
}

pub fn run(context: &CommandContext, apply: bool, runs: usize) -> Result<ExitCode, CliError> {
    let engine = if apply { context.engine()? } else { context.engine_to_read()? };
    let bar = progress::steps("replaying transcripts");
    let mut report = |done: usize, all: usize| bar(done as u64, all as u64);
    let tuned = tune(&context.config, &engine, &engine.store, runs, &mut report);
    drop(bar);
    let tuning = tuned.map_err(CliError::Fixable)?;
    let revision = match &tuning.proposed {
        Some(proposed) if apply => Some(write(context, &tuning, proposed)?),
        _ => None,
    };
    let tuned = Tuned { tuning, revision };
    match context.global.format {
        Format::Json => output::json(&tuned)?,
        Format::Plain => print(&tuned)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn write(context: &CommandContext, tuning: &Tuning, proposed: &Trial) -> Result<u64, CliError> {
    let cause = format!(
        "tuned on {} recorded runs: net cost {:.3} instead of {:.3}, {}",
        tuning.runs,
        proposed.net_cost,
        tuning.current.net_cost,
        in_view(proposed)
    );
    let changes: BTreeMap<String, Option<String>> =
        proposed.settings.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect();
    Ok(context.whole_store()?.revisions().write(&cause, &changes)?)
}

fn print(Tuned { tuning, revision }: &Tuned) -> Result<(), CliError> {
    let Tuning { runs, skipped, current, proposed, note, tried, tools } = tuning;
    let figures = [(*runs, "run"), (current.turns, "turn"), (current.needs, "need")];
    let figures = figures.map(|(count, noun)| counted(count as u64, noun));
    output::line(&figures.join(", "))?;
    for skipped in skipped {
        output::text(&format!("not replayed: {} ({})", skipped.runs, skipped.why))?;
    }
    output::line(&format!("\n{:>9}  {:>8}  {:>13}  settings", "net cost", "in view", "reading back"))?;
    print_trial(current, "")?;
    for trial in tried {
        let is_proposed = proposed.as_ref().is_some_and(|proposed| proposed.settings == trial.settings);
        print_trial(trial, if is_proposed { "proposed" } else { "" })?;
    }
    print_tools(tools)?;
    if let Some(note) = note {
        output::line(&format!("\nNothing is proposed: {note}."))?;
    }
    let Some(proposed) = proposed else { return Ok(()) };
    output::text(&format!(
        "\nProposed: {}\nnet cost {:.3} instead of {:.3}, {}, {:.2} % of turns reading back",
        listed(proposed),
        proposed.net_cost,
        current.net_cost,
        in_view(proposed),
        100.0 * proposed.turns_reading_back
    ))?;
    match revision {
        Some(number) => output::line(&format!(
            "Written as revision {number}; `larder revisions revert {}` undoes it.",
            number.saturating_sub(1)
        )),
        None => output::line("Write it with --apply."),
    }
}

fn print_trial(trial: &Trial, note: &str) -> Result<(), CliError> {
    let harm = if trial.harmless { "" } else { "hides too much" };
    let notes: Vec<&str> = [note, harm].into_iter().filter(|note| !note.is_empty()).collect();
    let notes = if notes.is_empty() { String::new() } else { format!("  ({})", notes.join("; ")) };
    let settings = if trial.settings.is_empty() { "as they are".to_owned() } else { listed(trial) };
    output::text(&format!(
        "{:>9.3}  {:>8}  {:>11.2} %  {}{notes}",
        trial.net_cost,
        percent(trial.needs_in_view),
        100.0 * trial.turns_reading_back,
        settings
    ))
}

/// A share in percent, and a dash for none.
fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.2} %", 100.0 * share))
}

/// How much was in view under these settings, in words.
fn in_view(trial: &Trial) -> String {
    format!("{} of needs in view", percent(trial.needs_in_view))
}

/// The longest name of a tool that its column has room for, in characters.
const NAME: usize = 28;

/// One row for each tool: the cap that it has and the one that was judged, and what all runs cost with that.
fn print_tools(tools: &[ToolTuning]) -> Result<(), CliError> {
    if tools.is_empty() {
        return Ok(());
    }
    output::line(&format!(
        "\n{:<NAME$}  {:>7}  {:>9}  {:>6}  {:>7}  {:>8}  {:>8}  {:>13}",
        "tool", "results", "of tokens", "cap", "instead", "net cost", "in view", "reading back"
    ))?;
    for ToolTuning { tool, results, share, cap, judged, proposed, why, .. } in tools {
        let known = format!(
            "{:<NAME$}  {results:>7}  {:>7.1} %  {:>6}",
            shortened(tool),
            100.0 * share,
            cap.map_or("usual".to_owned(), |cap| cap.to_string())
        );
        let why = if *proposed { "proposed" } else { why };
        let figures = judged.as_ref().map_or_else(
            || format!("{:>7}  {:>8}  {:>8}  {:>13}", "", "", "", ""),
            |judged| {
                let Trial { net_cost, needs_in_view, turns_reading_back, .. } = judged.trial;
                let (view, back) = (percent(needs_in_view), 100.0 * turns_reading_back);
                format!("{:>7}  {net_cost:>8.3}  {view:>8}  {back:>11.2} %", judged.cap)
            },
        );
        output::text(&format!("{known}  {figures}  ({why})"))?;
    }
    Ok(())
}

/// A name in one line of this length at most; names in transcripts are untrusted text.
fn shortened(name: &str) -> String {
    let name = output::visible(name).replace(['\n', '\t'], " ");
    match name.char_indices().nth(NAME) {
        Some(_) => name.chars().take(NAME - 1).chain(['…']).collect(),
        None => name,
    }
}

fn listed(trial: &Trial) -> String {
    let settings: Vec<String> =
        trial.settings.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    settings.join(", ")
}
