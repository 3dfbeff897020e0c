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
mod research;
mod validation;

use serde::de::DeserializeOwned;
use serde_json::Value;

pub use gathering::{
    Dropped, GatheringAnswer, Known, LinkChoice, PreferenceAnswer, PriorTurnAnswer, RetrievalAnswer,
    Sufficiency,
};
pub use iteration::{ClaimAnswer, IterationAnswer, ToolRequest};
pub use memory::{RememberAnswer, RememberedFact, RememberedPreference, SummaryAnswer};
pub use plan::{GoalAnswer, PlanAnswer, TaskAnswer};
pub use query::{QueryAnswer, ReferenceAnswer, ReflectionAnswer};
pub use research::{
    ExtractAnswer, FoundClaim, ListingAnswer, ResearchPlanAnswer, SourcesAnswer, WrittenResearch,
};
pub use validation::{Checks, GoalCheck, ValidationAnswer};

/// Below this, reflection asks the user and validation does not approve (R0-14.2, R0-14.7, C67).
pub const CONFIDENCE_THRESHOLD: f64 = 0.7;

/// An answer that keeps to its schema and cannot be used all the same. The text is written for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(String);

impl Unusable {
    fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// Unless `is_fine`, the message.
    fn unless(is_fine: bool, message: impl FnOnce() -> String) -> Result<(), Self> {
        if is_fine { Ok(()) } else { Err(Self(message())) }
    }
}

/// The answer of a recipe as its type.
///
/// # Errors
/// A value that has not the shape; names the field.
pub fn read<T: DeserializeOwned>(output: &Value) -> Result<T, Unusable> {
    T::deserialize(output).map_err(|error| Unusable::new(format!("the answer cannot be read: {error}")))
}

/// Texts that say something, without what stands around them.
fn said(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

/// The text, if it says something.
fn stated(text: Option<&String>) -> Option<String> {
    text.map(|text| text.trim()).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A dotted topic such as `commerce.laptop` (R1-4.5), from whatever a model made of it; `general` if nothing is left.
pub fn topic(written: &str) -> String {
    let step = |step: &str| {
        let plain: String = step
            .chars()
            .flat_map(char::to_lowercase)
            .map(|char| if char.is_alphanumeric() { char } else { '_' })
            .collect();
        let words: Vec<&str> = plain.split('_').filter(|word| !word.is_empty()).collect();
        words.join("_")
    };
    let steps: Vec<String> =
        written.split(['.', '/', '>']).map(step).filter(|step| !step.is_empty()).collect();
    if steps.is_empty() { "general".to_owned() } else { steps.join(".") }
}

#[cfg(test)]
#[path = "answers_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "recorded_tests.rs"]
mod recorded;
