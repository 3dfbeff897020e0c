//! A copy of a JSON Schema with bounds wherever the schema has none, so that a model cannot run on. Any value valid
//! under the copy is valid under the schema: keywords are only added, and only where the schema has none.

use serde_json::{Map, Value, json};

/// The magnitude limit of numbers without bounds in the schema.
const LARGEST_NUMBER: i64 = 1_000_000_000;
/// Maximum items of a list, and properties of an object without named ones.
const MOST_ITEMS: u64 = 12;
/// Minimum and maximum characters of a text, whatever the budget.
const TEXT_CHARACTERS: std::ops::RangeInclusive<u64> = 48..=1_200;
/// Characters that a token of English text has, about.
const CHARACTERS_PER_TOKEN: u64 = 4;
/// Maximum depth at which bounds are added; deeper levels stay unchanged.
const DEEPEST: usize = 64;

/// Formats that the grammar supports; others do not affect validity and would be rejected.
const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"];

/// `schema` with bounds that suit a reply of `budget` tokens.
pub(super) fn bounded(schema: &Value, budget: usize) -> Value {
    let mut schema = schema.clone();
    let mut texts = 0;
    count_texts(&schema, 0, &mut texts);
    let characters = (budget as u64).saturating_mul(CHARACTERS_PER_TOKEN) / (texts + 1);
    let text = characters.clamp(*TEXT_CHARACTERS.start(), *TEXT_CHARACTERS.end());
    // An `allOf` combines schemas that each know some of the properties: closing one would exclude the others'.
    let open = contains_key(&schema, "allOf", 0);
    Bounds { text, open }.apply(&mut schema, !open, 0);
    schema
}

struct Bounds {
    /// Maximum characters of a text without its own bound.
    text: u64,
    /// Objects stay open to properties they do not name.
    open: bool,
}

impl Bounds {
    fn apply(&self, schema: &mut Value, close: bool, depth: usize) {
        if depth > DEEPEST {
            return;
        }
        if *schema == Value::Bool(true) || schema.as_object().is_some_and(Map::is_empty) {
            *schema = self.scalar();
            return;
        }
        let Some(map) = schema.as_object_mut() else { return };
        self.descend(map, close, depth);
        if ["enum", "const", "$ref", "anyOf", "oneOf", "allOf", "not"]
            .iter()
            .any(|key| map.contains_key(*key))
        {
            return;
        }
        let kinds = match map.get("type") {
            Some(Value::String(kind)) => vec![kind.clone()],
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => return,
        };
        for kind in kinds {
            match kind.as_str() {
                "string" => self.text(map),
                "integer" | "number" => number(map, kind == "integer"),
                "array" => self.array(map),
                "object" => self.object(map, close),
                _ => {}
            }
        }
    }

    fn descend(&self, map: &mut Map<String, Value>, close: bool, depth: usize) {
        let names_properties = map.contains_key("properties");
        for (key, value) in map.iter_mut() {
            match (key.as_str(), value) {
                ("properties" | "$defs" | "definitions" | "patternProperties", Value::Object(schemas)) => {
                    schemas.values_mut().for_each(|schema| self.apply(schema, !self.open, depth + 1));
                }
                ("items" | "additionalItems" | "additionalProperties", schema @ Value::Object(_)) => {
                    self.apply(schema, !self.open, depth + 1);
                }
                ("anyOf" | "oneOf" | "allOf", Value::Array(schemas)) => {
                    let close = close && !names_properties;
                    schemas.iter_mut().for_each(|schema| self.apply(schema, close, depth + 1));
                }
                ("prefixItems" | "items", Value::Array(schemas)) => {
                    schemas.iter_mut().for_each(|schema| self.apply(schema, !self.open, depth + 1));
                }
                _ => {}
            }
        }
    }

    /// Any scalar value.
    fn scalar(&self) -> Value {
        let mut schema = json!({"type": ["string", "number", "boolean", "null"]});
        self.apply(&mut schema, false, 0);
        schema
    }

    fn text(&self, map: &mut Map<String, Value>) {
        if map.get("format").and_then(Value::as_str).is_some_and(|format| !FORMATS.contains(&format)) {
            map.remove("format");
        }
        if !map.contains_key("maxLength") && !map.contains_key("format") {
            let least = map.get("minLength").and_then(Value::as_u64).unwrap_or(0);
            map.insert("maxLength".to_owned(), self.text.max(least).into());
        }
    }

    fn array(&self, map: &mut Map<String, Value>) {
        if map.get("uniqueItems") == Some(&Value::Bool(false)) || at_most_one(map) {
            map.remove("uniqueItems");
        }
        let fixed = map.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len) as u64;
        if !map.contains_key("maxItems") {
            let least = map.get("minItems").and_then(Value::as_u64).unwrap_or(0);
            map.insert("maxItems".to_owned(), MOST_ITEMS.max(least).max(fixed).into());
        }
        if !map.contains_key("items") && fixed == 0 {
            map.insert("items".to_owned(), self.scalar());
        }
    }

    fn object(&self, map: &mut Map<String, Value>, close: bool) {
        let named = map.get("properties").and_then(Value::as_object).is_some_and(|named| !named.is_empty());
        let open = !map.contains_key("patternProperties")
            && matches!(map.get("additionalProperties"), None | Some(Value::Bool(true)));
        let required = map.get("required").and_then(Value::as_array).map_or(0, Vec::len) as u64;
        let every_required_is_named = map
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .all(|key| map.get("properties").and_then(|named| named.get(key)).is_some());
        if named && open && close && every_required_is_named && !map.contains_key("minProperties") {
            map.insert("additionalProperties".to_owned(), Value::Bool(false));
        } else if !named && open && close {
            map.insert("additionalProperties".to_owned(), self.scalar());
            if !map.contains_key("maxProperties") {
                let least = map.get("minProperties").and_then(Value::as_u64).unwrap_or(0);
                map.insert("maxProperties".to_owned(), MOST_ITEMS.max(least).max(required).into());
            }
        }
    }
}

fn at_most_one(map: &Map<String, Value>) -> bool {
    map.get("maxItems").and_then(Value::as_u64).is_some_and(|most| most <= 1)
}

fn number(map: &mut Map<String, Value>, integer: bool) {
    let bound = |keys: [&str; 2]| keys.iter().find_map(|key| map.get(*key).and_then(Value::as_f64));
    let (least, most) = (bound(["minimum", "exclusiveMinimum"]), bound(["maximum", "exclusiveMaximum"]));
    let largest = LARGEST_NUMBER as f64;
    if least.is_none() && most.is_none_or(|most| most > -largest) {
        let lowest = if most.is_none_or(|most| most > 0.0) { 0 } else { -LARGEST_NUMBER };
        map.insert("minimum".to_owned(), lowest.into());
    }
    if most.is_none() && least.is_none_or(|least| least < largest) {
        map.insert("maximum".to_owned(), LARGEST_NUMBER.into());
    }
    if !integer && !map.contains_key("multipleOf") {
        let width = most.unwrap_or(largest) - least.unwrap_or(0.0);
        if width > 0.0 {
            // Two decimals, or as many as divide a narrow range into a hundred steps.
            let decimals = (2.0 - width.log10().floor()).clamp(2.0, 9.0);
            map.insert("multipleOf".to_owned(), json!(10_f64.powi(-(decimals as i32))));
        }
    }
}

fn count_texts(value: &Value, depth: usize, texts: &mut u64) {
    if depth > DEEPEST {
        return;
    }
    match value {
        Value::Object(map) => {
            let is_text = map.get("type").is_some_and(|kind| kind == "string") && !map.contains_key("enum");
            *texts += u64::from(is_text);
            map.values().for_each(|value| count_texts(value, depth + 1, texts));
        }
        Value::Array(values) => values.iter().for_each(|value| count_texts(value, depth + 1, texts)),
        _ => {}
    }
}

fn contains_key(value: &Value, key: &str, depth: usize) -> bool {
    match value {
        _ if depth > DEEPEST => false,
        Value::Object(map) => {
            map.contains_key(key) || map.values().any(|value| contains_key(value, key, depth + 1))
        }
        Value::Array(values) => values.iter().any(|value| contains_key(value, key, depth + 1)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_structures_are_bounded_and_output_is_kept() {
        let schema = json!({"type": "object", "properties": {
            "why": {"type": "string"}, "short": {"type": "string", "maxLength": 9},
            "score": {"type": "number", "minimum": 0, "maximum": 1}, "count": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string", "format": "slug"}},
            "kind": {"enum": ["a", "b"]}, "any": {},
        }, "required": ["why"]});
        let bounded = bounded(&schema, 200);
        let property = |name: &str| &bounded["properties"][name];
        assert_eq!(bounded["additionalProperties"], false);
        assert_eq!(property("why")["maxLength"], 200);
        assert_eq!(property("short"), &schema["properties"]["short"]);
        assert_eq!(property("score")["multipleOf"], 0.01);
        assert_eq!(property("count"), &json!({"type": "integer", "minimum": 0, "maximum": LARGEST_NUMBER}));
        assert_eq!(property("tags")["maxItems"], MOST_ITEMS);
        assert!(property("tags")["items"].get("format").is_none());
        assert_eq!(property("kind"), &schema["properties"]["kind"]);
        assert_eq!(property("any")["type"], json!(["string", "number", "boolean", "null"]));
    }

    #[test]
    fn parts_of_an_all_of_stay_open_to_each_other() {
        let schema = json!({"allOf": [
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"type": "object", "properties": {"b": {"type": "null"}}, "required": ["b"]},
        ]});
        assert!(bounded(&schema, 100)["allOf"][0].get("additionalProperties").is_none());
    }

    #[test]
    fn a_schema_nested_beyond_reason_is_left_alone() {
        let deep = (0..500).fold(json!({}), |inner, _| json!({"type": "array", "items": inner}));
        assert!(bounded(&deep, 100).is_object());
    }
}
