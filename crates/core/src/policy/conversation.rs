//! A conversation in any wire format as the policy sees it: its items, and everything sent in addition to them.

use crate::pack::ConversationItem;
use larder_text::price::CacheWrites;

/// Tokens that are sent in any case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FixedTokens {
    /// Instructions that are not an item of the conversation.
    pub system: usize,
    /// The definitions of the client's tools.
    pub tools: usize,
    /// Priming of the reply, its schema, and anything else that is not an item.
    pub framing: usize,
    /// The definition of Larder's tool in this wire format, whether or not it is offered.
    pub rehydrate_tool: usize,
}

/// Who opens the pointers of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointerReader {
    /// The model, with Larder's tool, which is offered as soon as there is a pointer.
    Larder,
    /// The model, with a tool that the client offers and answers.
    Client,
    /// Nobody while the request is answered: originals can only be read from Larder afterwards. Something is hidden only
    /// where the request would not fit otherwise.
    Nobody,
}

/// A request about to be sent.
#[derive(Debug, Clone, Copy)]
pub struct Conversation<'a> {
    /// What is sent in any case.
    pub fixed: FixedTokens,
    /// The history, oldest first.
    pub items: &'a [ConversationItem<'a>],
    /// The request's limit on reply tokens, if it sets one.
    pub max_output: Option<usize>,
    /// Who opens its pointers.
    pub reader: PointerReader,
    /// Whether its history needs Larder's tool already: it has been called, or stands by a pointer that the provider holds.
    pub needs_tool: bool,
    /// Whether a result may be shortened by referring to text above it. Not where the provider holds or edits part of
    /// the history: that text may be gone when the model reads the reference.
    pub refers_above: bool,
    /// What the request has the provider write to its cache: a lifetime has a price of its own.
    pub writes: CacheWrites,
}
