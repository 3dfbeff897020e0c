//! What a call of a model used. Knows no provider and no price.

use serde::{Deserialize, Serialize};

/// The service under which a provider serves a call, as far as it changes the price.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Service {
    /// The usual one, and every name that is unknown.
    #[default]
    Standard,
    /// Batches, answered within a day.
    Batch,
    /// Slower and cheaper.
    Flex,
    /// Faster and dearer.
    Priority,
    /// A tier between these.
    Balanced,
    /// Faster and dearer than priority.
    Ultrafast,
}

impl Service {
    /// Every service.
    pub const ALL: [Self; 6] =
        [Self::Standard, Self::Batch, Self::Flex, Self::Priority, Self::Balanced, Self::Ultrafast];

    /// Its name, as providers and tables of prices have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Batch => "batch",
            Self::Flex => "flex",
            Self::Priority => "priority",
            Self::Balanced => "balanced",
            Self::Ultrafast => "ultrafast",
        }
    }

    /// The service of this name, as `service_tier` of a reply has it.
    pub fn from_name(name: &str) -> Self {
        Self::ALL.into_iter().find(|service| service.as_str() == name).unwrap_or_default()
    }

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    fn is_standard(&self) -> bool {
        *self == Self::Standard
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Tokens as the provider reports them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Usage {
    /// Prompt tokens in all, cached ones included.
    pub input: u64,
    /// Prompt tokens read from the provider's cache.
    pub cached_input: u64,
    /// Prompt tokens written to the provider's cache (billed apart by some).
    pub cache_write: u64,
    /// Those of them that are kept for an hour rather than the usual time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_1h: u64,
    /// Reply tokens in all, reasoning included.
    pub output: u64,
    /// Reply tokens spent on reasoning that is not shown.
    pub reasoning: u64,
    /// The service that the call was served under.
    #[serde(default, skip_serializing_if = "Service::is_standard")]
    pub service: Service,
}

impl std::ops::AddAssign for Usage {
    /// Sums saturate: a provider may report anything. The service remains that of the first.
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.cached_input = self.cached_input.saturating_add(other.cached_input);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.cache_write_1h = self.cache_write_1h.saturating_add(other.cache_write_1h);
        self.output = self.output.saturating_add(other.output);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}
