//! The tools of recipes that run outside turns: the same box, classes and limits as in a turn. What a call makes is
//! stored behind pointers; no turn's folder holds it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use larder_condense::ContentType;
use larder_core::recipe::{Mode, Recipe};
use larder_engine::executor::RemainingBudget;
use larder_engine::recipe_tools::{CallLimits, CallResult, OfferedTools, PHASES, RecipeTools, RunScope};
use larder_engine::settings::TurnLimits;
use larder_store::UserDocuments;
use larder_text::message::{ToolCall, ToolDef};
use larder_text::tokens::Counter;
use larder_tools::{Confirm, ToolBox, ToolClass, ToolContext, ToolOutput, ToolSpec};
use larder_vault::context::CallStatus;
use larder_vault::{DocumentTime, Intent};
use serde_json::Value;
use tokio::time::Instant;

use crate::turn::Turns;

/// Carries out what the models of one user's recipes call.
pub struct RunTools {
    documents: UserDocuments,
    tools: Arc<ToolBox>,
    limits: TurnLimits,
    confirm: Arc<dyn Confirm>,
    workspace: Option<PathBuf>,
    most: ToolClass,
}

impl RunTools {
    /// The tools of `turns`, up to the class `most`; code works in `workspace`.
    pub fn new(turns: &Turns, workspace: Option<PathBuf>, most: ToolClass) -> Self {
        Self {
            documents: turns.documents.clone(),
            tools: Arc::clone(&turns.tools),
            limits: turns.limits,
            confirm: Arc::clone(&turns.confirm),
            workspace,
            most,
        }
    }

    /// The tools that a recipe names and that are not offered, by the names that it uses.
    pub fn missing<'r>(&self, recipe: &'r Recipe, mode: Mode) -> Vec<&'r str> {
        self.missing_of(recipe, mode, self.workspace.is_some())
    }

    /// Those that would not be offered in code either, in a workspace.
    pub fn missing_in_code<'r>(&self, recipe: &'r Recipe) -> Vec<&'r str> {
        self.missing_of(recipe, Mode::Code, true)
    }

    fn missing_of<'r>(&self, recipe: &'r Recipe, mode: Mode, in_workspace: bool) -> Vec<&'r str> {
        let is_offered =
            |name: &&String| !self.named(mode, std::slice::from_ref(*name), in_workspace).is_empty();
        recipe.tools.iter().filter(|name| !is_offered(name)).map(String::as_str).collect()
    }

    /// Those of these names that may be called. Tools of code alone work in a workspace, and fail without.
    fn named(&self, mode: Mode, names: &[String], in_workspace: bool) -> Vec<&ToolSpec> {
        let mut specs = self.tools.specs(mode, names);
        specs.retain(|spec| spec.class <= self.most && (in_workspace || spec.modes.include(Mode::Chat)));
        specs
    }

    async fn output(&self, name: &str, arguments: &Value, run: RunScope<'_>) -> ToolOutput {
        let place = self.documents.place().turn(larder_tools::NO_TURN);
        let now = DocumentTime::from(run.engine.store.store().now());
        let context = ToolContext {
            engine: run.engine,
            documents: &self.documents,
            // Runs outside turns have no receipt of what was considered.
            counter: &Counter::unknown(),
            turn: &place,
            draft_files: &BTreeMap::new(),
            original_query: run.input.query.as_deref().unwrap_or_default(),
            intent: None::<Intent>,
            topic: None,
            mode: run.mode,
            now,
            workspace: self.workspace.as_deref(),
            confirm: &*self.confirm,
            observer: run.observer,
            begun: &|| Ok(()),
            budget: run.left,
        };
        self.tools.call(name, arguments, &context).await
    }
}

impl RecipeTools for RunTools {
    fn offered(&self, recipe: &Recipe, mode: Mode) -> OfferedTools {
        if recipe.tools.is_empty() || recipe.category == PHASES {
            return OfferedTools::none(recipe);
        }
        let definition = |spec: &ToolSpec| ToolDef {
            name: spec.wire_name(),
            description: spec.description.clone(),
            parameters: spec.parameters.clone(),
        };
        let specs = self.named(mode, &recipe.tools, self.workspace.is_some());
        OfferedTools {
            definitions: specs.iter().map(|spec| definition(spec)).collect(),
            names: specs.iter().map(|spec| spec.name.clone()).collect(),
            missing: self.missing(recipe, mode).into_iter().map(str::to_owned).collect(),
        }
    }

    fn limits(&self) -> CallLimits {
        let TurnLimits { iterations, tool_calls, tokens, cost, time, .. } = self.limits;
        let deadline = time.and_then(|time| Instant::now().checked_add(time));
        let budget = RemainingBudget { tokens, cost, deadline };
        CallLimits { rounds: iterations, calls: tool_calls, budget }
    }

    fn call<'a>(&'a self, call: &'a ToolCall, run: RunScope<'a>) -> BoxFuture<'a, CallResult> {
        async move {
            let specs = self.named(run.mode, &run.recipe.tools, self.workspace.is_some());
            let spec = specs.into_iter().find(|spec| spec.wire_name() == call.name || spec.name == call.name);
            let name = spec.map_or(call.name.as_str(), |spec| spec.name.as_str());
            let arguments = serde_json::from_str(&call.arguments);
            let text = larder_tools::call_text(name, arguments.as_ref().unwrap_or(&Value::Null));
            let output = match &arguments {
                Ok(arguments) => self.output(name, arguments, run).await,
                Err(error) => {
                    let words =
                        format!("the arguments are not JSON: {error}; correct them and call it again");
                    ToolOutput::failure(CallStatus::Error, words)
                }
            };
            CallResult {
                call: text,
                status: output.status.to_string().to_lowercase(),
                summary: output.summary,
                content: output.content,
                content_type: output.content_type.unwrap_or(ContentType::ToolResult),
                summarizable: spec.is_none_or(|spec| spec.summarizable),
                files: output.files,
            }
        }
        .boxed()
    }
}
