//! The engine of `larder run` and `larder explain`, which carries out what the model of a recipe calls.

use std::path::PathBuf;
use std::sync::Arc;

use larder_agent::recipe_tools::RunTools;
use larder_agent::turn::TurnHost;
use larder_core::recipe::Mode;
use larder_engine::Engine;
use larder_engine::inputs::RunInput;
use larder_store::Store;
use larder_tools::{Confirm, ToolClass};

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output;

/// What the tools of a run may do.
pub struct ToolAccess {
    /// Permits calls that need it.
    pub confirm: Arc<dyn Confirm>,
    /// The folder that code works in; the current one if there is none.
    pub workspace: Option<PathBuf>,
}

/// The engine for a run of a recipe, with its tools if it names any.
pub async fn engine(
    context: &CommandContext,
    store: Store,
    name: &str,
    input: &RunInput,
    access: ToolAccess,
) -> Result<Engine, CliError> {
    let user = store.user(&context.global.user)?;
    let engine = context.engine_over(context.project()?, user, context.config.policy())?;
    // The run itself reports a missing recipe.
    let Ok(recipe) = engine.find(name, input.mode).cloned() else { return Ok(engine) };
    let mode = input.mode.or(recipe.mode).unwrap_or(Mode::Chat);
    let workspace = match (access.workspace, mode) {
        (Some(_), Mode::Chat) => {
            return Err(CliError::Usage("--workspace needs --mode code, or a recipe for code".to_owned()));
        }
        (Some(_), _) if recipe.tools.is_empty() => {
            return Err(CliError::Usage(format!("--workspace: {} names no tools", recipe.id())));
        }
        (folder, Mode::Code) => Some(folder.unwrap_or_else(|| PathBuf::from("."))),
        (None, Mode::Chat) => None,
    };
    if recipe.tools.is_empty() {
        return Ok(engine);
    }
    let real = |path: PathBuf| path.canonicalize().map_err(|source| CliError::Read { path, source });
    let workspace = workspace.map(real).transpose()?;
    let (host, problems) = TurnHost::open(&store, &context.config).await?;
    for problem in problems {
        output::say(&format!("note: {problem}"));
    }
    let turns = host.turns(engine.clone(), access.confirm)?;
    let tools = RunTools::new(&turns, workspace, ToolClass::Danger);
    let missing = tools.missing(&recipe, mode);
    if !missing.is_empty() {
        let in_code = mode == Mode::Chat && tools.missing(&recipe, Mode::Code).len() < missing.len();
        let advice = if in_code { "; pass --mode code" } else { "" };
        output::say(&format!(
            "note: {} names tools that mode {} does not offer: {}{advice}",
            recipe.id(),
            mode.as_str(),
            missing.join(", ")
        ));
    }
    Ok(engine.with_tools(Some(Arc::new(tools))))
}
