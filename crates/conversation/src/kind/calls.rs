//! The calls of a turn, and what participants, replies and acts of sharing can start.

use schemars::JsonSchema;
use serde::Deserialize;

/// The calls of a turn (R4-7.1 to R4-7.8): which come before the reply, which behind it, and what guards them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallPlan {
    /// Finding memory intents, by rules.
    pub intents: Call,
    /// Reading the session and what is retrieved, with one vector at most.
    pub context: Call,
    /// Detecting references to the past.
    pub references: Call,
    /// Planning what to retrieve.
    pub planning: Call,
    /// The reply.
    pub reply: Call,
    /// Updating the facts of the session, by the recipe `memory.facts`.
    pub facts: Call,
    /// Updating the summary, by the recipe `summary.recipe`, where the rules of `summary` say that it is due.
    pub summary: Call,
    /// The vectors that are missing: of messages, of facts, and of the facts and summary of each session.
    pub embedding: Call,
}

impl CallPlan {
    /// Every call by its key, in the order in which they happen.
    pub const fn all(&self) -> [(&'static str, &Call); 8] {
        [
            ("intents", &self.intents),
            ("context", &self.context),
            ("references", &self.references),
            ("planning", &self.planning),
            ("reply", &self.reply),
            ("facts", &self.facts),
            ("summary", &self.summary),
            ("embedding", &self.embedding),
        ]
    }
}

/// One call of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Whether the reply waits for it.
    pub runs: CallTime,
    /// When references or planning are asked for; without this, in each turn. All must hold.
    #[serde(default)]
    #[schemars(extend("uniqueItems" = true))]
    pub when: Vec<CallWhen>,
    /// The recipe, for calls of a model that no other key names.
    #[serde(default)]
    pub recipe: Option<String>,
    /// Milliseconds after which the turn goes on without it.
    #[serde(default)]
    #[schemars(range(min = 1, max = 600_000))]
    pub timeout_ms: Option<u64>,
    /// What keeps it from being made again and again when it fails.
    #[serde(default)]
    pub breaker: Option<Breaker>,
}

/// Whether the reply waits for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallTime {
    /// Before the reply, which waits for it.
    Before,
    /// It is the reply.
    Reply,
    /// Behind the reply; what it finds serves the next turn.
    Behind,
    /// Never.
    Off,
}

/// When a call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallWhen {
    /// Retrieval goes to full depth.
    FullDepth,
    /// The message refers to the past.
    ReferenceDetected,
    /// Rules and vectors could not decide.
    Undecided,
    /// The stage is an aside.
    Aside,
}

/// After how many failures in a row a call is left out, and for how long (C66).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Breaker {
    /// Failures in a row.
    #[schemars(range(min = 1, max = 100))]
    pub failures: u32,
    /// Seconds until it is tried again.
    #[schemars(range(min = 1, max = 86_400))]
    pub pause_s: u64,
}

/// A call besides those of each turn, such as a guided meditation or the comparison of two statements.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// What it does, for participants.
    #[schemars(length(min = 1))]
    pub about: String,
    /// The recipe.
    pub recipe: String,
    /// What starts it.
    #[schemars(length(min = 1), extend("uniqueItems" = true))]
    pub on: Vec<Trigger>,
    /// The stages in which it can be asked for, named by a reply, shared or released for; without this, all.
    #[serde(default)]
    #[schemars(extend("uniqueItems" = true))]
    pub stages: Vec<String>,
    /// The documents that its recipe gets.
    #[serde(default)]
    #[schemars(extend("uniqueItems" = true))]
    pub reads: Vec<Block>,
    /// What its result is.
    pub gives: Gives,
    /// The field of the result's entries that names the participant whom they are about: a participant gets only the entries
    /// about itself.
    #[serde(default)]
    pub entries_about: Option<String>,
    /// The action that is started with the result, if any. Nothing follows what a reply or an act of sharing starts.
    #[serde(default)]
    pub then: Option<String>,
}

/// What starts an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// The participant asks for it by name.
    Request,
    /// A reply names it in the tag `fields.dispatch`.
    Dispatch,
    /// A text is about to be shared.
    Share,
    /// A message comes before there is a session.
    Start,
    /// Every participant has released a statement for it.
    Released,
    /// Another action leads to it.
    Action,
}

/// What the result of an action is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Gives {
    /// A message of the assistant.
    Reply,
    /// A text that the participant may share.
    Draft,
    /// A judgement that allows or stops what started it.
    Verdict,
    /// Facts or notes for the program that embeds the conversation.
    Data,
}

/// A document of a prompt: the blocks of a reply in the order of R4-6, and what actions read besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// Conditional texts.
    Pieces,
    /// Intensity, trend and turn.
    State,
    /// The rolling summary.
    Summary,
    /// The preferences of the participant.
    Preferences,
    /// Facts of the session and, with consent, of the profile.
    Facts,
    /// The participant's reflections in sessions of its own.
    Reflections,
    /// What was shared, and consents.
    Shared,
    /// What was reached.
    Milestones,
    /// How to use what was retrieved.
    Guidance,
    /// Older messages of this session.
    Earlier,
    /// Content of other sessions.
    Related,
    /// The newest messages of the session, as one text.
    Messages,
    /// The text that is about to be shared.
    Draft,
    /// The statements that participants released for this.
    Released,
    /// The result of the action before.
    Result,
    /// The stages, and which one the participant is in.
    Process,
}

impl Block {
    /// The blocks of a reply, in order.
    pub const OF_REPLY: [Self; 11] = [
        Self::Pieces,
        Self::State,
        Self::Summary,
        Self::Preferences,
        Self::Facts,
        Self::Reflections,
        Self::Shared,
        Self::Milestones,
        Self::Guidance,
        Self::Earlier,
        Self::Related,
    ];

    /// The name of the document.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pieces => "pieces",
            Self::State => "state",
            Self::Summary => "summary",
            Self::Preferences => "preferences",
            Self::Facts => "facts",
            Self::Reflections => "reflections",
            Self::Shared => "shared",
            Self::Milestones => "milestones",
            Self::Guidance => "guidance",
            Self::Earlier => "earlier",
            Self::Related => "related",
            Self::Messages => "messages",
            Self::Draft => "draft",
            Self::Released => "released",
            Self::Result => "result",
            Self::Process => "process",
        }
    }
}
