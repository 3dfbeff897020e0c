//! Maps a provider's rejection to a [`ModelError`] by status, error kind and message. Knows the forms of error
//! bodies, not HTTP clients.

use std::time::Duration;

use serde_json::Value;

use crate::chat::ModelError;
use crate::secret::Secret;

/// Characters of a provider's words that an error carries.
const MAX_DETAIL_CHARS: usize = 1_000;
/// The status of Anthropic's `overloaded_error`.
const OVERLOADED: u16 = 529;

/// Provider messages, in lower case, for a prompt that exceeds the window. In order: OpenAI and Azure (code), OpenAI
/// and vLLM, vLLM (twice), llama.cpp (type, message), Ollama, Kimi (twice), Anthropic (twice), Bedrock, Groq,
/// Mistral, LM Studio.
const WINDOW_WORDS: [&str; 15] = [
    "context_length_exceeded",
    "maximum context length",
    "maximum model length",
    "max_model_len",
    "exceed_context_size_error",
    "exceeds the available context size",
    "exceeds the context length",
    "exceeded model token limit",
    "input token length too long",
    "prompt is too long",
    "exceed context limit",
    "input is too long for requested model",
    "reduce the length of the messages",
    "too large for model with",
    "context the overflows",
];

/// A refusal as the provider sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderFailure {
    /// HTTP status, or the equivalent of an error inside a stream.
    pub status: u16,
    /// The provider's `type` and `code`, joined by a space.
    pub kind: String,
    /// The provider's message, made safe to print.
    pub detail: String,
    /// When to retry, if stated.
    pub retry_after: Option<Duration>,
}

impl ProviderFailure {
    /// Reads an error body. Bodies that are not JSON become the detail unchanged.
    pub fn from_body(
        status: u16,
        body: &[u8],
        retry_after: Option<Duration>,
        secret: Option<&Secret>,
    ) -> Self {
        let text = String::from_utf8_lossy(body);
        let json: Option<Value> = serde_json::from_str(&text).ok();
        let (kind, words) = json.as_ref().map_or_else(|| (String::new(), None), kind_and_words);
        let detail = printable(words.unwrap_or(&text), secret);
        Self { status, kind, detail, retry_after }
    }

    /// Reads an error inside a stream, after status 200.
    pub fn from_event(error: &Value, secret: Option<&Secret>) -> Self {
        let (kind, words) = kind_and_words(error);
        let status = status_of(&kind);
        let whole = error.to_string();
        Self { status, kind, detail: printable(words.unwrap_or(&whole), secret), retry_after: None }
    }

    /// The error that callers see.
    pub fn into_error(self, provider: &str) -> ModelError {
        let (provider, status) = (provider.to_owned(), self.status);
        let detail = if self.detail.is_empty() { "no reason given".to_owned() } else { self.detail };
        let words = format!("{} {detail}", self.kind).to_lowercase();
        match status {
            401 | 403 => ModelError::Auth { provider, status, detail },
            // A spent quota will not refill by waiting.
            429 if !words.contains("insufficient_quota") => {
                ModelError::RateLimited { provider, detail, retry_after: self.retry_after }
            }
            // 424: Bedrock passes on that the model failed.
            408 | 424 | 500.. => ModelError::Server { provider, status, detail },
            400 | 413 | 422 if WINDOW_WORDS.iter().any(|window| words.contains(window)) => {
                ModelError::WindowExceeded { provider, detail }
            }
            _ => ModelError::BadRequest { provider, status, detail },
        }
    }
}

/// `{"error": {type, code, message}}` (OpenAI, Anthropic, llama.cpp), `{"error": "…"}` (Ollama), `{"message": "…"}`
/// (vLLM, AWS), `{"detail": "…"}` (FastAPI).
fn kind_and_words(body: &Value) -> (String, Option<&str>) {
    let error = body.get("error").filter(|error| !error.is_null()).unwrap_or(body);
    let words =
        error.as_str().or_else(|| ["message", "detail"].iter().find_map(|key| error.get(key)?.as_str()));
    let kind = |key: &str| match error.get(key) {
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Number(kind)) => kind.to_string(),
        _ => String::new(),
    };
    (format!("{} {}", kind("type"), kind("code")).trim().to_owned(), words)
}

/// The HTTP status for an error kind, as OpenAI, Anthropic or Bedrock names it; 500 for an unknown one.
fn status_of(kind: &str) -> u16 {
    kind.split(' ')
        .find_map(|kind| match kind {
            "invalid_request_error" | "context_length_exceeded" => Some(400),
            "authentication_error" | "invalid_api_key" => Some(401),
            "permission_error" => Some(403),
            "not_found_error" => Some(404),
            "request_too_large" => Some(413),
            "rate_limit_error" | "rate_limit_exceeded" => Some(429),
            "timeout_error" => Some(504),
            "overloaded_error" => Some(OVERLOADED),
            "validationException" => Some(400),
            "modelTimeoutException" => Some(408),
            "modelStreamErrorException" => Some(424),
            "throttlingException" => Some(429),
            "serviceUnavailableException" => Some(503),
            number => number.parse().ok().filter(|status| (400..600).contains(status)),
        })
        .unwrap_or(500)
}

/// `text` without keys and control characters, and no longer than an error message should be.
pub fn printable(text: &str, secret: Option<&Secret>) -> String {
    // Redact before cutting, or the cut could leave half a key. The window bounds the work on a hostile body.
    let window: String = text.chars().take(MAX_DETAIL_CHARS * 8).collect();
    let redacted = secret.map_or_else(|| window.clone(), |secret| secret.redact(&window));
    let clean: String = redacted.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let clean = redact_key_shapes(clean.trim());
    match clean.char_indices().nth(MAX_DETAIL_CHARS) {
        Some((end, _)) => format!("{}…", &clean[..end]),
        None => clean,
    }
}

/// Replaces text that looks like keys (`sk-…`), which providers partly quote when they reject one.
fn redact_key_shapes(text: &str) -> String {
    let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '*');
    let mut out = String::with_capacity(text.len());
    for word in text.split_inclusive(|c: char| !is_key(c)) {
        let body = word.trim_end_matches(|c: char| !is_key(c));
        if body.len() > "sk-".len() && body.starts_with("sk-") {
            out.push_str("***");
            out.push_str(&word[body.len()..]);
        } else {
            out.push_str(word);
        }
    }
    out
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
