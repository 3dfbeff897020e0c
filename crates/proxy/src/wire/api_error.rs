//! Errors in the shape that each format's clients expect. Knows what clients look for in them, not what went wrong.

use larder_core::policy::BudgetDecision;
use larder_text::json::encoded;

use super::ApiDialect;

/// What is wrong with a request, as far as its client is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApiErrorKind {
    /// It is no request of its format.
    Invalid,
    /// No key, or one that is not known.
    Unauthorized,
    /// The key does not allow it.
    Forbidden,
    /// No such model, route or thing.
    NotFound,
    /// The body has too many bytes.
    TooLarge,
    /// The prompt cannot be made to fit (R3-4.40).
    ContextTooLong,
    /// Too many requests at once.
    RateLimited,
    /// The key's budget is used up.
    OverBudget,
    /// The provider failed or said something that is no reply.
    Upstream,
    /// The provider did not answer in time.
    UpstreamTimeout,
    /// We cannot serve it now; later we may.
    Unavailable,
    /// Something of ours failed.
    Internal,
}

impl ApiErrorKind {
    /// The HTTP status.
    pub const fn status(self) -> u16 {
        match self {
            Self::Invalid | Self::ContextTooLong => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::TooLarge => 413,
            Self::RateLimited | Self::OverBudget => 429,
            Self::Upstream => 502,
            Self::UpstreamTimeout => 504,
            Self::Unavailable => 503,
            Self::Internal => 500,
        }
    }

    /// OpenAI's type and code.
    const fn openai(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Invalid => ("invalid_request_error", None),
            Self::Unauthorized => ("invalid_request_error", Some("invalid_api_key")),
            Self::Forbidden => ("invalid_request_error", Some("permission_denied")),
            Self::NotFound => ("invalid_request_error", Some("model_not_found")),
            Self::TooLarge => ("invalid_request_error", Some("request_too_large")),
            Self::ContextTooLong => ("invalid_request_error", Some("context_length_exceeded")),
            Self::RateLimited => ("rate_limit_error", Some("rate_limit_exceeded")),
            Self::OverBudget => ("insufficient_quota", Some("insufficient_quota")),
            Self::Upstream => ("server_error", Some("upstream_error")),
            Self::UpstreamTimeout => ("server_error", Some("upstream_timeout")),
            Self::Unavailable => ("server_error", Some("unavailable")),
            Self::Internal => ("server_error", Some("internal_error")),
        }
    }

    /// Anthropic's type.
    const fn anthropic(self) -> &'static str {
        match self {
            Self::Invalid | Self::ContextTooLong => "invalid_request_error",
            Self::Unauthorized => "authentication_error",
            Self::Forbidden => "permission_error",
            Self::NotFound => "not_found_error",
            Self::TooLarge => "request_too_large",
            Self::RateLimited => "rate_limit_error",
            Self::OverBudget => "billing_error",
            Self::UpstreamTimeout => "timeout_error",
            Self::Unavailable => "overloaded_error",
            Self::Upstream | Self::Internal => "api_error",
        }
    }
}

/// An error for a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// What kind.
    pub kind: ApiErrorKind,
    /// What is wrong and how to mend it.
    pub message: String,
}

impl ApiError {
    /// An error of this kind.
    pub fn new(kind: ApiErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// The refusal of a prompt, with how many tokens are too many and its largest parts (R3-4.40). It begins with the
    /// words by which clients of the format recognise it and make their own history shorter.
    pub fn too_long(format: ApiDialect, decision: &BudgetDecision) -> Self {
        let BudgetDecision { reason, deficit, prompt_tokens: tokens, prompt_budget: budget, largest, .. } =
            decision;
        let opening = match format {
            ApiDialect::Messages => format!("prompt is too long: {tokens} tokens > {budget} maximum."),
            ApiDialect::Chat | ApiDialect::Responses => format!(
                "This model's maximum context length is {budget} tokens for the prompt. However, your messages \
                 resulted in {tokens} tokens."
            ),
        };
        let largest: Vec<_> = largest.iter().map(|(part, tokens)| format!("{part} ({tokens})")).collect();
        let largest = if largest.is_empty() {
            String::new()
        } else {
            format!(" The largest parts, in tokens: {}.", largest.join(", "))
        };
        let message = format!(
            "{opening} It was not sent: {reason}; {deficit} tokens are too many.{largest} Shorten one of them or start a \
             new conversation."
        );
        Self { kind: ApiErrorKind::ContextTooLong, message }
    }

    /// The body of a response with this error.
    pub fn body(&self, format: ApiDialect) -> String {
        let message = encoded(&self.message);
        match format {
            ApiDialect::Messages => {
                let kind = self.kind.anthropic();
                format!(r#"{{"type":"error","error":{{"type":"{kind}","message":{message}}}}}"#)
            }
            ApiDialect::Chat | ApiDialect::Responses => {
                let (kind, code) = self.kind.openai();
                let code = code.map_or_else(|| "null".to_owned(), encoded);
                let param = match (self.kind, format) {
                    (ApiErrorKind::ContextTooLong, ApiDialect::Responses) => r#""input""#,
                    (ApiErrorKind::ContextTooLong, _) => r#""messages""#,
                    _ => "null",
                };
                format!(
                    r#"{{"error":{{"message":{message},"type":"{kind}","param":{param},"code":{code}}}}}"#
                )
            }
        }
    }

    /// The error as an event that ends a stream. `sequence` numbers the event where the format does so.
    pub(super) fn event(&self, format: ApiDialect, sequence: u64) -> String {
        match format {
            ApiDialect::Messages => format!("event: error\ndata: {}\n\n", self.body(format)),
            ApiDialect::Chat => format!("data: {}\n\n", self.body(format)),
            ApiDialect::Responses => {
                let (message, code) = (encoded(&self.message), self.kind.openai().1);
                let code = code.map_or_else(|| "null".to_owned(), encoded);
                format!(
                    "event: error\ndata: {{\"type\":\"error\",\"sequence_number\":{sequence},\"code\":{code},\
                     \"message\":{message},\"param\":null}}\n\n"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use larder_core::policy::BudgetStatus;

    use super::*;

    #[test]
    fn every_error_is_json_of_its_format_with_the_words_unbroken() {
        let kinds = [
            ApiErrorKind::Invalid,
            ApiErrorKind::Unauthorized,
            ApiErrorKind::Forbidden,
            ApiErrorKind::NotFound,
            ApiErrorKind::TooLarge,
            ApiErrorKind::ContextTooLong,
            ApiErrorKind::RateLimited,
            ApiErrorKind::OverBudget,
            ApiErrorKind::Upstream,
            ApiErrorKind::UpstreamTimeout,
            ApiErrorKind::Unavailable,
            ApiErrorKind::Internal,
        ];
        let words = "a \"quoted\"\nline\u{1}";
        for kind in kinds {
            let problem = ApiError::new(kind, words);
            for format in [ApiDialect::Chat, ApiDialect::Responses, ApiDialect::Messages] {
                let body: serde_json::Value = serde_json::from_str(&problem.body(format)).unwrap();
                assert_eq!(body["error"]["message"], words);
                assert!(body["error"]["type"].is_string());
                assert_eq!(body.get("type").is_some(), format == ApiDialect::Messages);
                let event = problem.event(format, 7);
                let data = event.split("data: ").nth(1).unwrap().strip_suffix("\n\n").unwrap();
                assert!(!data.contains('\n'));
                let data: serde_json::Value = serde_json::from_str(data).unwrap();
                assert!(data["message"] == words || data["error"]["message"] == words);
            }
        }
    }

    #[test]
    fn a_refusal_names_the_deficit_and_the_largest_parts() {
        let decision = BudgetDecision {
            status: BudgetStatus::Reject,
            reason: "the prompt exceeds its budget".to_owned(),
            deficit: 10_000,
            prompt_tokens: 210_000,
            prompt_budget: 200_000,
            response_reserve: 0,
            emergency_floor: 0,
            dry_run: false,
            largest: vec![("message 4".to_owned(), 90_000), ("tools".to_owned(), 12_000)],
        };
        let problem = ApiError::too_long(ApiDialect::Messages, &decision);
        assert!(problem.message.starts_with("prompt is too long: 210000 tokens > 200000 maximum"));
        assert!(problem.message.contains("exceeds its budget; 10000 tokens are too many"));
        assert!(problem.message.contains("message 4 (90000), tools (12000)"));
        let body = ApiError::too_long(ApiDialect::Chat, &decision).body(ApiDialect::Chat);
        assert!(
            body.contains("maximum context length") && body.contains(r#""code":"context_length_exceeded""#)
        );
    }
}
