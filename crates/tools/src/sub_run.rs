//! One run of a recipe inside a call of a tool, within the call's budget.

use larder_engine::answer;
use larder_engine::executor::{Meter, ProgressObserver as _, RunKind};
use larder_engine::inputs::{InputDocument, RunInput};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::context::ToolContext;

/// The recipes that tools run.
pub const RECIPES_OF_TOOLS: [&str; 6] = [
    crate::web::SCREENSHOT_RECIPE,
    "research/plan_research",
    "research/select_sources",
    "research/extract_claims",
    "research/extract_page",
    "research/write_research",
];

/// The answer of a recipe, or why there is none.
pub(super) async fn run_recipe<T: DeserializeOwned>(
    context: &ToolContext<'_>,
    meter: &Meter<'_>,
    name: &str,
    documents: Vec<InputDocument>,
    values: &[(&str, Value)],
    until: Instant,
) -> Result<T, String> {
    if !meter.may_spend() {
        return Err("the tokens or the money of the call are used up".to_owned());
    }
    let engine = context.engine;
    let found = engine.find(name, None);
    let recipe = found.map_err(|source| engine.missing(name, source).to_string())?;
    let now = [("now", json!(context.now.to_string()))];
    let values = now.into_iter().chain(values.iter().cloned());
    let input = RunInput {
        documents,
        query: Some(context.original_query.to_owned()),
        // A project may have replaced the recipe; it receives the inputs that it names.
        values: values
            .filter(|(name, _)| recipe.inputs.contains(*name))
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
        turn_id: context.source().map(|_| larder_vault::turn_name(context.turn.number())),
        ..RunInput::default()
    };
    let running = engine.run_recipe(recipe, &input, meter, RunKind::Answer);
    let outcome = tokio::time::timeout_at(until, running)
        .await
        .map_err(|_| "the time of the call is up".to_owned())?
        .map_err(|error| error.to_string())?;
    answer::read(&outcome.output).map_err(|error| error.to_string())
}
