//! `explain`: what a run of a recipe would send, part by part, and why; nothing is sent.

use std::collections::BTreeMap;

use larder_core::pack::{PartReceipt, layout};
use larder_core::recipe::Mode;
use larder_engine::executor::RunReceipt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::McpCaller;
use super::super::progress::CallProgress;
use super::super::sources::{CallError, Inputs};
use super::{Tool, missing};

/// What it takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Explain {
    /// The recipe: category/name.
    recipe: String,
    /// What the user asks, verbatim.
    query: Option<String>,
    /// The documents.
    #[serde(default)]
    documents: Vec<DocumentGiven>,
    /// Values of the recipe's variables.
    #[serde(default)]
    values: BTreeMap<String, String>,
    /// The stage, for recipes that have stages.
    variant: Option<String>,
    /// For recipes that differ in it.
    mode: Option<ModeGiven>,
}

/// A document.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DocumentGiven {
    /// Which input of the recipe it is.
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

/// What it gives.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Explained {
    /// The recipe.
    recipe: String,
    /// Its version.
    version: String,
    /// The model it is packed for, as the table calls it.
    model: String,
    /// Who counted.
    tokenizer: String,
    /// Whether it fits; otherwise nothing would be sent.
    fits: bool,
    /// Why it does not fit, and how to mend it.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    /// Tokens that prompt and input take.
    used: usize,
    /// Tokens that they may have.
    available: usize,
    /// Every part, in the order of the prompt.
    parts: Vec<PartShown>,
}

/// What became of one part.
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
    /// Tokens it takes.
    tokens: usize,
    /// Tokens it would take whole, where they were counted out.
    #[serde(skip_serializing_if = "Option::is_none")]
    original_tokens: Option<usize>,
    /// Why it stands so.
    reason: String,
    /// Gives the original back, unless it stands whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<String>,
}

impl Tool for Explain {
    type Output = Explained;
    const NAME: &'static str = "explain";
    const TITLE: &'static str = "Explain a prompt";
    const DESCRIPTION: &'static str = "Packs what a run of a recipe would send, without sending \
        it, and says of every part in which form it stands (whole, condensed, pointer, absent), what \
        it costs in tokens and why.";

    async fn call(self, caller: &McpCaller, _: &CallProgress) -> Result<(Explained, String), CallError> {
        let found = caller.engine.recipe_or_builtin(&self.recipe);
        let recipe = found.map_err(|error| missing(&error))?.id();
        let inputs = Inputs {
            query: self.query,
            documents: self.documents.into_iter().map(|given| (given.input, given.source)).collect(),
            values: self.values,
            variant: self.variant,
            mode: self.mode.map(|mode| match mode {
                ModeGiven::Chat => Mode::Chat,
                ModeGiven::Code => Mode::Code,
            }),
        };
        let receipt = caller.engine.lay_out(&recipe, &inputs.read(caller)?)?;
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
