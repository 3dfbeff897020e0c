//! What is sent of a conversation, and what is looked for in its past.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

/// What is sent of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowRules {
    /// The newest messages, which are never dropped (R4-3.13).
    #[schemars(range(min = 2, max = 1_000))]
    pub protected: usize,
    /// The most messages that are sent verbatim although a summary covers them (R4-3.11).
    #[schemars(range(min = 2, max = 10_000))]
    pub with_summary: usize,
    /// The most messages that are sent where a memory intent withholds the summary (R4-3.11, R4-5.5). Where none does,
    /// everything that no summary covers is sent.
    #[schemars(range(min = 2, max = 10_000))]
    pub without_summary: usize,
    /// Characters of a message in the history; of a longer one its beginning is sent, and a pointer to the rest
    /// (R4-5.6, C105).
    #[schemars(range(min = 100, max = 1_000_000))]
    pub message_chars: usize,
    /// Messages of the person's other conversations that may be retrieved, with a consent (R4-5.7).
    pub from_other_sessions: Limit,
    /// Older messages of this session that may be retrieved (R4-5.8).
    pub from_this_session: Limit,
    /// Messages of earlier sessions of this conversation that may be retrieved, with a consent (R4-5.9).
    pub from_before: Limit,
}

/// A limit on what is retrieved: so many messages, or `{tokens: N}` for messages of so many tokens together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Limit {
    /// So many messages.
    Messages(usize),
    /// Messages of so many tokens together.
    Tokens {
        /// The tokens.
        tokens: usize,
    },
}

/// What changes for models with a small window.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SmallWindow {
    /// The window in tokens below which this holds.
    #[schemars(range(min = 1_024))]
    pub below: usize,
    /// The recipe of the replies, with the same variants and the same tags.
    pub recipe: String,
    /// The most tokens of a stage's system prompt.
    #[schemars(range(min = 1))]
    pub system_tokens: usize,
    /// The newest messages, which are never dropped.
    #[schemars(range(min = 2, max = 1_000))]
    pub protected: usize,
    /// Whether the fields of these replies count: whether they move the participant to another stage, and tell the
    /// intensity. Otherwise they are only kept, and what moves on is what the participant does, and turns.
    #[serde(default = "trusts_fields")]
    pub trusts_fields: bool,
}

const fn trusts_fields() -> bool {
    true
}

/// What is looked for in the past, and how similar it must be (R4-4.18 to R4-4.25).
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetrievalRules {
    /// How far retrieval goes.
    pub depth: Depth,
    /// How far it goes later in the stage.
    pub later: Option<Deepening>,
    /// The cosine from which a text is related, by the id of the embedding model. With a model that is not listed, texts
    /// are found by their words alone.
    pub thresholds: BTreeMap<String, f64>,
    /// Whether other sessions are searched, where there is consent.
    pub across_sessions: bool,
    /// What is added to the score of texts from a linked session, as a share of it (R4-4.18).
    #[schemars(range(min = 0.0, max = 10.0))]
    pub linked_boost: f64,
}

impl RetrievalRules {
    /// How far retrieval goes in the turn with this number, counted from 1 within the stage.
    pub fn depth_in(&self, turn: u64) -> Depth {
        match self.later {
            Some(later) if turn > later.after_turns => later.depth,
            _ => self.depth,
        }
    }
}

/// A depth from some turn on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Deepening {
    /// How far retrieval goes then.
    pub depth: Depth,
    /// After so many turns in the stage.
    #[schemars(range(min = 1, max = 1_000))]
    pub after_turns: u64,
}

/// How far retrieval goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Depth {
    /// Nothing is looked for.
    None,
    /// Facts, by their words.
    #[default]
    Minimal,
    /// Facts, and messages of this session and, with a consent, of others, by words and vectors.
    Light,
    /// The same, and what a planning call asks for.
    Full,
}

/// When older messages are summarized, and how (R4-3.16 to R4-3.29).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SummaryRules {
    /// The recipe that writes the summary.
    pub recipe: String,
    /// Messages after which there is a first summary.
    #[schemars(range(min = 2, max = 10_000))]
    pub after_messages: usize,
    /// Tokens of messages outside the kept tail after which there is one, too (C94).
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub after_tokens: Option<usize>,
    /// New messages after which it is written again.
    #[schemars(range(min = 1, max = 10_000))]
    pub again_after: usize,
    /// The newest messages, which no summary covers.
    #[schemars(range(min = 1, max = 10_000))]
    pub keep: usize,
    /// Words of the summary.
    #[schemars(range(min = 50, max = 5_000))]
    pub words: usize,
}
