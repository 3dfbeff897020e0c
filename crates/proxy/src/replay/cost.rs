//! The figures of replays, and the limit of harm that a policy must stay within. Knows no run.

use std::ops::AddAssign;

/// The least share of needs that must be in view.
const LEAST_IN_VIEW: f64 = 0.995;
/// The largest share of turns that may read something back.
const MOST_READING_BACK: f64 = 0.003;

/// What a policy costs agents, summed over runs. Costs are in uncached tokens of input.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NetCost {
    /// Runs that were replayed.
    pub runs: usize,
    /// Turns of the model.
    pub turns: usize,
    /// Turns whose request the policy refused; they are in no other figure.
    pub refused: usize,
    /// Texts that the turns took from earlier tool results.
    pub needs: usize,
    /// Of these, those that were in the request as sent, or had been read back.
    pub in_view: usize,
    /// Turns that had to read something back.
    pub turns_reading_back: usize,
    /// The cost of sending everything.
    pub raw: f64,
    /// The cost under the policy, readings back included.
    pub cost: f64,
    /// What offering Larder's tool costs in addition.
    pub tool: f64,
    /// Bytes of requests that the next one repeated from the start, and bytes of all of them.
    pub prefix: (usize, usize),
    /// The needs that were not in view.
    pub unseen: Vec<UnseenNeed>,
}

/// A need that was not in view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnseenNeed {
    /// The number of messages before the one that needs it.
    pub message: usize,
    /// The text.
    pub text: String,
    /// The tool whose result contains it.
    pub tool: String,
}

impl NetCost {
    /// The cost as a share of sending everything, without the definition of Larder's tool.
    pub fn share(&self) -> f64 {
        ratio(self.cost, self.raw)
    }

    /// The cost as a share of sending everything, with the definition of Larder's tool.
    pub fn share_with_tool(&self) -> f64 {
        ratio(self.cost + self.tool, self.raw)
    }

    /// The share of needs that were in view.
    pub fn needs_in_view(&self) -> f64 {
        ratio(self.in_view as f64, self.needs as f64)
    }

    /// The share of turns that read something back.
    pub fn reading_back(&self) -> f64 {
        if self.turns == 0 { 0.0 } else { self.turns_reading_back as f64 / self.turns as f64 }
    }

    /// The share of the bytes of requests that the next one repeated from the start.
    pub fn prefix_kept(&self) -> f64 {
        ratio(self.prefix.0 as f64, self.prefix.1 as f64)
    }

    /// Whether the policy stays within the limit of harm: what agents need is in view, and hardly a turn reads back.
    pub fn is_harmless(&self) -> bool {
        self.needs_in_view() >= LEAST_IN_VIEW && self.reading_back() <= MOST_READING_BACK
    }
}

/// A share; 1 of nothing.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 1.0 } else { part / whole }
}

impl AddAssign<&Self> for NetCost {
    fn add_assign(&mut self, other: &Self) {
        self.runs += other.runs;
        self.turns += other.turns;
        self.refused += other.refused;
        self.needs += other.needs;
        self.in_view += other.in_view;
        self.turns_reading_back += other.turns_reading_back;
        self.raw += other.raw;
        self.cost += other.cost;
        self.tool += other.tool;
        self.prefix = (self.prefix.0 + other.prefix.0, self.prefix.1 + other.prefix.1);
        self.unseen.extend_from_slice(&other.unseen);
    }
}
