//! A conversation in any wire format as the policy sees it: its items, and everything sent in addition to them.

use crate::pack::ConversationItem;

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

/// A request about to be sent.
#[derive(Debug, Clone, Copy)]
pub struct Conversation<'a> {
    /// What is sent in any case.
    pub fixed: FixedTokens,
    /// The history, oldest first.
    pub items: &'a [ConversationItem<'a>],
    /// The request's limit on reply tokens, if it sets one.
    pub max_output: Option<usize>,
    /// Whether Larder's tool can be offered. If not, the model could not open pointers, so nothing is replaced.
    pub can_offer: bool,
}
