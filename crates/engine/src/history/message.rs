//! Reads one message of a conversation. Knows the blocks of the APIs, and no other message.

use larder_text::message::{Content, Message, Role, ToolCall};
use larder_text::picture::Picture;
use larder_text::pointer::PointerKey;
use serde_json::{Value, json};

use super::{HistoryOriginal, is_empty};

/// Where OpenAI's Responses put thoughts that only the provider reads.
const ENCRYPTED: &str = "encrypted_content";
/// The mark in place of encrypted thinking.
const HIDDEN: &str = "[thinking that its provider encrypted]";
/// Words of at least this many bytes are encoded files, keys or signatures.
const LONGEST_WORD: usize = 512;
/// What citations say in words, in the APIs' names for it.
const CITED: [&str; 7] = ["title", "document_title", "filename", "file_id", "url", "source", "cited_text"];
/// Precedes the result of a tool that reported an error, which Anthropic's API keeps apart from the text.
pub(super) const FAILED: &str = "[the tool reported an error]";

/// Whether a value holds encoded bytes: a long string without spaces.
fn holds_bytes(value: &Value) -> bool {
    match value {
        Value::String(text) => text.split_whitespace().any(|word| word.len() >= LONGEST_WORD),
        Value::Array(list) => list.iter().any(holds_bytes),
        Value::Object(fields) => fields.values().any(holds_bytes),
        _ => false,
    }
}

/// A block of content of Bedrock's `Converse`, which has one member that says what it is, in Anthropic's form.
fn from_converse(block: &Value) -> Option<Value> {
    let (kind, of) = block.as_object().filter(|members| !members.contains_key("type"))?.iter().next()?;
    Some(match kind.as_str() {
        "text" => json!({"type": "text", "text": of}),
        "json" => json!({"type": "text", "text": of.to_string()}),
        "image" => json!({"type": "image", "source": {"data": of["source"]["bytes"]}}),
        "toolUse" => {
            json!({"type": "tool_use", "id": of["toolUseId"], "name": of["name"], "input": of["input"]})
        }
        "toolResult" => {
            json!({"type": "tool_result", "tool_use_id": of["toolUseId"], "content": of["content"],
            "is_error": of["status"] == "error"})
        }
        "reasoningContent" => match &of["reasoningText"]["text"] {
            Value::Null => json!({"type": "redacted_thinking"}),
            text => json!({"type": "thinking", "thinking": text}),
        },
        "document" | "video" | "audio" | "citationsContent" => json!({"type": kind, kind: of}),
        _ => return None,
    })
}

/// Whether a block of `Converse` only says where the provider's cache ends.
pub(super) fn is_cache_point(block: &Value) -> bool {
    block.get("cachePoint").is_some()
}

/// One message being read; a message of Anthropic's with results of tools becomes several.
pub(super) struct MessageReader<'k> {
    place: String,
    role: Role,
    key: &'k PointerKey,
    pub(super) originals: Vec<HistoryOriginal>,
    pub(super) picture: Option<Picture>,
    before: Vec<Message>,
    pub(super) content: Vec<Content>,
    calls: Vec<ToolCall>,
    pub(super) result_of: Option<String>,
    problems: Vec<String>,
}

impl<'k> MessageReader<'k> {
    pub(super) fn new(place: String, role: Role, key: &'k PointerKey) -> Self {
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

    pub(super) fn problem(&mut self, what: String) {
        self.problems.push(format!("{}: {what}", self.place));
    }

    pub(super) fn content(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.content.push(Content::Text { text: text.clone() }),
            Value::Array(blocks) => blocks.iter().for_each(|block| self.block(block)),
            _ => self.problem("content must be text, a list of blocks, or null".to_owned()),
        }
    }

    pub(super) fn block(&mut self, block: &Value) {
        if is_cache_point(block) {
            return;
        }
        let read = from_converse(block);
        let block = read.as_ref().unwrap_or(block);
        match (block["type"].as_str(), self.role) {
            (Some("text" | "input_text" | "output_text"), _) => self.words(block),
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
    pub(super) fn part(&mut self, block: &Value) {
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
    pub(super) fn reasoning(&mut self, block: &Value) {
        let before = self.content.len();
        for part in ["summary", "content"].into_iter().filter_map(|name| block[name].as_array()).flatten() {
            self.thought(&part["text"]);
        }
        if self.content.len() == before && !is_empty(&block[ENCRYPTED]) {
            self.say(HIDDEN);
        }
    }

    /// Something that messages have no form for: its JSON, or a mark if that holds encoded bytes.
    pub(super) fn other(&mut self, name: &str, value: &Value) {
        if holds_bytes(value) {
            let title = ["title", "filename", "name"].into_iter().find_map(|field| value[field].as_str());
            let title = title.map(|title| format!(" {title:?}")).unwrap_or_default();
            self.original(&format!("{name}{title}"), value.to_string().into_bytes());
        } else {
            self.say(&format!("[{name}: {value}]"));
        }
    }

    pub(super) fn text(&mut self, value: &Value, name: &str) {
        match (value, value.as_str()) {
            (_, Some(text)) => self.content.push(Content::Text { text: text.to_owned() }),
            (Value::Null, None) => self.problem(format!("its block of {name} has no {name}")),
            (_, None) => self.problem(format!("{name} is not a string")),
        }
    }

    /// A block of text with the sources that it cites: `annotations` of OpenAI's, `citations` of Anthropic's.
    fn words(&mut self, block: &Value) {
        self.text(&block["text"], "text");
        self.citations(&block["annotations"]);
        self.citations(&block["citations"]);
    }

    /// What is readable of citations, each in a line: names and addresses of the sources, and the words cited.
    pub(super) fn citations(&mut self, value: &Value) {
        for citation in value.as_array().into_iter().flatten() {
            let of = if citation["url_citation"].is_object() { &citation["url_citation"] } else { citation };
            let said: Vec<&str> = CITED.iter().filter_map(|name| of[name].as_str()).collect();
            match said.as_slice() {
                [] => self.other("citation", citation),
                said => self.say(&format!("[citation: {}]", said.join(", "))),
            }
        }
    }

    /// What a model thought before it said or called something.
    pub(super) fn thought(&mut self, value: &Value) {
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
    pub(super) fn say(&mut self, text: &str) {
        let starts = match self.content.last() {
            Some(Content::Text { text }) => text.ends_with('\n'),
            _ => true,
        };
        let text = format!("{}{text}\n", if starts { "" } else { "\n" });
        self.content.push(Content::Text { text });
    }

    /// OpenAI's form, with a function, or the form of Larder's records.
    pub(super) fn calls(&mut self, value: &Value) {
        let Some(calls) = value.as_array() else {
            return self.problem("tool_calls is not a list".to_owned());
        };
        for call in calls {
            match call["type"].as_str() {
                None | Some("function") => {
                    let function = if call["function"].is_object() { &call["function"] } else { call };
                    self.call(&call["id"], &function["name"], &function["arguments"]);
                }
                // Free text: other APIs take JSON alone.
                Some("custom") => {
                    let input = json!({"input": call["custom"]["input"]});
                    self.call(&call["id"], &call["custom"]["name"], &input);
                }
                Some(kind) => self.problem(format!("a call of type {kind:?} cannot be kept")),
            }
        }
    }

    pub(super) fn call(&mut self, id: &Value, name: &Value, arguments: &Value) {
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

    pub(super) fn content_of_result(&mut self, content: &Value) {
        let parts = match content {
            Value::Null => return,
            Value::Array(parts) => parts.as_slice(),
            Value::Object(_) => std::slice::from_ref(content),
            content => return self.content(content),
        };
        for part in parts {
            let read = from_converse(part);
            let part = read.as_ref().unwrap_or(part);
            match part["type"].as_str() {
                Some("text" | "input_text" | "output_text") => self.words(part),
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
    pub(super) fn finish(mut self) -> (Vec<Message>, Vec<HistoryOriginal>, Vec<String>) {
        self.flush();
        if self.before.is_empty() && self.problems.is_empty() {
            self.problem("it has no content".to_owned());
        }
        (self.before, self.originals, self.problems)
    }
}
