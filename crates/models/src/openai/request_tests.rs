//! Bodies as OpenAI-compatible servers expect them.

use std::time::Duration;

use larder_text::message::{ToolCall, ToolDef};

use super::*;

fn settings(capabilities: &[Capability]) -> ProviderSettings {
    ProviderSettings { capabilities: capabilities.iter().copied().collect(), extra_body: Map::new() }
}

#[test]
fn a_whole_conversation() {
    let picture = Content::Image { media_type: "image/png".to_owned(), data: "QUJD".to_owned() };
    let call =
        ToolCall { id: "c1".to_owned(), name: "find".to_owned(), arguments: r#"{"q": 1 }"#.to_owned() };
    let messages = vec![
        Message::text(Role::System, "rules"),
        Message {
            content: vec![Content::Text { text: "look".to_owned() }, picture],
            ..Message::text(Role::User, "")
        },
        Message { tool_calls: vec![call], ..Message::text(Role::Assistant, "") },
        Message { tool_call_id: Some("c1".to_owned()), ..Message::text(Role::Tool, "found") },
    ];
    let tool = ToolDef {
        name: "find".to_owned(),
        description: "d".to_owned(),
        parameters: json!({"type": "object"}),
    };
    let request = ChatRequest {
        tools: vec![tool],
        temperature: Some(0.3),
        ..ChatRequest::new("m", messages, 7, Duration::from_secs(1))
    };
    let expected = json!({
        "model": "m",
        "messages": [
            {"role": "system", "content": "rules"},
            {"role": "user", "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
            ]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{\"q\": 1 }"}},
            ]},
            {"role": "tool", "content": "found", "tool_call_id": "c1"},
        ],
        "max_tokens": 7,
        "temperature": 0.3,
        "tools": [{"type": "function", "function":
            {"name": "find", "description": "d", "parameters": {"type": "object"}}}],
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    assert_eq!(body(&request, &settings(&[]), true), expected);
}

#[test]
fn the_limit_and_schema_follow_the_capabilities() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let request = ChatRequest {
        schema: Some(schema.clone()),
        ..ChatRequest::new("m", Vec::new(), 7, Duration::from_secs(1))
    };
    assert_eq!(body(&request, &settings(&[]), false), json!({"model": "m", "messages": [], "max_tokens": 7}));
    let mut able = settings(&[Capability::JsonSchema, Capability::MaxCompletionTokens]);
    able.extra_body.insert("seed".to_owned(), json!(1));
    let format = json!({"type": "json_schema",
        "json_schema": {"name": "answer", "schema": schema, "strict": false}});
    let expected = json!({"model": "m", "messages": [], "max_completion_tokens": 7, "response_format": format,
        "seed": 1});
    assert_eq!(body(&request, &able, false), expected);
}

#[test]
fn strict_mode_is_asked_for_only_where_it_is_granted() {
    for (schema, strict) in [
        (
            json!({"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": false}),
            true,
        ),
        (
            json!({"type": "object", "properties": {"a": {}}, "required": [], "additionalProperties": false}),
            false,
        ),
        (json!({"type": "object", "properties": {"a": {}}, "required": ["a"]}), false),
        (json!({"type": "array", "items": {"type": "object"}}), false),
        (json!({"type": "string"}), true),
    ] {
        assert_eq!(is_strict(&schema), strict, "{schema}");
    }
}
