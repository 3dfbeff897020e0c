//! The receipt of a pack: what the prompt contains, in which rendition and why, and the proof that it fits.

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::part::PartKind;
use super::slot::CallBudget;
use larder_condense::{Author, Gap};
use larder_text::Layer;
use larder_text::message::Message;
use larder_text::pointer::Pointer;
use larder_text::tokens::Label;

/// The form that a part takes in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rendition {
    /// Unabridged.
    Whole,
    /// Shortened, with marked gaps.
    Condensed,
    /// A pointer with one line of display text.
    Pointer,
    /// Not in the prompt.
    Absent,
}

impl Rendition {
    /// The name used in layouts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Condensed => "condensed",
            Self::Pointer => "pointer",
            Self::Absent => "absent",
        }
    }
}

/// The next step up the ladder, which was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextRung {
    /// The rendition at that step.
    pub rendition: Rendition,
    /// Its total cost in tokens.
    pub tokens: usize,
}

/// The outcome for one part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartReceipt {
    /// The part's id.
    #[serde(with = "shared_text")]
    pub id: Arc<str>,
    /// Which of the parts of a prompt pack it belongs to; `None` in records of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kind: Option<PartKind>,
    /// The name of its slot.
    #[serde(with = "shared_text")]
    pub slot: Arc<str>,
    /// Its document or message.
    #[serde(with = "shared_text")]
    pub source: Arc<str>,
    /// The bytes of the document that it covers, if it is a slice of one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bytes: Option<(usize, usize)>,
    /// The lines of the document that it covers, if it is a slice of one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lines: Option<(usize, usize)>,
    /// The chosen form.
    pub rendition: Rendition,
    /// Tokens it takes, frame included.
    pub tokens: usize,
    /// Tokens of the whole part; `None` if it exceeds the entire budget and was not counted to the end.
    pub original_tokens: Option<usize>,
    /// The reason for this form.
    pub reason: PartReason,
    /// The pointer to the original, unless the part is whole.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pointer: Option<Pointer>,
    /// What a condensed rendition leaves out.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub gaps: Vec<Gap>,
    /// The model that wrote a condensed rendition; `None` if it was condensed by rule.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub author: Option<Author>,
    /// The next rung of its ladder and what it would have cost.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next: Option<NextRung>,
}

/// Deserializes and serializes texts shared between receipts.
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
    /// It exceeds the maximum size of a single message in its slot.
    OverEntryCap,
    /// Its slot exceeds its cap.
    SlotOverCap,
    /// The document that it belongs to exceeds its share of the call.
    DocumentOverLimit,
    /// The whole call exceeds its budget.
    CallOverBudget,
    /// No more tokens than its `min_remaining` were left for it.
    BelowMinRemaining,
    /// The call fits, but exceeds the limit above which it is reduced all the same, or leaves too little for the results
    /// of tools.
    CallNearLimit,
    /// The call fits, but exceeds its soft threshold.
    OverThreshold,
    /// Its pins do not fit into a smaller rendition.
    PinsTooLarge,
    /// It is in the text that represents older messages together.
    Summarized,
    /// The call or result it belongs to could not stay.
    GroupDropped,
    /// Everything that it leaves out is shown in earlier messages.
    StandsAbove,
    /// The same JSON in fewer tokens.
    Terse,
}

impl PartReason {
    /// The name used in layouts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::Critical => "critical",
            Self::Protected => "protected",
            Self::OverEntryCap => "over entry cap",
            Self::SlotOverCap => "slot over cap",
            Self::DocumentOverLimit => "document over limit",
            Self::CallOverBudget => "call over budget",
            Self::BelowMinRemaining => "below min_remaining",
            Self::CallNearLimit => "call near limit",
            Self::OverThreshold => "call over threshold",
            Self::PinsTooLarge => "pins too large",
            Self::Summarized => "summarized",
            Self::GroupDropped => "group dropped",
            Self::StandsAbove => "stands above",
            Self::Terse => "written tersely",
        }
    }
}

/// The tokens allotted to and used by one slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotLedger {
    /// The slot.
    pub name: String,
    /// Tokens it was allotted.
    pub allowed: usize,
    /// Tokens it takes.
    pub tokens: usize,
    /// Whether its soft trigger was crossed, so that older messages will soon be condensed.
    pub soft_trigger: bool,
    /// Where its text is in the messages of the prompt (R2-7.2).
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub spans: Vec<TextSpan>,
}

/// A range of the text of one message of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextSpan {
    /// The number of the message, from 0.
    pub message: usize,
    /// The first byte.
    pub start: usize,
    /// The end, exclusive.
    pub end: usize,
}

/// The arithmetic of a pack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetLedger {
    /// The limits of the call.
    pub limits: CallBudget,
    /// Tokens available for prompt and input.
    pub available: usize,
    /// Tokens of those available that a prompt with omissions leaves free for the results of tools.
    #[serde(default)]
    pub kept_free: usize,
    /// Tokens of chat framing, tool schemas and the response schema.
    pub framing: usize,
    /// Tokens of prompt and input, including framing and the counter's margin.
    pub used: usize,
    /// The slots, in order.
    pub slots: Vec<SlotLedger>,
    /// The name of the tokenizer.
    pub tokenizer: String,
    /// How far the count can be trusted.
    pub label: Label,
}

/// The limit that a refused prompt exceeds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalLimit {
    /// The total of the call.
    #[default]
    Total,
    /// The window of the model.
    Window,
    /// `policy.prompt_budget_override`.
    Override,
    /// `policy.emergency_floor`.
    Floor,
    /// The cap of a slot.
    Slot {
        /// The slot.
        name: String,
        /// Its cap in tokens.
        cap: usize,
    },
}

/// Why the prompt was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("the prompt cannot fit: {deficit} tokens too many; {}", describe(.parts, .limit, .switched_off.as_deref()))]
pub struct PackRefusal {
    /// Tokens over the limit.
    pub deficit: usize,
    /// The limit.
    #[serde(default)]
    pub limit: RefusalLimit,
    /// The largest contributors and their tokens, largest first.
    pub parts: Vec<(String, usize)>,
    /// The setting by which condensing is switched off, where it could have made the prompt smaller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switched_off: Option<String>,
}

fn describe(parts: &[(String, usize)], limit: &RefusalLimit, switched_off: Option<&str>) -> String {
    let raise = match limit {
        RefusalLimit::Total => "Raise token_budget.total".to_owned(),
        RefusalLimit::Window => "Use a model with a larger window".to_owned(),
        RefusalLimit::Override => "Raise policy.prompt_budget_override".to_owned(),
        RefusalLimit::Floor => "Lower policy.emergency_floor, or raise token_budget.total".to_owned(),
        RefusalLimit::Slot { name, cap } => format!("Slot {name} holds at most {cap}: raise its cap"),
    };
    let raise = match switched_off {
        Some(key) => format!("Condensing is switched off: set {key} = true. Or: {raise}"),
        None => raise,
    };
    let list: Vec<String> = parts.iter().map(|(id, tokens)| format!("{id} needs {tokens}")).collect();
    if list.is_empty() {
        return format!("the budget does not even hold the framing. {raise}");
    }
    format!("{}. {raise}, or shorten these parts", list.join(", "))
}

/// Where in a growing conversation the prefix last moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Epoch {
    /// How many times a watermark has been crossed so far.
    pub number: usize,
    /// The number of messages in the conversation when it was last crossed.
    pub at_message: usize,
    /// The first message, from 0, that changed at that point.
    #[serde(default)]
    pub from_message: usize,
    /// Whether the newest message crossed it: only then is this prompt not an extension of the previous one.
    pub moved_prefix: bool,
}

/// The record of a pack, stored with the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// The arithmetic.
    pub budget: BudgetLedger,
    /// Tokens of the whole prompt; the same as `budget.used`.
    pub total: usize,
    /// Tokens of the prompt if everything were whole.
    #[serde(default)]
    pub whole: usize,
    /// Whether `whole` is an estimate: a part that exceeds the whole budget is sampled, not counted to the end.
    #[serde(default)]
    pub whole_is_estimate: bool,
    /// Set if nothing may be sent.
    pub refused: Option<PackRefusal>,
    /// All parts, in prompt order.
    pub parts: Vec<PartReceipt>,
    /// The epoch of slots of messages.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub epoch: Option<Epoch>,
}

impl Receipt {
    /// The parts without those that a summary represents, which is a part of its own: what sums of tokens are taken over.
    pub fn own_parts(&self) -> impl Iterator<Item = &PartReceipt> {
        self.parts.iter().filter(|part| part.reason != PartReason::Summarized)
    }
}

/// A finished prompt.
#[derive(Debug, Clone)]
pub struct Pack {
    /// The messages for the model.
    pub messages: Vec<Message>,
    /// The layer that it is for, one of five; `None` if no recipe chose one (R0-6.8).
    pub layer: Option<Layer>,
    /// The decisions and their reasons.
    pub receipt: Receipt,
    /// What must be in the blob store before the request is sent.
    pub originals: Vec<PackOriginal>,
    /// The number of leading messages that are the same for every call of this recipe version, for provider caches.
    pub stable_messages: usize,
}

/// Original content that a pack's pointers refer to.
#[derive(Debug, Clone)]
pub struct PackOriginal {
    /// The content; the pointer was minted from its hash.
    pub text: OriginalText,
    /// A one-word kind: `part`, `document`, `left_out`.
    pub kind: &'static str,
    /// A one-line description for people and models.
    pub display: String,
}

/// A text that a pack's pointers refer to.
#[derive(Debug, Clone)]
pub enum OriginalText {
    /// Supplied with the request.
    Given(Arc<str>),
    /// Assembled by the pack from everything that a slot drops: it may be large, and is never copied.
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
