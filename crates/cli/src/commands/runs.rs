//! `larder runs`: lists and shows recorded runs.

use larder_store::RunFilter;
use serde_json::{Value, json};

use crate::args::{Format, RunsCommand};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output;

pub fn run(
    context: &CommandContext,
    command: Option<RunsCommand>,
    recipe: Option<String>,
    limit: u64,
) -> Result<(), CliError> {
    let store = context.user_to_read()?;
    if let Some(RunsCommand::Show { id }) = command {
        let id = id.parse().map_err(|error| CliError::Usage(format!("{id:?}: {error}")))?;
        let record = store.runs().get(&id)?;
        let receipt: Value = serde_json::from_slice(&store.contents().get(record.receipt)?)
            .map_err(|error| CliError::Bug(error.to_string()))?;
        let output = record.output.map(|hash| store.contents().get(hash)).transpose()?;
        let output = output.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let query = query_of(&receipt);
        return output::json(&json!({"run": record, "query": query, "receipt": receipt, "output": output}));
    }
    let all = recipe.is_none();
    // Records name a recipe without its category.
    let recipe = recipe.map(|recipe| recipe.rsplit('/').next().unwrap_or_default().to_owned());
    let runs = store.runs().list(&RunFilter { recipe, since: None, limit: Some(limit) })?;
    if context.global.format == Format::Json {
        return output::json(&runs);
    }
    if runs.is_empty() {
        output::say(if all {
            "no runs are recorded here"
        } else {
            "no runs of this recipe are recorded here"
        });
    }
    for run in runs {
        let facts = &run.facts;
        let error = facts.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
        output::line(&format!(
            "{} {} {:<20} {:<16} {:>6} tokens {:>7} ms  {:?}{error}",
            run.run_id.as_str(),
            run.timestamp,
            facts.recipe,
            facts.model,
            facts.tokens.total(),
            facts.latency_ms,
            facts.status
        ))?;
    }
    Ok(())
}

/// How the call held the original query: `whole` or another rendition, `absent` if it did not (R1-3.71).
fn query_of(receipt: &Value) -> &str {
    let parts = receipt["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let query = parts.iter().find(|part| part["slot"] == "query");
    query.and_then(|part| part["rendition"].as_str()).unwrap_or("absent")
}
