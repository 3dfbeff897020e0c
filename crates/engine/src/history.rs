//! Reads a conversation: messages as OpenAI's and Anthropic's APIs and Larder's own records write them.
//!
//! Nothing is lost: the conversation is kept as it was given, and so is every picture and file in it, to which a mark in
//! its message leads. Thinking is kept as text, since only the model that wrote it takes it in its own form. Calls and
//! results of any kind of tool become calls and results; what has no counterpart stays as its JSON. What cannot be read is
//! refused with its place; all problems are reported together.

mod message;
mod question;

use std::collections::{HashMap, VecDeque};

use larder_core::output::StrictJson;
use larder_text::hash::ContentHash;
use larder_text::message::{Message, Role, ToolCall};
use larder_text::pointer::{Pointer, PointerKey};
use serde_json::{Map, Value, json};

use self::message::MessageReader;
pub use self::question::{Question, question};

/// What the conversation as a whole is called among what is kept of it.
const AS_GIVEN: &str = "the conversation as given";
/// Fields that say nothing about what was said.
const METADATA: [&str; 12] = [
    "id",
    "type",
    "model",
    "stop_reason",
    "stop_sequence",
    "usage",
    "status",
    "created_at",
    "cache_control",
    "prompt_cache_breakpoint",
    "summarizable",
    "index",
];
/// Where the ids of calls are in the items of OpenAI's Responses.
const CALL_ID: &str = "call_id";
/// The result of a call at the end of a conversation, which servers refuse without one.
const NO_RESULT: &str = "[no result: the conversation ends with this call]";

/// A conversation as it was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// The messages, in order.
    pub messages: Vec<Message>,
    /// The conversation as it was given, and what its marks lead to; to be stored before the marks are sent.
    pub originals: Vec<HistoryOriginal>,
    /// What was added to the messages, with the place.
    pub notes: Vec<String>,
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
/// If the text is not such JSON, or a message has something that cannot be read, or a result has no call before it, or a
/// call no result before the next message: all problems, each with its place. Only calls at the end may lack a result.
pub fn read(text: &str, key: &PointerKey) -> Result<History, Vec<String>> {
    let (system, list) = conversation(text)?;
    let mut reader = HistoryReader::new(text, key);
    reader.instructions(system.as_ref());
    reader.messages(&list);
    reader.end_calls();
    reader.finish()
}

/// The instructions and the messages of a conversation.
fn conversation(text: &str) -> Result<(Option<Value>, Vec<Value>), Vec<String>> {
    let json = text.strip_prefix('\u{feff}').unwrap_or(text);
    let StrictJson(value) = serde_json::from_str(json).map_err(|error| {
        let (line, column, message) = (error.line(), error.column(), error.to_string());
        let problem = message.rsplit_once(" at line ").map_or(message.as_str(), |(problem, _)| problem);
        vec![format!("line {line}, column {column}: {problem}; expected {EXPECTED}")]
    })?;
    let mut request = match value {
        Value::Array(list) => return Ok((None, list)),
        Value::Object(request) => request,
        _ => return Err(vec![format!("expected {EXPECTED}")]),
    };
    let mut take = |name: &str| request.remove(name).filter(|value| !value.is_null());
    match (take("messages"), take("input")) {
        (Some(_), Some(_)) => Err(vec!["it has both messages and input; give one of them".to_owned()]),
        (Some(Value::Array(list)), None) => Ok((take("system"), list)),
        (None, Some(Value::Array(list))) => Ok((take("instructions"), list)),
        (None, Some(text @ Value::String(_))) => {
            Ok((take("instructions"), vec![json!({"role": "user", "content": text})]))
        }
        _ => Err(vec![format!("expected {EXPECTED}")]),
    }
}

/// The pointer to the whole among what is kept of a conversation.
pub(crate) fn as_given(originals: &[HistoryOriginal], key: &PointerKey) -> Option<String> {
    let whole = originals.iter().find(|original| original.display == AS_GIVEN)?;
    Some(whole.pointer(key).to_string())
}

const EXPECTED: &str =
    "a JSON array of messages with role and content, or a request with messages (or, for Responses, input)";

/// A conversation being read.
struct HistoryReader<'k> {
    key: &'k PointerKey,
    read: History,
    /// Calls whose results have not been read yet.
    open: OpenCalls,
    problems: Vec<String>,
}

struct OpenCall {
    place: String,
    name: String,
    id: String,
}

impl OpenCall {
    fn lacks_result(&self, before: &str) -> String {
        let Self { place, name, id } = self;
        format!(
            "{place}: its call of {name} (id {id:?}) has no result before {before}; add the result, or leave the call out"
        )
    }
}

/// The calls without results so far, by id.
#[derive(Default)]
struct OpenCalls {
    by_id: HashMap<String, VecDeque<(usize, OpenCall)>>,
    number: usize,
}

impl OpenCalls {
    fn add(&mut self, call: OpenCall) {
        self.number += 1;
        self.by_id.entry(call.id.clone()).or_default().push_back((self.number, call));
    }

    /// Removes the first with this id, if there is one.
    fn end(&mut self, id: &str) -> bool {
        let Some(calls) = self.by_id.get_mut(id) else { return false };
        let ended = calls.pop_front().is_some();
        if calls.is_empty() {
            self.by_id.remove(id);
        }
        ended
    }

    /// All of them, in their order.
    fn take(&mut self) -> Vec<OpenCall> {
        let mut all: Vec<_> = std::mem::take(&mut self.by_id).into_values().flatten().collect();
        all.sort_by_key(|(number, _)| *number);
        all.into_iter().map(|(_, call)| call).collect()
    }
}

impl<'k> HistoryReader<'k> {
    fn new(text: &str, key: &'k PointerKey) -> Self {
        let whole = HistoryOriginal { content: text.as_bytes().to_vec(), display: AS_GIVEN.to_owned() };
        let read = History { originals: vec![whole], ..History::default() };
        Self { key, read, open: OpenCalls::default(), problems: Vec::new() }
    }

    fn instructions(&mut self, system: Option<&Value>) {
        if let Some(system) = system {
            let mut reader = MessageReader::new("system".to_owned(), Role::System, self.key);
            reader.content(system);
            let messages = self.end(reader);
            self.read.messages.extend(messages);
        }
    }

    fn messages(&mut self, list: &[Value]) {
        for (at, message) in list.iter().enumerate() {
            let place = place(at);
            let (first, calls) = (self.read.messages.len(), self.last_calls().len());
            match message {
                Value::Object(fields) if fields.contains_key("role") => self.message(place.clone(), fields),
                Value::Object(fields) => self.item(place.clone(), fields),
                _ => self.problems.push(format!("{place} is not an object with role and content")),
            }
            // What cannot be read may be a call or a result.
            if self.problems.is_empty() {
                self.link(&place, first, calls);
            }
        }
    }

    /// Matches the messages from `first` on, which were read at a place, with the calls before them. Results follow their
    /// calls: servers refuse anything else. The message before had `calls`, and may have got more.
    fn link(&mut self, place: &str, first: usize, calls: usize) {
        for message in &self.read.messages[first..] {
            let Some(id) = &message.tool_call_id else {
                let open = self.open.take();
                self.problems.extend(open.into_iter().map(|call| call.lacks_result(place)));
                continue;
            };
            if !self.open.end(id) {
                self.problems.push(format!(
                    "{place}: no message before it calls a tool with the id {id:?}, or that call has its result"
                ));
            }
        }
        let known = if self.read.messages.len() == first { calls } else { 0 };
        let new = self.last_calls().iter().skip(known).map(|call| OpenCall {
            place: place.to_owned(),
            name: call.name.clone(),
            id: call.id.clone(),
        });
        let new: Vec<OpenCall> = new.collect();
        new.into_iter().for_each(|call| self.open.add(call));
    }

    fn last_calls(&self) -> &[ToolCall] {
        self.read.messages.last().map_or(&[], |message| &message.tool_calls)
    }

    /// Gives the calls at the end a result that says that there is none.
    fn end_calls(&mut self) {
        for OpenCall { place, name, id } in self.open.take() {
            self.read.notes.push(format!("{place}: its call of {name} has no result; the prompt says so"));
            let result = Message { tool_call_id: Some(id), ..Message::text(Role::Tool, NO_RESULT) };
            self.read.messages.push(result);
        }
    }

    fn finish(mut self) -> Result<History, Vec<String>> {
        // After a problem nothing is matched any more, and calls are open whose results follow.
        if self.problems.is_empty() {
            let open = self.open.take();
            self.problems.extend(open.iter().map(|call| call.lacks_result("the question")));
        }
        if self.problems.is_empty() { Ok(self.read) } else { Err(self.problems) }
    }

    fn message(&mut self, place: String, fields: &Map<String, Value>) {
        let role = match role(&place, fields) {
            Ok(role) => role,
            Err(problem) => return self.problems.push(problem),
        };
        let mut reader = MessageReader::new(place, role, self.key);
        for (name, value) in fields.iter().filter(|(_, value)| !is_empty(value)) {
            match (name.as_str(), role) {
                ("role", _) => {}
                ("content", Role::Tool) => reader.content_of_result(value),
                ("content", _) => reader.content(value),
                ("refusal", Role::Assistant) => reader.text(value, "refusal"),
                ("annotations", _) => reader.citations(value),
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
            ("item_reference", ..) => {
                reader.problem("an item_reference is kept by its provider; send the item itself".to_owned());
            }
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

/// What problems call an element of the list.
fn place(at: usize) -> String {
    format!("message {}", at + 1)
}

/// The role of a message, or why it has none.
fn role(place: &str, fields: &Map<String, Value>) -> Result<Role, String> {
    match fields.get("role").and_then(Value::as_str) {
        Some("system" | "developer") => Ok(Role::System),
        Some("user") => Ok(Role::User),
        Some("assistant") => Ok(Role::Assistant),
        Some("tool") => Ok(Role::Tool),
        Some(other) => {
            let known = "system, developer, user, assistant or tool";
            Err(format!("{place}: role {other:?} cannot be read; use {known}"))
        }
        None => Err(format!("{place} has no role")),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
