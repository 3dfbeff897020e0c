//! Tests of schemas; the official suite is in `tests/json_schema_suite.rs`.

use serde_json::json;

use super::*;

#[test]
fn all_violations_come_with_their_pointers() {
    // The decision schema of R0-13.3.
    let schema = json!({
        "type": "object",
        "required": ["decision", "confidence", "reasoning"],
        "properties": {
            "decision": {"enum": ["PROCEED", "CLARIFY"]},
            "confidence": {"type": "number", "minimum": 0, "maximum": 1},
            "reasoning": {"type": "string", "maxLength": 500},
            "a/b~c": {"type": "array", "items": {"type": "integer"}}
        }
    });
    let schema = Schemas::default().compile(&schema).unwrap();
    assert!(schema.accepts(&json!({"decision": "PROCEED", "confidence": 1, "reasoning": ""})));
    let violations = schema.violations(&json!({"decision": "MAYBE", "confidence": 1.5, "a/b~c": [1, "x"]}));
    let mut paths: Vec<_> = violations.iter().map(|v| v.path.as_str()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["", "/a~1b~0c/1", "/confidence", "/decision"]);
    assert!(violations.iter().any(|v| v.keyword == "/properties/confidence/maximum"), "{violations:?}");
}

#[test]
fn messages_and_their_number_are_bounded() {
    let schema = Schemas::default().compile(&json!({"items": {"type": "integer"}})).unwrap();
    let violations = schema.violations(&json!(vec!["x".repeat(100_000); 100]));
    assert_eq!(violations.len(), MAX_VIOLATIONS);
    assert!(violations.iter().all(|v| v.message.chars().count() <= MESSAGE_CHARS + 1));
}

#[test]
fn a_reference_reaches_only_what_is_registered() {
    let uri = "http://localhost:1234/integer.json";
    let schema = json!({"$ref": uri});
    let error = Schemas::default().compile(&schema).unwrap_err().to_string();
    assert!(error.contains("integer.json"), "{error}");
    for outside in ["file:///etc/passwd", "https://example.com/x", "other.json"] {
        assert!(Schemas::default().compile(&json!({"$ref": outside})).is_err(), "{outside}");
    }
    let schemas = Schemas::new(JsonSchemaDraft::Draft7, [(uri.to_owned(), json!({"type": "integer"}))]);
    let schema = schemas.compile(&schema).unwrap();
    assert!(schema.accepts(&json!(1)) && !schema.accepts(&json!("1")));
}

#[test]
fn a_schema_that_is_none_is_refused_with_its_place() {
    let error = Schemas::default().compile(&json!({"properties": {"a": {"type": "text"}}})).unwrap_err();
    assert!(matches!(&error, SchemaError { path, .. } if path == "/properties/a/type"), "{error}");
}

#[test]
fn a_schema_is_compiled_once_and_the_cache_is_bounded() {
    let schemas = Schemas::default();
    let first = schemas.compile(&json!({"const": 1})).unwrap();
    assert!(Arc::ptr_eq(&first, &schemas.compile(&json!({"const": 1})).unwrap()));
    for n in 0..2 * CACHED_SCHEMAS {
        schemas.compile(&json!({"const": n})).unwrap();
    }
    assert!(schemas.cache().len() <= CACHED_SCHEMAS);
}

#[test]
fn a_hostile_value_cannot_stall_a_pattern() {
    let schema = Schemas::default().compile(&json!({"pattern": "^(?=x)(a|a)*$|^(a|a)*b$"})).unwrap();
    assert!(!schema.accepts(&json!("a".repeat(50_000))));
}

#[test]
fn format_is_an_annotation_in_both_drafts() {
    for draft in [JsonSchemaDraft::Draft7, JsonSchemaDraft::Draft202012] {
        let schema = Schemas::new(draft, []).compile(&json!({"format": "date"})).unwrap();
        assert!(schema.accepts(&json!("no date")));
    }
}
