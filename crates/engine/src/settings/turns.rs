//! How much a turn may do. Knows no phase.

use std::time::Duration;

use larder_models::price::Usd;

/// How much a turn may do. The counters of revisions and retries are the turn's and never start anew (C68).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnLimits {
    /// Rounds of one coordinator loop: 10 (R1-3.44).
    pub iterations: u32,
    /// Calls of tools in one coordinator loop: 20 (R1-3.45).
    pub tool_calls: u32,
    /// Times the answer is written again: 2 (R1-3.75).
    pub revisions: u32,
    /// Times it is planned again: 1 (R1-3.76).
    pub retries: u32,
    /// Tokens in and out, of all models and tools. Once they are spent, nothing more is called.
    pub tokens: Option<u64>,
    /// Price of all of them in US dollars.
    pub cost: Option<Usd>,
    /// Time from the query on; what is under way then is given up.
    pub time: Option<Duration>,
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self {
            iterations: 10,
            tool_calls: 20,
            revisions: 2,
            retries: 1,
            tokens: None,
            cost: None,
            time: None,
        }
    }
}
