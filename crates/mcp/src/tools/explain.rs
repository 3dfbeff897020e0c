//! `explain`: shows the prompt of a run, part by part with reasons, without sending it.

use std::collections::BTreeMap;

use larder_core::pack::{PartReceipt, layout};
use larder_core::recipe::Mode;
use larder_engine::executor::RunReceipt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::McpCaller;
use super::super::progress::CallProgress;
use super::super::sources::{CallError, Inputs, unfit_inputs};
use super::{McpTool, missing};

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Explain {
    /// The recipe: category/name.
    recipe: String,
    /// The user's query, verbatim.
    query: Option<String>,
    /// The documents.
    #[serde(default)]
    documents: Vec<DocumentGiven>,
    /// Values of the recipe's variables.
    #[serde(default)]
    values: BTreeMap<String, String>,
    /// The stage, for recipes that have stages.
    variant: Option<String>,
    /// The mode, for recipes that differ by mode.
    mode: Option<ModeGiven>,
    /// The messages so far: a pointer, a path, or the JSON array itself.
    history: Option<String>,
}

/// A document.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DocumentGiven {
    /// The input of the recipe that it fills.
    input: String,
    /// A pointer or the path of a file; or the text itself, with a line break in it.
    source: String,
}

/// Conversation, or work on code.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ModeGiven {
    Chat,
    Code,
}

/// The result.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Explained {
    /// The recipe.
    recipe: String,
    /// Its version.
    version: String,
    /// The name of the model it is packed for.
    model: String,
    /// The tokenizer that counted.
    tokenizer: String,
    /// Whether it fits; if not, a run would send nothing.
    fits: bool,
    /// Why it does not fit, and how to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    /// Tokens of prompt and input.
    used: usize,
    /// Tokens available for them.
    available: usize,
    /// Every part, in the order of the prompt.
    parts: Vec<PartShown>,
}

/// The rendition of one part.
#[derive(Debug, Serialize, JsonSchema)]
struct PartShown {
    /// The part.
    id: String,
    /// Its slot.
    slot: String,
    /// Its document or message.
    source: String,
    /// whole, condensed, pointer or absent.
    rendition: String,
    /// Its tokens.
    tokens: usize,
    /// Its tokens if sent whole, if they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    original_tokens: Option<usize>,
    /// The reason for its rendition.
    reason: String,
    /// Restores the original, unless the part is sent whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<String>,
}

impl McpTool for Explain {
    type Output = Explained;
    const NAME: &'static str = "explain";
    const TITLE: &'static str = "Explain a prompt";
    const DESCRIPTION: &'static str = "Packs the prompt of a run of a recipe without sending \
        it, and reports the rendition of every part (whole, condensed, pointer, absent), its \
        tokens and the reason.";

    async fn call(self, caller: &McpCaller, _: &CallProgress) -> Result<(Explained, String), CallError> {
        let found = caller.engine.recipe_or_builtin(&self.recipe);
        let recipe = found.map_err(|error| missing(&error))?.id();
        let inputs = Inputs {
            query: self.query,
            documents: self.documents.into_iter().map(|given| (given.input, given.source)).collect(),
            values: self.values,
            variant: self.variant,
            history: self.history,
            mode: self.mode.map(|mode| match mode {
                ModeGiven::Chat => Mode::Chat,
                ModeGiven::Code => Mode::Code,
            }),
        };
        let explained = caller.engine.explain(&recipe, &inputs.read(caller)?);
        let receipt = explained.map_err(|error| CallError(unfit_inputs(&error)))?;
        let text = layout(&receipt.receipt);
        Ok((Explained::of(receipt), text))
    }
}

impl Explained {
    fn of(receipt: RunReceipt) -> Self {
        let pack = receipt.receipt;
        let part = |part: &PartReceipt| PartShown {
            id: part.id.to_string(),
            slot: part.slot.to_string(),
            source: part.source.to_string(),
            rendition: part.rendition.as_str().to_owned(),
            tokens: part.tokens,
            original_tokens: part.original_tokens,
            reason: part.reason.as_str().to_owned(),
            pointer: part.pointer.as_ref().map(ToString::to_string),
        };
        Self {
            recipe: receipt.recipe,
            version: receipt.version,
            model: receipt.model,
            tokenizer: receipt.tokenizer,
            fits: pack.refused.is_none(),
            refused: pack.refused.as_ref().map(ToString::to_string),
            used: pack.budget.used,
            available: pack.budget.available,
            parts: pack.parts.iter().map(part).collect(),
        }
    }
}
