//! Reduces JSON Schema to the subset that `output_config.format` accepts. Whatever is dropped is checked after the
//! reply anyway.

use serde_json::{Map, Value};

/// Maximum nesting depth examined.
const MAX_DEPTH: usize = 64;
/// Constraints that the API rejects and that only narrow a value, and annotations it does not use.
const LEFT_OUT: [&str; 16] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "examples",
    "$schema",
    "$id",
];
/// Keywords that the API accepts unchanged.
const PLAIN: [&str; 8] = ["type", "enum", "const", "description", "title", "default", "required", "$ref"];
/// Formats that the API knows.
const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6"];

/// `schema` without what the API rejects, and with every object closed; `None` if closing would change its meaning
/// (maps with free keys, conditionals, external references). The reply is then only checked, not constrained.
pub fn supported(schema: &Value) -> Option<Value> {
    reduce(schema, 0)
}

fn reduce(schema: &Value, depth: usize) -> Option<Value> {
    let schema = schema.as_object().filter(|_| depth < MAX_DEPTH)?;
    let mut reduced = Map::new();
    for (key, value) in schema {
        let value = match key.as_str() {
            "$ref" if !value.as_str()?.starts_with("#/$defs/") => return None,
            "additionalProperties" if *value == Value::Bool(false) => continue,
            "format" if !FORMATS.iter().any(|format| value == format) => continue,
            key if LEFT_OUT.contains(&key) => continue,
            key if PLAIN.contains(&key) || key == "format" => value.clone(),
            "properties" | "$defs" => {
                let entry =
                    |(name, schema): (&String, &Value)| Some((name.clone(), reduce(schema, depth + 1)?));
                value.as_object()?.iter().map(entry).collect::<Option<_>>().map(Value::Object)?
            }
            "items" => reduce(value, depth + 1)?,
            "anyOf" | "allOf" => {
                value.as_array()?.iter().map(|schema| reduce(schema, depth + 1)).collect::<Option<_>>()?
            }
            _ => return None,
        };
        reduced.insert(key.clone(), value);
    }
    let is_object =
        reduced.get("type").is_some_and(|kind| kind == "object") || reduced.contains_key("properties");
    if is_object {
        // An object without properties is a map with free keys; closed, it could only be empty.
        reduced.get("properties")?;
        reduced.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    Some(Value::Object(reduced))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn constraints_go_and_objects_close() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "n": {"type": "integer", "minimum": 0, "maximum": 9, "description": "d"},
                "s": {"type": "string", "maxLength": 5, "format": "date"},
                "u": {"type": "string", "format": "odd"},
                "l": {"type": "array", "maxItems": 3, "items": {"type": "object", "properties": {"a": {"const": 1}}}},
                "x": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/d"}]},
            },
            "required": ["n"],
            "$defs": {"d": {"enum": ["a", "b"]}},
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "n": {"type": "integer", "description": "d"},
                "s": {"type": "string", "format": "date"},
                "u": {"type": "string"},
                "l": {"type": "array", "items":
                    {"type": "object", "properties": {"a": {"const": 1}}, "additionalProperties": false}},
                "x": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/d"}]},
            },
            "required": ["n"],
            "$defs": {"d": {"enum": ["a", "b"]}},
            "additionalProperties": false,
        });
        assert_eq!(supported(&schema), Some(expected));
    }

    #[test]
    fn inexpressible_schemas_are_not_partly_sent() {
        let mut deep = json!({"type": "string"});
        for _ in 0..100 {
            deep = json!({"type": "array", "items": deep});
        }
        for schema in [
            json!({"type": "object"}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "object", "properties": {"a": {"type": "object"}}}),
            json!({"oneOf": [{"type": "string"}]}),
            json!({"$ref": "https://example.com/schema"}),
            json!(true),
            deep,
        ] {
            assert_eq!(supported(&schema), None, "{schema}");
        }
    }
}
