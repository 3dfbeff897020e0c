//! JSON documents: written in one format, read even after edits, and rewritten without losing what others added.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::problem::{ParseProblem, ParsedDocument};

/// The text of a JSON document: indented by two spaces, ending with a line break.
pub fn write_json<T: Serialize>(value: &T) -> String {
    // The values have string keys and finite numbers, so serialization cannot fail.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

/// Reads a JSON document; unknown keys are ignored and stay in the file.
pub fn read_json<T: DeserializeOwned>(text: &str) -> ParsedDocument<T> {
    match serde_json::from_str(text.strip_prefix('\u{feff}').unwrap_or(text)) {
        Ok(value) => ParsedDocument::new(Some(value), Vec::new()),
        Err(error) => ParsedDocument::new(None, vec![ParseProblem::new(error.line(), error.to_string())]),
    }
}

/// `text` updated to contain `value`: keys that `value` does not have are preserved, including those of list members
/// with the same `id`. A text that already contains exactly this value is returned unchanged.
///
/// # Errors
/// If the text is not JSON, or rewriting it would lose something: a duplicate key, digits of a number.
pub fn rewrite_json<T: Serialize>(text: &str, value: &T) -> Result<String, ParseProblem> {
    let text_only = text.strip_prefix('\u{feff}').unwrap_or(text);
    let old: Value = serde_json::from_str(text_only)
        .map_err(|error| ParseProblem::new(error.line(), error.to_string()))?;
    let new = serde_json::to_value(value).map_err(|error| ParseProblem::new(1, error.to_string()))?;
    let mut merged = old.clone();
    merge(&mut merged, new);
    if merged == old {
        return Ok(text.to_owned());
    }
    if let Some(line) = lost_in(text_only, &old) {
        let message = "a duplicate key or digits of a number would be lost; fix this by hand, then try again";
        return Err(ParseProblem::new(line, message));
    }
    Ok(write_json(&merged))
}

fn merge(old: &mut Value, new: Value) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in new {
                merge(old.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::Array(old), Value::Array(new)) if new.iter().all(|member| member.get("id").is_some()) => {
            let before = std::mem::take(old);
            old.extend(new.into_iter().map(|member| {
                let mut kept = before
                    .iter()
                    .find(|kept| kept.get("id") == member.get("id"))
                    .cloned()
                    .unwrap_or_default();
                merge(&mut kept, member);
                kept
            }));
        }
        (old, new) => *old = new,
    }
}

/// The first line of `text` with something that is missing from `value`, which was read from it.
fn lost_in(text: &str, value: &Value) -> Option<usize> {
    let written = value.to_string();
    let (mut expected, mut line) = (written.as_str(), 1);
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        let (token, length) = match char {
            '"' => {
                let length = string_length(rest);
                let read: String = serde_json::from_str(&rest[..length]).unwrap_or_default();
                (Value::String(read).to_string(), length)
            }
            char => (char.to_string(), char.len_utf8()),
        };
        line += usize::from(char == '\n');
        if !char.is_ascii_whitespace() {
            match expected.strip_prefix(token.as_str()) {
                Some(after) => expected = after,
                None => return Some(line),
            }
        }
        rest = &rest[length..];
    }
    None
}

/// The length of the string literal at the start.
fn string_length(text: &str) -> usize {
    let mut escaped = true;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' if !escaped => return at + 1,
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_others_put_in_stays() {
        let text = "{\"z\": 1, \"facts\": [ {\"id\": \"b\", \"mine\": true, \"text\": \"old\"}, {\"id\": \"a\"} ], \"deep\": {\"x\": [1, 2], \"y\": \"\\u00e9\"}}";
        let new =
            json!({"facts": [{"id": "b", "text": "new"}, {"id": "c"}], "deep": {"y": "é"}, "added": null});
        let merged: Value = serde_json::from_str(&rewrite_json(text, &new).unwrap()).unwrap();
        assert_eq!(
            merged.to_string(),
            json!({"z": 1, "facts": [{"id": "b", "mine": true, "text": "new"}, {"id": "c"}], "deep": {"x": [1, 2], "y": "é"}, "added": null}).to_string()
        );
        assert_eq!(rewrite_json(text, &json!({"z": 1})).unwrap(), text);
    }

    #[test]
    fn nothing_is_written_that_would_lose_something() {
        for (text, line) in [
            ("{\n\"a\": 1,\n\"a\": 2}", 2),
            ("{\n\"b\": 0,\n\"a\": 12345678901234567890123}", 3),
            ("{\n\n\"a\": 1.50}", 3),
        ] {
            assert_eq!(rewrite_json(text, &json!({"c": 1})).unwrap_err().line, line, "{text}");
        }
        assert_eq!(rewrite_json("{\n\"a\": }", &json!({})).unwrap_err().line, 2);
    }
}
