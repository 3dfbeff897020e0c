//! The inputs of a pack, the machine's results, and malformed requests as opposed to packing problems.

use std::sync::Arc;

use super::part::Part;
use super::receipt::{Pack, Receipt};
use super::slot::{CallBudget, Slot};
use larder_condense::ContentType;
use larder_text::Layer;
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

/// All inputs of a pack, which is a pure function of them.
#[derive(Debug, Clone)]
pub struct PackRequest {
    /// Slots in the order of the prompt.
    pub slots: Vec<Slot>,
    /// Parts in order within their slots.
    pub parts: Vec<Part>,
    /// The token limits.
    pub budget: CallBudget,
    /// Tokens in addition to the texts.
    pub framing: CallFraming,
    /// The question that condensing should favour.
    pub query: Option<String>,
    /// Whether a model should write condensed renditions where possible.
    pub by_model: bool,
    /// Tokens of prompt and input above which they are reduced although they fit, as far as that is possible (R0-25.3).
    pub trigger: Option<usize>,
    /// The layer that the prompt is for; `None` if no recipe chose one (R0-6.8).
    pub layer: Option<Layer>,
}

/// A condensed rendition requested from a model.
#[derive(Debug, Clone)]
pub struct RenditionRequest {
    /// To be passed back to [`Packing::supply`](super::Packing::supply).
    pub key: (usize, usize),
    /// The part's id.
    pub id: Arc<str>,
    /// The part's text.
    pub text: Arc<str>,
    /// The type of the text.
    pub content_type: ContentType,
    /// Maximum tokens of the rendition.
    pub target: usize,
    /// Spans that must survive.
    pub pins: Vec<String>,
}

/// The result of a planning step.
#[derive(Debug)]
pub enum PackStep {
    /// Renditions are needed; supply each, or `None` if it failed.
    Need(Vec<RenditionRequest>),
    /// The prompt fits.
    Done(Box<Pack>),
    /// The prompt cannot fit; the receipt shows what was tried.
    Refused(Box<Receipt>),
}

/// A malformed request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackError {
    /// A part names a slot that does not exist.
    #[error("part {part}: there is no slot {slot:?}; the slots are {known}")]
    UnknownSlot {
        /// The part's id.
        part: Arc<str>,
        /// The slot's name.
        slot: Arc<str>,
        /// The existing slots.
        known: String,
    },
    /// Two parts share an id.
    #[error("two parts are called {0:?}; ids must be unique, since citations and receipts use them")]
    DuplicateId(Arc<str>),
}
