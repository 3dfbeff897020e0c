//! Errors in the form that each dialect's clients expect. Knows what clients look for in them, not what went wrong.

use larder_core::policy::BudgetDecision;

use super::dialect::ApiDialect;

/// The kind of error from the client's point of view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApiErrorKind {
    /// It is not a request of its dialect.
    Invalid,
    /// No key, or an unknown one.
    Unauthorized,
    /// The key does not allow it.
    Forbidden,
    /// No such model or recipe.
    UnknownModel,
    /// No such route or object.
    NotFound,
    /// The body has too many bytes.
    TooLarge,
    /// The prompt cannot be made to fit (R3-4.40).
    ContextTooLong,
    /// Too many concurrent requests.
    RateLimited,
    /// The key's budget is used up.
    OverBudget,
    /// The provider failed, or its answer is not a reply.
    Upstream,
    /// The provider did not answer in time.
    UpstreamTimeout,
    /// We cannot serve it now; later we may.
    Unavailable,
    /// An internal error.
    Internal,
}

impl ApiErrorKind {
    /// The HTTP status.
    pub const fn status(self) -> u16 {
        match self {
            Self::Invalid | Self::ContextTooLong => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::UnknownModel | Self::NotFound => 404,
            Self::TooLarge => 413,
            Self::RateLimited | Self::OverBudget => 429,
            Self::Upstream => 502,
            Self::UpstreamTimeout => 504,
            Self::Unavailable => 503,
            Self::Internal => 500,
        }
    }

    /// OpenAI's type and code.
    pub(super) const fn openai(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Invalid => ("invalid_request_error", None),
            Self::Unauthorized => ("invalid_request_error", Some("invalid_api_key")),
            Self::Forbidden => ("invalid_request_error", Some("permission_denied")),
            Self::UnknownModel => ("invalid_request_error", Some("model_not_found")),
            Self::NotFound => ("invalid_request_error", Some("not_found")),
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
    pub(super) const fn anthropic(self) -> &'static str {
        match self {
            Self::Invalid | Self::ContextTooLong => "invalid_request_error",
            Self::Unauthorized => "authentication_error",
            Self::Forbidden => "permission_error",
            Self::UnknownModel | Self::NotFound => "not_found_error",
            Self::TooLarge => "request_too_large",
            Self::RateLimited => "rate_limit_error",
            Self::OverBudget => "billing_error",
            Self::UpstreamTimeout => "timeout_error",
            Self::Unavailable => "overloaded_error",
            Self::Upstream | Self::Internal => "api_error",
        }
    }
}

impl ApiErrorKind {
    /// Bedrock's name of the exception.
    pub(super) const fn bedrock(self) -> &'static str {
        match self {
            Self::Invalid | Self::ContextTooLong | Self::TooLarge => "ValidationException",
            Self::Unauthorized => "UnrecognizedClientException",
            Self::Forbidden => "AccessDeniedException",
            Self::UnknownModel | Self::NotFound => "ResourceNotFoundException",
            Self::RateLimited => "ThrottlingException",
            Self::OverBudget => "ServiceQuotaExceededException",
            Self::Upstream => "ModelErrorException",
            Self::UpstreamTimeout => "ModelTimeoutException",
            Self::Unavailable => "ServiceUnavailableException",
            Self::Internal => "InternalServerException",
        }
    }

    /// The exception with which a stream of Bedrock's ends.
    pub(super) const fn bedrock_stream(self) -> &'static str {
        match self {
            Self::RateLimited | Self::OverBudget => "throttlingException",
            Self::Upstream | Self::UpstreamTimeout => "modelStreamErrorException",
            Self::Unavailable => "serviceUnavailableException",
            Self::Internal => "internalServerException",
            _ => "validationException",
        }
    }
}

/// An error for a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// What is wrong, for status and type.
    pub kind: ApiErrorKind,
    /// What is wrong and how to fix it.
    pub message: String,
}

impl ApiError {
    /// An error of this kind.
    pub fn new(kind: ApiErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// The refusal of a prompt, with the excess tokens and its largest parts (R3-4.40). It starts with the words by
    /// which clients of the dialect recognise it and shorten their own history.
    pub fn too_long(dialect: ApiDialect, decision: &BudgetDecision) -> Self {
        let BudgetDecision { reason, deficit, prompt_tokens: tokens, prompt_budget: budget, largest, .. } =
            decision;
        let opening = dialect.format().too_long(*tokens, *budget);
        let largest: Vec<_> =
            largest.iter().map(|large| format!("{} ({})", large.part, large.tokens)).collect();
        let largest = if largest.is_empty() {
            String::new()
        } else {
            format!(" The largest parts, in tokens: {}.", largest.join(", "))
        };
        let message = format!(
            "{opening} It was not sent: {reason}; it is {deficit} tokens over budget.{largest} Shorten one of them or start a \
             new conversation."
        );
        Self { kind: ApiErrorKind::ContextTooLong, message }
    }

    /// The body of a response with this error.
    pub fn body(&self, dialect: ApiDialect) -> String {
        dialect.format().error(self)
    }
}

#[cfg(test)]
mod tests {
    use larder_core::policy::{BudgetStatus, LargestPart};

    use super::*;

    #[test]
    fn every_error_is_json_of_its_format_with_the_words_unbroken() {
        let kinds = [
            ApiErrorKind::Invalid,
            ApiErrorKind::Unauthorized,
            ApiErrorKind::Forbidden,
            ApiErrorKind::UnknownModel,
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
            for dialect in [ApiDialect::Chat, ApiDialect::Responses, ApiDialect::Messages] {
                let body: serde_json::Value = serde_json::from_str(&problem.body(dialect)).unwrap();
                assert_eq!(body["error"]["message"], words);
                assert!(body["error"]["type"].is_string());
                assert_eq!(body.get("type").is_some(), dialect == ApiDialect::Messages);
                let event = dialect.format().error_event(&problem, 7);
                let data = event.split("data: ").nth(1).unwrap().strip_suffix("\n\n").unwrap();
                assert!(!data.contains('\n'));
                let data: serde_json::Value = serde_json::from_str(data).unwrap();
                assert!(data["message"] == words || data["error"]["message"] == words);
            }
        }
    }

    #[test]
    fn a_refusal_names_the_deficit_and_the_largest_parts() {
        let large = |part: &str, tokens| LargestPart { part: part.to_owned(), tokens };
        let decision = BudgetDecision {
            status: BudgetStatus::Reject,
            reason: "the prompt exceeds its budget".to_owned(),
            deficit: 10_000,
            prompt_tokens: 210_000,
            prompt_budget: 200_000,
            response_reserve: 0,
            emergency_floor: 0,
            dry_run: false,
            largest: vec![large("message 4", 90_000), large("tools", 12_000)],
        };
        let problem = ApiError::too_long(ApiDialect::Messages, &decision);
        assert!(problem.message.starts_with("prompt is too long: 210000 tokens > 200000 maximum"));
        assert!(problem.message.contains("exceeds its budget; it is 10000 tokens over budget"));
        assert!(problem.message.contains("message 4 (90000), tools (12000)"));
        let body = ApiError::too_long(ApiDialect::Chat, &decision).body(ApiDialect::Chat);
        assert!(
            body.contains("maximum context length") && body.contains(r#""code":"context_length_exceeded""#)
        );
    }
}
