//! What the policy decided over a request, as its record has it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What the policy decided (R3-4.4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Decision {
    /// What is to be done.
    pub status: DecisionStatus,
    /// Why, in words.
    pub reason: String,
    /// Tokens that are missing; 0 when it fits.
    pub deficit: u64,
    /// Tokens kept free whatever happens.
    #[serde(default)]
    pub emergency_floor: u64,
    /// Of a request that cannot be made to fit, the three largest parts, the largest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub largest: Vec<Largest>,
    /// Whether it was only reported and not enforced (R3-5.1).
    pub dry_run: bool,
}

/// A part of a request that cannot be made to fit. Its name is ours: messages have numbers and roles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Largest {
    /// Its name, such as `message 4 (tool)`.
    pub part: String,
    /// Tokens of it as it came.
    pub tokens: u64,
}

/// What is to be done with a request (R3-4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DecisionStatus {
    /// It fits as it is.
    Ok,
    /// It fits once something is condensed or pointed at.
    NeedsSummary,
    /// It cannot be made to fit.
    Reject,
}

impl DecisionStatus {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Ok, Self::NeedsSummary, Self::Reject];

    /// The word in records, metrics and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::NeedsSummary => "needs_summary",
            Self::Reject => "reject",
        }
    }
}
