//! The receipt of a pack: what the prompt contains, in which rendition, why, and the proof that it fits.

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::slot::CallBudget;
use larder_condense::{Author, Gap};
use larder_text::message::Message;
use larder_text::pointer::Pointer;
use larder_text::tokens::Label;

/// The form that a part takes in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rendition {
    /// Every byte.
    Whole,
    /// Smaller, with marked gaps.
    Condensed,
    /// A pointer with one line of display text.
    Pointer,
    /// Not there.
    Absent,
}

impl Rendition {
    /// The word that layouts print.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Condensed => "condensed",
            Self::Pointer => "pointer",
            Self::Absent => "absent",
        }
    }
}

/// One step up the ladder that was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextRung {
    /// What the part would become.
    pub rendition: Rendition,
    /// What it would cost in all.
    pub tokens: usize,
}

/// What became of one part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartReceipt {
    /// The part.
    #[serde(with = "shared_text")]
    pub id: Arc<str>,
    /// Its slot.
    #[serde(with = "shared_text")]
    pub slot: Arc<str>,
    /// Its document or message.
    #[serde(with = "shared_text")]
    pub source: Arc<str>,
    /// The bytes of the document that it covers, when it is a slice of one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bytes: Option<(usize, usize)>,
    /// The lines of the document that it covers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lines: Option<(usize, usize)>,
    /// The chosen form.
    pub rendition: Rendition,
    /// Tokens it takes, frame included.
    pub tokens: usize,
    /// Tokens it would take whole; `None` when it is larger than the whole budget and was not counted out.
    pub original_tokens: Option<usize>,
    /// Why this form.
    pub reason: PartReason,
    /// Leads to the original, unless the part is whole.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pointer: Option<Pointer>,
    /// What a condensed rendition leaves out.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub gaps: Vec<Gap>,
    /// The model that wrote a condensed rendition, unless it was made by rule.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub author: Option<Author>,
    /// The next rung of its ladder and what it would have cost.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next: Option<NextRung>,
}

/// Reads and writes texts that many receipts share.
mod shared_text {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(text)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
        String::deserialize(deserializer).map(Arc::from)
    }
}

/// Why a part has its rendition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartReason {
    /// It fits.
    Fits,
    /// It is critical, so it is whole at any cost.
    Critical,
    /// It is protected and its slot has room.
    Protected,
    /// It is larger than a single message of its slot may be.
    OverEntryCap,
    /// Its slot exceeds its cap.
    SlotOverCap,
    /// The whole call exceeds its budget.
    CallOverBudget,
    /// The call fits, and takes more than it should.
    OverThreshold,
    /// Its pins do not fit into a smaller rendition.
    PinsTooLarge,
    /// The call or result it belongs with could not stay.
    GroupDropped,
    /// What is not shown of it appears in earlier messages.
    StandsAbove,
}

impl PartReason {
    /// The words that layouts print.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::Critical => "critical",
            Self::Protected => "protected",
            Self::OverEntryCap => "over entry cap",
            Self::SlotOverCap => "slot over cap",
            Self::CallOverBudget => "call over budget",
            Self::OverThreshold => "call over threshold",
            Self::PinsTooLarge => "pins too large",
            Self::GroupDropped => "group dropped",
            Self::StandsAbove => "stands above",
        }
    }
}

/// What one slot was allowed and used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotLedger {
    /// The slot.
    pub name: String,
    /// Tokens it was allowed.
    pub allowed: usize,
    /// Tokens it takes.
    pub tokens: usize,
    /// Whether its soft trigger was crossed: compaction may run in the background (C19).
    pub soft_trigger: bool,
}

/// The arithmetic of a pack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetLedger {
    /// Limits of the call.
    pub limits: CallBudget,
    /// Tokens that prompt and input may have.
    pub available: usize,
    /// Tokens of chat framing, tool schemas and the response schema.
    pub framing: usize,
    /// Tokens that prompt and input take, framing and the counter's margin included.
    pub used: usize,
    /// Per slot, in order.
    pub slots: Vec<SlotLedger>,
    /// Who counted.
    pub tokenizer: String,
    /// How far the count can be trusted.
    pub label: Label,
}

/// Why nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("the prompt cannot fit: {deficit} tokens too many; {}", describe(.parts))]
pub struct PackRefusal {
    /// Tokens that are missing.
    pub deficit: usize,
    /// The parts that need them, largest first, with their tokens.
    pub parts: Vec<(String, usize)>,
}

fn describe(parts: &[(String, usize)]) -> String {
    let list: Vec<String> = parts.iter().map(|(id, tokens)| format!("{id} needs {tokens}")).collect();
    if list.is_empty() {
        return "the budget does not even hold the framing. Raise token_budget.total".to_owned();
    }
    format!(
        "{}. Raise token_budget.total, use a model with a larger window, or shorten these parts",
        list.join(", ")
    )
}

/// Where in a growing conversation the prefix last moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Epoch {
    /// How often a watermark has been crossed so far.
    pub number: usize,
    /// How many messages the conversation had when it was last crossed.
    pub at_message: usize,
    /// The first message, from 0, that changed then.
    #[serde(default)]
    pub from_message: usize,
    /// Whether the newest message crossed it: only then does this prompt not extend the one before.
    pub moved_prefix: bool,
}

/// The record of a pack, stored with the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// The arithmetic.
    pub budget: BudgetLedger,
    /// Tokens of the prompt in all; the same as `budget.used`.
    pub total: usize,
    /// Set when nothing may be sent.
    pub refused: Option<PackRefusal>,
    /// Every part, in the order of the prompt.
    pub parts: Vec<PartReceipt>,
    /// Epochs of slots of messages.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub epoch: Option<Epoch>,
}

/// A finished prompt.
#[derive(Debug, Clone)]
pub struct Pack {
    /// What the model reads.
    pub messages: Vec<Message>,
    /// What was decided and why.
    pub receipt: Receipt,
    /// What must be in the blob store before the request leaves.
    pub originals: Vec<PackOriginal>,
    /// How many leading messages are the same for every call of this recipe version, for provider caches.
    pub stable_messages: usize,
}

/// Original bytes that a pack's pointers lead to.
#[derive(Debug, Clone)]
pub struct PackOriginal {
    /// The bytes; their content address is what the pointer was minted from.
    pub text: OriginalText,
    /// What they are, in a word: `part`, `document`, `left_out`.
    pub kind: &'static str,
    /// One line for people and models.
    pub display: String,
}

/// A text that a pack's pointers lead into.
#[derive(Debug, Clone)]
pub enum OriginalText {
    /// One that the request came with.
    Given(Arc<str>),
    /// One that the pack put together, of all that a slot leaves out: it may be large, and is never copied.
    Joined(String),
}

impl Deref for OriginalText {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Given(text) => text,
            Self::Joined(text) => text,
        }
    }
}
