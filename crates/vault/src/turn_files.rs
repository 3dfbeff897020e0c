//! `metadata.json` and `metrics.json`: what a turn is, its status, and what it consumed.

use serde::{Deserialize, Serialize};

use super::value::words;
use super::{DocumentTime, Intent, Score};
use larder_text::Mode;

words! {
    /// The status of a turn.
    TurnStatus, "running, complete, clarify, failed or interrupted":
    /// It has begun.
    Running = "running",
    /// It was answered.
    Complete = "complete",
    /// It ended with a question to the user (C6).
    Clarify = "clarify",
    /// It ended without an answer.
    Failed = "failed",
    /// It stopped before its end and can go on.
    Interrupted = "interrupted",
}

/// `metadata.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnMetadata {
    /// Per user.
    pub turn_number: u32,
    /// Whose turn it is (C85).
    pub user_id: String,
    /// The conversation it belongs to (C85).
    #[serde(default)]
    pub session_id: Option<String>,
    /// Which recipes it runs.
    pub mode: Mode,
    /// Its status.
    pub status: TurnStatus,
    /// When it began.
    pub created_at: DocumentTime,
    /// When it ended.
    #[serde(default)]
    pub finished_at: Option<DocumentTime>,
    /// The query with its references resolved.
    pub query: String,
    /// The turn in a sentence, once it was summarized (C5).
    #[serde(default)]
    pub summary: Option<String>,
    /// Such as `commerce.laptop`.
    #[serde(default)]
    pub topic: Option<String>,
    /// What the query was for.
    #[serde(default)]
    pub intent: Option<Intent>,
    /// How good the answer is.
    #[serde(default)]
    pub quality: Option<Score>,
    /// Whether the answer went out without having passed validation (C68).
    #[serde(default, skip_serializing_if = "is_false")]
    pub unverified: bool,
    /// The last phase that was finished, 0 to 7: a resumed turn starts with the next one.
    #[serde(default)]
    pub last_phase: Option<u8>,
    /// How often the answer was written again; at most 2.
    #[serde(default)]
    pub revisions: u32,
    /// How often it was planned again; at most 1.
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
    /// Per user.
    pub turn_number: u32,
    /// From the query to the answer.
    pub total_duration_ms: u64,
    /// In and out, over all calls of models.
    pub total_tokens: u64,
    /// Over all calls of models, in millionths of a dollar.
    #[serde(default)]
    pub total_cost_microdollars: u64,
    /// Calls of tools.
    #[serde(default)]
    pub tool_calls: u64,
    /// What each run of a recipe took, in their order.
    #[serde(default)]
    pub runs: Vec<RunMetrics>,
}

/// What one run of a recipe took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunMetrics {
    /// 0 to 7.
    pub phase: u8,
    /// `category/name`.
    pub recipe: String,
    /// The run's id.
    pub run: String,
    /// The model that answered.
    pub model: String,
    /// From request to reply.
    pub duration_ms: u64,
    /// Tokens of the prompt.
    pub tokens_in: u64,
    /// Tokens of the answer.
    pub tokens_out: u64,
    /// In millionths of a dollar.
    #[serde(default)]
    pub cost_microdollars: u64,
}
