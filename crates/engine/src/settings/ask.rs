//! How questions over files are planned and answered, and how far that may go. Knows no file and no model.

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

/// What an answer is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerMode {
    /// Quoted sentences where the embedded model would answer, otherwise the words of the model.
    Auto,
    /// Sentences of the passages, without a model.
    Quote,
    /// The words of the model of the recipe's layer.
    Generate,
}

impl AnswerMode {
    /// The mode of this name: `auto`, `quote` or `generate`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "auto" => Some(Self::Auto),
            "quote" => Some(Self::Quote),
            "generate" => Some(Self::Generate),
            _ => None,
        }
    }
}

/// How questions are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskSettings {
    /// What the answer is made of.
    pub answer: AnswerMode,
    /// Who decides what is read.
    pub planner: Planner,
    /// How far it may go.
    pub limits: AskLimits,
}
