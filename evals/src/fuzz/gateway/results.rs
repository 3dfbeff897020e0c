//! Results of tools: whatever the text, the window shows it whole or with a pointer that gives back its exact bytes,
//! and what was decided for it stays while the conversation goes on.

use larder_core::policy::{ContextBudgetPolicy, ModelProfile, PolicySettings};
use larder_proxy::window::{Preview, preview};
use larder_proxy::wire::{self, ApiDialect, REHYDRATE};
use larder_store::NewPointer;
use larder_text::hash::ContentHash;
use larder_text::json::Document;
use larder_text::message::Role;
use larder_text::tokens::Counter;
use serde_json::{Value as Json, json};

use super::super::kept;
use super::super::mutate;
use super::super::target::{HEAD, head, text_of};
use super::{cut, format_of};
use crate::made::{self, Random, TYPES};
use crate::measure;

/// One case in so many goes through a store, which costs a sync.
const STORED: u8 = 64;
/// Set in the second byte of a case whose result is in two parts.
const PARTS: u8 = 1;
/// Set where a second call gives the same result.
const TWICE: u8 = 2;
/// Set where the tool failed.
const FAILED: u8 = 4;

struct ResultCase {
    dialect: ApiDialect,
    how: u8,
    text: String,
}

pub(in super::super) fn check(bytes: &[u8]) -> Vec<String> {
    let case = ResultCase { dialect: format_of(head(bytes, 0)), how: head(bytes, 1), text: text_of(bytes) };
    let model = ModelProfile { window: 1_000_000, input_limit: None, max_output: None, cache: None };
    let policy = ContextBudgetPolicy::from_settings(&PolicySettings::default(), &model);
    let counter = Counter::o200k();
    let [first, later] = [0, 2].map(|turns| {
        let body = case.body(turns);
        preview(case.dialect, &body, &policy, &counter, &measure::key()).map(|leaving| (body, leaving))
    });
    let (first, later) = match (first, later) {
        (Ok(first), Ok(later)) => (first, later),
        (first, later) => {
            let why = [first.err(), later.err()].into_iter().flatten().map(|refusal| refusal.to_string());
            return why.map(|why| format!("refused: {why}")).collect();
        }
    };
    let mut faults = Vec::new();
    for (body, leaving) in [&first, &later] {
        faults.extend(of_items(&case, &counter, body, leaving));
    }
    faults.extend(of_prefix(case.dialect, &first.1.body, &later.1.body));
    if ContentHash::new(bytes).as_bytes()[0].is_multiple_of(STORED) {
        faults.extend(of_store(&first.1.originals));
    }
    faults
}

impl ResultCase {
    /// The contents of the results, as the format has them.
    fn content(&self) -> Json {
        if self.how & PARTS == 0 {
            return json!(self.text);
        }
        let (head, tail) = self.text.split_at(self.text.floor_char_boundary(self.text.len() / 3));
        let kind = if self.dialect == ApiDialect::Responses { "input_text" } else { "text" };
        json!([{"type": kind, "text": head}, {"type": kind, "text": tail}])
    }

    /// A conversation with the result in it, and so many turns after it.
    fn body(&self, turns: usize) -> String {
        let calls = 1 + usize::from(self.how & TWICE != 0);
        let ids: Vec<String> = (0..calls).map(|at| format!("call_{at}")).collect();
        let content = self.content();
        let mut list = vec![json!({"role": "user", "content": "Which crates did the crane lift?"})];
        match self.dialect {
            ApiDialect::Chat => {
                let call = |id: &String| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}});
                list.push(json!({"role": "assistant", "content": null, "tool_calls": ids.iter().map(call).collect::<Vec<_>>()}));
                list.extend(
                    ids.iter().map(|id| json!({"role": "tool", "tool_call_id": id, "content": content})),
                );
            }
            ApiDialect::Responses => {
                let call = |id: &String| json!({"type": "function_call", "call_id": id, "name": "read", "arguments": "{}"});
                list.extend(ids.iter().map(call));
                list.extend(
                    ids.iter()
                        .map(|id| json!({"type": "function_call_output", "call_id": id, "output": content})),
                );
            }
            ApiDialect::Messages | ApiDialect::Converse | ApiDialect::Invoke => {
                let call = |id: &String| json!({"type": "tool_use", "id": id, "name": "read", "input": {}});
                list.push(json!({"role": "assistant", "content": ids.iter().map(call).collect::<Vec<_>>()}));
                let failed = self.how & FAILED != 0;
                let result = |id: &String| json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": failed});
                list.push(json!({"role": "user", "content": ids.iter().map(result).collect::<Vec<_>>()}));
            }
        }
        for turn in 0..turns {
            list.push(json!({"role": "assistant", "content": format!("Answer {turn}.")}));
            list.push(json!({"role": "user", "content": format!("Question {turn}?")}));
        }
        let name = if self.dialect == ApiDialect::Responses { "input" } else { "messages" };
        json!({"model": "m", name: list}).to_string()
    }
}

/// Every result is whole, or has a pointer to its exact bytes; everything else is whole.
fn of_items(case: &ResultCase, counter: &Counter, body: &str, leaving: &Preview) -> Vec<String> {
    let (Ok(before), Ok(after)) = (wire::read(case.dialect, body), wire::read(case.dialect, &leaving.body))
    else {
        return vec!["json: what leaves cannot be read".to_owned()];
    };
    if before.items.len() != after.items.len() {
        return vec![format!("items: {} became {}", before.items.len(), after.items.len())];
    }
    let prompt: Vec<&str> = after.items.iter().map(|item| item.text()).collect();
    let mut faults = Vec::new();
    for (came, left) in before.items.iter().zip(&after.items) {
        let (came_as, left_as) = (came.text(), left.text());
        if came_as == left_as {
            continue;
        }
        if came.role() != Role::Tool {
            faults.push(format!("items: {:?} became {:?}", cut(came_as), cut(left_as)));
            continue;
        }
        if counter.count(left_as) > counter.count(came_as) {
            faults.push(format!("size: {:?} has more tokens than what it replaces", cut(left_as)));
        }
        if measure::shows_all(came_as, left_as, &prompt) {
            continue;
        }
        let id = measure::key().mint(ContentHash::new(came_as.as_bytes()));
        if !measure::key().find_in(left_as).iter().any(|(_, pointer)| pointer.id == id) {
            faults.push(format!("way back: {:?} does not name {id}", cut(left_as)));
        }
        if !leaving.originals.iter().any(|original| *original == came_as) {
            faults.push(format!("way back: {:?} is not to be stored", cut(came_as)));
        }
        if !after.tools.iter().any(|tool| tool.name == REHYDRATE) {
            faults.push("offer: a pointer is in the window, and our tool is not offered".to_owned());
        }
    }
    faults
}

/// The window of the earlier request is the beginning of the later one's.
fn of_prefix(dialect: ApiDialect, first: &str, later: &str) -> Option<String> {
    let list = if dialect == ApiDialect::Responses { "input" } else { "messages" };
    let doc = Document::parse(first).ok()?;
    let end = doc.root().get(list)?.span().end - 1;
    (!later.starts_with(first.get(..end)?)).then(|| "prefix: what was decided did not stay".to_owned())
}

/// What is stored comes back byte for byte.
fn of_store(originals: &[String]) -> Vec<String> {
    let kept = match kept::kept() {
        Ok(kept) => kept,
        Err(error) => return vec![format!("store: {error}")],
    };
    let new = |text: &'_ String| -> Result<Vec<u8>, String> {
        let new = NewPointer { content: text.as_bytes().into(), kind: "part", display_text: "" };
        let stored = kept.ours.pointers().insert_all(&[new]).map_err(|error| error.to_string())?;
        let stored = stored.into_iter().next().ok_or("nothing was stored")?;
        kept.ours.pointers().resolve(&stored.pointer_id).map_err(|error| error.to_string())
    };
    let fault = |text: &String| match new(text) {
        Ok(bytes) if bytes == text.as_bytes() => None,
        Ok(bytes) => Some(format!("store: {} bytes came back as {}", text.len(), bytes.len())),
        Err(error) => Some(format!("store: {error}")),
    };
    originals.iter().filter_map(fault).collect()
}

pub(in super::super) fn generate(random: &mut Random) -> Vec<u8> {
    let mut text = made::text(random.one(&TYPES).1, random.next(), 1 << random.below(15)).into_bytes();
    for _ in 0..random.below(4) {
        mutate::change(&mut text, random);
    }
    text.truncate(mutate::MOST_BYTES);
    let mut bytes = vec![random.next() as u8, random.next() as u8, 0, 0];
    debug_assert_eq!(bytes.len(), HEAD);
    bytes.extend(text);
    bytes
}
