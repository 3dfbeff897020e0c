//! The interface between a run and the tools that its recipe names. The crates of tools and turns implement it; the
//! executor calls it. Knows no tool.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use larder_condense::ContentType;
use larder_core::recipe::{Mode, Recipe};
use larder_text::message::{ToolCall, ToolDef};

use crate::engine::Engine;
use crate::inputs::RunInput;
use crate::run::{ProgressObserver, RemainingBudget};

/// Carries out what the models of recipes call (R0-10.14).
pub trait RecipeTools: Send + Sync {
    /// The tools that a recipe names, for its model; empty if it names none that is offered.
    fn offered(&self, recipe: &Recipe, mode: Mode) -> OfferedTools;

    /// How much one run may call.
    fn limits(&self) -> CallLimits;

    /// Carries out a call. Never fails: what went wrong is a result that the model reads.
    fn call<'a>(&'a self, call: &'a ToolCall, run: RunScope<'a>) -> BoxFuture<'a, CallResult>;
}

/// The category of recipes of a turn's phases, whose answers name what the turn then calls.
pub const PHASES: &str = "pipeline";

/// What a run offers of the tools that its recipe names.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OfferedTools {
    /// Their definitions.
    pub definitions: Vec<ToolDef>,
    /// Their names, in the same order, as recipes write them.
    pub names: Vec<String>,
    /// Those that are not offered, as the recipe writes them.
    pub missing: Vec<String>,
}

impl OfferedTools {
    /// What a run without tools offers to a recipe.
    pub fn none(recipe: &Recipe) -> Self {
        Self { missing: recipe.tools.clone(), ..Self::default() }
    }
}

/// How much one run and its model may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    /// Rounds of calls.
    pub rounds: u32,
    /// Calls in all rounds together.
    pub calls: u32,
    /// What all calls of models and tools may take together, from now on.
    pub budget: RemainingBudget,
}

/// The run that a call belongs to.
#[derive(Clone, Copy)]
pub struct RunScope<'a> {
    /// Its engine, without tools: a run inside a call calls none.
    pub engine: &'a Engine,
    /// The recipe, which names what may be called.
    pub recipe: &'a Recipe,
    /// Its inputs.
    pub input: &'a RunInput,
    /// Chat or code.
    pub mode: Mode,
    /// Learns of the progress and spending of runs inside the call.
    pub observer: &'a dyn ProgressObserver,
    /// What the run may still spend.
    pub left: RemainingBudget,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallResult {
    /// The call as people read it.
    pub call: String,
    /// `success`, `error`, `denied` or `timeout`.
    pub status: String,
    /// The result in a line.
    pub summary: String,
    /// The whole result.
    pub content: Vec<u8>,
    /// What the content is.
    pub content_type: ContentType,
    /// Whether it may be shown condensed.
    pub summarizable: bool,
    /// Documents that the call made, by their names.
    pub files: BTreeMap<String, Vec<u8>>,
}
