//! How a participant moves through a conversation: stages, what leads on, and what is noted as reached.

use schemars::JsonSchema;
use serde::Deserialize;

use super::window::RetrievalRules;

/// A state of a participant: its prompt, what is retrieved, and what leads on.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Letters, digits, `_` and `-`; a variant of the recipe.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-]{1,100}$"))]
    pub name: String,
    /// The number that comes before the name where participants are told of the stages; stages with the same number are its
    /// phases.
    #[serde(default)]
    pub number: Option<u8>,
    /// What participants are told of the stage when they ask.
    #[serde(default)]
    pub about: Option<String>,
    /// Whether the stage is reached only by a session of its own, while the participant's stage on the main line stays.
    #[serde(default)]
    pub aside: Aside,
    /// The recipe of the first message, if the assistant speaks first (R4-2.24). If it has variants, one is this stage.
    #[serde(default)]
    pub opening: Option<String>,
    /// The prompt file that is sent in the first turn after the stage has changed to this one (R4-2.12).
    #[serde(default)]
    pub transition: Option<String>,
    /// Turns that are sent verbatim once there is a summary (R4-3.1 to R4-3.4); one turn is two messages.
    #[schemars(range(min = 1, max = 200))]
    pub buffer_turns: usize,
    /// What is looked for in the past.
    #[serde(default)]
    pub retrieval: RetrievalRules,
    /// What differs from the type's rules for summaries.
    #[serde(default)]
    pub summary: Option<SummaryOverride>,
    /// Fields of a reply that count in this stage only, besides those that count everywhere.
    #[serde(default)]
    #[schemars(extend("uniqueItems" = true))]
    pub fields: Vec<String>,
    /// What leads to another stage; the first rule that holds.
    #[serde(default)]
    pub next: Vec<Transition>,
}

/// Whether a stage is on the main line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Aside {
    /// It is on the main line.
    #[default]
    No,
    /// A session of its own, which has nothing to do with another.
    Alone,
    /// A session of its own, linked to the participant's session on the main line.
    Linked,
}

/// What differs from the type's rules for summaries, key by key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SummaryOverride {
    /// The recipe that writes the summary.
    pub recipe: Option<String>,
    /// Messages after which there is a first summary.
    #[schemars(range(min = 2, max = 10_000))]
    pub after_messages: Option<usize>,
    /// Tokens of messages outside the kept tail after which there is one, too.
    #[schemars(range(min = 1))]
    pub after_tokens: Option<usize>,
    /// New messages after which it is written again.
    #[schemars(range(min = 1, max = 10_000))]
    pub again_after: Option<usize>,
    /// The newest messages, which no summary covers.
    #[schemars(range(min = 1, max = 10_000))]
    pub keep: Option<usize>,
    /// Words of the summary.
    #[schemars(range(min = 50, max = 5_000))]
    pub words: Option<usize>,
}

/// A way out of a stage.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transition {
    /// The stage that follows.
    pub to: String,
    /// When.
    pub when: Condition,
}

/// Something reached, which is noted once and sent under `--- Milestones ---` (R4-6.9).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Milestone {
    /// Letters, digits, `_` and `-`.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-]{1,100}$"))]
    pub name: String,
    /// How it is told to the model and to participants.
    #[schemars(length(min = 1))]
    pub text: String,
    /// When.
    pub when: Condition,
}

/// What must hold. All conditions that are given must, and at least one must be given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("minProperties" = 1))]
pub struct Condition {
    /// The participant is in this stage.
    pub stage: Option<String>,
    /// A field of the last replies has a value.
    pub field: Option<FieldIs>,
    /// The intensity of the last reply is at most this.
    #[schemars(range(min = 1, max = 10))]
    pub intensity_at_most: Option<u8>,
    /// The participant has done this explicitly, by its name. `share` is the act of sharing.
    pub action: Option<String>,
    /// At least so many turns in this stage.
    #[schemars(range(min = 1, max = 1_000))]
    pub turns: Option<u64>,
    /// Every other participant is in this stage, or has been in it.
    pub others_at: Option<String>,
}

/// A condition on a field of replies.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FieldIs {
    /// The name of the field.
    pub name: String,
    /// Its value, in any case.
    pub value: String,
    /// In so many replies in a row.
    #[serde(default = "once")]
    #[schemars(range(min = 1, max = 20))]
    pub times: u32,
}

const fn once() -> u32 {
    1
}
