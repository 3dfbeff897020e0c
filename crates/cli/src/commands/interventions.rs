//! `larder interventions`: requests for a human.

use crate::args::{Format, InterventionsCommand};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output;

pub fn run(
    context: &CommandContext,
    command: Option<InterventionsCommand>,
    all: bool,
) -> Result<(), CliError> {
    let store = context.store()?;
    let found = match command {
        Some(InterventionsCommand::Show { id }) => vec![store.interventions().get(id)?],
        Some(InterventionsCommand::Resolve { id, resolution }) => {
            vec![store.interventions().resolve(id, &resolution)?]
        }
        None => store.interventions().list(!all)?,
    };
    if context.global.format == Format::Json {
        return output::json(&found);
    }
    if found.is_empty() {
        output::say("no open requests");
    }
    for one in found {
        let state =
            one.resolution.as_deref().map_or_else(|| "open".to_owned(), |text| format!("resolved: {text}"));
        output::line(&format!("#{} {} {} ({state}) {}", one.id, one.created, one.kind, one.message))?;
    }
    Ok(())
}
