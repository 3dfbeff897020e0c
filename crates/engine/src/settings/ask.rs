//! The settings of `larder ask`. Knows no file and no model.

use super::spec::{SettingValue, settings};

/// What plans an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planner {
    /// A model if one that is able to is bound to layer MIND, otherwise rules.
    Auto,
    /// Rules.
    Rules,
    /// The model of layer MIND.
    Model,
}

impl SettingValue for Planner {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "auto" => Some(Self::Auto),
            "rules" => Some(Self::Rules),
            "model" => Some(Self::Model),
            _ => None,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Auto => "auto",
            Self::Rules => "rules",
            Self::Model => "model",
        }
        .to_owned()
    }
}

/// What an answer consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerMode {
    /// Quoted sentences if the embedded model would answer, otherwise generated text.
    Auto,
    /// Sentences of the passages, without a model.
    Quote,
    /// Text by the model of the recipe's layer.
    Generate,
}

impl SettingValue for AnswerMode {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "auto" => Some(Self::Auto),
            "quote" => Some(Self::Quote),
            "generate" => Some(Self::Generate),
            _ => None,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Auto => "auto",
            Self::Quote => "quote",
            Self::Generate => "generate",
        }
        .to_owned()
    }
}

settings! {
    /// How questions are answered.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct AskSettings {
        /// What answers of `larder ask` consist of: `quote` (sentences of the files), `generate` (text by a model) or
        /// `auto` (`quote` with the embedded model, otherwise `generate`).
        #[env("LARDER_ASK_ANSWER")]
        pub answer: AnswerMode = "ask.answer", AnswerMode::Auto;
        /// What decides which passages `larder ask` reads: `rules`, `model` (of layer MIND) or `auto` (the model if it is
        /// able to plan, otherwise rules).
        #[env("LARDER_ASK_PLANNER")]
        pub planner: Planner = "ask.planner", Planner::Auto;
    }
    with {
        /// Limits for one question.
        pub limits: AskLimits,
    }
}

settings! {
    /// The most that answering one question may use.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct AskLimits {
        /// Maximum nesting of sub-questions in `larder ask`; 0 disables them.
        #[env("LARDER_ASK_MAX_DEPTH")]
        pub depth: usize = "ask.max_depth", 1;
        /// Maximum recipe calls for one question, including the answer. Repairs within a call are limited by the recipe.
        #[env("LARDER_ASK_MAX_CALLS")]
        pub calls: usize = "ask.max_calls", 10;
        /// Maximum tokens of these calls, prompts and replies together.
        #[env("LARDER_ASK_MAX_TOKENS")]
        pub tokens: u64 = "ask.max_tokens", 60_000;
    }
}
