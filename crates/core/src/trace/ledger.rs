//! What the messages of a trace cost, kept up as they arrive (R3-4.30).

use serde::Serialize;

use crate::message::{Message, Role};

/// Tokens of a trace, message by message and by role. Sums saturate: a full ledger stays full.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Ledger {
    messages: Vec<(Role, usize)>,
    /// Of instructions.
    pub system: usize,
    /// Of what the person said.
    pub user: usize,
    /// Of what the model said and called.
    pub assistant: usize,
    /// Of tool results.
    pub tool: usize,
}

impl Ledger {
    /// The ledger of `messages`; `tokens` tells what one message costs, framing included.
    pub fn of(messages: &[Message], mut tokens: impl FnMut(&Message) -> usize) -> Self {
        let mut ledger = Self::default();
        for message in messages {
            ledger.push(message.role, tokens(message));
        }
        ledger
    }

    /// Adds the next message.
    pub fn push(&mut self, role: Role, tokens: usize) {
        self.messages.push((role, tokens));
        let sum = match role {
            Role::System => &mut self.system,
            Role::User => &mut self.user,
            Role::Assistant => &mut self.assistant,
            Role::Tool => &mut self.tool,
        };
        *sum = sum.saturating_add(tokens);
    }

    /// Tokens of all messages.
    pub fn total(&self) -> usize {
        [self.user, self.assistant, self.tool].into_iter().fold(self.system, usize::saturating_add)
    }

    /// Tokens of the messages in `range`, as far as there are any.
    pub fn of_range(&self, range: std::ops::Range<usize>) -> usize {
        let inside = self.messages.iter().take(range.end).skip(range.start);
        inside.fold(0, |sum, (_, tokens)| sum.saturating_add(*tokens))
    }

    /// The running total after each message.
    pub fn running(&self) -> impl Iterator<Item = usize> {
        self.messages.iter().scan(0_usize, |sum, (_, tokens)| {
            *sum = sum.saturating_add(*tokens);
            Some(*sum)
        })
    }
}
