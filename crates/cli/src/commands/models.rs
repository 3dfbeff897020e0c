//! `larder models`: the model table, and weights of embedded models.

use larder_models::weights::Source;
use serde_json::json;

use crate::args::{Format, ModelsCommand};
use crate::context::Context;
use crate::error::CliError;
use crate::output;

pub async fn run(context: &Context, command: Option<ModelsCommand>) -> Result<(), CliError> {
    if let Some(ModelsCommand::Pull { name, from }) = command {
        let source = match from.as_deref() {
            None => Source::Any,
            Some("package") => Source::Package,
            Some(address) if address.starts_with("http") => Source::Hub(address.to_owned()),
            Some(path) => Source::Path(path.into()),
        };
        return context.pull(&name, &source).await;
    }
    let table = context.config.models();
    if context.global.format == Format::Json {
        return output::json(&json!({"models": table}));
    }
    for (layer, binding) in table.layers() {
        let spec = table.model(&binding.model);
        let details =
            spec.map(|spec| format!("{} window {} output {}", spec.id, spec.window, spec.max_output));
        output::line(&format!(
            "{:<7} {:<16} {}",
            layer.as_str(),
            binding.model,
            details.unwrap_or_default()
        ))?;
    }
    Ok(())
}
