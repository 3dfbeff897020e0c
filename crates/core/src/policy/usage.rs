//! A ledger of request usage: pure, bounded, and kept per session by the server.

use std::collections::VecDeque;

use serde::Serialize;

/// The number of turns listed individually; older ones are included in the sums only.
const MOST_TURNS: usize = 256;

/// The usage of one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RequestUsage {
    /// The request's id.
    pub turn_id: String,
    /// Tokens of its prompt.
    pub prompt_tokens: usize,
    /// Tokens reserved for its reply.
    pub response_tokens_reserved: usize,
}

/// The usage of a session so far. Sums saturate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SessionUsage {
    /// The most recent turns, oldest first.
    pub turns: VecDeque<RequestUsage>,
    /// The total number of requests.
    pub requests: usize,
    /// Tokens of all prompts.
    pub prompt_tokens: usize,
    /// Requests sent over budget (`context_budget_violation`, R3-2.2).
    pub violations: usize,
}

impl SessionUsage {
    pub(super) fn record(&mut self, turn_id: &str, prompt_tokens: usize, reserved: usize, over: bool) {
        if self.turns.len() == MOST_TURNS {
            self.turns.pop_front();
        }
        let turn_id = turn_id.to_owned();
        self.turns.push_back(RequestUsage { turn_id, prompt_tokens, response_tokens_reserved: reserved });
        self.requests = self.requests.saturating_add(1);
        self.prompt_tokens = self.prompt_tokens.saturating_add(prompt_tokens);
        self.violations = self.violations.saturating_add(usize::from(over));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{ContextBudgetPolicy, ModelProfile, PolicySettings};

    #[test]
    fn usage_is_summed_its_newest_turns_are_kept_and_what_went_over_the_budget_is_counted() {
        let model = ModelProfile { window: 1_000, input_limit: None, max_output: None, cache: None };
        let policy = ContextBudgetPolicy::from_settings(&PolicySettings::default(), &model);
        let mut usage = SessionUsage::default();
        let budget = policy.prompt_budget(Some(100));
        assert_eq!(budget, 850, "next to the reply and the floor");
        policy.record_usage(&mut usage, "turn 0", budget, 100);
        assert_eq!((usage.requests, usage.prompt_tokens, usage.violations), (1, 850, 0), "just the budget");
        policy.record_usage(&mut usage, "turn 1", budget, 101);
        let turn =
            RequestUsage { turn_id: "turn 1".into(), prompt_tokens: 850, response_tokens_reserved: 101 };
        assert_eq!((usage.turns.back(), usage.violations), (Some(&turn), 1));
        let dry = PolicySettings { dry_run: true, ..PolicySettings::default() };
        let dry = ContextBudgetPolicy::from_settings(&dry, &model);
        let mut unenforced = SessionUsage::default();
        dry.record_usage(&mut unenforced, "turn 0", 2_000, 100);
        assert_eq!(unenforced.violations, 0, "a dry run enforces nothing");
        for number in 2..=MOST_TURNS {
            policy.record_usage(&mut usage, &format!("turn {number}"), 1, 0);
        }
        assert_eq!((usage.turns.len(), usage.turns[0].turn_id.as_str()), (MOST_TURNS, "turn 1"));
        assert_eq!(usage.requests, MOST_TURNS + 1, "the sums forget none");
        policy.record_usage(&mut usage, "absurd", usize::MAX, usize::MAX);
        assert_eq!((usage.prompt_tokens, usage.violations), (usize::MAX, 2));
    }
}
