//! How a question over files is planned, and how far answering it may go. Knows no file and no model.

/// How far answering one question may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskLimits {
    /// How deep sub-questions may nest; 0 allows none.
    pub depth: usize,
    /// Calls of recipes, the answer included. What a recipe repairs or repeats is bound by its gates.
    pub calls: usize,
    /// Tokens of all calls, prompts and replies.
    pub tokens: u64,
}

impl AskLimits {
    /// Unless somebody says otherwise.
    pub const DEFAULT: Self = Self { depth: 1, calls: 10, tokens: 60_000 };
}

/// Who decides what is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planner {
    /// A model where the layer MIND has one that is able to, otherwise rules.
    Auto,
    /// Rules.
    Rules,
    /// The model of layer MIND.
    Model,
}

impl Planner {
    /// The planner of this name: `auto`, `rules` or `model`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "auto" => Some(Self::Auto),
            "rules" => Some(Self::Rules),
            "model" => Some(Self::Model),
            _ => None,
        }
    }
}
