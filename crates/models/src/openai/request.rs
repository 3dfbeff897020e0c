//! A [`ChatRequest`] → the body of `POST /chat/completions`. Knows no HTTP.

use larder_text::message::{Content, Message, Role};
use serde_json::{Map, Value, json};

use crate::chat::{ChatRequest, decimal};
use crate::settings::ProviderSettings;
use crate::table::Capability;

/// The name of the answer's schema; providers require one and do not use it.
const SCHEMA_NAME: &str = "answer";

/// The whole body.
pub fn body(request: &ChatRequest, settings: &ProviderSettings, stream: bool) -> Value {
    let mut body = Map::new();
    let mut set = |key: &str, value: Value| body.insert(key.to_owned(), value);
    set("model", json!(request.model));
    set("messages", request.messages.iter().map(message).collect());
    let limit =
        if settings.can(Capability::MaxCompletionTokens) { "max_completion_tokens" } else { "max_tokens" };
    set(limit, json!(request.max_output));
    if let Some(temperature) = request.temperature {
        set("temperature", decimal(temperature));
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({ "type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": tool.parameters,
            }})
        });
        set("tools", tools.collect());
    }
    if let Some(schema) = request.schema.as_ref().filter(|_| settings.can(Capability::JsonSchema)) {
        let strict = is_strict(schema);
        let json_schema = json!({ "name": SCHEMA_NAME, "schema": schema, "strict": strict });
        set("response_format", json!({ "type": "json_schema", "json_schema": json_schema }));
    }
    if stream {
        set("stream", json!(true));
        set("stream_options", json!({ "include_usage": true }));
    }
    settings.add_extra(&mut body);
    Value::Object(body)
}

fn message(message: &Message) -> Value {
    let mut json = Map::new();
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    json.insert("role".to_owned(), json!(role));
    let content = content(message);
    let silent = content.as_str().is_some_and(str::is_empty) && !message.tool_calls.is_empty();
    json.insert("content".to_owned(), if silent { Value::Null } else { content });
    if !message.tool_calls.is_empty() {
        let calls = message.tool_calls.iter().map(|call| {
            json!({ "id": call.id, "type": "function",
                "function": { "name": call.name, "arguments": call.arguments } })
        });
        json.insert("tool_calls".to_owned(), calls.collect());
    }
    if let Some(id) = &message.tool_call_id {
        json.insert("tool_call_id".to_owned(), json!(id));
    }
    Value::Object(json)
}

/// A single string for text-only content, since many servers accept nothing else for most roles.
fn content(message: &Message) -> Value {
    if message.content.iter().all(|content| matches!(content, Content::Text { .. })) {
        return json!(message.joined_text());
    }
    let parts = message.content.iter().map(|content| match content {
        Content::Text { text } => json!({ "type": "text", "text": text }),
        Content::Image { media_type, data } => {
            json!({ "type": "image_url", "image_url": { "url": format!("data:{media_type};base64,{data}") } })
        }
    });
    parts.collect()
}

/// Whether OpenAI's strict mode accepts the schema: every object is closed and requires all its properties. Otherwise
/// the schema is sent without the guarantee rather than rejected.
fn is_strict(schema: &Value) -> bool {
    match schema {
        Value::Array(items) => items.iter().all(is_strict),
        Value::Object(map) => {
            let is_object =
                map.get("type").is_some_and(|kind| *kind == "object") || map.contains_key("properties");
            let required = map.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let closed = map.get("additionalProperties") == Some(&Value::Bool(false));
            let all_required = map.get("properties").and_then(Value::as_object).is_none_or(|properties| {
                properties.keys().all(|key| required.iter().any(|name| name == key))
            });
            (!is_object || (closed && all_required)) && map.values().all(is_strict)
        }
        _ => true,
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
