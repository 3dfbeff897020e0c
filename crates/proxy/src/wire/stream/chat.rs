//! Events of OpenAI's chat completions. Knows no bytes.
//!
//! A call's name may arrive in pieces, and several calls in one chunk, so chunks are processed twice: first to
//! determine who each call is for, then, once that is known, to remove Larder's.

use std::collections::{BTreeMap, VecDeque};

use larder_text::json::{self, Document, Edit, Kind, Value};
use serde_json::{Map, Value as Json};

use super::super::dialect::ApiDialect;
use super::super::reply::{GAP, LimitNote, ReplyRound, ReplyUnit, inner, is_thought, length};
use super::{EventAction, RoundContext};

/// Maximum calls per reply; further ones are forwarded unchanged.
const MAX_CALLS: usize = 1_024;
/// Maximum choices per reply whose ends are tracked.
const MAX_CHOICES: usize = 1_024;

/// The state of a reply.
#[derive(Debug, Default)]
pub(super) struct ChatState {
    calls: Vec<StreamedCall>,
    /// For each fragment of a call that is not passed on yet, in order: the call.
    fragments: VecDeque<Option<usize>>,
    /// The first chunk's `id` and `created`, which later rounds reuse, and its `model`.
    identity: Vec<(&'static str, String)>,
    /// Calls the client has.
    shown: u64,
    role_shown: bool,
    text_shown: bool,
    text_in_round: bool,
    /// The text so far ends in white space.
    text_apart: bool,
    thoughts: Map<String, Json>,
    /// Whether each choice that has begun has ended, by its index.
    choices: BTreeMap<u64, bool>,
    /// The number of requested choices. Some servers send them one after the other.
    asked: usize,
}

/// A call in progress.
#[derive(Debug, Default)]
struct StreamedCall {
    index: Option<u64>,
    id: String,
    name: String,
    ours: Option<bool>,
    /// Its index for the client.
    shown: Option<u64>,
    whole: Map<String, Json>,
}

impl ChatState {
    /// Expects this many choices.
    pub fn expect(&mut self, choices: u64) {
        self.asked = usize::try_from(choices).unwrap_or(MAX_CHOICES).min(MAX_CHOICES);
    }

    pub fn is_undecided(&self) -> bool {
        self.calls.iter().any(|call| call.ours.is_none())
    }

    /// Forwards undecided events.
    pub fn decide(&mut self, round: &mut ReplyRound) {
        for call in self.calls.iter_mut().filter(|call| call.ours.is_none()) {
            call.ours = Some(false);
            round.asks = true;
        }
    }

    /// Determines from a chunk who its calls are for. A call's name is complete once its arguments, another call or
    /// the end of the reply follow.
    pub fn classify(&mut self, chunk: Value<'_, '_>, tool: &str, round: &mut ReplyRound) {
        let undecided: Vec<usize> =
            (0..self.calls.len()).filter(|&at| self.calls[at].ours.is_none()).collect();
        let mut touched = Vec::new();
        for entry in delta(chunk).into_iter().flat_map(entries) {
            let at = self.call_of(entry);
            self.fragments.push_back(at);
            let Some(call) = at.and_then(|at| self.calls.get_mut(at)) else { continue };
            let function = entry.given("function");
            let text = |name: &str| function.and_then(|f| f.given(name)).and_then(Value::text);
            call.name.push_str(&text("name").unwrap_or_default());
            if call.ours.is_none() {
                let begun = text("arguments").is_some_and(|arguments| !arguments.is_empty());
                let may_become_ours = tool.starts_with(&call.name) && !begun;
                call.ours = match call.name == tool {
                    false if may_become_ours => None,
                    ours => Some(ours),
                };
            }
            touched.extend(at);
            merge(&mut call.whole, entry);
            round.has_ours |= call.ours == Some(true);
            round.asks |= call.ours == Some(false);
        }
        let ends = choice(chunk).is_some_and(|choice| choice.given("finish_reason").is_some());
        for at in undecided.into_iter().filter(|at| ends || touched.iter().any(|other| other != at)) {
            let call = &mut self.calls[at];
            call.ours = call.ours.or(Some(false));
            round.asks |= call.ours == Some(false);
        }
    }

    /// The call that a fragment belongs to. Some servers send no index, or the same one for every call: then a
    /// different id starts a new call.
    fn call_of(&mut self, entry: Value<'_, '_>) -> Option<usize> {
        let index = entry.given("index").and_then(Value::as_u64);
        let id = entry.given("id").and_then(Value::text).unwrap_or_default();
        let same = |call: &StreamedCall| id.is_empty() || call.id.is_empty() || call.id == id;
        let known = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index),
            None => self.calls.len().checked_sub(1),
        };
        let at = match known.filter(|&at| same(&self.calls[at])) {
            Some(at) => at,
            None if self.calls.len() < MAX_CALLS => {
                self.calls.push(StreamedCall { index, ..StreamedCall::default() });
                self.calls.len() - 1
            }
            None => return None,
        };
        if !id.is_empty() {
            self.calls[at].id = id.into_owned();
        }
        Some(at)
    }

    /// `[DONE]`
    pub const fn done(cx: &RoundContext<'_>) -> EventAction {
        if cx.is_spliced() { EventAction::End(Vec::new()) } else { EventAction::Pass(Vec::new()) }
    }

    /// A chunk created by Larder with the text of the reply.
    pub fn say(&self, note: &LimitNote) -> String {
        let identity: String =
            self.identity.iter().map(|(name, value)| format!(r#""{name}":{value},"#)).collect();
        let role = if self.role_shown { "" } else { r#""role":"assistant","# };
        let delta = format!(r#"{{{role}"content":{}}}"#, note.literal());
        let choice = format!(r#"{{"index":0,"delta":{delta},"finish_reason":null}}"#);
        format!("data: {{{identity}\"object\":\"chat.completion.chunk\",\"choices\":[{choice}]}}\n\n")
    }

    pub fn event(&mut self, chunk: Value<'_, '_>, cx: &mut RoundContext<'_>) -> EventAction {
        let mut edits = self.identify(chunk, cx);
        cx.round.read_service(chunk);
        if let Some(usage) = chunk.given("usage") {
            cx.round.tally.take(usage);
            edits.extend(cx.earlier.spent().edits(usage));
        }
        cx.round.failed |= chunk.given("error").is_some();
        let Some(choice) = choice(chunk) else {
            return EventAction::Pass(edits);
        };
        let all_ended = self.choices_end(chunk, cx);
        let finish = choice.given("finish_reason").and_then(Value::text);
        let shows = match choice.given("delta") {
            Some(delta) => self.delta(delta, cx, &mut edits),
            None => true,
        };
        if let Some(finish) = finish.filter(|_| all_ended) {
            cx.round.stop = Some(finish.into_owned());
            (cx.round.complete, cx.round.ended) = (true, true);
            return if cx.is_spliced() { EventAction::End(edits) } else { EventAction::Pass(edits) };
        }
        if shows || chunk.given("usage").is_some() { EventAction::Pass(edits) } else { EventAction::Drop }
    }

    /// Tracks the choices in a chunk, of which all but the first are forwarded unchanged. Returns whether all
    /// requested choices have ended and none is in progress.
    fn choices_end(&mut self, chunk: Value<'_, '_>, cx: &mut RoundContext<'_>) -> bool {
        for (at, choice) in chunk.given("choices").into_iter().flat_map(Value::items).enumerate() {
            let index = choice.given("index").and_then(Value::as_u64).unwrap_or_default();
            if self.choices.len() < MAX_CHOICES || self.choices.contains_key(&index) {
                *self.choices.entry(index).or_default() |= choice.given("finish_reason").is_some();
            }
            if at > 0 {
                cx.round.said += choice.given("delta").map_or(0, |delta| delta.raw().len());
            }
        }
        self.choices.len() >= self.asked && self.choices.values().all(|ended| *ended)
    }

    /// All chunks of a message have the same id and time.
    fn identify(&mut self, chunk: Value<'_, '_>, cx: &RoundContext<'_>) -> Vec<Edit> {
        let names = ["id", "created", "model"];
        if cx.is_first() {
            if self.identity.is_empty() {
                let known =
                    names.into_iter().filter_map(|name| Some((name, chunk.given(name)?.raw().to_owned())));
                self.identity.extend(known);
            }
            return Vec::new();
        }
        let edit = |(name, first): &(&'static str, String)| {
            let own = chunk.given(name).filter(|own| own.raw() != first)?;
            Some(Edit::replace(own.span(), first.clone()))
        };
        self.identity.iter().filter(|(name, _)| *name != "model").filter_map(edit).collect()
    }

    /// Processes a delta and edits it for the client. Returns whether anything is left for it.
    fn delta(&mut self, delta: Value<'_, '_>, cx: &mut RoundContext<'_>, edits: &mut Vec<Edit>) -> bool {
        let mut gone = Vec::new();
        let mut shows = false;
        let calls = delta.given("tool_calls").map(Value::id);
        for (key, value) in delta.members() {
            let name = key.text();
            match (&*name, value.kind()) {
                ("tool_calls", Kind::Array) if calls == Some(value.id()) => {
                    let functions = value.items().filter_map(|call| call.given("function"));
                    cx.round.said += functions.map(|call| length(call.given("arguments"))).sum::<usize>();
                    if self.calls_of(value, cx.round.has_ours, edits) {
                        shows = true;
                    } else {
                        gone.push("tool_calls");
                    }
                }
                ("role", _) => {
                    // Clients join the strings they get.
                    if self.role_shown && !cx.is_first() {
                        gone.push("role");
                    }
                    shows |= !self.role_shown;
                    self.role_shown = true;
                }
                ("content", Kind::String) => {
                    let text = value.text().unwrap_or_default();
                    cx.round.said += text.len();
                    shows |= !text.is_empty();
                    edits.extend(self.content(&text, value, cx));
                }
                (_, Kind::Null) => {}
                _ => {
                    shows = true;
                    cx.round.said += length(Some(value));
                    if cx.keep && is_thought(&name) {
                        grow(&mut self.thoughts, &name, value);
                    }
                }
            }
        }
        edits.extend(json::without(delta, &gone));
        // A delta that was empty from the start is passed on.
        shows || !gone.contains(&"tool_calls")
    }

    fn content(&mut self, text: &str, value: Value<'_, '_>, cx: &mut RoundContext<'_>) -> Option<Edit> {
        if text.is_empty() {
            return None;
        }
        let begins = !cx.is_first() && self.text_shown && !self.text_apart && !self.text_in_round;
        if cx.keep {
            cx.round.text.push_str(text);
        }
        (self.text_shown, self.text_in_round) = (true, true);
        self.text_apart = text.ends_with(char::is_whitespace);
        begins.then(|| Edit::insert(value.span().start + 1, inner(GAP)))
    }

    /// Removes Larder's calls from `tool_calls`, and renumbers the others for the client. Returns whether any are
    /// left.
    fn calls_of(&mut self, list: Value<'_, '_>, has_ours: bool, edits: &mut Vec<Edit>) -> bool {
        let mut ours = Vec::new();
        for entry in list.items() {
            let at = self.fragments.pop_front().flatten();
            let Some(call) = at.and_then(|at| self.calls.get_mut(at)) else {
                ours.push(false);
                continue;
            };
            ours.push(call.ours == Some(true));
            if call.ours == Some(true) {
                continue;
            }
            let shown = *call.shown.get_or_insert_with(|| {
                self.shown += 1;
                self.shown - 1
            });
            let moved = |index: &Value<'_, '_>| has_ours && index.as_u64() != Some(shown);
            if let Some(index) = entry.given("index").filter(moved) {
                edits.push(Edit::replace(index.span(), shown.to_string()));
            }
        }
        let left = ours.is_empty() || ours.contains(&false);
        if left && ours.contains(&true) {
            edits.extend(json::splice(list, "", |at| ours.get(at) == Some(&true)));
        }
        left
    }

    /// Ends the round: assembles its output.
    pub fn finish(&mut self, round: &mut ReplyRound) {
        for call in std::mem::take(&mut self.calls) {
            let raw = Json::Object(call.whole).to_string();
            if let Ok(doc) = Document::parse(&raw) {
                let ours = Some(call.name.as_str()).filter(|_| call.ours == Some(true));
                round.units.push(ReplyUnit::read(ApiDialect::Chat, doc.root(), ours));
            }
        }
        for (name, value) in std::mem::take(&mut self.thoughts) {
            round.members += &format!(",{}:{value}", json::encoded(&name));
        }
        self.fragments.clear();
        self.choices.clear();
        self.shown = 0;
        self.text_in_round = false;
    }
}

fn choice<'d, 't>(chunk: Value<'d, 't>) -> Option<Value<'d, 't>> {
    chunk.given("choices")?.items().next()
}

fn delta<'d, 't>(chunk: Value<'d, 't>) -> Option<Value<'d, 't>> {
    choice(chunk)?.given("delta")
}

fn entries<'d, 't>(delta: Value<'d, 't>) -> impl Iterator<Item = Value<'d, 't>> {
    delta.given("tool_calls").into_iter().flat_map(Value::items)
}

/// Merges a fragment into a call: arguments and names are appended, for other members the last value wins.
fn merge(call: &mut Map<String, Json>, fragment: Value<'_, '_>) {
    for (key, value) in fragment.members().filter(|(_, value)| value.kind() != Kind::Null) {
        let name = key.text();
        match &*name {
            "index" => {}
            "function" => {
                let function = call.entry("function").or_insert_with(|| Json::Object(Map::new()));
                let Json::Object(function) = function else { continue };
                for (key, value) in value.members().filter(|(_, value)| value.kind() != Kind::Null) {
                    grow(function, &key.text(), value);
                }
            }
            _ => {
                call.insert(name.into_owned(), serde_json::from_str(value.raw()).unwrap_or_default());
            }
        }
    }
}

/// Merges into a member: text is appended to text, items to a list, anything else replaces the old value.
fn grow(object: &mut Map<String, Json>, name: &str, value: Value<'_, '_>) {
    match (object.get_mut(name), value.text(), serde_json::from_str(value.raw())) {
        (Some(Json::String(text)), Some(more), _) => text.push_str(&more),
        (Some(Json::Array(list)), _, Ok(Json::Array(more))) => list.extend(more),
        (_, Some(text), _) => {
            object.insert(name.to_owned(), Json::String(text.into_owned()));
        }
        (_, None, Ok(value)) => {
            object.insert(name.to_owned(), value);
        }
        _ => {}
    }
}
