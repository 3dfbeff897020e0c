//! A conversation as the policy sees it in every wire format: its items, and what is sent in addition to them.

use crate::pack::ConversationItem;

/// Tokens that are sent in any case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FixedTokens {
    /// Instructions that are not an item of the conversation.
    pub system: usize,
    /// The definitions of the client's tools.
    pub tools: usize,
    /// Priming of the answer, its schema, and everything else that is not an item.
    pub framing: usize,
    /// The definition of our tool in this wire format, whether it is offered or not.
    pub rehydrate_tool: usize,
}

/// A request that is about to be sent.
#[derive(Debug, Clone, Copy)]
pub struct Conversation<'a> {
    /// What is sent in any case.
    pub fixed: FixedTokens,
    /// The history, the oldest first.
    pub items: &'a [ConversationItem<'a>],
    /// The most tokens that the request allows its answer, if it sets a limit.
    pub max_output: Option<usize>,
    /// Our tool can be offered. Where it cannot, the model could not open a pointer, so nothing is replaced.
    pub can_offer: bool,
}
