//! The engine of `larder run` and `larder explain`, which carries out what the model of a recipe calls.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use larder_agent::recipe_tools::RunTools;
use larder_agent::turn::TurnHost;
use larder_core::recipe::{Mode, Recipe, suggest};
use larder_engine::Engine;
use larder_engine::config::Config;
use larder_engine::executor::RunError;
use larder_engine::given::blank_documents;
use larder_engine::inputs::RunInput;
use larder_store::Store;
use larder_tools::{Confirm, ToolBox, ToolClass};

use crate::context::CommandContext;
use crate::error::CliError;
use crate::{files, output};

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
    context.require_tokenizers()?;
    let user = store.user(&context.global.user)?.begun()?;
    let engine = context.engine_over(context.project()?, user, context.config.policy())?;
    // The run itself reports a missing recipe.
    let Ok(recipe) = engine.find(name, input.mode).cloned() else { return Ok(engine) };
    for document in blank_documents(&recipe, input).map_err(RunError::from)? {
        output::say(&format!("note: {} is empty, so it adds nothing to the prompt", document.name));
    }
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
    let workspace = workspace.map(files::folder).transpose()?;
    let (host, problems) = TurnHost::open(&store, &context.config).await?;
    for problem in problems {
        output::say(&format!("note: {problem}"));
    }
    let turns = host.turns(engine.clone(), access.confirm)?;
    let tools = RunTools::new(&turns, workspace, ToolClass::Danger);
    note_on_missing(&tools, &recipe, mode, &KnownTools::new(&context.config));
    Ok(engine.with_tools(Some(Arc::new(tools))))
}

/// Notes which tools of a recipe are not offered, and what to do about each.
fn note_on_missing(tools: &RunTools, recipe: &Recipe, mode: Mode, known: &KnownTools) {
    let in_code = if mode == Mode::Chat { tools.missing_in_code(recipe) } else { Vec::new() };
    let mut other_mode = Vec::new();
    for name in tools.missing(recipe, mode) {
        let advice = match known.unknown(name) {
            Some(help) => format!("there is no tool {name}; {help}"),
            None if mode == Mode::Chat && !in_code.contains(&name) => {
                other_mode.push(name);
                continue;
            }
            None => format!("{name} is not offered in mode {}", mode.as_str()),
        };
        output::say(&format!("note: {}: {advice}", recipe.id()));
    }
    // A recipe may name tools for both modes; in neither is it worth a word that it has fewer there.
    if !other_mode.is_empty() && other_mode.len() == recipe.tools.len() {
        output::say(&format!(
            "note: {} names tools that mode {} does not offer: {}; pass --mode code",
            recipe.id(),
            mode.as_str(),
            other_mode.join(", ")
        ));
    }
}

/// The names of the built-in tools, and of the MCP servers that the settings name.
pub struct KnownTools {
    tools: Vec<String>,
    servers: Vec<String>,
}

impl KnownTools {
    pub fn new(config: &Config) -> Self {
        let toolbox = ToolBox::new(&Config::builtin().tools()).ok();
        let of_mode = |mode| toolbox.iter().flat_map(move |toolbox| toolbox.specs(mode, &[]));
        let specs = [Mode::Chat, Mode::Code].into_iter().flat_map(of_mode);
        Self {
            tools: specs.map(|spec| spec.name.clone()).collect::<BTreeSet<_>>().into_iter().collect(),
            servers: config.tools().mcp.into_keys().collect(),
        }
    }

    /// How to fix the name of a tool that there is not; `None` if there is one, or the server that it names may have it.
    pub fn unknown(&self, name: &str) -> Option<String> {
        if let Some(server) = name.strip_prefix("mcp.") {
            let server = server.split('.').next().unwrap_or_default();
            if self.servers.iter().any(|known| known == server) && name.matches('.').count() >= 2 {
                return None;
            }
            let named = self.servers.iter().map(|server| format!("mcp.{server}.*")).collect::<Vec<_>>();
            let near = suggest(name, named.iter().map(String::as_str));
            let near = if near.is_empty() { String::new() } else { format!(", or name {near}") };
            return Some(format!("set up the server under [tools.mcp.{server}] in larder.toml{near}"));
        }
        let prefix = name.strip_suffix('*');
        let fits = |tool: &String| match prefix {
            Some(prefix) => tool.starts_with(prefix),
            None => tool == name,
        };
        let missing = !self.tools.iter().any(fits);
        missing.then(|| suggest(name, self.tools.iter().map(String::as_str)))
    }
}
