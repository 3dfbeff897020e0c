//! `larder runs`: lists and shows recorded runs.

use larder_core::pack::layout;
use larder_engine::executor::RunReceipt;
use larder_store::{RunFilter, RunRecord};
use larder_text::words::counted;
use serde_json::{Value, json};

use crate::args::{Format, RunsCommand};
use crate::commands::run::by_model;
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
        let receipt = store.contents().get(record.receipt)?;
        let output = record.output.map(|hash| store.contents().get(hash)).transpose()?;
        let output = output.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        if context.global.format == Format::Plain {
            return show(&record, serde_json::from_slice(&receipt).ok().as_ref(), output.as_deref());
        }
        let receipt: Value =
            serde_json::from_slice(&receipt).map_err(|error| CliError::Bug(error.to_string()))?;
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

/// A run for people: its outcome, its models and what they used, its checks, the parts of its prompt, and its answer. An
/// erased receipt is absent.
fn show(record: &RunRecord, receipt: Option<&RunReceipt>, answer: Option<&str>) -> Result<(), CliError> {
    let facts = &record.facts;
    let field = |name: &str, value: &str| output::text(&format!("{name:<9} {value}"));
    let recipe = receipt.map_or(facts.recipe.as_str(), |receipt| &receipt.recipe);
    field("run", &format!("{} · {} · {recipe}", record.run_id, record.timestamp))?;
    let error = facts.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    let calls = if facts.retries == 0 {
        String::new()
    } else {
        format!(" · {} after the first", counted(facts.retries.into(), "call"))
    };
    let status = json!(facts.status);
    let seconds = facts.latency_ms as f64 / 1000.0;
    field("outcome", &format!("{}{error} · {seconds:.1} s{calls}", status.as_str().unwrap_or_default()))?;
    let asked = if facts.model.is_empty() { "none was asked" } else { &facts.model };
    field("model", &format!("{asked} as {}", facts.model_layer))?;
    for failed in receipt.iter().flat_map(|receipt| &receipt.failed) {
        field("failed", &failed.error)?;
    }
    let tokens = facts.tokens;
    let cost = facts.cost_usd.map_or_else(|| "no price".to_owned(), |cost| format!("${cost}"));
    field("tokens", &format!("{} in, {} out, {cost}", tokens.prompt + tokens.input, tokens.output))?;
    if let Some(models) = by_model(&facts.models) {
        field("", &models)?;
    }
    let mut gates = Vec::new();
    gates.extend(facts.schema_valid.map(|valid| {
        if valid { "the schema holds".to_owned() } else { "the schema does not hold".to_owned() }
    }));
    gates.extend(facts.confidence.map(|confidence| format!("confidence {confidence}")));
    if !gates.is_empty() {
        field("checks", &gates.join(", "))?;
    }
    let saved = counted(facts.compression_savings, "token");
    if facts.compression_applied {
        field("condensed", &format!("{saved} saved"))?;
    }
    if let Some(receipt) = receipt {
        output::line("")?;
        output::text(&layout(&receipt.receipt))?;
    }
    if let Some(answer) = answer {
        output::line("")?;
        output::text(answer)?;
    }
    output::say("`--format json` prints the whole record, with the receipt and the prompt");
    Ok(())
}

/// How the call held the original query: `whole` or another rendition, `absent` if it did not (R1-3.71).
fn query_of(receipt: &Value) -> &str {
    let parts = receipt["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let query = parts.iter().find(|part| part["slot"] == "query");
    query.and_then(|part| part["rendition"].as_str()).unwrap_or("absent")
}
