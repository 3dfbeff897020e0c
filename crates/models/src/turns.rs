//! A prompt as APIs with one system prompt expect it: leading system messages apart, the rest in turns of user and
//! assistant. Each API brings its blocks.

use larder_text::message::{Content, Message, Role, ToolCall};
use serde_json::{Value, json};

/// The blocks of an API.
pub trait Blocks {
    /// The blocks of texts and pictures.
    fn content(&self, content: &[Content]) -> Vec<Value>;
    /// A call of a tool; the input is an object.
    fn tool_use(&self, id: String, name: &str, input: Value) -> Value;
    /// The result of a call.
    fn tool_result(&self, id: String, content: &[Content]) -> Value;
    /// Marks that the provider's cache ends with these blocks.
    fn mark(&self, blocks: &mut Vec<Value>);
}

/// The prompt in such an API's shape.
pub struct Turns {
    /// The blocks of the system prompt.
    pub system: Vec<Value>,
    /// The messages.
    pub messages: Vec<Value>,
}

impl Turns {
    /// `stable` leading messages end with a cache breakpoint, and so does the system text.
    pub fn new(messages: &[Message], stable: usize, api: &dyn Blocks) -> Self {
        let leading = messages.iter().take_while(|message| message.role == Role::System).count();
        let (system, rest) = messages.split_at(leading);
        let mut system: Vec<Value> =
            system.iter().flat_map(|message| api.content(&message.content)).collect();
        if stable >= leading && stable > 0 && !system.is_empty() {
            api.mark(&mut system);
        }
        let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
        for (at, message) in rest.iter().enumerate() {
            let role = if message.role == Role::Assistant { "assistant" } else { "user" };
            let mut blocks = turn_blocks(message, api);
            if blocks.is_empty() {
                continue;
            }
            if at + leading + 1 == stable {
                api.mark(&mut blocks);
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

/// A later system message becomes user text: these APIs know only one system prompt, and order matters more than rank.
fn turn_blocks(message: &Message, api: &dyn Blocks) -> Vec<Value> {
    if message.role == Role::Tool {
        let id = tool_id(message.tool_call_id.as_deref().unwrap_or_default());
        return vec![api.tool_result(id, &message.content)];
    }
    let mut blocks = api.content(&message.content);
    blocks.extend(
        message.tool_calls.iter().map(|call| api.tool_use(tool_id(&call.id), &call.name, input(call))),
    );
    blocks
}

/// These APIs accept objects only; malformed arguments must not make every later call fail.
fn input(call: &ToolCall) -> Value {
    match serde_json::from_str(&call.arguments) {
        Ok(input @ Value::Object(_)) => input,
        _ => json!({ "arguments": call.arguments }),
    }
}

/// Ids from other providers may contain characters that these APIs reject.
fn tool_id(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' }).collect()
}
