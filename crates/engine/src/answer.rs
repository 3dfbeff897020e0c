//! A recipe's answer as typed values. If a conversion fails, the model is shown why and asked again. Knows no recipe.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// An answer that satisfies its schema but is unusable nevertheless. The text is written for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnusableAnswer(String);

impl UnusableAnswer {
    /// Creates the error with the text shown to the model.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// Fails with the message unless `is_fine`.
    pub fn unless(is_fine: bool, message: impl FnOnce() -> String) -> Result<(), Self> {
        if is_fine { Ok(()) } else { Err(Self(message())) }
    }
}

/// Deserializes a recipe's answer.
///
/// # Errors
/// If the value does not have the right shape; names the field.
pub fn read<T: DeserializeOwned>(output: &Value) -> Result<T, UnusableAnswer> {
    T::deserialize(output).map_err(|error| UnusableAnswer::new(format!("the answer cannot be read: {error}")))
}

/// The texts that are not blank, trimmed.
pub fn said(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

/// The text, if it is not blank.
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
