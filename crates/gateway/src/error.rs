//! The errors of a request, with their HTTP statuses: the one table from errors to replies, except for store errors,
//! which the API has too. The form of a reply belongs to each wire format.

use std::time::Duration;

use axum::http::StatusCode;
use larder_engine::PrepareError;
use larder_engine::executor::RunError;
use larder_models::chat::ModelError;
use larder_models::table::Provider;
use larder_models::upstream::Incoming;
use larder_proxy::record::Outcome;
use larder_proxy::window::WindowError;
use larder_proxy::wire::{ApiError, ApiErrorKind};
use larder_store::{StoreError, Timestamp};

use crate::auth::AuthError;
use crate::limits::BodyError;
use crate::status;

/// Maximum bytes of an upstream's message that are quoted in ours.
const MAX_WORDS: usize = 16 << 10;

/// A request that gets no reply from a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RequestError {
    /// The status of the reply.
    pub status: StatusCode,
    /// A stable word for it, for records and clients.
    pub class: &'static str,
    /// What went wrong and how to fix it.
    pub message: String,
    /// Seconds after which the client may retry.
    pub retry_after: Option<u64>,
    /// How the request counts.
    pub outcome: Outcome,
}

impl RequestError {
    /// An error that retrying does not fix.
    pub fn new(
        status: StatusCode,
        class: &'static str,
        outcome: Outcome,
        message: impl Into<String>,
    ) -> Self {
        Self { status, class, message: message.into(), retry_after: None, outcome }
    }

    /// The request cannot be understood.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", Outcome::Invalid, message)
    }

    /// The request cannot be made to fit.
    pub fn too_long(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "context_length_exceeded", Outcome::Refused, message)
    }

    /// The table has no such model.
    pub fn unknown_model(model: &str, provider: Provider) -> Self {
        let (model, key) = (larder_proxy::record::cut_name(model), provider.as_str());
        let message = format!(
            "the model `{model}` is not known here: name one that GET /v1/models lists, add it under [models] in \
             larder.toml, or set `{key}` under [gateway] to the server that unknown models pass to"
        );
        Self::new(StatusCode::NOT_FOUND, "model_not_found", Outcome::Invalid, message)
    }

    /// The model speaks another format.
    pub fn wrong_wire(model: &str, provider: Provider) -> Self {
        let message = match provider.info().server.and_then(|server| server.gateway_format) {
            Some((format, path)) => format!("the model `{model}` speaks {format}: ask it at {path}"),
            None => format!(
                "the model `{model}` has no server that requests pass to; run a recipe with it, as model \
                 `recipe/<category>/<name>`"
            ),
        };
        Self::new(StatusCode::NOT_FOUND, "model_not_found", Outcome::Invalid, message)
    }

    /// The settings cannot serve this request. The log has the whole paths of files.
    pub fn misconfigured(words: &str) -> Self {
        tracing::error!(cause = words, "not_configured");
        let words = without_folders(words);
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "not_configured", Outcome::Failed, words)
    }

    /// Too many concurrent requests.
    pub fn busy() -> Self {
        let message =
            "too many concurrent requests; retry later, or raise max_requests under [gateway] in larder.toml";
        let fault = Self::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", Outcome::Refused, message);
        Self { retry_after: Some(1), ..fault }
    }

    /// The upstream's stream ended before the reply was complete.
    pub fn cut_off() -> Self {
        let message = "the upstream's stream ended before its reply did, as when a server dies behind a proxy; send \
                       the request again";
        Self::new(StatusCode::BAD_GATEWAY, "upstream_failed", Outcome::UpstreamFailed, message)
    }

    /// The upstream refused to continue a reply that it had started.
    pub async fn refused_by_upstream(refusal: &mut Incoming) -> Self {
        let status = refusal.status;
        let words = refusal.body(MAX_WORDS).await.unwrap_or_default();
        let message = format!(
            "the upstream refused to continue, with status {status}: {}",
            String::from_utf8_lossy(&words)
        );
        // Clients try again where they know that it is worth it: not where nothing is left to spend.
        let (status, class) = match status.as_u16() {
            429 if !message.contains("insufficient_quota") => (StatusCode::TOO_MANY_REQUESTS, "rate_limited"),
            503 | 529 => (StatusCode::SERVICE_UNAVAILABLE, "overloaded"),
            _ => (StatusCode::BAD_GATEWAY, "upstream_failed"),
        };
        Self::new(status, class, Outcome::UpstreamError, message)
    }

    /// The error as the dialects report it.
    pub fn problem(&self) -> ApiError {
        let kind = match self.class {
            "authentication_error" => ApiErrorKind::Unauthorized,
            "permission_error" => ApiErrorKind::Forbidden,
            "model_not_found" | "recipe_not_found" => ApiErrorKind::UnknownModel,
            "not_found" => ApiErrorKind::NotFound,
            "request_too_large" => ApiErrorKind::TooLarge,
            "context_length_exceeded" => ApiErrorKind::ContextTooLong,
            "rate_limited" => ApiErrorKind::RateLimited,
            "budget_exceeded" => ApiErrorKind::OverBudget,
            "upstream_timeout" => ApiErrorKind::UpstreamTimeout,
            "upstream_unreachable" | "upstream_failed" | "answer_failed_checks" => ApiErrorKind::Upstream,
            "overloaded" | "not_configured" | "storage_full" | "storage_over_limit" | "storage_read_only"
            | "storage_locked" | "upstream_down" => ApiErrorKind::Unavailable,
            _ if self.status.is_client_error() => ApiErrorKind::Invalid,
            _ => ApiErrorKind::Internal,
        };
        ApiError::new(kind, self.message.clone())
    }

    /// The caller is rejected, or may not spend.
    pub fn from_auth(error: &AuthError, now: Timestamp) -> Self {
        if let AuthError::Store(error) = error {
            return Self::from_store(
                error,
                "nothing was sent, because the key could not be checked or charged",
            );
        }
        let status = error.status();
        let class = match status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::FORBIDDEN => "permission_error",
            StatusCode::TOO_MANY_REQUESTS if matches!(error, AuthError::Busy) => "rate_limited",
            StatusCode::TOO_MANY_REQUESTS => "budget_exceeded",
            _ => "storage_error",
        };
        let outcome = if status.is_server_error() { Outcome::Failed } else { Outcome::Refused };
        let retry_after = error.retry_after(now);
        Self { retry_after, ..Self::new(status, class, outcome, error.to_string()) }
    }

    /// What a prompt leaves out could not be stored.
    pub fn not_kept(error: &StoreError) -> Self {
        Self::from_store(error, "nothing was sent, because text omitted from the prompt could not be stored")
    }

    /// A store error; `meaning` is its consequence. Clients learn what is wrong; where, and what to do, is for the log.
    pub fn from_store(error: &StoreError, meaning: &str) -> Self {
        tracing::error!(%error, "{meaning}");
        let retry_after = matches!(error, StoreError::Locked { .. }).then_some(1);
        let words = match error {
            StoreError::DiskFull { .. } => "the disk of the gateway is full",
            StoreError::OverLimit => "the store of the gateway is as large as it may be (retention.max_gb)",
            StoreError::ReadOnly { .. } => "the store of the gateway cannot be written to",
            StoreError::Locked { .. } => "another process keeps the store of the gateway locked",
            _ => "the store of the gateway failed",
        };
        let message = format!("{meaning}: {words}; the log of the gateway has the details");
        let (status, class) = (status::of_store(error), storage_class(error));
        Self { retry_after, ..Self::new(status, class, Outcome::Failed, message) }
    }

    /// An internal error.
    pub fn bug(words: &str) -> Self {
        let message = format!("a bug in larder: {words}; please report it");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", Outcome::Failed, message)
    }
}

impl From<BodyError> for RequestError {
    fn from(fault: BodyError) -> Self {
        let (status, class, outcome) = match fault {
            BodyError::TooLarge { .. } => {
                (StatusCode::PAYLOAD_TOO_LARGE, "request_too_large", Outcome::Invalid)
            }
            BodyError::Slow { .. } => (StatusCode::REQUEST_TIMEOUT, "request_timeout", Outcome::Invalid),
            BodyError::Broken => (StatusCode::BAD_REQUEST, "invalid_request", Outcome::ClientGone),
            BodyError::Full => (StatusCode::SERVICE_UNAVAILABLE, "overloaded", Outcome::Refused),
        };
        let retry_after = (fault == BodyError::Full).then_some(1);
        Self { retry_after, ..Self::new(status, class, outcome, fault.to_string()) }
    }
}

impl From<WindowError> for RequestError {
    fn from(refusal: WindowError) -> Self {
        match refusal {
            WindowError::Unreadable(error) => Self::invalid(error.to_string()),
            WindowError::TooLong(words) => Self::too_long(words),
            WindowError::Unwritable(error) => Self::bug(&error.to_string()),
        }
    }
}

impl From<StoreError> for RequestError {
    fn from(error: StoreError) -> Self {
        Self::from_store(&error, "the store failed before the reply was whole")
    }
}

impl From<ModelError> for RequestError {
    fn from(error: ModelError) -> Self {
        let (status, class) = match &error {
            ModelError::Timeout { .. } => (StatusCode::GATEWAY_TIMEOUT, "upstream_timeout"),
            ModelError::Unreachable { .. } => (StatusCode::BAD_GATEWAY, "upstream_unreachable"),
            ModelError::NotConfigured { .. } => return Self::misconfigured(&error.to_string()),
            ModelError::RateLimited { .. } => (StatusCode::TOO_MANY_REQUESTS, "rate_limited"),
            ModelError::WindowExceeded { .. } => (StatusCode::BAD_REQUEST, "context_length_exceeded"),
            ModelError::BreakerOpen { .. } => (StatusCode::SERVICE_UNAVAILABLE, "upstream_down"),
            _ => (StatusCode::BAD_GATEWAY, "upstream_failed"),
        };
        let retry_after = match &error {
            ModelError::RateLimited { retry_after: Some(pause), .. } => Some(seconds(*pause)),
            ModelError::BreakerOpen { retry_in, .. } => Some(seconds(*retry_in)),
            _ => None,
        };
        Self { retry_after, ..Self::new(status, class, Outcome::UpstreamFailed, error.to_string()) }
    }
}

impl From<RunError> for RequestError {
    fn from(error: RunError) -> Self {
        let message = match &error {
            RunError::Prepare(PrepareError::MissingDocument { recipe, name }) => format!(
                "recipe {recipe} needs a document named `{name}`, and a request cannot give documents; ask a recipe that \
                 needs none"
            ),
            RunError::Prepare(PrepareError::NoQuery { recipe }) => {
                format!("recipe {recipe} needs the user's query; send it as the last message of the user")
            }
            error => error.to_string(),
        };
        let of = |status, class, outcome| Self::new(status, class, outcome, message.clone());
        match error {
            RunError::Model { source, .. } => source.into(),
            RunError::Store(source) => source.into(),
            RunError::Recipe { .. } | RunError::Unknown { .. } => {
                of(StatusCode::NOT_FOUND, "recipe_not_found", Outcome::Invalid)
            }
            RunError::Prepare(_) | RunError::Pack(_) | RunError::Condense(_) => {
                of(StatusCode::BAD_REQUEST, "invalid_request", Outcome::Invalid)
            }
            RunError::Unaffordable { .. } => {
                of(StatusCode::TOO_MANY_REQUESTS, "budget_exceeded", Outcome::Refused)
            }
            RunError::Refused { .. } => {
                of(StatusCode::BAD_REQUEST, "context_length_exceeded", Outcome::Refused)
            }
            RunError::Unbound { .. } | RunError::Schema { .. } => Self::misconfigured(&message),
            RunError::Gates { .. } | RunError::Unusable { .. } | RunError::Spent { .. } => {
                of(StatusCode::BAD_GATEWAY, "answer_failed_checks", Outcome::Failed)
            }
        }
    }
}

/// A stable word for a store error.
pub(crate) const fn storage_class(error: &StoreError) -> &'static str {
    match error {
        StoreError::DiskFull { .. } => "storage_full",
        StoreError::OverLimit => "storage_over_limit",
        StoreError::ReadOnly { .. } => "storage_read_only",
        StoreError::Locked { .. } => "storage_locked",
        _ => "storage_error",
    }
}

/// Words in which files are called by their names alone: clients may not learn where the server keeps them.
fn without_folders(words: &str) -> String {
    let name = |word: &str| match std::path::Path::new(word.trim_start_matches(['`', '"', '\''])) {
        path if path.is_absolute() => path.file_name().map(|name| name.to_string_lossy().into_owned()),
        _ => None,
    };
    let names: Vec<_> = words.split(' ').map(|word| name(word).unwrap_or_else(|| word.to_owned())).collect();
    names.join(" ")
}

/// Whole seconds, and one at least.
fn seconds(pause: Duration) -> u64 {
    pause.as_secs().saturating_add(u64::from(pause.subsec_nanos() > 0)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_could_not_be_kept_is_said_not_to_have_been_sent() {
        let failed = || StoreError::UnknownKey { id: "lk-1".to_owned() };
        let kept = RequestError::not_kept(&failed());
        assert!(kept.message.starts_with("nothing was sent, because"), "{kept}");
        assert!(kept.message.contains("the store of the gateway failed"), "{kept}");
        let later = RequestError::from(failed());
        assert!(
            !later.message.contains("nothing was sent"),
            "a later round, or the run of a recipe: {later}"
        );
        assert_eq!((later.status, later.class), (kept.status, kept.class));
    }
}
