//! The parts of a reply that clients are not shown, and how they are restored in the histories that clients send.
//!
//! A hidden step is restored immediately before its anchor: the first element of the same or the next step that the
//! client received and still has, identified by the provider's id, or for a text by its position. Knows no store: the
//! caller keeps [`HiddenSteps`] under its keys.

use std::collections::HashSet;

use larder_text::hash::ContentHash;
use larder_text::json::{Edit, Value};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::request::Request;

/// Calls of Larder's tool with their results, and their place in a history. Must be stored for the same user and
/// session under each of its keys; the newest wins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HiddenSteps {
    /// What [`Request::restore`] will ask for.
    pub keys: Vec<String>,
    /// Complete steps before the anchor.
    pub(super) before: Vec<HiddenStep>,
    /// Calls next to the anchor, which is a call of a tool of the client's.
    pub(super) beside: Vec<HiddenCall>,
    /// The round of the reply that contains the anchor: a step reached from several anchors is restored once.
    #[serde(default)]
    pub(super) round: usize,
    /// The text of the message that the anchor is in, without that of the steps (chat completions).
    #[serde(default)]
    pub(super) last: String,
}

/// A reply in which the model called only Larder's tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HiddenStep {
    /// Further members of the message, each with a comma before it (chat completions).
    pub members: String,
    /// The model's text along with the calls (chat completions).
    #[serde(default)]
    pub text: String,
    pub calls: Vec<HiddenCall>,
}

/// A call as the model wrote it and its result as the format has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HiddenCall {
    pub call: String,
    pub result: String,
}

fn joined<'a>(values: impl Iterator<Item = &'a String>) -> String {
    values.map(String::as_str).collect::<Vec<_>>().join(",")
}

fn calls(answered: &[HiddenCall]) -> String {
    joined(answered.iter().map(|answered| &answered.call))
}

fn results(answered: &[HiddenCall]) -> String {
    joined(answered.iter().map(|answered| &answered.result))
}

impl Request<'_> {
    /// Restores hidden steps as far as `find` knows them; only if Larder's tool is offered, since providers reject
    /// calls of unknown tools. The body must be parsed again afterwards. The results are then items like any other,
    /// whose tool is [`REHYDRATE`](super::REHYDRATE).
    pub fn restore(&self, mut find: impl FnMut(&str) -> Option<HiddenSteps>) -> Vec<Edit> {
        let mut edits = Vec::new();
        let here: HashSet<_> = self.items.iter().flat_map(|item| &item.calls).map(|call| &*call.id).collect();
        let mut turn = 0;
        let mut done: Vec<(usize, Vec<HiddenStep>)> = Vec::new();
        self.walk(|at, id, others, text| {
            if others != turn {
                turn = others;
                done.clear();
            }
            let unit = self.doc.value(id);
            // Clients assign ids of their own to messages.
            let format = self.dialect.format();
            let is_message = format.units_member().is_some() && id == self.elements[at];
            let call = unit.given("call_id").and_then(Value::text);
            let call_elsewhere = self.history_elsewhere && call.is_some_and(|id| !here.contains(&*id));
            let mut known = if is_message { Vec::new() } else { format.keys(unit, call_elsewhere) };
            known.extend(text);
            let Some(mut hidden) = known.iter().find_map(|key| find(key)) else { return };
            let before = (hidden.round, hidden.before.clone());
            if done.contains(&before) {
                hidden.before.clear();
            } else {
                done.push(before);
            }
            edits.extend(format.put_back(self, &hidden, at, unit));
        });
        edits.retain(|edit: &Edit| !edit.with.is_empty());
        edits
    }
}

impl HiddenSteps {
    /// The calls next to the anchor, with commas between.
    pub(super) fn calls(&self) -> String {
        calls(&self.beside)
    }

    /// Their results.
    pub(super) fn results(&self) -> String {
        results(&self.beside)
    }
}

impl HiddenStep {
    /// The calls, with commas between.
    pub(super) fn calls(&self) -> String {
        calls(&self.calls)
    }

    /// Their results.
    pub(super) fn results(&self) -> String {
        results(&self.calls)
    }
}

/// The key of a call.
pub(super) fn call_key(id: &str, name: &str, arguments: &str) -> String {
    key("call", &[id, name, &canonical(arguments)])
}

/// The key of the result of a call.
pub(super) fn answer_key(id: &str) -> String {
    key("answer", &[id])
}

/// The key of an item with an id of the provider's.
pub(super) fn item_key(id: &str) -> String {
    key("item", &[id])
}

/// The key of a thought that its provider has sealed.
pub(super) fn thought_key(seal: &str) -> String {
    key("thought", &[seal])
}

fn key(of: &str, parts: &[&str]) -> String {
    ContentHash::new(format!("{of}\0{}", parts.join("\0")).as_bytes()).to_hex()
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
