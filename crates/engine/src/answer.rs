//! What a recipe answered, as typed values. A conversion that fails explains itself to the model, which is asked again.
//! Knows no recipe.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// An answer that keeps to its schema and cannot be used all the same. The text is written for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnusableAnswer(String);

impl UnusableAnswer {
    /// With the text that the model reads.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// Unless `is_fine`, the message.
    pub fn unless(is_fine: bool, message: impl FnOnce() -> String) -> Result<(), Self> {
        if is_fine { Ok(()) } else { Err(Self(message())) }
    }
}

/// The answer of a recipe as its type.
///
/// # Errors
/// A value that has not the shape; names the field.
pub fn read<T: DeserializeOwned>(output: &Value) -> Result<T, UnusableAnswer> {
    T::deserialize(output).map_err(|error| UnusableAnswer::new(format!("the answer cannot be read: {error}")))
}

/// The texts that are not blank, trimmed.
pub fn said(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

/// The text, if it says something.
pub fn stated(text: Option<&String>) -> Option<String> {
    text.map(|text| text.trim()).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A dotted topic such as `commerce.laptop` (R1-4.5), from a model's spelling of it; `general` if nothing is left.
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
mod tests {
    use super::*;

    #[test]
    fn topics_are_dotted() {
        for (written, expected) in [
            ("commerce.laptop", "commerce.laptop"),
            (" Über uns! ", "über_uns"),
            ("..", "general"),
            ("", "general"),
        ] {
            assert_eq!(topic(written), expected);
        }
    }
}
