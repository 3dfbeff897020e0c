//! What a pack is a pure function of, what the machine says, and what is a mistake rather than a packing problem.

use std::sync::Arc;

use super::part::Part;
use super::receipt::{Pack, Receipt};
use super::slot::{CallBudget, Slot};
use larder_condense::ContentType;
use larder_text::message::{Message, Role, ToolDef};
use larder_text::tokens::Counter;

/// Tokens that a provider's chat format adds to the texts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallFraming {
    /// Per message, its role included.
    pub per_message: usize,
    /// Per call: priming, tool schemas, response schema.
    pub per_call: usize,
}

impl CallFraming {
    /// The framing that the counter's family of providers adds to a call with these tools and this schema.
    pub fn for_call(counter: &Counter, tools: &[ToolDef], schema: Option<&serde_json::Value>) -> Self {
        Self {
            per_message: counter.count_message(&Message::text(Role::Assistant, "")),
            per_call: counter.count_messages(&[], tools, schema),
        }
    }
}

/// Everything a pack is a pure function of.
#[derive(Debug, Clone)]
pub struct PackRequest {
    /// Slots in the order of the prompt.
    pub slots: Vec<Slot>,
    /// Parts in order within their slots.
    pub parts: Vec<Part>,
    /// Limits.
    pub budget: CallBudget,
    /// Tokens in addition to the texts.
    pub framing: CallFraming,
    /// The question in view, for condensing.
    pub query: Option<String>,
    /// Whether condensed renditions should be made by a model where one is offered.
    pub by_model: bool,
}

/// A condensed rendition that a model should make.
#[derive(Debug, Clone)]
pub struct RenditionRequest {
    /// Hand back to [`Packing::supply`](super::Packing::supply).
    pub key: (usize, usize),
    /// The part.
    pub id: Arc<str>,
    /// Its text.
    pub text: Arc<str>,
    /// What it is.
    pub content_type: ContentType,
    /// Tokens the rendition may have.
    pub target: usize,
    /// Spans that must survive.
    pub pins: Vec<String>,
}

/// What the machine says after planning.
#[derive(Debug)]
pub enum PackStep {
    /// Renditions are wanted; supply each, or `None` where it failed.
    Need(Vec<RenditionRequest>),
    /// The prompt fits.
    Done(Box<Pack>),
    /// The prompt cannot fit; the receipt says what was tried.
    Refused(Box<Receipt>),
}

/// A malformed request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackError {
    /// A part names a slot that is not there.
    #[error("part {part}: there is no slot {slot:?}; the slots are {known}")]
    UnknownSlot {
        /// The part.
        part: Arc<str>,
        /// The slot it names.
        slot: Arc<str>,
        /// The slots there are.
        known: String,
    },
    /// Two parts have one id.
    #[error("two parts are called {0:?}; ids must be unique, since citations and receipts use them")]
    DuplicateId(Arc<str>),
}
