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
