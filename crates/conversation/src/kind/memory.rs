//! What is remembered, and what a message may say about memory itself.

use schemars::JsonSchema;
use serde::Deserialize;

use super::window::Depth;

/// What is remembered (R4-4.2 to R4-4.12, R4-6.12 to R4-6.14).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryRules {
    /// What a fact may be about; the last is for what fits nowhere else.
    #[schemars(length(min = 1))]
    pub categories: Vec<Category>,
    /// The recipe that updates the facts of a session after a reply.
    pub facts: String,
    /// Messages before the new ones that are read again for facts, for what the new ones refer to.
    #[serde(default = "four")]
    #[schemars(range(max = 100))]
    pub facts_again: usize,
    /// The recipe that merges facts beyond `per_profile` (C100).
    pub consolidate: String,
    /// The recipe that puts what a participant asked to remember into one sentence (R4-7.18).
    #[serde(default)]
    pub formatter: Option<String>,
    /// The recipe that judges whether it may be remembered (R4-7.19, C99).
    #[serde(default)]
    pub validator: Option<String>,
    /// The recipe that finds the people a message names (R4-7.20).
    #[serde(default)]
    pub people: Option<String>,
    /// The most facts of a session.
    #[schemars(range(min = 1, max = 1_000))]
    pub per_session: usize,
    /// The most facts of a profile.
    #[schemars(range(min = 1, max = 1_000))]
    pub per_profile: usize,
    /// The most tokens of a profile's facts together (N31).
    #[schemars(range(min = 1))]
    pub profile_tokens: usize,
    /// Facts that are shown (C102).
    #[schemars(range(max = 100))]
    pub shown_facts: usize,
    /// Preferences that are shown.
    #[schemars(range(max = 100))]
    pub shown_preferences: usize,
    /// Private reflections that are shown.
    #[schemars(range(max = 100))]
    pub shown_reflections: usize,
}

const fn four() -> usize {
    4
}

/// What a fact may be about.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Category {
    /// One word.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-]{1,100}$"))]
    pub name: String,
    /// What belongs to it, for the model that writes the facts.
    #[schemars(length(min = 1))]
    pub about: String,
    /// After so many days such a fact is no longer used. Without a number it stays until it is deleted.
    #[serde(default)]
    #[schemars(range(min = 1, max = 36_500))]
    pub keep_days: Option<u32>,
}

/// What a message may say about memory itself: found by these phrases before anything else (R4-3.5 to R4-3.8, R4-7.1).
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IntentRules {
    /// The past shall not be brought up: nothing of it is sent (R4-3.5).
    pub avoid_recall: Intent,
    /// The participant asks to stay with, or to leave, the stage: little of the past is sent (R4-3.6).
    pub stage_enforcement: Intent,
    /// The participant is in great distress (R4-4.24).
    pub high_distress: Intent,
    /// The participant refers to what was agreed (R4-4.25).
    pub commitment_reference: Intent,
    /// The participant refers to something in the past (R4-4.13, R4-9.8).
    pub past_reference: Intent,
    /// The participant asks about the process or the stages (R4-2.9).
    pub process_question: Intent,
    /// The participant asks to remember or to forget something (R4-2.7).
    pub memory_request: Intent,
}

/// Phrases, any of which tells, and what changes where one does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Intent {
    /// In any case. ` … ` stands for up to five words of the message; a phrase in which one of the words `not_after`
    /// comes right before it does not count.
    pub phrases: Vec<String>,
    /// Words right before a phrase with which it says the opposite, such as `never` or `if`.
    pub not_after: Vec<String>,
    /// For `avoid_recall` and `stage_enforcement`: the newest messages that are sent then. Without a number, none and
    /// `window.without_summary`.
    pub messages: Option<usize>,
    /// For `high_distress` and `commitment_reference`: how far retrieval goes then, in place of the stage's depth.
    pub depth: Option<Depth>,
    /// For the same: whether other sessions are searched then, where there is consent.
    pub across_sessions: Option<bool>,
    /// For these four: the intensity that such a message has at least.
    #[schemars(range(min = 1, max = 10))]
    pub intensity: Option<u8>,
}
