//! The answers of the recipes of a turn as typed values, and how each becomes a value of a document.
//!
//! The shapes are those of the recipes' `output_schema`; both reject unknown fields. The conversions check what a
//! schema cannot express, such as that a goal depends only on goals of its plan, with messages that a model can act
//! on. Knows no recipe file, calls no model, and decides nothing about the next phase.

mod gathering;
mod iteration;
mod memory;
mod plan;
mod query;
mod validation;

pub use gathering::{
    Dropped, GatheringAnswer, LinkChoice, PreferenceAnswer, PriorTurnAnswer, RetrievalAnswer, ShownItems,
};
pub use iteration::{ClaimAnswer, IterationAnswer, ToolRequest};
pub use memory::{RememberAnswer, RememberedFact, RememberedPreference, SummaryAnswer};
pub use plan::{GoalAnswer, PlanAnswer, TaskAnswer};
pub use query::{QueryAnswer, ReferenceAnswer, ReflectionAnswer};
pub use validation::{Checks, GoalCheck, ValidationAnswer};

/// Confidence below which reflection asks the user and validation does not approve (R0-14.2, R0-14.7, C67).
pub const CONFIDENCE_THRESHOLD: f64 = 0.7;

#[cfg(test)]
#[path = "answers_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "recorded_tests.rs"]
mod recorded;
