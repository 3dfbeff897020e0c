//! `larder run --until-done`: repeats a recipe until its answer says that the work is complete (R2-9.1).

use larder_core::recipe::SlotSource;
use larder_engine::Engine;
use larder_engine::executor::{Meter, ProgressObserver, RunOutcome};
use larder_engine::inputs::RunInput;
use larder_text::message::{Message, Role};
use larder_text::words::counted;
use serde::Serialize;

use crate::args::{Format, RepeatArgs};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::progress::Spinner;
use crate::{commands, output};

/// The tag that says so, and its content.
const TAG: &str = "promise";
const COMPLETE: &str = "COMPLETE";

/// What `--format json` prints.
#[derive(Serialize)]
struct Rounds<'a> {
    /// Whether the last answer says that the work is complete.
    complete: bool,
    /// Why no further round followed; absent if the work is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<&'a str>,
    rounds: &'a [RunOutcome],
}

/// Runs the recipe until it is done. Each answer joins the conversation that the next round reads, after the
/// calls that led to it and their results.
pub async fn run(
    context: &CommandContext,
    engine: &Engine,
    (recipe, mut input): (&str, RunInput),
    repeat: &RepeatArgs,
    spinner: &Spinner,
) -> Result<(), CliError> {
    let found = engine.find(recipe, input.mode).map_err(|source| engine.missing(recipe, source))?;
    if !found.output.tags.iter().any(|tag| tag.name == TAG) {
        return Err(CliError::Usage(format!(
            "--until-done: the answers of {recipe} have no tag {TAG}, so none says that the work is complete"
        )));
    }
    if !found.slots.iter().any(|spec| spec.source == SlotSource::Messages) {
        return Err(CliError::Usage(format!(
            "--until-done: {recipe} has no slot of messages, so no round would read the answers before it"
        )));
    }
    if repeat.max_cost.is_some()
        && let Some(model) = engine.reachable_models(found, input.mode).unpriced()
    {
        return Err(CliError::Usage(format!(
            "--max-cost: the price of model {model} is not known; give it in [models.{model}], or use --max-tokens"
        )));
    }
    let meter = Meter::new(spinner, repeat.max_tokens, repeat.max_cost);
    let mut rounds: Vec<RunOutcome> = Vec::new();
    let stopped = loop {
        let round = rounds.len() + 1;
        meter.stage(&format!("round {round} of at most {}", repeat.max_rounds));
        let outcome = commands::run::or_stopped(engine.run(recipe, &input, &meter)).await;
        spinner.done();
        let mut outcome = match outcome {
            Ok(outcome) => outcome,
            // The rounds before are paid for.
            Err(error) => {
                if context.global.format == Format::Json && !rounds.is_empty() {
                    let stopped = Some("a round failed");
                    output::json(&Rounds { complete: false, stopped, rounds: &rounds })?;
                }
                if !rounds.is_empty() {
                    output::say(&how_to_go_on(context, &input)?);
                }
                return Err(error);
            }
        };
        if context.global.format != Format::Json {
            commands::run::print(context, &outcome, false)?;
        }
        let complete = outcome.output.get(TAG).and_then(|signal| signal.as_str()) == Some(COMPLETE);
        let asked = input.query.iter().map(|query| Message::text(Role::User, query.as_str()));
        input.history.extend(asked.collect::<Vec<_>>());
        input.history.append(&mut outcome.exchanged);
        input.history.push(Message::text(Role::Assistant, outcome.text()));
        rounds.push(outcome);
        if complete {
            break None;
        }
        if rounds.len() as u64 >= repeat.max_rounds {
            break Some("--max-rounds is reached");
        }
        if !meter.may_spend() {
            let tokens_left = meter.left().tokens != Some(0);
            break Some(if tokens_left { "--max-cost is reached" } else { "--max-tokens is reached" });
        }
    };
    rounds.iter().rev().take(1).for_each(|last| commands::run::note_on_reduction(context, last));
    if context.global.format == Format::Json {
        output::json(&Rounds { complete: stopped.is_none(), stopped, rounds: &rounds })?;
    }
    let Some(stopped) = stopped else { return Ok(()) };
    let spent = meter.total();
    let cost = spent.cost.map(|cost| format!(" and ${cost}")).unwrap_or_default();
    let rounds = counted(rounds.len() as u64, "round");
    Err(CliError::Fixable(format!(
        "not complete after {rounds}, {} tokens{cost}: {stopped}; raise it, or {}",
        spent.tokens(),
        how_to_go_on(context, &input)?
    )))
}

/// Stores the conversation with the answers so far, and says how to go on from there.
fn how_to_go_on(context: &CommandContext, input: &RunInput) -> Result<String, CliError> {
    let json =
        serde_json::to_string_pretty(&input.history).map_err(|error| CliError::Bug(error.to_string()))?;
    let store = context.store()?;
    let pointer =
        store.pointers().insert(json.as_bytes(), "json", "a conversation to go on with")?.pointer_id;
    Ok(format!(
        "go on from the last answer: `larder rehydrate {pointer} > history.json`, then run with --history history.json"
    ))
}
