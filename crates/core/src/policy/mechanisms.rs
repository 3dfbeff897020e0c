//! The mechanisms of the policy, each of which an evaluation can switch off to measure what it contributes. They are not
//! settings: the product always uses all of them.

/// Which mechanisms are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mechanisms {
    /// A result refers to lines that stand above it instead of repeating them.
    pub references: bool,
    /// JSON is written tersely.
    pub terse_json: bool,
    /// A result above its cap is condensed when it enters.
    pub caps: bool,
    /// The first pointer must save more than the tool that it makes necessary costs.
    pub tool_pays: bool,
    /// Older results are compacted where that saves money, not only where the prompt would not fit.
    pub epochs: bool,
    /// An epoch gives up results first that later ones supersede.
    pub superseded_first: bool,
}

impl Default for Mechanisms {
    fn default() -> Self {
        Self {
            references: true,
            terse_json: true,
            caps: true,
            tool_pays: true,
            epochs: true,
            superseded_first: true,
        }
    }
}
