//! How a request ended.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The client received the complete reply.
    Ok,
    /// It could not be made to fit, or its key has no budget left: nothing was sent upstream.
    Refused,
    /// It could not be parsed: nothing was sent upstream.
    Invalid,
    /// The upstream answered with an error, which the client got unchanged.
    UpstreamError,
    /// The upstream was unreachable, broke off or timed out.
    UpstreamFailed,
    /// The client left before the reply was complete.
    ClientGone,
    /// An internal error.
    Failed,
}

impl Outcome {
    /// Every one.
    pub const ALL: [Self; 7] = [
        Self::Ok,
        Self::Refused,
        Self::Invalid,
        Self::UpstreamError,
        Self::UpstreamFailed,
        Self::ClientGone,
        Self::Failed,
    ];

    /// The word in records, metrics and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Refused => "refused",
            Self::Invalid => "invalid",
            Self::UpstreamError => "upstream_error",
            Self::UpstreamFailed => "upstream_failed",
            Self::ClientGone => "client_gone",
            Self::Failed => "failed",
        }
    }

    /// Whether the prompt was sent upstream.
    pub const fn sent(self) -> bool {
        !matches!(self, Self::Refused | Self::Invalid)
    }
}
