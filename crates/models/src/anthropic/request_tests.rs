//! Bodies as the Messages API expects them.

use std::time::Duration;

use larder_text::message::{Message, ToolCall, ToolDef};

use super::*;

fn settings(capabilities: &[Capability]) -> ProviderSettings {
    ProviderSettings { capabilities: capabilities.iter().copied().collect(), extra_body: Map::new() }
}

fn request(messages: Vec<Message>) -> ChatRequest {
    ChatRequest::new("m", messages, 4_096, Duration::from_secs(1))
}

fn text(role: Role, text: &str) -> Message {
    Message::text(role, text)
}

fn call(id: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.to_owned(), name: "find".to_owned(), arguments: arguments.to_owned() }
}

#[test]
fn a_whole_conversation() {
    let picture = Content::Image { media_type: "image/png".to_owned(), data: "QUJD".to_owned() };
    let result =
        |id: &str, found: &str| Message { tool_call_id: Some(id.to_owned()), ..text(Role::Tool, found) };
    let messages = vec![
        text(Role::System, "rules"),
        text(Role::System, ""),
        Message { content: vec![Content::Text { text: "look".to_owned() }, picture], ..text(Role::User, "") },
        Message {
            tool_calls: vec![call("f:1", "{\"q\":1}"), call("c2", "{\"q\"")],
            ..text(Role::Assistant, "")
        },
        result("f:1", "found"),
        result("c2", ""),
        text(Role::System, "hurry"),
    ];
    let expected = json!({
        "model": "m", "max_tokens": 4096,
        "tools": [{"name": "find", "description": "d", "input_schema": {"type": "object"}}],
        "system": [{"type": "text", "text": "rules"}],
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "look"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
            ]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "f_1", "name": "find", "input": {"q": 1}},
                {"type": "tool_use", "id": "c2", "name": "find", "input": {"arguments": "{\"q\""}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "f_1", "content": [{"type": "text", "text": "found"}]},
                {"type": "tool_result", "tool_use_id": "c2", "content": []},
                {"type": "text", "text": "hurry"},
            ]},
        ],
        "temperature": 0.5,
        "stream": true,
    });
    let tool = ToolDef {
        name: "find".to_owned(),
        description: "d".to_owned(),
        parameters: json!({"type": "object"}),
    };
    let request = ChatRequest { tools: vec![tool], temperature: Some(0.5), ..request(messages) };
    assert_eq!(body(&request, &settings(&[]), None, true), expected);
}

#[test]
fn breakpoints_end_the_system_text_and_the_stable_prefix() {
    let messages = vec![
        text(Role::System, "s"),
        text(Role::User, "a"),
        text(Role::Assistant, "b"),
        text(Role::User, "c"),
    ];
    let stable = |stable_messages| ChatRequest { stable_messages, ..request(messages.clone()) };
    let marks = |request: &ChatRequest, settings: &ProviderSettings| {
        body(request, settings, None, false).to_string().matches("cache_control").count()
    };
    let able = settings(&[Capability::Cache]);
    assert_eq!(marks(&stable(3), &settings(&[])), 0, "only where the model caches");
    assert_eq!(marks(&stable(0), &able), 0);
    assert_eq!(marks(&stable(1), &able), 1);
    let marked = body(&stable(3), &able, None, false);
    assert!(marked["system"][0]["cache_control"].is_object());
    assert!(marked["messages"][1]["content"][0]["cache_control"].is_object());
    assert_eq!(marked.to_string().matches("cache_control").count(), 2);
    let tool = ToolDef { name: "t".to_owned(), description: String::new(), parameters: json!({}) };
    let no_system =
        ChatRequest { tools: vec![tool], stable_messages: 1, ..request(vec![text(Role::User, "a")]) };
    assert!(body(&no_system, &able, None, false)["tools"][0]["cache_control"].is_object());
}

#[test]
fn thinking_is_off_unless_a_budget_can_be_had() {
    let base = ChatRequest { temperature: Some(0.2), ..request(vec![text(Role::User, "a")]) };
    let thinks =
        |request: &ChatRequest, budget| body(request, &settings(&[]), budget, false).get("thinking").cloned();
    assert_eq!(thinks(&base, None), None);
    assert_eq!(thinks(&base, Some(2_000)), Some(json!({"type": "enabled", "budget_tokens": 2000})));
    assert_eq!(thinks(&base, Some(9_000)).unwrap()["budget_tokens"], 4095, "less than the reply may have");
    assert_eq!(thinks(&base, Some(1_000)), None, "less than the API takes");
    assert!(body(&base, &settings(&[]), Some(2_000), false).get("temperature").is_none());
    let after_tool = request(vec![Message { tool_call_id: Some("c".to_owned()), ..text(Role::Tool, "x") }]);
    assert_eq!(thinks(&after_tool, Some(2_000)), None);
}

#[test]
fn a_schema_goes_into_the_output_config() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}});
    let asked = ChatRequest { schema: Some(schema), ..request(vec![text(Role::User, "a")]) };
    let format = &body(&asked, &settings(&[Capability::JsonSchema]), None, false)["output_config"]["format"];
    assert_eq!(format["type"], "json_schema");
    assert_eq!(format["schema"]["additionalProperties"], false);
    assert!(body(&asked, &settings(&[]), None, false).get("output_config").is_none());
}
