//! The position of the model's texts in a history. Providers assign no ids to texts, so a text is identified by
//! itself and by its position: what others said before it, as the client has it. Knows nothing of what is hidden
//! there.

use larder_text::hash::ContentHash;
use larder_text::json::{Id, Value};
use larder_text::message::Role;

use super::request::{Item, Request};

/// A place in a history at which the model replies.
///
/// Only others' messages count for it: clients omit the model's reasoning, and split its text into separate messages.
/// Their number distinguishes equal texts of one conversation; the first and the last of them distinguish the
/// conversations of several agents that share a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplyPlace {
    /// Elements of the history that are not the model's.
    others: usize,
    /// The text of the first of them that is not an instruction.
    first: String,
    /// The text of the last of them.
    last: String,
    /// What the model has said since.
    said: Vec<ContentHash>,
    /// The provider stores part of the history, so that nothing can be counted.
    elsewhere: bool,
}

impl ReplyPlace {
    /// The key of the model's next text here.
    pub(super) fn key(&mut self, text: &str) -> Option<String> {
        if self.elsewhere || text.is_empty() {
            return None;
        }
        let text = ContentHash::new(text.as_bytes());
        let times = self.said.iter().filter(|said| **said == text).count();
        self.said.push(text);
        let Self { others, first, last, .. } = self;
        let whole = format!("said\0{others}\0{first}\0{last}\0{times}\0{text}");
        Some(ContentHash::new(whole.as_bytes()).to_hex())
    }

    /// Adds what others say; `ends`: the model speaks next.
    fn hear(&mut self, items: &[&Item<'_>], ends: bool) {
        self.others += 1;
        self.said.clear();
        let opens = self.first.is_empty() && items.iter().any(|item| item.role() != Role::System);
        // Most of a history is neither, and need not be hashed once more.
        if !ends && !opens {
            return;
        }
        let texts: String = items.iter().map(|item| item.identity().to_hex()).collect();
        self.last = ContentHash::new(texts.as_bytes()).to_hex();
        if opens {
            self.first = self.last.clone();
        }
    }
}

impl Request<'_> {
    /// The place of the reply to this request, which must be as its client sent it.
    pub fn place(&self) -> ReplyPlace {
        self.walk(|_, _, _, _| ())
    }

    /// Walks through the history. Calls `meets` for each element that may have a key: with the element, its id, how
    /// many elements of others precede it, and the key of its text.
    pub(super) fn walk(&self, mut meets: impl FnMut(usize, Id, usize, Option<String>)) -> ReplyPlace {
        let mut place = ReplyPlace { elsewhere: self.history_elsewhere, ..ReplyPlace::default() };
        let mut elements: Vec<Vec<&Item<'_>>> = vec![Vec::new(); self.elements.len()];
        for item in &self.items {
            match item.message.and_then(|at| elements.get_mut(at)) {
                Some(items) => items.push(item),
                // A text instead of a list; instructions have a field of their own.
                None if item.role() == Role::User => place.hear(&[item], true),
                None => {}
            }
        }
        let is_models = |items: &Vec<&Item<'_>>| items.iter().all(|item| item.role() == Role::Assistant);
        for (at, items) in elements.iter().enumerate() {
            if !is_models(items) {
                place.hear(items, elements.get(at + 1).is_none_or(is_models));
            }
            for unit in self.anchors(self.elements[at]) {
                let text = self.dialect.format().said(self.doc.value(unit));
                let key = text.and_then(|text| place.key(&text));
                meets(at, unit, place.others, key);
            }
        }
        place
    }

    /// The parts of a history element that may carry an id or a text of the model.
    fn anchors(&self, element: Id) -> Vec<Id> {
        let value = self.doc.value(element);
        let Some(list) = self.dialect.format().units_member() else { return vec![element] };
        if !value.get("role").is_some_and(|role| role.is("assistant")) {
            return Vec::new();
        }
        let inside: Vec<Id> = value.given(list).into_iter().flat_map(Value::items).map(Value::id).collect();
        // A message with text and without calls.
        if inside.is_empty() { vec![element] } else { inside }
    }
}

/// The model's text in the `content` of a message or an item; `None` if there is none, or it has a call.
pub(super) fn said_in_content(unit: Value<'_, '_>) -> Option<String> {
    let speaks = unit.given("role").is_some_and(|role| role.is("assistant"));
    let calls = unit.given("tool_calls").is_some_and(|calls| calls.items().next().is_some());
    let content = unit.given("content").filter(|_| speaks && !calls)?;
    if let Some(text) = content.text() {
        return Some(text.into_owned());
    }
    let parts = content.items().filter(|part| is_text(*part));
    Some(parts.filter_map(|part| part.given("text")?.text()).collect())
}

/// Whether a block or a part is text.
pub(super) fn is_text(part: Value<'_, '_>) -> bool {
    let kinds = ["text", "output_text", "input_text"];
    part.given("type").is_some_and(|kind| kinds.iter().any(|name| kind.is(name)))
}
