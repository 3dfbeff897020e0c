//! Bodies as the Converse API expects them.

use std::time::Duration;

use larder_text::message::{Message, Role, ToolCall};

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

fn called(id: &str, arguments: &str) -> Message {
    let call = ToolCall { id: id.to_owned(), name: "find".to_owned(), arguments: arguments.to_owned() };
    Message { tool_calls: vec![call], ..text(Role::Assistant, " ") }
}

fn result(id: &str, found: &str) -> Message {
    Message { tool_call_id: Some(id.to_owned()), ..text(Role::Tool, found) }
}

#[test]
fn a_whole_conversation() {
    let picture = Content::Image { media_type: "image/png".to_owned(), data: "QUJD".to_owned() };
    let messages = vec![
        text(Role::System, "rules"),
        Message { content: vec![Content::Text { text: "look".to_owned() }, picture], ..text(Role::User, "") },
        called("f:1", "{\"q\":1}"),
        result("f:1", "found"),
        called("c2", "{\"q\""),
        result("c2", ""),
        text(Role::System, "hurry"),
    ];
    let tool = ToolDef {
        name: "find".to_owned(),
        description: "d".to_owned(),
        parameters: json!({"type": "object"}),
    };
    let asked = ChatRequest { tools: vec![tool], temperature: Some(0.3), ..request(messages) };
    let expected = json!({
        "inferenceConfig": {"maxTokens": 4096, "temperature": 0.3},
        "toolConfig": {"tools": [
            {"toolSpec": {"name": "find", "description": "d", "inputSchema": {"json": {"type": "object"}}}},
        ]},
        "system": [{"text": "rules"}],
        "messages": [
            {"role": "user", "content": [
                {"text": "look"}, {"image": {"format": "png", "source": {"bytes": "QUJD"}}},
            ]},
            {"role": "assistant", "content": [
                {"toolUse": {"toolUseId": "f_1", "name": "find", "input": {"q": 1}}},
            ]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "f_1", "content": [{"text": "found"}]}}]},
            {"role": "assistant", "content": [
                {"toolUse": {"toolUseId": "c2", "name": "find", "input": {"arguments": "{\"q\""}}},
            ]},
            {"role": "user", "content": [
                {"toolResult": {"toolUseId": "c2", "content": [{"text": "(no output)"}]}}, {"text": "hurry"},
            ]},
        ],
    });
    assert_eq!(body(&asked, &settings(&[]), None), expected);
}

#[test]
fn tools_of_the_history_stay_defined() {
    let asked =
        request(vec![text(Role::User, "q"), called("a", "{}"), result("a", "x"), text(Role::User, "?")]);
    let tools = &body(&asked, &settings(&[]), None)["toolConfig"]["tools"];
    assert_eq!(*tools, json!([{"toolSpec": {"name": "find", "inputSchema": {"json": {"type": "object"}}}}]));
    assert!(body(&request(vec![text(Role::User, "q")]), &settings(&[]), None).get("toolConfig").is_none());
}

#[test]
fn the_cache_ends_where_the_stable_messages_do() {
    let point = json!({"cachePoint": {"type": "default"}});
    let messages = vec![
        text(Role::System, "s"),
        text(Role::User, "a"),
        text(Role::Assistant, "b"),
        text(Role::User, "c"),
    ];
    let asked = ChatRequest { stable_messages: 3, ..request(messages) };
    let marked = body(&asked, &settings(&[Capability::Cache]), None);
    assert_eq!(marked["system"], json!([{"text": "s"}, point]));
    assert_eq!(marked["messages"][1]["content"], json!([{"text": "b"}, point]));
    assert_eq!(marked.to_string().matches("cachePoint").count(), 2);
    assert!(
        !body(&asked, &settings(&[]), None).to_string().contains("cachePoint"),
        "the model does not cache"
    );
    let unstable = ChatRequest { stable_messages: 0, ..asked };
    assert!(!body(&unstable, &settings(&[Capability::Cache]), None).to_string().contains("cachePoint"));

    let tool = ToolDef { name: "f".to_owned(), description: String::new(), parameters: json!({}) };
    let asked = ChatRequest { tools: vec![tool], stable_messages: 1, ..request(vec![text(Role::User, "a")]) };
    let marked = body(&asked, &settings(&[Capability::Cache]), None);
    assert_eq!(marked["toolConfig"]["tools"][1], point, "no system text follows the tools");
}

#[test]
fn thinking_joins_the_models_own_fields() {
    let mut settings = settings(&[Capability::Thinking]);
    settings.extra_body.insert(MODEL_FIELDS.to_owned(), json!({"top_k": 5}));
    let asked = ChatRequest { temperature: Some(0.5), ..request(vec![text(Role::User, "q")]) };
    let sent = body(&asked, &settings, Some(2_000));
    let thinking = json!({"top_k": 5, "thinking": {"type": "enabled", "budget_tokens": 2000}});
    assert_eq!(sent[MODEL_FIELDS], thinking);
    assert_eq!(sent["inferenceConfig"], json!({"maxTokens": 4096}), "thinking wants the default temperature");
    let sent = body(&asked, &settings, Some(10));
    assert_eq!(sent[MODEL_FIELDS], json!({"top_k": 5}), "a budget below the least is none");
}
