//! What the recipes of a turn answer: the JSON as typed values, and how each becomes a value of a document.
//!
//! The shapes are those of the recipes' `output_schema`; an unknown field is refused here as it is there. What a schema
//! cannot say, such as that a goal depends only on goals of its plan, is said by the conversions, in words that a model
//! can act on. Knows no recipe file, asks no model, and decides nothing about what happens next.

mod gathering;
mod iteration;
mod memory;
mod plan;
mod query;
mod validation;

pub use gathering::{
    Dropped, GatheringAnswer, LinkChoice, PreferenceAnswer, PriorTurnAnswer, RetrievalAnswer, ShownItems,
    Sufficiency,
};
pub use iteration::{ClaimAnswer, IterationAnswer, ToolRequest};
pub use memory::{RememberAnswer, RememberedFact, RememberedPreference, SummaryAnswer};
pub use plan::{GoalAnswer, PlanAnswer, TaskAnswer};
pub use query::{QueryAnswer, ReferenceAnswer, ReflectionAnswer};
pub use validation::{Checks, GoalCheck, ValidationAnswer};

/// Below this, reflection asks the user and validation does not approve (R0-14.2, R0-14.7, C67).
pub const CONFIDENCE_THRESHOLD: f64 = 0.7;

#[cfg(test)]
#[path = "answers_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "recorded_tests.rs"]
mod recorded;
