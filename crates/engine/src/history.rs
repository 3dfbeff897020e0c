//! Reads a conversation: messages as OpenAI's and Anthropic's APIs and Larder's own records write them.
//!
//! Whatever would be lost is refused with the place and the reason; all problems are reported together.

use larder_text::message::{Content, Message, Role, ToolCall};
use serde_json::{Map, Value};

/// Fields that say nothing about what was said.
const METADATA: [&str; 11] = [
    "id",
    "type",
    "model",
    "stop_reason",
    "stop_sequence",
    "usage",
    "status",
    "created_at",
    "annotations",
    "cache_control",
    "index",
];
/// Precedes the result of a tool that reported an error, which Anthropic's API keeps apart from the text.
const FAILED: &str = "[the tool reported an error]\n";

/// The messages of a JSON array, or of a request with `messages`.
///
/// # Errors
/// If the text is not such JSON, or a message has something that cannot be kept: all problems, each with its place.
pub fn read(text: &str) -> Result<Vec<Message>, Vec<String>> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        vec![format!("line {}, column {}: {error}; expected {EXPECTED}", error.line(), error.column())]
    })?;
    messages(&value)
}

const EXPECTED: &str = "a JSON array of messages with role and content, or a request with messages";

fn messages(value: &Value) -> Result<Vec<Message>, Vec<String>> {
    let (system, list) = match value {
        Value::Array(list) => (None, list),
        Value::Object(request) => match request.get("messages") {
            Some(Value::Array(list)) => (request.get("system"), list),
            _ => return Err(vec![format!("expected {EXPECTED}")]),
        },
        _ => return Err(vec![format!("expected {EXPECTED}")]),
    };
    let (mut messages, mut problems) = (Vec::new(), Vec::new());
    if let Some(system) = system.filter(|system| !system.is_null()) {
        let mut reader = MessageReader::new("system".to_owned(), Role::System);
        reader.content(system);
        reader.finish(&mut messages, &mut problems);
    }
    for (at, message) in list.iter().enumerate() {
        let place = format!("message {}", at + 1);
        match message {
            Value::Object(fields) => read_message(place, fields, &mut messages, &mut problems),
            _ => problems.push(format!("{place} is not an object with role and content")),
        }
    }
    if problems.is_empty() { Ok(messages) } else { Err(problems) }
}

fn read_message(
    place: String,
    fields: &Map<String, Value>,
    messages: &mut Vec<Message>,
    problems: &mut Vec<String>,
) {
    let role = match fields.get("role").and_then(Value::as_str) {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        Some(other) => {
            let known = "system, developer, user, assistant or tool";
            return problems.push(format!("{place}: role {other:?} cannot be read; use {known}"));
        }
        None => return problems.push(format!("{place} has no role")),
    };
    let mut reader = MessageReader::new(place, role);
    for (name, value) in fields.iter().filter(|(_, value)| !is_empty(value)) {
        match (name.as_str(), role) {
            ("role", _) => {}
            ("content", _) => reader.content(value),
            ("refusal", Role::Assistant) => reader.text(value, "refusal"),
            ("tool_calls", Role::Assistant) => reader.calls(value),
            ("tool_call_id", Role::Tool) => reader.result_of = value.as_str().map(str::to_owned),
            // The call that the message answers names the tool, too.
            ("name", Role::Tool) => {}
            (name, _) if METADATA.contains(&name) => {}
            (name, role) => {
                reader
                    .problem(format!("field {name:?} of a message of the {} cannot be kept", role.as_str()));
            }
        }
    }
    if role == Role::Tool && reader.result_of.is_none() {
        reader.problem("a tool's message needs tool_call_id: the call that it answers".to_owned());
    }
    reader.finish(messages, problems);
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

/// One message being read; a message of Anthropic's with results of tools becomes several.
struct MessageReader {
    place: String,
    role: Role,
    before: Vec<Message>,
    content: Vec<Content>,
    calls: Vec<ToolCall>,
    result_of: Option<String>,
    problems: Vec<String>,
}

impl MessageReader {
    fn new(place: String, role: Role) -> Self {
        Self {
            place,
            role,
            before: Vec::new(),
            content: Vec::new(),
            calls: Vec::new(),
            result_of: None,
            problems: Vec::new(),
        }
    }

    fn problem(&mut self, what: String) {
        self.problems.push(format!("{}: {what}", self.place));
    }

    fn content(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.content.push(Content::Text { text: text.clone() }),
            Value::Array(blocks) => blocks.iter().for_each(|block| self.block(block)),
            _ => self.problem("content must be text, a list of blocks, or null".to_owned()),
        }
    }

    fn block(&mut self, block: &Value) {
        match (block["type"].as_str(), self.role) {
            (Some("text" | "input_text" | "output_text"), _) => self.text(&block["text"], "text"),
            (Some("refusal"), Role::Assistant) => self.text(&block["refusal"], "refusal"),
            (Some("tool_use"), Role::Assistant) => {
                self.call(&block["id"], &block["name"], &block["input"]);
            }
            (Some("tool_result"), Role::User) => self.result(block),
            (Some("image" | "image_url" | "input_image"), _) => {
                self.problem("a picture cannot be part of a history; leave it out or describe it".to_owned());
            }
            (Some("thinking" | "redacted_thinking"), _) => {
                let why = "a block of thinking belongs to the model that wrote it; leave it out";
                self.problem(why.to_owned());
            }
            (Some(kind), role) => {
                self.problem(format!(
                    "a block of type {kind:?} in a message of the {} cannot be kept",
                    role.as_str()
                ));
            }
            (None, _) => self.problem("a block of content has no type".to_owned()),
        }
    }

    fn text(&mut self, value: &Value, name: &str) {
        match value.as_str() {
            Some(text) => self.content.push(Content::Text { text: text.to_owned() }),
            None => self.problem(format!("{name} is not text")),
        }
    }

    /// OpenAI's form, with a function, or the form of Larder's records.
    fn calls(&mut self, value: &Value) {
        let Some(calls) = value.as_array() else {
            return self.problem("tool_calls is not a list".to_owned());
        };
        for call in calls {
            match call["type"].as_str() {
                None | Some("function") => {
                    let function = if call["function"].is_object() { &call["function"] } else { call };
                    self.call(&call["id"], &function["name"], &function["arguments"]);
                }
                Some(kind) => self.problem(format!("a call of type {kind:?} cannot be kept")),
            }
        }
    }

    fn call(&mut self, id: &Value, name: &Value, arguments: &Value) {
        let arguments = match arguments {
            Value::String(text) => text.clone(),
            Value::Null => "{}".to_owned(),
            other => other.to_string(),
        };
        match (id.as_str(), name.as_str()) {
            (Some(id), Some(name)) => {
                self.calls.push(ToolCall { id: id.to_owned(), name: name.to_owned(), arguments });
            }
            _ => self.problem("a tool call needs an id and a name".to_owned()),
        }
    }

    /// A result among the content of a message of the user's is a message of its own.
    fn result(&mut self, block: &Value) {
        let Some(id) = block["tool_use_id"].as_str() else {
            return self.problem("a tool_result needs tool_use_id: the call that it answers".to_owned());
        };
        self.flush();
        if block["is_error"] == Value::Bool(true) {
            self.content.push(Content::Text { text: FAILED.to_owned() });
        }
        match &block["content"] {
            Value::Null => {}
            // Only texts can be in a result.
            Value::Array(parts) if parts.iter().any(|part| part["type"] != "text") => {
                self.problem("a tool_result has a block that is not text".to_owned());
            }
            content => self.content(content),
        }
        let content = std::mem::take(&mut self.content);
        self.before.push(Message {
            content,
            tool_call_id: Some(id.to_owned()),
            ..Message::text(Role::Tool, "")
        });
    }

    /// Ends the message so far, if there is anything in it.
    fn flush(&mut self) {
        if self.content.is_empty() && self.calls.is_empty() && self.result_of.is_none() {
            return;
        }
        self.before.push(Message {
            role: self.role,
            content: std::mem::take(&mut self.content),
            tool_calls: std::mem::take(&mut self.calls),
            tool_call_id: self.result_of.take(),
        });
    }

    fn finish(mut self, messages: &mut Vec<Message>, problems: &mut Vec<String>) {
        self.flush();
        if self.before.is_empty() && self.problems.is_empty() {
            self.problem("it has no content".to_owned());
        }
        messages.append(&mut self.before);
        problems.append(&mut self.problems);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Vec<Message> {
        super::read(&value.to_string()).unwrap()
    }

    fn call(id: &str) -> ToolCall {
        ToolCall { id: id.into(), name: "bash".into(), arguments: r#"{"command":"ls"}"#.into() }
    }

    #[test]
    fn both_apis_and_our_own_form_give_the_same_messages() {
        let openai = json!([
            {"role": "user", "content": "fix it"},
            {"role": "assistant", "content": null, "refusal": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{\"command\":\"ls\"}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "a.rs"},
            {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
        ]);
        let anthropic = json!({"messages": [
            {"role": "user", "content": "fix it"},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "c1", "name": "bash", "input": {"command": "ls"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "a.rs"}]}]},
            {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
        ]});
        let read_openai = read(openai);
        assert_eq!(read_openai, read(anthropic));
        assert_eq!(read_openai[1].tool_calls, [call("c1")]);
        assert_eq!(read_openai[2].tool_call_id.as_deref(), Some("c1"));
        let ours = serde_json::to_value(&read_openai).unwrap();
        assert_eq!(read(ours), read_openai);
    }

    #[test]
    fn results_and_words_of_one_message_become_messages_in_their_order() {
        let found = read(json!({"system": "be brief", "messages": [
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "no such file", "is_error": true},
                {"type": "tool_result", "tool_use_id": "b"},
                {"type": "text", "text": "go on"}]},
        ]}));
        let texts: Vec<_> = found.iter().map(|message| (message.role, message.joined_text())).collect();
        let failed = format!("{FAILED}no such file");
        let expected = [
            (Role::System, "be brief".to_owned()),
            (Role::Tool, failed),
            (Role::Tool, String::new()),
            (Role::User, "go on".to_owned()),
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn what_would_be_lost_is_refused_with_its_place() {
        let problems = messages(&json!([
            {"role": "robot", "content": "x"},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x"}}]},
            {"role": "tool", "content": "x"},
            {"role": "assistant", "content": "x", "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "user"},
            {"role": "assistant", "content": [{"type": "server_tool_use"}]},
            {"role": "assistant", "tool_calls": [{"type": "custom", "custom": {"name": "f", "input": "x"}}]},
            "x",
        ]))
        .unwrap_err();
        for (at, words) in [
            "message 1: role \"robot\" cannot be read",
            "message 2: a picture",
            "message 3: a tool's message needs tool_call_id",
            "message 4: field \"function_call\"",
            "message 5: it has no content",
            "message 6: a block of type \"server_tool_use\"",
            "message 7: a call of type \"custom\"",
            "message 8 is not an object",
        ]
        .into_iter()
        .enumerate()
        {
            assert!(problems[at].starts_with(words), "{}", problems[at]);
        }
        assert_eq!(problems.len(), 8, "{problems:?}");
        assert!(messages(&json!("x")).unwrap_err()[0].contains("JSON array"));
    }
}
