//! A request as a view: who says what, in order, with its position in the bytes. Knows what the formats have in
//! common; each format's own parser fills it in.
//!
//! Parsing is lenient: anything of unknown form is opaque, counted and left unchanged, and the provider judges it.
//! Only what would make the count wrong is rejected.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;

use larder_core::policy::{ItemCall, REHYDRATE};
use larder_text::hash::ContentHash;
use larder_text::json::{self, Document, Id, Value};
use larder_text::message::Role;

use super::dialect::ApiDialect;
use super::opaque::{Opaque, OpaqueKind};
use super::read::{ReadError, fields};
use super::tool::NAMES;

/// The members that mark where a prefix that the provider may cache ends.
pub(super) const BREAKPOINTS: [&str; 2] = ["cache_control", "prompt_cache_breakpoint"];
/// The block of its own that marks the same in Bedrock's `Converse`.
pub(super) const CACHE_POINT: &str = "cachePoint";
/// Larder's extension to messages, results and tool definitions: `false` keeps a result whole (R3-4.28).
pub(super) const OWN_FIELD: &str = "summarizable";

/// A request body.
#[derive(Debug)]
pub struct Request<'b> {
    /// What it is written in.
    pub dialect: ApiDialect,
    /// All of it.
    pub body: &'b str,
    /// The requested model.
    pub model: Option<Text<'b>>,
    /// Whether the reply is to be streamed.
    pub stream: bool,
    /// Whether a streamed reply of chat completions is to end in a chunk with the usage.
    pub include_usage: bool,
    /// The most tokens that the reply may have, under whichever name.
    pub max_output: Option<u64>,
    /// The number of requested choices (chat completions), each of which may be equally long.
    pub choices: u64,
    /// The messages in order; instructions first.
    pub items: Vec<Item<'b>>,
    /// Tools the client offers.
    pub tools: Vec<OfferedTool<'b>>,
    /// What else the model is shown: schemas for the reply, legacy functions.
    pub fixed: Vec<Fixed<'b>>,
    /// A part of the history is held by the provider (`previous_response_id`, `conversation`, `prompt`, item references),
    /// so the window is not all here.
    pub history_elsewhere: bool,
    /// The response that the provider holds and this request continues from (responses).
    pub continues: Option<String>,
    /// The conversation that the provider holds and this request belongs to (responses).
    pub conversation: Option<String>,
    /// The field by which the provider holds part of the history, or may remove some of it (`context_management`,
    /// `truncation`, compaction items): what stands above a message here may not when the model reads it.
    pub edited_elsewhere: Option<&'static str>,
    pub(super) doc: Document<'b>,
    /// `messages` or `input`.
    pub(super) list: Option<Id>,
    /// The elements of `list`.
    pub(super) elements: Vec<Id>,
    pub(super) tools_at: Option<Id>,
    /// The list of allowed tools, if the client sends one.
    pub(super) allowed_at: Option<Id>,
    /// Objects with Larder's own fields.
    pub(super) own: Vec<Id>,
    pub(super) unofferable: Option<&'static str>,
    /// The name under which Larder's tool is offered.
    pub(super) tool_name: &'static str,
    max_messages: usize,
}

/// One message, or one result in a message with several parts: the unit that can be replaced or dropped.
#[derive(Debug, Default)]
pub struct Item<'b> {
    who: Option<Role>,
    /// The index of its element in `messages` or `input`; `None` for instructions outside of it.
    pub message: Option<usize>,
    /// Its text, in order.
    pub texts: Vec<Text<'b>>,
    /// Its tool calls.
    pub calls: Vec<ItemCall<'b>>,
    /// What it is the result of; there exactly when its role is [`Role::Tool`].
    pub result: Option<ResultItem<'b>>,
    /// Parts that are never changed but count.
    pub opaque: Vec<Opaque<'b>>,
    /// Something else, such as a picture, stands between its texts, which can therefore not become one.
    pub interleaved: bool,
    /// How much that is no text stands before its last text.
    before_text: usize,
    /// It has a breakpoint of the provider's cache.
    pub cache_control: bool,
    /// The value with its texts.
    pub(super) content: Option<Id>,
    /// The blocks of the message that form this item; `None` if the whole message does.
    pub(super) blocks: Option<Vec<Id>>,
    joined: OnceCell<JoinedTexts<'b>>,
    hash: OnceCell<ContentHash>,
}

/// The texts of an item as one, and where each is in it; no ranges if there is at most one.
type JoinedTexts<'b> = (Cow<'b, str>, Vec<Range<usize>>);

/// One string literal.
#[derive(Debug, Clone, Copy)]
pub struct Text<'b> {
    /// The literal, with its quotes: good as a key of counts, without decoding.
    pub raw: &'b str,
    pub(super) at: Id,
    /// The part of an array of content that it is the text of, and whether that has a cache breakpoint.
    pub(super) part: Option<(Id, bool)>,
}

/// What a result answers.
#[derive(Debug, Clone)]
pub struct ResultItem<'b> {
    /// The call's id.
    pub id: Cow<'b, str>,
    /// The tool, if the call is in the history or the result names it.
    pub name: Option<Cow<'b, str>>,
    /// The tool failed.
    pub error: bool,
    /// `false` if the result or its tool's definition says that it must stay whole (R3-4.28).
    pub summarizable: bool,
}

/// A tool that the client offers.
#[derive(Debug, Clone)]
pub struct OfferedTool<'b> {
    /// Its name; for the provider's own tools their type.
    pub name: Cow<'b, str>,
    /// Its type; empty if it is given none.
    pub kind: Cow<'b, str>,
    /// The definition.
    pub raw: &'b str,
    /// `false` if the definition says that its results must stay whole (R3-4.28).
    pub summarizable: bool,
}

/// Something of the request's settings that the model is shown.
#[derive(Debug, Clone, Copy)]
pub struct Fixed<'b> {
    /// The field.
    pub name: &'static str,
    /// Its value.
    pub raw: &'b str,
}

/// Reads a request body.
///
/// # Errors
/// If it is not JSON, has no messages, or repeats a counted member in one object.
pub fn read(dialect: ApiDialect, body: &str) -> Result<Request<'_>, ReadError> {
    read_up_to(dialect, body, usize::MAX)
}

/// Parses a request body with at most this many messages; a longer one is rejected unread.
///
/// # Errors
/// As [`read`], and when there are more.
pub fn read_up_to(dialect: ApiDialect, body: &str, max_messages: usize) -> Result<Request<'_>, ReadError> {
    let doc = Document::parse_request(body)?;
    let mut request = Request {
        dialect,
        body,
        model: None,
        stream: false,
        include_usage: false,
        max_output: None,
        choices: 1,
        items: Vec::new(),
        tools: Vec::new(),
        fixed: Vec::new(),
        history_elsewhere: false,
        continues: None,
        conversation: None,
        edited_elsewhere: None,
        doc: Document::default(),
        list: None,
        elements: Vec::new(),
        tools_at: None,
        allowed_at: None,
        own: Vec::new(),
        unofferable: None,
        tool_name: REHYDRATE,
        max_messages,
    };
    dialect.format().read(doc.root(), &mut request)?;
    request.doc = doc;
    request.match_results();
    Ok(request)
}

impl<'b> Request<'b> {
    /// Elements of `messages` or `input`.
    pub fn messages(&self) -> usize {
        self.elements.len()
    }

    /// One element of `messages` or `input`.
    pub(super) fn element(&self, at: usize) -> Value<'_, 'b> {
        self.doc.value(self.elements[at])
    }

    /// The bytes of one element of `messages` or `input`.
    pub fn message(&self, message: usize) -> &'b str {
        self.elements.get(message).map_or("", |&id| self.doc.value(id).raw())
    }

    /// Identifies a message across requests: a hash of its bytes without cache breakpoints, which clients move, and
    /// without billing information.
    pub fn identity(&self, message: usize) -> ContentHash {
        let Some(&id) = self.elements.get(message) else { return ContentHash::new(b"") };
        let billed = self.items.iter().find(|item| item.message == Some(message) && item.is_billed());
        if let Some(item) = billed {
            return item.identity();
        }
        let whole = self.doc.value(id);
        let objects = self.marked_objects(id);
        let mut kept = String::with_capacity(whole.raw().len());
        let mut from = whole.span().start;
        let marks = objects.iter().flat_map(|&at| json::without(self.doc.value(at), &BREAKPOINTS));
        let marks = marks.chain(self.cache_points(whole));
        let mut marks: Vec<_> = marks.map(|edit| edit.range).collect();
        marks.sort_by_key(|range| range.start);
        for mark in marks {
            kept.push_str(&self.body[from..mark.start]);
            from = mark.end;
        }
        kept.push_str(&self.body[from..whole.span().end]);
        ContentHash::new(kept.as_bytes())
    }

    /// A message, its parts and theirs: what clients mark for the provider's cache.
    pub(super) fn marked_objects(&self, message: Id) -> Vec<Id> {
        let mut objects = vec![message];
        objects.extend(parts(self.doc.value(message)));
        let nested: Vec<Id> = objects[1..].iter().flat_map(|&part| parts(self.doc.value(part))).collect();
        objects.extend(nested);
        objects
    }

    /// The edits that remove the blocks of a message that only mark where the provider's cache ends.
    fn cache_points(&self, message: Value<'_, 'b>) -> Vec<json::Edit> {
        let blocks: Vec<_> = message.given("content").into_iter().flat_map(Value::items).collect();
        let is_mark = |at: usize| blocks.get(at).is_some_and(|block| block.given(CACHE_POINT).is_some());
        let spans: Vec<_> = blocks.iter().map(|block| block.span()).collect();
        json::remove_from(&spans, is_mark)
    }

    /// Whether its tokens can be counted: pictures, files and sound are charged at their worst case, and history
    /// stored by the provider is not available here.
    pub fn is_countable(&self) -> bool {
        let guessed =
            |part: &Opaque<'_>| matches!(part.kind, OpaqueKind::Image | OpaqueKind::File | OpaqueKind::Audio);
        !self.history_elsewhere && !self.items.iter().flat_map(|item| &item.opaque).any(guessed)
    }

    /// Assigns tool names to results, and marks those whose tools must not be condensed.
    fn match_results(&mut self) {
        let mut names: HashMap<Cow<'b, str>, Cow<'b, str>> = HashMap::new();
        let whole: Vec<&str> =
            self.tools.iter().filter(|tool| !tool.summarizable).map(|tool| &*tool.name).collect();
        for item in &mut self.items {
            for call in &item.calls {
                names.insert(call.id.clone(), call.name.clone());
            }
            let Some(result) = &mut item.result else { continue };
            if result.name.is_none() {
                result.name = names.get(&result.id).cloned();
            }
            let kept_whole = |name: &Cow<'_, str>| whole.contains(&&**name);
            result.summarizable &= !result.name.as_ref().is_some_and(kept_whole);
        }
    }

    /// Reads the definitions of tools.
    pub(super) fn read_tools(&mut self, tools: Option<Value<'_, 'b>>) -> Result<(), ReadError> {
        let Some(tools) = tools else { return Ok(()) };
        self.tools_at = Some(tools.id());
        for tool in tools.items().filter(|tool| tool.given(CACHE_POINT).is_none()) {
            // Chat completions and Bedrock wrap a definition once more.
            let wrapped = ["function", "custom", "toolSpec", "systemTool"].into_iter();
            let inner = wrapped.filter_map(|name| tool.given(name)).next().unwrap_or(tool);
            let name = inner.given("name").or_else(|| tool.given("type")).and_then(Value::text);
            let name = name.unwrap_or_default();
            // Bedrock gives its own tools no type.
            let system = || tool.given("systemTool").map(|_| Cow::Borrowed("systemTool"));
            let kind = tool.given("type").and_then(Value::text).or_else(system).unwrap_or_default();
            let mut summarizable = self.take_own(tool);
            if inner.id() != tool.id() {
                summarizable &= self.take_own(inner);
            }
            self.tools.push(OfferedTool { name, kind, raw: tool.raw(), summarizable });
        }
        let is_free = |name: &&str| !self.tools.iter().any(|tool| tool.name == **name);
        match NAMES.into_iter().find(is_free) {
            Some(name) => self.tool_name = name,
            None => self.unofferable = Some("the client has tools of every name that Larder's can take"),
        }
        Ok(())
    }

    /// Whether the object's extension field permits condensing; the field is recorded for removal.
    pub(super) fn take_own(&mut self, object: Value<'_, 'b>) -> bool {
        let mut summarizable = true;
        for (_, value) in object.members().filter(|(key, _)| key.is(OWN_FIELD)) {
            self.own.push(object.id());
            summarizable &= value.raw() != "false";
        }
        summarizable
    }

    /// Notes the elements of `messages` or `input`, each of which must be an object.
    pub(super) fn take_list(&mut self, name: &str, list: Value<'_, 'b>) -> Result<(), ReadError> {
        let (count, max) = (list.items().count(), self.max_messages);
        if count > max {
            return Err(ReadError::Messages { count, max });
        }
        self.list = Some(list.id());
        for (at, element) in list.items().enumerate() {
            if element.kind() != json::Kind::Object {
                return Err(ReadError::shape(format!("{name}[{at}]"), element, "an object"));
            }
            self.elements.push(element.id());
        }
        Ok(())
    }

    pub(super) fn take_model(&mut self, model: Option<Value<'_, 'b>>) -> Result<(), ReadError> {
        let Some(model) = model else { return Ok(()) };
        let text = Text::new(model).ok_or_else(|| ReadError::shape("model", model, "a string"))?;
        self.model = Some(text);
        Ok(())
    }

    pub(super) fn take_fixed(&mut self, name: &'static str, value: Option<Value<'_, 'b>>) {
        self.fixed.extend(value.map(|value| Fixed { name, raw: value.raw() }));
    }
}

impl<'b> Item<'b> {
    pub(super) fn new(role: Role, message: Option<usize>) -> Self {
        Self { who: Some(role), message, ..Self::default() }
    }

    /// The author; results of tools are [`Role::Tool`] in every dialect.
    pub fn role(&self) -> Role {
        self.who.unwrap_or(Role::User)
    }

    /// All its text, decoded once; several texts are joined by line feeds.
    pub fn text(&self) -> &str {
        &self.joined().0
    }

    /// Where each of several texts is in [`text`](Self::text), with the line feed after it; none if it is one text.
    pub fn ranges(&self) -> &[Range<usize>] {
        &self.joined().1
    }

    fn joined(&self) -> &JoinedTexts<'b> {
        self.joined.get_or_init(|| match self.texts.as_slice() {
            [] => (Cow::Borrowed(""), Vec::new()),
            [text] => (text.text(), Vec::new()),
            [first, others @ ..] => {
                let (mut all, mut ranges, mut start) = (first.text().into_owned(), Vec::new(), 0);
                for text in others {
                    all.push('\n');
                    ranges.push(std::mem::replace(&mut start, all.len())..all.len());
                    all.push_str(&text.text());
                }
                ranges.push(start..all.len());
                (Cow::Owned(all), ranges)
            }
        })
    }

    /// The hash of its text.
    pub fn hash(&self) -> ContentHash {
        *self.hash.get_or_init(|| ContentHash::new(self.text().as_bytes()))
    }

    /// As if [`hash`](Self::hash) had computed this.
    pub(super) fn know_hash(&self, hash: ContentHash) {
        let _ = self.hash.set(hash);
    }

    /// Reads content: a string, or parts.
    pub(super) fn read_content(
        &mut self,
        content: Option<Value<'_, 'b>>,
        path: &str,
    ) -> Result<(), ReadError> {
        let Some(content) = content else { return Ok(()) };
        self.content = Some(content.id());
        if let Some(text) = Text::new(content) {
            self.texts.push(text);
        } else if content.kind() == json::Kind::Array {
            for (at, part) in content.items().enumerate() {
                self.read_part(part, &|| format!("{path}[{at}]"))?;
            }
        } else {
            self.push_opaque(content);
        }
        Ok(())
    }

    /// Reads a part of content: text, or something opaque.
    pub(super) fn read_part(
        &mut self,
        part: Value<'_, 'b>,
        path: &dyn Fn() -> String,
    ) -> Result<(), ReadError> {
        if part.kind() != json::Kind::Object {
            self.push_opaque(part);
            return Ok(());
        }
        let [kind, text, cache, prompt_cache] =
            fields(part, path, ["type", "text", BREAKPOINTS[0], BREAKPOINTS[1]])?;
        let marked = cache.or(prompt_cache).is_some();
        self.cache_control |= marked;
        let is_text =
            kind.is_some_and(|kind| ["text", "input_text", "output_text"].iter().any(|k| kind.is(k)));
        match text.and_then(Text::new).filter(|_| is_text) {
            Some(text) => self.add_text(Text { part: Some((part.id(), marked)), ..text }),
            None => self.push_opaque(part),
        }
        Ok(())
    }

    pub(super) fn push_opaque(&mut self, value: Value<'_, 'b>) {
        let (kind, counted) = OpaqueKind::read(value);
        self.push(kind, value, counted);
    }

    /// Adds something that is not text, of which `counted` is shown to the model.
    pub(super) fn push(&mut self, kind: OpaqueKind, value: Value<'_, 'b>, counted: Value<'_, 'b>) {
        self.opaque.push(Opaque { kind, raw: value.raw(), counted: counted.raw() });
    }

    /// Adds the text of a part; returns whether it is one.
    pub(super) fn push_text(&mut self, text: Option<Value<'_, 'b>>, part: Value<'_, 'b>) -> bool {
        let text = text.and_then(Text::new);
        if let Some(text) = text {
            self.add_text(Text { part: Some((part.id(), false)), ..text });
        }
        text.is_some()
    }

    fn add_text(&mut self, text: Text<'b>) {
        self.interleaved |= !self.texts.is_empty() && self.opaque.len() > self.before_text;
        self.before_text = self.opaque.len();
        self.texts.push(text);
    }
}

impl<'b> Text<'b> {
    pub(super) fn new(value: Value<'_, 'b>) -> Option<Self> {
        let string = value.kind() == json::Kind::String;
        string.then(|| Self { raw: value.raw(), at: value.id(), part: None })
    }

    /// The text, decoded; see [`json::decode`].
    pub fn text(&self) -> Cow<'b, str> {
        json::decode(self.raw)
    }
}

/// The parts of a message's or a result's content.
fn parts(value: Value<'_, '_>) -> Vec<Id> {
    value.given("content").into_iter().flat_map(Value::items).map(Value::id).collect()
}

/// The role with this name. An unknown role is treated like a user's and left unchanged.
pub(super) fn role(name: Option<Value<'_, '_>>) -> Role {
    match name.and_then(Value::text).as_deref() {
        Some("system" | "developer") => Role::System,
        Some("assistant") => Role::Assistant,
        Some("tool" | "function") => Role::Tool,
        _ => Role::User,
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
