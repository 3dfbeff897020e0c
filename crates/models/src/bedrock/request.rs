//! A [`ChatRequest`] → the body of `Converse` and `ConverseStream`. Knows no HTTP.

use std::collections::BTreeSet;

use larder_text::message::{Content, ToolDef};
use serde_json::{Map, Value, json};

use crate::anthropic::{schema, usable_thinking};
use crate::chat::{ChatRequest, decimal};
use crate::settings::ProviderSettings;
use crate::table::Capability;
use crate::turns::{Blocks, Turns};

/// The field with what only the model's maker defines.
const MODEL_FIELDS: &str = "additionalModelRequestFields";

/// The whole body. `thinking` is the budget for hidden reasoning, if requested and supported.
pub fn body(request: &ChatRequest, settings: &ProviderSettings, thinking: Option<u32>) -> Value {
    let mut body = Map::new();
    let mut set = |key: &str, value: Value| body.insert(key.to_owned(), value);
    let mark = if settings.can(Capability::Cache) { request.stable_messages } else { 0 };
    let prompt = Turns::new(&request.messages, mark, &ConverseBlocks);
    let thinking = thinking.and_then(|budget| usable_thinking(request, budget));
    let mut inference = json!({ "maxTokens": request.max_output });
    // With thinking enabled, the models accept only their default temperature.
    if let Some(temperature) = request.temperature.filter(|_| thinking.is_none()) {
        inference["temperature"] = decimal(temperature.min(1.0));
    }
    set("inferenceConfig", inference);
    // Tools come first in the cached prefix: they need their own mark only if no system text follows.
    let mut tools = tools(request);
    if !tools.is_empty() {
        if mark > 0 && prompt.system.is_empty() {
            ConverseBlocks.mark(&mut tools);
        }
        set("toolConfig", json!({ "tools": tools }));
    }
    if !prompt.system.is_empty() {
        set("system", Value::Array(prompt.system));
    }
    set("messages", Value::Array(prompt.messages));
    if let Some(schema) = request.schema.as_ref().filter(|_| settings.can(Capability::JsonSchema))
        && let Some(schema) = schema::supported(schema)
    {
        let schema = json!({ "name": "reply", "schema": schema.to_string() });
        set(
            "outputConfig",
            json!({ "textFormat": { "type": "json_schema", "structure": { "jsonSchema": schema } } }),
        );
    }
    settings.add_extra(&mut body);
    if let Some(budget) = thinking {
        let fields = body.entry(MODEL_FIELDS).or_insert_with(|| json!({}));
        if let Value::Object(fields) = fields {
            let thinking = || json!({ "type": "enabled", "budget_tokens": budget });
            fields.entry("thinking").or_insert_with(thinking);
        }
    }
    Value::Object(body)
}

/// The definitions of the request's tools. The API rejects a history with calls unless their tools are defined, so
/// those that the request no longer offers are named.
fn tools(request: &ChatRequest) -> Vec<Value> {
    let tool = |tool: &ToolDef| {
        let mut spec = json!({ "name": tool.name, "inputSchema": { "json": tool.parameters } });
        if !tool.description.is_empty() {
            spec["description"] = json!(tool.description);
        }
        json!({ "toolSpec": spec })
    };
    if !request.tools.is_empty() {
        return request.tools.iter().map(tool).collect();
    }
    let called = request.messages.iter().flat_map(|message| &message.tool_calls);
    let names: BTreeSet<&str> = called.map(|call| call.name.as_str()).collect();
    let named =
        |name: &str| json!({ "toolSpec": { "name": name, "inputSchema": { "json": { "type": "object" } } } });
    names.into_iter().map(named).collect()
}

/// The blocks of the Converse API.
struct ConverseBlocks;

impl Blocks for ConverseBlocks {
    /// The API rejects blank text blocks, so they are omitted.
    fn content(&self, content: &[Content]) -> Vec<Value> {
        let block = |content: &Content| match content {
            Content::Text { text } if text.trim().is_empty() => None,
            Content::Text { text } => Some(json!({ "text": text })),
            Content::Image { media_type, data } => {
                let format = media_type.strip_prefix("image/").unwrap_or(media_type);
                Some(json!({ "image": { "format": format, "source": { "bytes": data } } }))
            }
        };
        content.iter().filter_map(block).collect()
    }

    fn tool_use(&self, id: String, name: &str, input: Value) -> Value {
        json!({ "toolUse": { "toolUseId": id, "name": name, "input": input } })
    }

    fn tool_result(&self, id: String, content: &[Content]) -> Value {
        let mut content = self.content(content);
        if content.is_empty() {
            content.push(json!({ "text": "(no output)" }));
        }
        json!({ "toolResult": { "toolUseId": id, "content": content } })
    }

    fn mark(&self, blocks: &mut Vec<Value>) {
        blocks.push(json!({ "cachePoint": { "type": "default" } }));
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
