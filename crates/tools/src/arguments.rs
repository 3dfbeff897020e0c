//! Arguments as typed values, and the schemas that models are shown. Knows no tool.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::spec::ToolError;

/// Reads arguments that keep to their schema.
pub(super) fn read<T: DeserializeOwned>(arguments: &Value) -> Result<T, ToolError> {
    let arguments = if arguments.is_null() { json!({}) } else { arguments.clone() };
    serde_json::from_value(arguments)
        .map_err(|error| ToolError::Arguments(format!("the arguments cannot be read: {error}")))
}

/// The schema of an object with these properties and no others.
pub(super) fn object(required: &[&str], properties: Value) -> Value {
    json!({"type": "object", "additionalProperties": false, "required": required, "properties": properties})
}

/// A text that is needed, with what it is for.
pub(super) fn text(description: &str, longest: usize) -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": longest, "description": description})
}

/// A whole number within bounds, with what it is for.
pub(super) fn number(description: &str, least: u64, most: u64) -> Value {
    json!({"type": "integer", "minimum": least, "maximum": most, "description": description})
}
