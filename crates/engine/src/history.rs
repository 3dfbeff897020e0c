//! Reads a conversation: messages as OpenAI's and Anthropic's APIs and Larder's own records write them.
//!
//! Whatever would be lost is refused with the place and the reason; all problems are reported together. What a model
//! thought is kept as text, since only the model that wrote it takes it in its own form; of thoughts that its provider
//! encrypted, and of pictures in results of tools, a mark says that they were there.

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
/// Where the ids of calls are in the items of OpenAI's Responses.
const CALL_ID: &str = "call_id";
/// Precedes the result of a tool that reported an error, which Anthropic's API keeps apart from the text.
const FAILED: &str = "[the tool reported an error]\n";

/// The messages of a JSON array, or of a request with `messages` or, for OpenAI's Responses, `input`.
///
/// # Errors
/// If the text is not such JSON, or a message has something that cannot be kept, or a result has no call before it: all
/// problems, each with its place.
pub fn read(text: &str) -> Result<Vec<Message>, Vec<String>> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        vec![format!("line {}, column {}: {error}; expected {EXPECTED}", error.line(), error.column())]
    })?;
    messages(&value)
}

const EXPECTED: &str =
    "a JSON array of messages with role and content, or a request with messages (or, for Responses, input)";

fn messages(value: &Value) -> Result<Vec<Message>, Vec<String>> {
    let (system, list) = match value {
        Value::Array(list) => (None, list),
        Value::Object(request) => match (request.get("messages"), request.get("input")) {
            (Some(Value::Array(list)), _) => (request.get("system"), list),
            (None, Some(Value::Array(list))) => (request.get("instructions"), list),
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
        let first = messages.len();
        match message {
            Value::Object(fields) if fields.contains_key("role") => {
                read_message(place.clone(), fields, &mut messages, &mut problems);
            }
            Value::Object(fields) => read_item(place.clone(), fields, &mut messages, &mut problems),
            _ => problems.push(format!("{place} is not an object with role and content")),
        }
        let results = messages[first..].iter().filter_map(|message| message.tool_call_id.as_deref());
        for id in results {
            let calls = messages.iter().flat_map(|message| &message.tool_calls);
            if problems.is_empty() && !calls.into_iter().any(|call| call.id == id) {
                problems.push(format!("{place}: no message before it calls a tool with the id {id:?}"));
            }
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

/// An item of OpenAI's Responses that is no message: a call, its result, or what the model thought. Calls next to each
/// other, and thoughts before them, belong to one message.
fn read_item(
    place: String,
    fields: &Map<String, Value>,
    messages: &mut Vec<Message>,
    problems: &mut Vec<String>,
) {
    let field = |name: &str| fields.get(name).unwrap_or(&Value::Null);
    let kind = field("type").as_str().unwrap_or_default();
    let role = if kind == "function_call_output" { Role::Tool } else { Role::Assistant };
    let mut reader = MessageReader::new(place, role);
    match kind {
        "function_call" => reader.call(field(CALL_ID), field("name"), field("arguments")),
        "function_call_output" => match field(CALL_ID).as_str() {
            Some(id) => {
                reader.result_of = Some(id.to_owned());
                reader.content_of_result(field("output"));
            }
            None => {
                reader.problem("a function_call_output needs call_id: the call that it answers".to_owned())
            }
        },
        "reasoning" => {
            let parts =
                ["summary", "content"].into_iter().filter_map(|name| field(name).as_array()).flatten();
            let before = reader.content.len();
            parts.for_each(|part| reader.thought(&part["text"]));
            if reader.content.len() == before {
                reader.hidden_thought();
            }
        }
        "" => reader.problem("it has no role".to_owned()),
        kind => reader.problem(format!("an item of type {kind:?} cannot be kept")),
    }
    let known = ["arguments", CALL_ID, "name", "output", "summary", "content", "encrypted_content"];
    for name in fields.keys().filter(|name| !is_empty(field(name))) {
        if !known.contains(&name.as_str()) && !METADATA.contains(&name.as_str()) {
            reader.problem(format!("field {name:?} of an item of type {kind:?} cannot be kept"));
        }
    }
    let mut read = Vec::new();
    reader.finish(&mut read, problems);
    for message in read {
        match messages.last_mut().filter(|last| [last.role, message.role] == [Role::Assistant; 2]) {
            Some(last) => {
                last.content.extend(message.content);
                last.tool_calls.extend(message.tool_calls);
            }
            None => messages.push(message),
        }
    }
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
            (Some("thinking"), Role::Assistant) => self.thought(&block["thinking"]),
            (Some("redacted_thinking"), Role::Assistant) => self.hidden_thought(),
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

    /// What a model thought before it said or called something.
    fn thought(&mut self, value: &Value) {
        match value.as_str() {
            Some(text) => self.say(format!("[thinking]\n{text}\n[end of thinking]\n")),
            None => self.problem("a block of thinking has no text".to_owned()),
        }
    }

    fn hidden_thought(&mut self) {
        self.say("[thinking that its provider keeps to itself]\n".to_owned());
    }

    fn say(&mut self, text: String) {
        self.content.push(Content::Text { text });
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
            self.say(FAILED.to_owned());
        }
        self.content_of_result(&block["content"]);
        let content = std::mem::take(&mut self.content);
        self.before.push(Message {
            content,
            tool_call_id: Some(id.to_owned()),
            ..Message::text(Role::Tool, "")
        });
    }

    /// Results are text. Of a picture, a mark says what there was.
    fn content_of_result(&mut self, content: &Value) {
        let parts = match content {
            Value::Null => return,
            Value::Array(parts) => parts,
            content => return self.content(content),
        };
        for part in parts {
            match part["type"].as_str() {
                Some("text" | "input_text" | "output_text") => self.text(&part["text"], "text"),
                Some("image" | "image_url" | "input_image") => {
                    let kind = part["source"]["media_type"].as_str().unwrap_or("image");
                    self.say(format!("[a picture ({kind}) that the tool returned]\n"));
                }
                kind => self.problem(format!("a result has a block of type {:?}", kind.unwrap_or_default())),
            }
        }
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
        let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "bash", "input": {}});
        let found = read(json!({"system": "be brief", "messages": [
            {"role": "assistant", "content": [call("a"), call("b")]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "no such file", "is_error": true},
                {"type": "tool_result", "tool_use_id": "b"},
                {"type": "text", "text": "go on"}]},
        ]}));
        let texts: Vec<_> = found.iter().map(|message| (message.role, message.joined_text())).collect();
        let failed = format!("{FAILED}no such file");
        let expected = [
            (Role::System, "be brief".to_owned()),
            (Role::Assistant, String::new()),
            (Role::Tool, failed),
            (Role::Tool, String::new()),
            (Role::User, "go on".to_owned()),
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn thoughts_and_pictures_of_tools_are_kept_as_text() {
        let found = read(json!([
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "List first.", "signature": "x"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "tool_use", "id": "c1", "name": "bash", "input": {"command": "ls"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [
                {"type": "text", "text": "seen: "},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "x"}}]}]},
        ]));
        let thought = found[0].joined_text();
        assert!(thought.contains("List first.") && thought.contains("keeps to itself"), "{thought}");
        assert_eq!(found[0].tool_calls, [call("c1")]);
        assert!(found[1].joined_text().contains("a picture (image/png)"), "{:?}", found[1]);
    }

    #[test]
    fn items_of_responses_are_the_messages_of_chat() {
        let call = |id: &str| {
            json!({"type": "function_call", "id": "fc", "call_id": id, "name": "bash",
            "arguments": "{\"command\":\"ls\"}", "status": "completed"})
        };
        let found = read(json!({"instructions": "be brief", "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "fix it"}]},
            {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "List first."}]},
            call("c1"),
            call("c2"),
            {"type": "function_call_output", "call_id": "c1", "output": "a.rs"},
            {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "b.rs"}]},
            {"type": "reasoning", "summary": [], "encrypted_content": "x"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done", "annotations": []}]},
        ]}));
        let roles: Vec<Role> = found.iter().map(|message| message.role).collect();
        let names: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
        assert_eq!(names, ["system", "user", "assistant", "tool", "tool", "assistant", "assistant"]);
        assert_eq!(found[2].tool_calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["c1", "c2"]);
        assert!(found[2].joined_text().contains("List first."));
        assert_eq!((found[4].joined_text(), found[6].joined_text()), ("b.rs".into(), "done".into()));
        let problems = messages(&json!([{"type": "web_search_call", "id": "x"}])).unwrap_err();
        assert_eq!(problems, ["message 1: an item of type \"web_search_call\" cannot be kept"]);
    }

    #[test]
    fn a_result_without_its_call_is_named() {
        let problems = messages(&json!([
            {"role": "user", "content": "x"},
            {"role": "tool", "tool_call_id": "c9", "content": "x"},
        ]));
        let expected = "message 2: no message before it calls a tool with the id \"c9\"";
        assert_eq!(problems.unwrap_err(), [expected]);
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
