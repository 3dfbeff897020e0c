//! What a call of a model used. Knows no provider and no price.

use serde::{Deserialize, Serialize};

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
    /// Reply tokens in all, reasoning included.
    pub output: u64,
    /// Reply tokens spent on reasoning that is not shown.
    pub reasoning: u64,
}

impl std::ops::AddAssign for Usage {
    /// Sums saturate: a provider may report anything.
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.cached_input = self.cached_input.saturating_add(other.cached_input);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.output = self.output.saturating_add(other.output);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}
