//! Reads a conversation: messages as OpenAI's and Anthropic's APIs and Larder's own records write them.
//!
//! Nothing is lost. What a model thought is kept as text, since only the model that wrote it takes it in its own form.
//! What is no text (pictures, thoughts that a provider encrypted, files, calls that a provider answered itself) is an
//! original of its own: a mark in the message says what it is and leads to it. Pictures of the user's stay in the
//! message, too, for models that see. What cannot be read is refused with its place; all problems are reported together.

use larder_text::hash::ContentHash;
use larder_text::message::{Content, Message, Role, ToolCall};
use larder_text::picture::Picture;
use larder_text::pointer::{Pointer, PointerKey};
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
/// Where OpenAI's Responses put thoughts that only the provider reads.
const ENCRYPTED: &str = "encrypted_content";
/// What stands for such thoughts.
const HIDDEN: &str = "thinking that its provider encrypted";
/// Precedes the result of a tool that reported an error, which Anthropic's API keeps apart from the text.
const FAILED: &str = "[the tool reported an error]\n";

/// A conversation as it was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// The messages, in order.
    pub messages: Vec<Message>,
    /// What their marks lead to; to be stored before the marks are sent.
    pub originals: Vec<HistoryOriginal>,
}

/// A part of a conversation that is no text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryOriginal {
    /// The file of a picture; of anything else, the block as JSON.
    pub content: Vec<u8>,
    /// What it is, in one line.
    pub display: String,
}

impl HistoryOriginal {
    /// The pointer that leads to it.
    pub fn pointer(&self, key: &PointerKey) -> Pointer {
        Pointer::whole(key.mint(ContentHash::new(&self.content)))
    }
}

/// The messages of a JSON array, or of a request with `messages` or, for OpenAI's Responses, `input`. Marks hold
/// pointers made with `key`.
///
/// # Errors
/// If the text is not such JSON, or a message has something that cannot be read, or a result has no call before it: all
/// problems, each with its place.
pub fn read(text: &str, key: &PointerKey) -> Result<History, Vec<String>> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        vec![format!("line {}, column {}: {error}; expected {EXPECTED}", error.line(), error.column())]
    })?;
    HistoryReader { key, read: History::default(), problems: Vec::new() }.conversation(&value)
}

/// A part of a message of `role` that is no text, such as a picture, as the messages read by [`read`] hold it.
pub fn part(json: &str, role: Role, key: &PointerKey) -> (Vec<Content>, Vec<HistoryOriginal>) {
    let mut reader = MessageReader::new(String::new(), role, key);
    match serde_json::from_str(json) {
        Ok(block) => reader.part(&block),
        Err(_) => reader.original("a part", json.as_bytes().to_vec()),
    }
    (reader.content, reader.originals)
}

const EXPECTED: &str =
    "a JSON array of messages with role and content, or a request with messages (or, for Responses, input)";

/// A conversation being read.
struct HistoryReader<'k> {
    key: &'k PointerKey,
    read: History,
    problems: Vec<String>,
}

impl HistoryReader<'_> {
    fn conversation(mut self, value: &Value) -> Result<History, Vec<String>> {
        let (system, list) = match value {
            Value::Array(list) => (None, list),
            Value::Object(request) => match (request.get("messages"), request.get("input")) {
                (Some(Value::Array(list)), _) => (request.get("system"), list),
                (None, Some(Value::Array(list))) => (request.get("instructions"), list),
                _ => return Err(vec![format!("expected {EXPECTED}")]),
            },
            _ => return Err(vec![format!("expected {EXPECTED}")]),
        };
        if let Some(system) = system.filter(|system| !system.is_null()) {
            let mut reader = MessageReader::new("system".to_owned(), Role::System, self.key);
            reader.content(system);
            let messages = self.end(reader);
            self.read.messages.extend(messages);
        }
        for (at, message) in list.iter().enumerate() {
            let place = format!("message {}", at + 1);
            let first = self.read.messages.len();
            match message {
                Value::Object(fields) if fields.contains_key("role") => self.message(place.clone(), fields),
                Value::Object(fields) => self.item(place.clone(), fields),
                _ => self.problems.push(format!("{place} is not an object with role and content")),
            }
            let messages = &self.read.messages;
            let results = messages[first..].iter().filter_map(|message| message.tool_call_id.as_deref());
            for id in results {
                let calls = messages.iter().flat_map(|message| &message.tool_calls);
                if self.problems.is_empty() && !calls.into_iter().any(|call| call.id == id) {
                    let problem = format!("{place}: no message before it calls a tool with the id {id:?}");
                    self.problems.push(problem);
                }
            }
        }
        if self.problems.is_empty() { Ok(self.read) } else { Err(self.problems) }
    }

    fn message(&mut self, place: String, fields: &Map<String, Value>) {
        let role = match fields.get("role").and_then(Value::as_str) {
            Some("system" | "developer") => Role::System,
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            Some("tool") => Role::Tool,
            Some(other) => {
                let known = "system, developer, user, assistant or tool";
                return self.problems.push(format!("{place}: role {other:?} cannot be read; use {known}"));
            }
            None => return self.problems.push(format!("{place} has no role")),
        };
        let mut reader = MessageReader::new(place, role, self.key);
        for (name, value) in fields.iter().filter(|(_, value)| !is_empty(value)) {
            match (name.as_str(), role) {
                ("role", _) => {}
                ("content", Role::Tool) => reader.content_of_result(value),
                ("content", _) => reader.content(value),
                ("refusal", Role::Assistant) => reader.text(value, "refusal"),
                ("tool_calls", Role::Assistant) => reader.calls(value),
                ("tool_call_id", Role::Tool) => reader.result_of = value.as_str().map(str::to_owned),
                // The call that the message answers names the tool, too.
                ("name", Role::Tool) => {}
                (name, _) if METADATA.contains(&name) => {}
                (name, role) => {
                    let role = role.as_str();
                    reader.problem(format!("field {name:?} of a message of the {role} cannot be kept"));
                }
            }
        }
        if role == Role::Tool && reader.result_of.is_none() {
            reader.problem("a tool's message needs tool_call_id: the call that it answers".to_owned());
        }
        let messages = self.end(reader);
        self.read.messages.extend(messages);
    }

    /// An item of OpenAI's Responses that is no message: a call, its result, or what the model thought. Calls next to
    /// each other, and thoughts before them, belong to one message.
    fn item(&mut self, place: String, fields: &Map<String, Value>) {
        let field = |name: &str| fields.get(name).unwrap_or(&Value::Null);
        let kind = field("type").as_str().unwrap_or_default();
        let role = if kind == "function_call_output" { Role::Tool } else { Role::Assistant };
        let mut reader = MessageReader::new(place, role, self.key);
        let mut known = vec![];
        match kind {
            "function_call" => {
                known.extend([CALL_ID, "name", "arguments"]);
                reader.call(field(CALL_ID), field("name"), field("arguments"));
            }
            "function_call_output" => match field(CALL_ID).as_str() {
                Some(id) => {
                    known.extend([CALL_ID, "output"]);
                    reader.result_of = Some(id.to_owned());
                    reader.content_of_result(field("output"));
                }
                None => {
                    reader
                        .problem("a function_call_output needs call_id: the call that it answers".to_owned());
                }
            },
            "reasoning" => {
                known.extend(["summary", "content", ENCRYPTED]);
                let parts =
                    ["summary", "content"].into_iter().filter_map(|name| field(name).as_array()).flatten();
                parts.for_each(|part| reader.thought(&part["text"]));
                if !is_empty(field(ENCRYPTED)) {
                    reader.original(HIDDEN, json_of(fields));
                }
            }
            "" => reader.problem("it has no role".to_owned()),
            kind => {
                known.extend(fields.keys().map(String::as_str));
                reader.original(&format!("an item of type {kind:?}"), json_of(fields));
            }
        }
        for name in fields.keys().filter(|name| !is_empty(field(name))) {
            if !known.contains(&name.as_str()) && !METADATA.contains(&name.as_str()) {
                reader.problem(format!("field {name:?} of an item of type {kind:?} cannot be kept"));
            }
        }
        for message in self.end(reader) {
            let last = self.read.messages.last_mut();
            match last.filter(|last| [last.role, message.role] == [Role::Assistant; 2]) {
                Some(last) => {
                    last.content.extend(message.content);
                    last.tool_calls.extend(message.tool_calls);
                }
                None => self.read.messages.push(message),
            }
        }
    }

    /// Takes what a message held.
    fn end(&mut self, reader: MessageReader<'_>) -> Vec<Message> {
        let (messages, mut originals, mut problems) = reader.finish();
        self.read.originals.append(&mut originals);
        self.problems.append(&mut problems);
        messages
    }
}

fn json_of(fields: &Map<String, Value>) -> Vec<u8> {
    Value::Object(fields.clone()).to_string().into_bytes()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

/// One message being read; a message of Anthropic's with results of tools becomes several.
struct MessageReader<'k> {
    place: String,
    role: Role,
    key: &'k PointerKey,
    originals: Vec<HistoryOriginal>,
    before: Vec<Message>,
    content: Vec<Content>,
    calls: Vec<ToolCall>,
    result_of: Option<String>,
    problems: Vec<String>,
}

impl<'k> MessageReader<'k> {
    fn new(place: String, role: Role, key: &'k PointerKey) -> Self {
        Self {
            place,
            role,
            key,
            originals: Vec::new(),
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
            (Some("thinking" | "redacted_thinking"), Role::Assistant) => self.part(block),
            (Some("tool_use" | "tool_result" | "refusal" | "thinking" | "redacted_thinking"), role) => {
                let kind = &block["type"];
                self.problem(format!(
                    "a block of type {kind} cannot be in a message of the {}",
                    role.as_str()
                ));
            }
            (Some(_), _) => self.part(block),
            (None, _) => self.problem("a block of content has no type".to_owned()),
        }
    }

    /// What is no text, of any kind.
    fn part(&mut self, block: &Value) {
        match block["type"].as_str() {
            Some("image" | "image_url" | "input_image") => self.picture(block),
            Some("thinking") if block["thinking"].is_string() => self.thought(&block["thinking"]),
            Some("redacted_thinking") => self.block_as_original(HIDDEN, block),
            Some(kind) => self.block_as_original(&format!("a block of type {kind:?}"), block),
            None => self.block_as_original("a part", block),
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

    /// A mark in place of what is no text, which leads to it.
    fn original(&mut self, what: &str, content: Vec<u8>) {
        let original = HistoryOriginal { content, display: what.to_owned() };
        self.say(format!("[{what}: {}]\n", original.pointer(self.key)));
        self.originals.push(original);
    }

    fn block_as_original(&mut self, what: &str, block: &Value) {
        self.original(what, block.to_string().into_bytes());
    }

    /// A picture in any API's form. One that is only named, by its address or an id, stays named.
    fn picture(&mut self, block: &Value) {
        let source = &block["source"];
        let url = [&block["image_url"]["url"], &block["image_url"], &source["url"]];
        let url = url.into_iter().find_map(Value::as_str);
        let inline = url.and_then(|url| Some(url.strip_prefix("data:")?.split_once(";base64,")?.1));
        let data = [&source["data"], &block["data"]].into_iter().find_map(Value::as_str).or(inline);
        match (data.map(Picture::from_base64), url) {
            (Some(Some(picture)), _) => {
                let file = picture.file();
                self.original(&format!("a picture ({}, {} bytes)", picture.media_type(), file.len()), file);
                if self.role == Role::User && self.result_of.is_none() {
                    self.content.push(picture.content());
                }
            }
            (Some(None), _) => self.block_as_original("a picture that is no PNG, JPEG, GIF or WebP", block),
            (None, Some(url)) => self.say(format!("[a picture: {url}]\n")),
            (None, None) => self.block_as_original("a picture that is elsewhere", block),
        }
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
        self.result_of = Some(id.to_owned());
        if block["is_error"] == Value::Bool(true) {
            self.say(FAILED.to_owned());
        }
        self.content_of_result(&block["content"]);
        let content = std::mem::take(&mut self.content);
        self.before.push(Message {
            content,
            tool_call_id: self.result_of.take(),
            ..Message::text(Role::Tool, "")
        });
    }

    /// Results are text, to which marks stand for what is none: OpenAI's API takes no picture in them.
    fn content_of_result(&mut self, content: &Value) {
        let parts = match content {
            Value::Null => return,
            Value::Array(parts) => parts,
            content => return self.content(content),
        };
        for part in parts {
            match part["type"].as_str() {
                Some("text" | "input_text" | "output_text") => self.text(&part["text"], "text"),
                Some(_) => self.part(part),
                None => self.problem("a block of a result has no type".to_owned()),
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

    /// The messages, what their marks lead to, and what was wrong.
    fn finish(mut self) -> (Vec<Message>, Vec<HistoryOriginal>, Vec<String>) {
        self.flush();
        if self.before.is_empty() && self.problems.is_empty() {
            self.problem("it has no content".to_owned());
        }
        (self.before, self.originals, self.problems)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PNG: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

    fn key() -> PointerKey {
        PointerKey::new([7; 32])
    }

    fn whole(value: &Value) -> Result<History, Vec<String>> {
        super::read(&value.to_string(), &key())
    }

    fn read(value: Value) -> Vec<Message> {
        whole(&value).unwrap().messages
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

    /// What a mark of a message leads to.
    fn behind(history: &History, text: &str) -> Vec<u8> {
        let pointers = key().find_in(text);
        let [(_, pointer)] = pointers.as_slice() else { panic!("{text}") };
        let original = history.originals.iter().find(|original| original.pointer(&key()) == *pointer);
        original.unwrap().content.clone()
    }

    #[test]
    fn what_is_no_text_is_behind_its_mark() {
        let hidden = json!({"type": "redacted_thinking", "data": "x"});
        let file = json!({"type": "document", "source": {"type": "base64", "data": "JVBERg=="}});
        let found = whole(&json!([
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "List first.", "signature": "x"}, hidden,
                {"type": "tool_use", "id": "c1", "name": "bash", "input": {"command": "ls"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [
                {"type": "text", "text": "seen: "},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}]}]},
            {"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{PNG}")}},
                {"type": "text", "text": "and this?"}]},
            {"role": "user", "content": [file]},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}]},
        ]))
        .unwrap();
        let text = |at: usize| found.messages[at].joined_text();
        assert!(text(0).contains("List first."), "{}", text(0));
        assert_eq!(found.messages[0].tool_calls, [call("c1")]);
        assert_eq!(behind(&found, &text(0)), hidden.to_string().into_bytes());
        let png = Picture::from_base64(PNG).unwrap();
        // Results are text alone; what the user shows stays a picture, too.
        assert!(text(1).starts_with("seen: [a picture (image/png, 70 bytes): lp1-"), "{}", text(1));
        assert_eq!(found.messages[1].content.len(), 2);
        assert_eq!([behind(&found, &text(1)), behind(&found, &text(2))], [png.file(), png.file()]);
        assert!(found.messages[2].content.contains(&png.content()));
        assert_eq!(behind(&found, &text(3)), file.to_string().into_bytes());
        assert_eq!((text(4).as_str(), found.originals.len()), ("[a picture: https://a.example/b.png]\n", 4));
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
        let item = json!({"type": "web_search_call", "id": "x", "action": {"query": "y"}});
        let searched = whole(&json!([item])).unwrap();
        assert_eq!(behind(&searched, &searched.messages[0].joined_text()), item.to_string().into_bytes());
    }

    #[test]
    fn a_result_without_its_call_is_named() {
        let problems = whole(&json!([
            {"role": "user", "content": "x"},
            {"role": "tool", "tool_call_id": "c9", "content": "x"},
        ]));
        let expected = "message 2: no message before it calls a tool with the id \"c9\"";
        assert_eq!(problems.unwrap_err(), [expected]);
    }

    #[test]
    fn what_would_be_lost_is_refused_with_its_place() {
        let problems = whole(&json!([
            {"role": "robot", "content": "x"},
            {"role": "user", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
            {"role": "tool", "content": "x"},
            {"role": "assistant", "content": "x", "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "user"},
            {"role": "assistant", "content": [{"name": "x"}]},
            {"role": "assistant", "tool_calls": [{"type": "custom", "custom": {"name": "f", "input": "x"}}]},
            "x",
        ]))
        .unwrap_err();
        for (at, words) in [
            "message 1: role \"robot\" cannot be read",
            "message 2: a block of type \"tool_use\"",
            "message 3: a tool's message needs tool_call_id",
            "message 4: field \"function_call\"",
            "message 5: it has no content",
            "message 6: a block of content has no type",
            "message 7: a call of type \"custom\"",
            "message 8 is not an object",
        ]
        .into_iter()
        .enumerate()
        {
            assert!(problems[at].starts_with(words), "{}", problems[at]);
        }
        assert_eq!(problems.len(), 8, "{problems:?}");
        assert!(whole(&json!("x")).unwrap_err()[0].contains("JSON array"));
    }
}
