//! What clients are not shown of a reply, and how it comes back into the history they send.
//!
//! A hidden step is put back immediately before its anchor: the first thing of the same or the next step that the client
//! did get and still has, known by an id of the provider's, or, of a text, by its place. Knows no store: the caller keeps
//! [`HiddenSteps`] under its keys.

use std::collections::HashSet;

use larder_text::hash::ContentHash;
use larder_text::json::{self, Edit, Kind, Value, encoded};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::ApiDialect;
use super::reply::push_text;
use super::request::Request;

/// Calls of our tool with their results, and the place in a history where they belong. To be kept for the same user and
/// session under each of its keys; the newest holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HiddenSteps {
    /// What [`Request::restore`] will ask for.
    pub keys: Vec<String>,
    /// Whole steps that came before the anchor.
    pub(super) before: Vec<Step>,
    /// Calls beside the anchor, which is a call of a tool of the client's.
    pub(super) beside: Vec<Answered>,
    /// The round of the reply that the anchor stands in: what several anchors lead to is put back once.
    #[serde(default)]
    pub(super) round: usize,
    /// The text of the message that the anchor stands in, without that of the steps (chat completions).
    #[serde(default)]
    pub(super) last: String,
}

/// One reply in which the model called our tool only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Step {
    /// Further members of the message, each with a comma before it (chat completions).
    pub members: String,
    /// What the model said with the calls (chat completions).
    #[serde(default)]
    pub text: String,
    pub calls: Vec<Answered>,
}

/// A call as the model wrote it and its result as the format has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Answered {
    pub call: String,
    pub result: String,
}

fn joined<'a>(values: impl Iterator<Item = &'a String>) -> String {
    values.map(String::as_str).collect::<Vec<_>>().join(",")
}

fn calls(answered: &[Answered]) -> String {
    joined(answered.iter().map(|answered| &answered.call))
}

fn results(answered: &[Answered]) -> String {
    joined(answered.iter().map(|answered| &answered.result))
}

impl Request<'_> {
    /// Puts hidden steps back where they were, as far as `find` knows them; only to be done where our tool is offered, since
    /// providers refuse calls of tools that they are not told of. The body is to be read again afterwards. The results are
    /// then items like any other, whose tool is [`REHYDRATE`](super::REHYDRATE).
    pub fn restore(&self, mut find: impl FnMut(&str) -> Option<HiddenSteps>) -> Vec<Edit> {
        let mut edits = Vec::new();
        let here: HashSet<_> = self.items.iter().flat_map(|item| &item.calls).map(|call| &*call.id).collect();
        let mut turn = 0;
        let mut done: Vec<(usize, Vec<Step>)> = Vec::new();
        self.walk(|at, id, others, text| {
            if others != turn {
                turn = others;
                done.clear();
            }
            let unit = self.doc.value(id);
            // Clients give messages ids of their own.
            let is_message = self.format != ApiDialect::Responses && id == self.elements[at];
            let call = unit.given("call_id").and_then(Value::text);
            let call_elsewhere = self.history_elsewhere && call.is_some_and(|id| !here.contains(&*id));
            let mut known = if is_message { Vec::new() } else { keys(self.format, unit, call_elsewhere) };
            known.extend(text);
            let Some(mut hidden) = known.iter().find_map(|key| find(key)) else { return };
            let before = (hidden.round, hidden.before.clone());
            if done.contains(&before) {
                hidden.before.clear();
            } else {
                done.push(before);
            }
            edits.extend(self.put_back(&hidden, at, unit));
        });
        edits.retain(|edit: &Edit| !edit.with.is_empty());
        edits
    }

    fn put_back(&self, hidden: &HiddenSteps, at: usize, unit: Value<'_, '_>) -> Vec<Edit> {
        let (here, message) = (unit.span().start, self.doc.value(self.elements[at]));
        let (calls, results) = (calls(&hidden.beside), results(&hidden.beside));
        match self.format {
            ApiDialect::Responses => {
                let answers_only = unit.given("output").is_some();
                let steps = hidden.before.iter().filter(|_| !answers_only).flat_map(|step| &step.calls);
                let mut text = String::new();
                for answered in steps.chain(&hidden.beside) {
                    if !answers_only {
                        text += &format!("{},", answered.call);
                    }
                    text += &format!("{},", answered.result);
                }
                vec![Edit::insert(here, text)]
            }
            ApiDialect::Chat => {
                let own = own_text(hidden, message);
                let text = |step: &Step| if own.is_some() { step.text.clone() } else { String::new() };
                let before: String =
                    hidden.before.iter().map(|step| format!("{},", step.chat(&text(step)))).collect();
                let mut edits = vec![Edit::insert(message.span().start, before)];
                edits.extend(own);
                if !hidden.beside.is_empty() {
                    edits.push(Edit::insert(here, format!("{calls},")));
                    edits.push(Edit::insert(message.span().end, format!(",{results}")));
                }
                edits
            }
            // A text alone, without blocks.
            ApiDialect::Messages if unit.id() == message.id() => {
                let step = |step: &Step| {
                    format!(r#"{{"role":"assistant","content":[{}]}},{},"#, step.all_calls(), step.user())
                };
                vec![Edit::insert(here, hidden.before.iter().map(step).collect::<String>())]
            }
            ApiDialect::Messages => {
                let (end, begin) = halves(message);
                let step = |step: &Step| format!("{}{end},{},{begin}", step.all_calls(), step.user());
                let before: String = hidden.before.iter().map(step).collect();
                let mut edits = vec![Edit::insert(here, before)];
                // Results must stand in the very next message, before all else.
                let next = self.elements.get(at + 1).and_then(|&next| self.doc.value(next).get("content"));
                let next = next.filter(|next| next.kind() == Kind::Array && !hidden.beside.is_empty());
                if let Some(next) = next {
                    edits.push(Edit::insert(here, format!("{calls},")));
                    edits.extend(json::splice(next, &results, |_| false));
                }
                edits
            }
        }
    }
}

impl Step {
    fn all_calls(&self) -> String {
        calls(&self.calls)
    }

    /// Anthropic's message with the results.
    pub(super) fn user(&self) -> String {
        format!(r#"{{"role":"user","content":[{}]}}"#, results(&self.calls))
    }

    /// OpenAI's messages: the call, the results.
    pub(super) fn chat(&self, text: &str) -> String {
        let text = if text.is_empty() { "null".to_owned() } else { encoded(text) };
        let (members, calls, results) = (&self.members, calls(&self.calls), results(&self.calls));
        format!(r#"{{"role":"assistant","content":{text}{members},"tool_calls":[{calls}]}},{results}"#)
    }

    /// OpenAI's items: each call, each result.
    pub(super) fn outputs(&self) -> String {
        results(&self.calls)
    }
}

/// A client of chat completions has the text of all steps as one, in the last message. Where it left that as it was, each
/// message gets its own text again, as the provider knows them: this is the last one's.
fn own_text(hidden: &HiddenSteps, message: Value<'_, '_>) -> Option<Edit> {
    let content = message.given("content")?;
    let mut all = String::new();
    hidden.before.iter().for_each(|step| push_text(&mut all, &step.text));
    if all.is_empty() {
        return None;
    }
    push_text(&mut all, &hidden.last);
    content.text().filter(|given| **given == *all)?;
    let calls = message.given("tool_calls").is_some_and(|calls| calls.items().next().is_some());
    match hidden.last.as_str() {
        "" if calls => Some(Edit::replace(content.span(), "null")),
        // Providers refuse a message that says nothing.
        "" => None,
        last => Some(Edit::replace(content.span(), encoded(last))),
    }
}

/// How a message of Anthropic's is ended and begun again in the middle of its content: with its role in both halves,
/// wherever the client wrote it.
fn halves(message: Value<'_, '_>) -> (&'static str, &'static str) {
    let places = |name: &str| message.members().position(|(key, _)| key.is(name));
    if places("role") < places("content") {
        ("]}", r#"{"role":"assistant","content":["#)
    } else {
        (r#"],"role":"assistant"}"#, r#"{"content":["#)
    }
}

/// The keys of something that a reply holds and a history repeats: ids of the provider's, none for plain text. Calls are
/// known by name and arguments as well, since some servers count their ids from nought in each conversation.
/// `answers`: the calls may stand elsewhere, so their results are known by the id alone.
pub(super) fn keys(format: ApiDialect, unit: Value<'_, '_>, answers: bool) -> Vec<String> {
    let text = |name: &str| unit.given(name).and_then(Value::text).filter(|text| !text.is_empty());
    let kind = text("type").unwrap_or_default();
    let mut keys = Vec::new();
    let mut add = |of: &str, parts: &[&str]| {
        let hash = ContentHash::new(format!("{of}\0{}", parts.join("\0")).as_bytes());
        keys.push(hash.to_hex());
    };
    match format {
        ApiDialect::Chat => {
            let inner = unit.given("function").or_else(|| unit.given("custom")).unwrap_or(unit);
            let part = |name: &str| inner.given(name).and_then(Value::text).unwrap_or_default();
            let arguments = inner.given("arguments").or_else(|| inner.given("input")).and_then(Value::text);
            if let Some(id) = text("id") {
                add("call", &[&*id, &*part("name"), &canonical(&arguments.unwrap_or_default())]);
            }
        }
        ApiDialect::Messages => {
            if let Some(id) = text("id").filter(|_| kind == "tool_use") {
                let input = unit.given("input").map_or("{}", Value::raw);
                add("call", &[&*id, &*text("name").unwrap_or_default(), &canonical(input)]);
            }
            let sealed = if kind == "thinking" { text("signature") } else { text("data") };
            if let Some(seal) = sealed.filter(|_| kind.ends_with("thinking")) {
                add("thought", &[&*seal]);
            }
        }
        ApiDialect::Responses => {
            if let Some(id) = text("call_id") {
                let arguments = text("arguments").or_else(|| text("input")).unwrap_or_default();
                if kind.ends_with("_call") {
                    add("call", &[&*id, &*text("name").unwrap_or_default(), &canonical(&arguments)]);
                }
                if kind.ends_with("_call") || answers {
                    add("answer", &[&*id]);
                }
            }
            if let Some(id) = text("id") {
                add("item", &[&*id]);
            }
            if let Some(seal) = text("encrypted_content") {
                add("thought", &[&*seal]);
            }
        }
    }
    keys
}

/// Arguments in a form that survives a client reading and writing them: names sorted, whole numbers without a point.
fn canonical(arguments: &str) -> String {
    fn settle(value: &mut Json) {
        match value {
            Json::Object(members) => {
                members.sort_keys();
                members.values_mut().for_each(settle);
            }
            Json::Array(items) => items.iter_mut().for_each(settle),
            Json::Number(number) => {
                let whole = number.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 9e15);
                if let Some(whole) = whole {
                    *value = Json::from(whole as i64);
                }
            }
            _ => {}
        }
    }
    // The reader's own limit of depth bounds the recursion.
    match serde_json::from_str::<Json>(arguments) {
        Ok(mut value) => {
            settle(&mut value);
            value.to_string()
        }
        Err(_) => arguments.to_owned(),
    }
}

#[cfg(test)]
#[path = "hidden_tests.rs"]
mod tests;
