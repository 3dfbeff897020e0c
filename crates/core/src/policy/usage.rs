//! A ledger of what requests used: pure, bounded, kept by whoever serves a session.

use std::collections::VecDeque;

use serde::Serialize;

/// Turns that are kept one by one; older ones stand in the sums only.
const MOST_TURNS: usize = 256;

/// What one request used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Turn {
    /// Its id.
    pub turn_id: String,
    /// Tokens of its prompt.
    pub prompt_tokens: usize,
    /// Tokens that were kept for its answer.
    pub response_tokens_reserved: usize,
}

/// What the requests of a session used so far. Sums saturate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// The newest turns, the oldest first.
    pub turns: VecDeque<Turn>,
    /// Requests in all.
    pub requests: usize,
    /// Tokens of all prompts.
    pub prompt_tokens: usize,
    /// Requests that were sent over their window (`context_budget_violation`, R3-2.2).
    pub violations: usize,
}

impl Usage {
    pub(super) fn record(&mut self, turn_id: &str, prompt_tokens: usize, reserved: usize, over: bool) {
        if self.turns.len() == MOST_TURNS {
            self.turns.pop_front();
        }
        let turn_id = turn_id.to_owned();
        self.turns.push_back(Turn { turn_id, prompt_tokens, response_tokens_reserved: reserved });
        self.requests = self.requests.saturating_add(1);
        self.prompt_tokens = self.prompt_tokens.saturating_add(prompt_tokens);
        self.violations = self.violations.saturating_add(usize::from(over));
    }
}
