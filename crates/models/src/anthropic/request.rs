//! A [`ChatRequest`] → the body of `POST /v1/messages`. Knows no HTTP.

use larder_text::message::{Content, Message, Role, ToolCall};
use serde_json::{Map, Value, json};

use super::schema;
use crate::chat::{ChatRequest, decimal};
use crate::settings::ProviderSettings;
use crate::table::Capability;

/// The minimum thinking budget that the API accepts.
const MIN_THINKING: u32 = 1_024;

/// The whole body. `thinking` is the budget for hidden reasoning, if requested and supported.
pub fn body(
    request: &ChatRequest,
    settings: &ProviderSettings,
    thinking: Option<u32>,
    stream: bool,
) -> Value {
    let mut body = Map::new();
    let mut set = |key: &str, value: Value| body.insert(key.to_owned(), value);
    let mark = if settings.can(Capability::Cache) { request.stable_messages } else { 0 };
    let prompt = MessagesPrompt::new(&request.messages, mark);
    set("model", json!(request.model));
    set("max_tokens", json!(request.max_output));
    if !request.tools.is_empty() {
        // Tools come first in the cached prefix: they need their own mark only if no system text follows.
        set("tools", tools(request, mark > 0 && prompt.system.is_empty()));
    }
    if !prompt.system.is_empty() {
        set("system", Value::Array(prompt.system));
    }
    set("messages", Value::Array(prompt.messages));
    // A conversation that answers tool calls would need its earlier thinking, which Larder does not keep.
    let answers_tools = request.messages.last().is_some_and(|message| message.role == Role::Tool);
    let thinking = thinking
        .map(|budget| budget.min(request.max_output.saturating_sub(1)))
        .filter(|budget| *budget >= MIN_THINKING && !answers_tools);
    if let Some(budget) = thinking {
        set("thinking", json!({ "type": "enabled", "budget_tokens": budget }));
    } else if let Some(temperature) = request.temperature {
        // With thinking enabled, the API accepts only its default temperature.
        set("temperature", decimal(temperature.min(1.0)));
    }
    if let Some(schema) = request.schema.as_ref().filter(|_| settings.can(Capability::JsonSchema))
        && let Some(schema) = schema::supported(schema)
    {
        set("output_config", json!({ "format": { "type": "json_schema", "schema": schema } }));
    }
    if stream {
        set("stream", json!(true));
    }
    settings.add_extra(&mut body);
    Value::Object(body)
}

fn tools(request: &ChatRequest, mark_last: bool) -> Value {
    let tool = |tool: &larder_text::message::ToolDef| json!({ "name": tool.name, "description": tool.description, "input_schema": tool.parameters });
    let mut tools: Vec<Value> = request.tools.iter().map(tool).collect();
    if mark_last {
        tools.last_mut().map(mark_cached);
    }
    Value::Array(tools)
}

/// The prompt in the API's shape: leading system messages apart, the rest in turns of user and assistant.
struct MessagesPrompt {
    system: Vec<Value>,
    messages: Vec<Value>,
}

impl MessagesPrompt {
    /// `stable` leading messages end with a cache breakpoint, and so does the system text.
    fn new(messages: &[Message], stable: usize) -> Self {
        let leading = messages.iter().take_while(|message| message.role == Role::System).count();
        let (system, rest) = messages.split_at(leading);
        let mut system: Vec<Value> = system.iter().flat_map(|message| blocks(&message.content)).collect();
        if stable >= leading && stable > 0 {
            system.last_mut().map(mark_cached);
        }
        let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
        for (at, message) in rest.iter().enumerate() {
            let role = if message.role == Role::Assistant { "assistant" } else { "user" };
            let mut blocks = turn_blocks(message);
            if at + leading + 1 == stable {
                blocks.last_mut().map(mark_cached);
            }
            if blocks.is_empty() {
                continue;
            }
            // Results of parallel calls must be together in one turn.
            match turns.last_mut() {
                Some((last, all)) if *last == role => all.append(&mut blocks),
                _ => turns.push((role, blocks)),
            }
        }
        let messages =
            turns.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect();
        Self { system, messages }
    }
}

/// A later system message becomes user text: the API knows only one system prompt, and order matters more than rank.
fn turn_blocks(message: &Message) -> Vec<Value> {
    if message.role == Role::Tool {
        let id = tool_id(message.tool_call_id.as_deref().unwrap_or_default());
        return vec![
            json!({ "type": "tool_result", "tool_use_id": id, "content": blocks(&message.content) }),
        ];
    }
    let mut blocks = blocks(&message.content);
    blocks.extend(message.tool_calls.iter().map(tool_use));
    blocks
}

fn tool_use(call: &ToolCall) -> Value {
    let input = match serde_json::from_str(&call.arguments) {
        Ok(input @ Value::Object(_)) => input,
        // The API accepts objects only; malformed arguments must not make every later call fail.
        _ => json!({ "arguments": call.arguments }),
    };
    json!({ "type": "tool_use", "id": tool_id(&call.id), "name": call.name, "input": input })
}

/// Ids from other providers may contain characters that this API rejects.
fn tool_id(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' }).collect()
}

/// The API rejects empty text blocks, so they are omitted.
fn blocks(content: &[Content]) -> Vec<Value> {
    let block = |content: &Content| match content {
        Content::Text { text } if text.is_empty() => None,
        Content::Text { text } => Some(json!({ "type": "text", "text": text })),
        Content::Image { media_type, data } => Some(json!({
            "type": "image", "source": { "type": "base64", "media_type": media_type, "data": data },
        })),
    };
    content.iter().filter_map(block).collect()
}

fn mark_cached(block: &mut Value) {
    if let Value::Object(block) = block {
        block.insert("cache_control".to_owned(), json!({ "type": "ephemeral" }));
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
