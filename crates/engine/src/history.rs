//! Reads a conversation: messages as OpenAI's and Anthropic's APIs and Larder's own records write them.
//!
//! Nothing is lost: the conversation is kept as it was given, and so is every picture and file in it, to which a mark in
//! its message leads. Thinking is kept as text, since only the model that wrote it takes it in its own form. Calls and
//! results of any kind of tool become calls and results; what has no counterpart stays as its JSON. What cannot be read is
//! refused with its place; all problems are reported together.

use std::collections::HashSet;

use larder_text::hash::ContentHash;
use larder_text::message::{Content, Message, Role, ToolCall};
use larder_text::picture::Picture;
use larder_text::pointer::{Pointer, PointerKey};
use serde_json::{Map, Value, json};

/// What the conversation as a whole is called among what is kept of it.
const AS_GIVEN: &str = "the conversation as given";
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
/// What stands for such thinking.
const HIDDEN: &str = "[thinking that its provider encrypted]";
/// Words of at least this many bytes are encoded files, keys or signatures.
const LONGEST_WORD: usize = 512;
/// Precedes the result of a tool that reported an error, which Anthropic's API keeps apart from the text.
const FAILED: &str = "[the tool reported an error]";

/// A conversation as it was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// The messages, in order.
    pub messages: Vec<Message>,
    /// The conversation as it was given, and what its marks lead to; to be stored before the marks are sent.
    pub originals: Vec<HistoryOriginal>,
}

/// Something to be kept of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryOriginal {
    /// The file of a picture; of another block, its JSON.
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
    let mut reader = HistoryReader { key, read: History::default(), problems: Vec::new() };
    let whole = HistoryOriginal { content: text.as_bytes().to_vec(), display: AS_GIVEN.to_owned() };
    reader.read.originals.push(whole);
    reader.conversation(&value)
}

/// A part of a message that is not plain text, as the messages read by [`read`] hold it.
#[derive(Debug, Clone, Default)]
pub struct HistoryPart {
    /// What a model reads.
    pub text: String,
    /// What a mark in the text leads to.
    pub originals: Vec<HistoryOriginal>,
    /// The picture that it is.
    pub picture: Option<Picture>,
}

/// The pointer to the whole among what is kept of a conversation.
pub(crate) fn as_given(originals: &[HistoryOriginal], key: &PointerKey) -> Option<String> {
    let whole = originals.iter().find(|original| original.display == AS_GIVEN)?;
    Some(whole.pointer(key).to_string())
}

/// Reads a part of a message of `role`.
pub fn part(json: &str, role: Role, key: &PointerKey) -> HistoryPart {
    let mut reader = MessageReader::new(String::new(), role, key);
    match serde_json::from_str(json) {
        Ok(Value::String(text)) => reader.say(&text),
        Ok(block) => reader.part(&block),
        Err(_) => reader.say(json),
    }
    let text = reader.content.iter().map(|content| match content {
        Content::Text { text } => text.as_str(),
        Content::Image { .. } => "",
    });
    HistoryPart { text: text.collect(), originals: reader.originals, picture: reader.picture }
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
        let mut called = HashSet::new();
        for (at, message) in list.iter().enumerate() {
            let place = format!("message {}", at + 1);
            // Calls may join the message before.
            let first = self.read.messages.len().saturating_sub(1);
            match message {
                Value::Object(fields) if fields.contains_key("role") => self.message(place.clone(), fields),
                Value::Object(fields) => self.item(place.clone(), fields),
                _ => self.problems.push(format!("{place} is not an object with role and content")),
            }
            let new = &self.read.messages[first.min(self.read.messages.len())..];
            called.extend(new.iter().flat_map(|message| &message.tool_calls).map(|call| call.id.clone()));
            let results = new.iter().filter_map(|message| message.tool_call_id.as_deref());
            for id in results {
                if self.problems.is_empty() && !called.contains(id) {
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
                ("reasoning_content" | "reasoning", Role::Assistant) if value.is_string() => {
                    reader.thought(value);
                }
                ("tool_calls", Role::Assistant) => reader.calls(value),
                ("tool_call_id", Role::Tool) => reader.result_of = value.as_str().map(str::to_owned),
                // The call that the message answers names the tool, too.
                ("name", Role::Tool) => {}
                (name, _) if METADATA.contains(&name) => {}
                ("function_call", _) => {
                    reader.problem("function_call is not read; use tool_calls".to_owned());
                }
                // Names of people, sounds, what other APIs add: all of it is in the conversation as given.
                (name, _) => reader.other(name, value),
            }
        }
        if role == Role::Tool && reader.result_of.is_none() {
            reader.problem("a tool's message needs tool_call_id: the call that it answers".to_owned());
        }
        let messages = self.end(reader);
        self.read.messages.extend(messages);
    }

    /// An item of OpenAI's Responses other than a message: a call, its result, or thinking. Calls next to each other, and
    /// thinking before them, belong to one message.
    fn item(&mut self, place: String, fields: &Map<String, Value>) {
        let field = |name: &str| fields.get(name).unwrap_or(&Value::Null);
        let kind = field("type").as_str().unwrap_or_default();
        let tool = kind.strip_suffix("_output").unwrap_or(kind).strip_suffix("_call");
        let is_result = kind.ends_with("_call_output");
        let role = if is_result { Role::Tool } else { Role::Assistant };
        let mut reader = MessageReader::new(place, role, self.key);
        match (kind, tool, field(CALL_ID).as_str()) {
            ("reasoning", ..) => reader.reasoning(&Value::Object(fields.clone())),
            ("", ..) => reader.problem("it has no role".to_owned()),
            (_, Some(_), Some(id)) if is_result => {
                reader.result_of = Some(id.to_owned());
                reader.content_of_result(field("output"));
            }
            (_, Some(_), None) if is_result => {
                reader.problem(format!("an item of type {kind:?} needs call_id: the call that it answers"));
            }
            (_, Some(tool), Some(_)) => {
                let name = if field("name").is_string() { field("name").clone() } else { tool.into() };
                let given = ["arguments", "input", "action", "operation"].map(field);
                let arguments = match given.into_iter().find(|value| !value.is_null()) {
                    // Free text: other APIs take JSON alone.
                    Some(Value::String(text)) if kind != "function_call" => json!({ "input": text }),
                    Some(arguments) => arguments.clone(),
                    None => Value::Object(fields.clone()),
                };
                reader.call(field(CALL_ID), &name, &arguments);
            }
            _ => reader.part(&Value::Object(fields.clone())),
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

/// Whether a value holds encoded bytes: a long string without spaces.
fn holds_bytes(value: &Value) -> bool {
    match value {
        Value::String(text) => text.split_whitespace().any(|word| word.len() >= LONGEST_WORD),
        Value::Array(list) => list.iter().any(holds_bytes),
        Value::Object(fields) => fields.values().any(holds_bytes),
        _ => false,
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
struct MessageReader<'k> {
    place: String,
    role: Role,
    key: &'k PointerKey,
    originals: Vec<HistoryOriginal>,
    picture: Option<Picture>,
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
            picture: None,
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

    /// A block of any other kind.
    fn part(&mut self, block: &Value) {
        match block["type"].as_str() {
            Some("image" | "image_url" | "input_image" | "computer_screenshot") => self.picture(block),
            Some("thinking") if block["thinking"].is_string() => self.thought(&block["thinking"]),
            Some("reasoning") => self.reasoning(block),
            Some("redacted_thinking") => self.say(HIDDEN),
            Some("refusal") if block["refusal"].is_string() => self.text(&block["refusal"], "refusal"),
            kind => self.other(kind.unwrap_or("part"), block),
        }
    }

    /// An item or block of reasoning: what is readable of it.
    fn reasoning(&mut self, block: &Value) {
        let before = self.content.len();
        for part in ["summary", "content"].into_iter().filter_map(|name| block[name].as_array()).flatten() {
            self.thought(&part["text"]);
        }
        if self.content.len() == before && !is_empty(&block[ENCRYPTED]) {
            self.say(HIDDEN);
        }
    }

    /// Something that messages have no form for: its JSON, or a mark if that holds encoded bytes.
    fn other(&mut self, name: &str, value: &Value) {
        if holds_bytes(value) {
            let title = ["title", "filename", "name"].into_iter().find_map(|field| value[field].as_str());
            let title = title.map(|title| format!(" {title:?}")).unwrap_or_default();
            self.original(&format!("{name}{title}"), value.to_string().into_bytes());
        } else {
            self.say(&format!("[{name}: {value}]"));
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
            Some("") => self.say(HIDDEN),
            Some(text) => self.say(&format!("[thinking]\n{text}\n[end of thinking]")),
            None => self.problem("a block of thinking has no text".to_owned()),
        }
    }

    /// A mark in place of something that is not text, which leads to it.
    fn original(&mut self, what: &str, content: Vec<u8>) {
        let original = HistoryOriginal { content, display: what.to_owned() };
        self.say(&format!("[{what}: {}]", original.pointer(self.key)));
        self.originals.push(original);
    }

    /// A picture in any API's form. One that is only named, by its address or an id, stays named.
    fn picture(&mut self, block: &Value) {
        let source = &block["source"];
        let url = [&block["image_url"]["url"], &block["image_url"], &source["url"], &block["image"]];
        let url = url.into_iter().find_map(Value::as_str);
        let inline = url.and_then(|url| Some(url.strip_prefix("data:")?.split_once(";base64,")?.1));
        let data = [&source["data"], &block["data"]].into_iter().find_map(Value::as_str).or(inline);
        match (data.and_then(Picture::from_base64), url) {
            (Some(picture), _) => {
                let file = picture.file();
                self.original(&format!("picture, {}, {} bytes", picture.media_type(), file.len()), file);
                self.picture = Some(picture);
            }
            (None, Some(url)) if !url.starts_with("data:") => self.say(&format!("[picture: {url}]")),
            _ => self.other("picture", block),
        }
    }

    /// Adds lines of their own.
    fn say(&mut self, text: &str) {
        let starts = match self.content.last() {
            Some(Content::Text { text }) => text.ends_with('\n'),
            _ => true,
        };
        let text = format!("{}{text}\n", if starts { "" } else { "\n" });
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
            self.say(FAILED);
        }
        self.content_of_result(&block["content"]);
        let content = std::mem::take(&mut self.content);
        self.before.push(Message {
            content,
            tool_call_id: self.result_of.take(),
            ..Message::text(Role::Tool, "")
        });
    }

    fn content_of_result(&mut self, content: &Value) {
        let parts = match content {
            Value::Null => return,
            Value::Array(parts) => parts.as_slice(),
            Value::Object(_) => std::slice::from_ref(content),
            content => return self.content(content),
        };
        for part in parts {
            match part["type"].as_str() {
                Some("text" | "input_text" | "output_text") => self.text(&part["text"], "text"),
                Some(_) => self.part(part),
                None => self.say(&part.to_string()),
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
#[path = "history_tests.rs"]
mod tests;
