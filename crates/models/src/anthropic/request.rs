//! A [`ChatRequest`] → the body of `POST /v1/messages`. Knows no HTTP.

use larder_text::message::{Content, Role};
use serde_json::{Map, Value, json};

use super::schema;
use crate::chat::{ChatRequest, decimal};
use crate::settings::ProviderSettings;
use crate::table::Capability;
use crate::turns::{Blocks, Turns};

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
    let prompt = Turns::new(&request.messages, mark, &MessagesBlocks);
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
    if let Some(budget) = thinking.and_then(|budget| usable_thinking(request, budget)) {
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

/// The thinking budget that models of Anthropic accept for a request, if they think at all in it.
pub fn usable_thinking(request: &ChatRequest, budget: u32) -> Option<u32> {
    // A conversation that answers tool calls would need its earlier thinking, which Larder does not keep.
    let answers_tools = request.messages.last().is_some_and(|message| message.role == Role::Tool);
    let budget = budget.min(request.max_output.saturating_sub(1));
    (budget >= MIN_THINKING && !answers_tools).then_some(budget)
}

fn tools(request: &ChatRequest, mark_last: bool) -> Value {
    let tool = |tool: &larder_text::message::ToolDef| json!({ "name": tool.name, "description": tool.description, "input_schema": tool.parameters });
    let mut tools: Vec<Value> = request.tools.iter().map(tool).collect();
    if mark_last {
        tools.last_mut().map(mark_cached);
    }
    Value::Array(tools)
}

/// The blocks of the Messages API.
struct MessagesBlocks;

impl Blocks for MessagesBlocks {
    /// The API rejects empty text blocks, so they are omitted.
    fn content(&self, content: &[Content]) -> Vec<Value> {
        let block = |content: &Content| match content {
            Content::Text { text } if text.is_empty() => None,
            Content::Text { text } => Some(json!({ "type": "text", "text": text })),
            Content::Image { media_type, data } => Some(json!({
                "type": "image", "source": { "type": "base64", "media_type": media_type, "data": data },
            })),
        };
        content.iter().filter_map(block).collect()
    }

    fn tool_use(&self, id: String, name: &str, input: Value) -> Value {
        json!({ "type": "tool_use", "id": id, "name": name, "input": input })
    }

    fn tool_result(&self, id: String, content: &[Content]) -> Value {
        json!({ "type": "tool_result", "tool_use_id": id, "content": self.content(content) })
    }

    fn mark(&self, blocks: &mut Vec<Value>) {
        blocks.last_mut().map(mark_cached);
    }
}

fn mark_cached(block: &mut Value) {
    if let Value::Object(block) = block {
        block.insert("cache_control".to_owned(), json!({ "type": "ephemeral" }));
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
