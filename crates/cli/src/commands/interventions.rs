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
    let store = context.user_to_read()?;
    let lists = command.is_none();
    let is_one = matches!(command, Some(InterventionsCommand::Show { .. }));
    let found = match command {
        Some(InterventionsCommand::Show { id }) => vec![store.interventions().get(id)?],
        Some(InterventionsCommand::Resolve { id, resolution }) => {
            context.require_writable()?;
            vec![store.interventions().resolve(id, &resolution)?]
        }
        None => store.interventions().list(!all)?,
    };
    if context.global.format == Format::Json {
        return if lists { output::json(&found) } else { output::json(&found.first()) };
    }
    if found.is_empty() {
        output::say("no open requests");
    }
    for one in found {
        let state =
            one.resolution.as_deref().map_or_else(|| "open".to_owned(), |text| format!("resolved: {text}"));
        output::line(&format!("#{} {} {} ({state}) {}", one.id, one.created, one.kind, one.message))?;
        if is_one {
            if let Some(recipe) = &one.recipe {
                output::line(&format!("recipe {recipe}"))?;
            }
            if let Some(run) = &one.run_id {
                let run = run.as_str();
                output::line(&format!(
                    "run {run}; `larder runs show {run}` prints its questions and answers"
                ))?;
            }
            if one.resolution.is_none() {
                let id = one.id;
                output::line(&format!("`larder interventions resolve {id} 'WHAT WAS DECIDED'` closes it"))?;
            }
        }
    }
    Ok(())
}
