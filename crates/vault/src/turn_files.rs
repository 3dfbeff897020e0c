//! `metadata.json` and `metrics.json`: a turn's description and status, and what it consumed.

use serde::{Deserialize, Serialize};

use super::value::words;
use super::{DocumentTime, Intent, Score};
use larder_text::Mode;

words! {
    /// The status of a turn.
    TurnStatus, "running, complete, clarify, failed or interrupted":
    /// In progress.
    Running = "running",
    /// Answered.
    Complete = "complete",
    /// Ended with a question to the user.
    Clarify = "clarify",
    /// Ended without an answer.
    Failed = "failed",
    /// Stopped early; can be resumed.
    Interrupted = "interrupted",
}

/// `metadata.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnMetadata {
    /// The turn's number, counted per user.
    pub turn_number: u32,
    /// The user's id (C85).
    pub user_id: String,
    /// The conversation's id (C85).
    #[serde(default)]
    pub session_id: Option<String>,
    /// The mode, which selects the recipes.
    pub mode: Mode,
    /// Its status.
    pub status: TurnStatus,
    /// When it started.
    pub created_at: DocumentTime,
    /// When it ended.
    #[serde(default)]
    pub finished_at: Option<DocumentTime>,
    /// The query with its references resolved.
    pub query: String,
    /// A one-sentence summary of the turn, once it has been summarised (C5).
    #[serde(default)]
    pub summary: Option<String>,
    /// A topic such as `commerce.laptop`.
    #[serde(default)]
    pub topic: Option<String>,
    /// The intent of the query.
    #[serde(default)]
    pub intent: Option<Intent>,
    /// The quality of the answer.
    #[serde(default)]
    pub quality: Option<Score>,
    /// Whether the answer was sent without passing validation (C68).
    #[serde(default, skip_serializing_if = "is_false")]
    pub unverified: bool,
    /// Values and names that its answers stated and none of its documents did, those of replaced attempts too: they are no
    /// evidence for later turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invented: Vec<String>,
    /// The last completed phase, 0 to 7: a resumed turn starts with the next one.
    #[serde(default)]
    pub last_phase: Option<u8>,
    /// How many times the answer was rewritten; at most 2.
    #[serde(default)]
    pub revisions: u32,
    /// How many times the turn was replanned; at most 1.
    #[serde(default)]
    pub retries: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// `metrics.json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TurnMetrics {
    /// The turn's number, counted per user.
    pub turn_number: u32,
    /// Milliseconds from the query to the answer.
    pub total_duration_ms: u64,
    /// Prompt and reply tokens of all model calls.
    pub total_tokens: u64,
    /// Cost of all model calls, in millionths of a dollar.
    #[serde(default)]
    pub total_cost_microdollars: u64,
    /// The number of tool calls.
    #[serde(default)]
    pub tool_calls: u64,
    /// The usage of each recipe run, in order.
    #[serde(default)]
    pub runs: Vec<RunMetrics>,
}

/// What the turns of a day, or of a week, took in all (R1-13.8). Names nobody.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DayFigures {
    /// Turns.
    pub turns: u64,
    /// Those that were answered.
    pub complete: u64,
    /// Those that ended with a question to the user.
    pub clarify: u64,
    /// Those without an answer.
    pub failed: u64,
    /// Answers that did not pass validation.
    pub unverified: u64,
    /// Answers that were rewritten or replanned, counted as often as that happened.
    pub repeated: u64,
    /// Prompt and reply tokens.
    pub tokens: u64,
    /// Cost in millionths of a dollar.
    pub cost_microdollars: u64,
    /// Milliseconds from queries to answers.
    pub duration_ms: u64,
    /// Calls of tools.
    pub tool_calls: u64,
}

impl DayFigures {
    /// Adds a turn.
    pub fn add(&mut self, turn: &TurnMetadata, metrics: &TurnMetrics) {
        self.turns += 1;
        match turn.status {
            TurnStatus::Complete => self.complete += 1,
            TurnStatus::Clarify => self.clarify += 1,
            TurnStatus::Failed => self.failed += 1,
            TurnStatus::Running | TurnStatus::Interrupted => {}
        }
        self.unverified += u64::from(turn.unverified);
        self.repeated += u64::from(turn.revisions) + u64::from(turn.retries);
        // The files can be edited, so their numbers may be anything.
        self.tokens = self.tokens.saturating_add(metrics.total_tokens);
        self.cost_microdollars = self.cost_microdollars.saturating_add(metrics.total_cost_microdollars);
        self.duration_ms = self.duration_ms.saturating_add(metrics.total_duration_ms);
        self.tool_calls = self.tool_calls.saturating_add(metrics.tool_calls);
    }
}

/// The usage of one recipe run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunMetrics {
    /// The phase, 0 to 7.
    pub phase: u8,
    /// The recipe: `category/name`.
    pub recipe: String,
    /// The run's id.
    pub run: String,
    /// The model that answered.
    pub model: String,
    /// Milliseconds from request to reply.
    pub duration_ms: u64,
    /// Prompt tokens.
    pub tokens_in: u64,
    /// Reply tokens.
    pub tokens_out: u64,
    /// Cost in millionths of a dollar.
    #[serde(default)]
    pub cost_microdollars: u64,
}
