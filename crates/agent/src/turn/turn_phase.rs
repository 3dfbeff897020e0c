//! The phases of a turn: their order, numbers and names. Does not know what a phase does.

use serde::{Deserialize, Serialize};

/// The phases, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnPhase {
    /// Phase 0.
    Analyze,
    /// Phase 1.
    Reflect,
    /// Phase 2.
    Gather,
    /// Phase 3.
    Plan,
    /// Phase 4.
    Coordinate,
    /// Phase 5.
    Synthesize,
    /// Phase 6.
    Validate,
    /// Phase 7.
    Save,
}

impl TurnPhase {
    /// All phases, in order.
    pub const ALL: [Self; 8] = [
        Self::Analyze,
        Self::Reflect,
        Self::Gather,
        Self::Plan,
        Self::Coordinate,
        Self::Synthesize,
        Self::Validate,
        Self::Save,
    ];

    /// 0 to 7, as users know it.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The phase with this number, or none above 7.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The name in events and errors.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Analyze => "query_analyzer",
            Self::Reflect => "reflection",
            Self::Gather => "context_gatherer",
            Self::Plan => "planner",
            Self::Coordinate => "coordinator",
            Self::Synthesize => "synthesizer",
            Self::Validate => "validator",
            Self::Save => "save",
        }
    }
}
