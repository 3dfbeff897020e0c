//! Types of other crates as the API describes them. They are never made: what is served are the types themselves, and
//! a test holds the two alike.
#![allow(dead_code, reason = "each describes a type that has no schema of its own")]

use utoipa::ToSchema;

/// The record of one run of a recipe.
#[derive(ToSchema)]
pub struct RunRecord {
    /// Its id.
    run_id: String,
    /// When it was recorded.
    #[schema(format = DateTime)]
    timestamp: String,
    /// The recipe, without its category.
    recipe: String,
    /// The version of the recipe that ran.
    recipe_version: String,
    /// The layer whose model ran it.
    model_layer: String,
    /// The model that answered.
    model: String,
    /// The conversation it belongs to.
    session_id: Option<String>,
    /// The turn it belongs to.
    turn_id: Option<String>,
    /// The request through the gateway whose record has its cost, too.
    request_id: Option<String>,
    /// Tokens by their place.
    tokens: RunTokens,
    /// From the start to the end, in milliseconds.
    latency_ms: u64,
    /// Whether it gave an answer that passed every check.
    success: bool,
    /// Whether the answer met its schema.
    schema_valid: Option<bool>,
    /// The confidence the answer states.
    confidence: Option<f64>,
    /// Calls after the first.
    retries: u32,
    /// Whether anything was condensed, pointed at or left out.
    compression_applied: bool,
    /// Tokens saved by that.
    compression_savings: u64,
    /// The price of the calls in dollars.
    cost_usd: Option<f64>,
    /// `completed`, `refused`, `failed` or `intervention`.
    status: String,
    /// The class of the error.
    error: Option<String>,
    /// The address of the receipt.
    receipt: String,
    /// The address of the answer.
    output: Option<String>,
}

/// Tokens of a run.
#[derive(ToSchema)]
pub struct RunTokens {
    /// Of the prompt text itself.
    prompt: u64,
    /// Of the documents and sections put into it.
    input: u64,
    /// Of the answer.
    output: u64,
    /// Their sum.
    total: u64,
}

/// A request for a human.
#[derive(ToSchema)]
pub struct Intervention {
    /// Its number.
    id: u64,
    /// What kind of help is needed.
    r#type: String,
    /// What is wrong.
    message: String,
    /// The recipe it is about.
    recipe: Option<String>,
    /// The run that raised it.
    run_id: Option<String>,
    /// When it was raised.
    #[schema(format = DateTime)]
    created: String,
    /// When a human settled it; `null` while it is open.
    #[schema(format = DateTime)]
    resolved_at: Option<String>,
    /// What the human decided.
    resolution: Option<String>,
}

/// A pointer and what it stands for.
#[derive(ToSchema)]
pub struct StoredPointer {
    /// The pointer to the whole content.
    pointer_id: String,
    /// What kind of content it is.
    kind: String,
    /// One line that says what it is; for content of a client, the client's text.
    display_text: String,
    /// How to get the original back.
    rehydrate_instructions: String,
    /// The address of the content.
    content: String,
    /// The length of the content.
    bytes: u64,
    /// When it was first stored.
    #[schema(format = DateTime)]
    created: String,
}

/// One setting.
#[derive(ToSchema)]
pub struct Setting {
    /// Its key, as in `larder.toml`.
    key: String,
    /// Its value.
    value: String,
    /// Where that comes from: `"default"`, `"flag"`, `{"file": {"path", "line"}}` or `{"environment": {"name"}}`.
    #[schema(value_type = Object)]
    origin: (),
    /// Environment variables that set it; the first is its name, the others are older ones.
    env: Vec<String>,
    /// Older names of its key that the file may use.
    aliases: Vec<String>,
    /// What it does.
    help: String,
}

/// One problem of a file of the project.
#[derive(ToSchema)]
pub struct Diagnostic {
    /// Path inside the project.
    file: String,
    /// From 1.
    line: u64,
    /// In characters, from 1.
    column: u64,
    /// Just after the last character meant.
    end: End,
    /// Stable across versions.
    code: String,
    /// `error` or `warning`.
    severity: String,
    /// What is wrong, and what was expected.
    message: String,
    /// How to mend it.
    help: String,
}

/// Where a problem ends.
#[derive(ToSchema)]
pub struct End {
    /// From 1.
    line: u64,
    /// In characters, from 1.
    column: u64,
}

/// A committed turn.
#[derive(ToSchema)]
pub struct TurnRow {
    /// Per user.
    number: u32,
    /// `complete`, `clarify` or `failed`.
    status: String,
    /// The query with its references resolved.
    query: String,
    /// The turn in a sentence.
    summary: Option<String>,
    /// Such as `commerce.laptop`.
    topic: Option<String>,
    /// What the query was for.
    intent: Option<String>,
    /// How good the answer is, 0 to 1.
    quality: Option<f64>,
    /// When it began.
    #[schema(format = DateTime)]
    created_at: String,
    /// Its `context.md`.
    context: String,
    /// Whether it lies in the archive.
    archived: bool,
    /// The conversation it belongs to.
    session: Option<String>,
}

/// A turn that has not come to its end.
#[derive(ToSchema)]
pub struct DraftSummary {
    /// Per user.
    number: u32,
    /// What was asked.
    query: String,
    /// The last phase that was finished, 0 to 7.
    phase: Option<u8>,
    /// When it began.
    #[schema(format = DateTime)]
    created_at: String,
}

/// A document that was found by its words.
#[derive(ToSchema)]
pub struct DocumentHit {
    /// Its path in the vault.
    document: String,
    /// `context`, `research`, `page`, `memory` or `other`.
    kind: String,
    /// The turn it belongs to.
    turn: Option<u32>,
    /// More is better.
    score: f64,
    /// The passage that matches best.
    snippet: String,
}

/// What a turn took.
#[derive(ToSchema)]
pub struct TurnMetrics {
    /// Per user.
    turn_number: u32,
    /// From the query to the answer.
    total_duration_ms: u64,
    /// In and out, over all calls of models.
    total_tokens: u64,
    /// In millionths of a dollar.
    total_cost_microdollars: u64,
    /// Calls of tools.
    tool_calls: u64,
    /// What each run of a recipe took.
    runs: Vec<RunMetrics>,
}

/// What one run of a recipe took.
#[derive(ToSchema)]
pub struct RunMetrics {
    /// 0 to 7.
    phase: u8,
    /// `category/name`.
    recipe: String,
    /// The run's id.
    run: String,
    /// The model that answered.
    model: String,
    /// From request to reply.
    duration_ms: u64,
    /// Tokens of the prompt.
    tokens_in: u64,
    /// Tokens of the answer.
    tokens_out: u64,
    /// In millionths of a dollar.
    cost_microdollars: u64,
}

/// How a turn ended.
#[derive(ToSchema)]
pub struct TurnOutcome {
    /// Its number, per user.
    turn: u32,
    /// Its folder in the vault.
    folder: String,
    /// `complete`, `clarify` or `failed`.
    status: String,
    /// The answer, in Markdown.
    answer: Option<String>,
    /// What the user is asked.
    question: Option<String>,
    /// Why there is no answer.
    reason: Option<String>,
    /// The answer did not pass validation.
    unverified: bool,
    /// Tokens of all models and tools.
    #[schema(value_type = Object)]
    usage: (),
    /// Their price in dollars.
    cost: Option<String>,
    /// Calls of tools.
    tool_calls: u32,
    /// Time spent.
    latency_ms: u64,
}

/// Something that happened in a turn; `event` says what.
#[derive(serde::Serialize, ToSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TurnEvent {
    /// The turn has its number and folder; also when it goes on after a stop.
    Started { turn: u32, folder: String },
    /// A phase begins: 0 to 7.
    Phase { number: u8, name: String, attempt: u32 },
    /// A phase ended and is saved.
    PhaseDone { number: u8, tokens: u64, millis: u64, text: String },
    /// A tool is called.
    Tool { call: String },
    /// A tool gave its result: SUCCESS, ERROR, TIMEOUT or DENIED.
    ToolDone { status: String, summary: String, bytes: u64, millis: u64 },
    /// What gathering looked at: each document with its score, whether it was used, and why.
    Gathered {
        #[schema(value_type = Vec<Object>)]
        considered: Vec<()>,
    },
    /// A section came too near its budget; its older text stands condensed from here on.
    Compacted { section: u8, from: u64, to: u64 },
    /// The answer, once it is validated.
    Answer { text: String },
    /// The turn needs to know more.
    Clarify { question: String },
    /// The turn is committed.
    Finished { status: String, unverified: bool, tokens: u64, cost: Option<String>, millis: u64 },
    /// Something went wrong that does not end the turn.
    Warning { text: String },
}
