//! Bodies of requests: what the policy leaves alone leaves byte for byte; what it edits stays JSON, differs in the texts
//! that were replaced and nowhere else, and every pointer in it leads to what stood there.

use std::sync::LazyLock;
use std::time::Instant;

use larder_core::pack::Rendition;
use larder_core::policy::{ContextBudgetPolicy, ModelProfile, PolicySettings};
use larder_proxy::window::{Preview, WindowError, preview};
use larder_proxy::wire::{self, ApiDialect, HiddenSteps, Request};
use larder_text::hash::ContentHash;
use larder_text::json::{self, Document};
use larder_text::message::Role;
use larder_text::pointer::Pointer;
use larder_text::tokens::{ClaudeGeneration, Counter};
use serde_json::Value as Json;

use super::super::case::OUR_POINTER;
use super::super::check::slow;
use super::super::mutate;
use super::super::target::{HEAD, head, text_of};
use super::diff::Diff;
use super::{bodies, cut, format_of};
use crate::made::Random;
use crate::measure;

/// Policies that a case chooses from.
const POLICIES: u8 = 8;
/// What our own fields and their escapes begin with.
const OWN: [&str; 2] = ["summarizable", "\\u"];
/// A round trip that clients do not see, to be put back.
const HIDDEN: &str = r#"{"keys": [], "before": [{"members": "", "calls": [{"call": "{\"call\":1}", "result": "{\"result\":1}"}]}],
    "beside": [{"call": "{\"call\":2}", "result": "{\"result\":2}"}]}"#;

struct RequestCase {
    dialect: ApiDialect,
    policy: ContextBudgetPolicy,
    dry_run: bool,
    counter: Counter,
    body: String,
}

impl RequestCase {
    fn from_bytes(bytes: &[u8]) -> Self {
        let pointer = Pointer::lines(measure::key().mint(ContentHash::new(b"elsewhere")), 3, 9);
        let settings = settings(head(bytes, 1) % POLICIES);
        let window = [128_000, 128_000, 3_000, 900, 128_000, 128_000, 8_000, 400]
            [usize::from(head(bytes, 1) % POLICIES)];
        let model = ModelProfile { window, input_limit: None, max_output: None, cache: None };
        Self {
            dialect: format_of(head(bytes, 0)),
            policy: ContextBudgetPolicy::from_settings(&settings, &model),
            dry_run: settings.dry_run,
            counter: match head(bytes, 2) % 8 {
                0 => Counter::bytes(),
                1 => Counter::claude(ClaudeGeneration::From4_7),
                _ => Counter::o200k(),
            },
            body: text_of(bytes).replace(OUR_POINTER, &pointer.to_string()),
        }
    }

    fn preview(&self, body: &str) -> Result<Preview, WindowError> {
        preview(self.dialect, body, &self.policy, &self.counter, &measure::key())
    }
}

fn settings(chosen: u8) -> PolicySettings {
    let usual =
        PolicySettings { emergency_floor: Some(20), response_reserve: 100, ..PolicySettings::default() };
    match chosen {
        1 => PolicySettings { entry_cap: Some(96), protect_last: 0, ..usual },
        2 => PolicySettings { trace_threshold_tokens: Some(1_000), protect_last: 0, ..usual },
        3 => PolicySettings { entry_cap: Some(96), protect_last: 1, expected_turns: Some(50), ..usual },
        4 => PolicySettings { dry_run: true, ..usual },
        5 => PolicySettings { enabled: false, ..usual },
        6 => PolicySettings {
            trace_threshold_tokens: Some(300),
            low_watermark: 0.3,
            cache_price: 1.0,
            ..usual
        },
        7 => PolicySettings { entry_cap: Some(100_000), ..usual },
        _ => PolicySettings::default(),
    }
}

pub(in super::super) fn check(bytes: &[u8]) -> Vec<String> {
    let case = RequestCase::from_bytes(bytes);
    let mut faults = of_reading(&case);
    let started = Instant::now();
    let left = case.preview(&case.body);
    faults.extend(slow(started.elapsed(), case.body.len()));
    match &left {
        Err(WindowError::Unwritable(error)) => faults.push(format!("bug: {error}")),
        Err(_) => {}
        Ok(leaving) => faults.extend(of_leaving(&case, leaving)),
    }
    let again = case.preview(&case.body);
    if again.map(|leaving| leaving.body).ok() != left.map(|leaving| leaving.body).ok() {
        faults.push("determinism: the same request left otherwise".to_owned());
    }
    faults
}

/// The reader takes what is JSON and nothing else, and hidden steps can be put back anywhere.
fn of_reading(case: &RequestCase) -> Vec<String> {
    let mut faults = Vec::new();
    match (Document::parse(&case.body), serde_json::from_str::<Json>(&case.body)) {
        (Err(error), Ok(_)) => faults.push(format!("grammar: refused what is JSON: {error}")),
        (Ok(_), Err(error)) if !is_beyond(&error) => {
            faults.push(format!("grammar: accepted what is not JSON: {error}"));
        }
        _ => {}
    }
    let Ok(request) = wire::read(case.dialect, &case.body) else { return faults };
    static STEPS: LazyLock<HiddenSteps> = LazyLock::new(|| serde_json::from_str(HIDDEN).unwrap_or_default());
    match json::apply(&case.body, request.restore(|_| Some(STEPS.clone()))) {
        Err(error) => faults.push(format!("restore: {error}")),
        Ok(restored) => {
            faults.extend(Document::parse(&restored).err().map(|error| format!("restore: {error}")));
        }
    }
    if let Some(edit) = request.set_model("other \"model\"") {
        let renamed = json::apply(&case.body, vec![edit]).ok();
        let model = renamed
            .as_deref()
            .and_then(|body| Some(wire::read(case.dialect, body).ok()?.model?.text().into_owned()));
        if model.as_deref() != Some("other \"model\"") {
            faults.push(format!("model: renamed, it is {model:?}"));
        }
    }
    faults
}

/// Limits of the other reader, within which ours has none.
fn is_beyond(error: &serde_json::Error) -> bool {
    let words = error.to_string();
    ["recursion limit", "hex escape", "surrogate", "number out of range"]
        .iter()
        .any(|limit| words.contains(limit))
}

fn of_leaving(case: &RequestCase, leaving: &Preview) -> Vec<String> {
    let (Ok(before), Ok(after)) = (Document::parse(&case.body), Document::parse(&leaving.body)) else {
        return vec![format!("json: {} is none", cut(&leaving.body))];
    };
    let mut faults = Vec::new();
    let is_json = |text: &str| serde_json::from_str::<Json>(text).is_ok();
    if is_json(&case.body) && !is_json(&leaving.body) {
        faults.push("json: what leaves is none".to_owned());
    }
    if leaving.record.summary.violations > 0 {
        faults.push(format!("budget: {:?}", leaving.record.summary.tokens));
    }
    faults.extend(of_pointers(case, leaving));
    faults.extend(of_counts(case, leaving));
    let alone = leaving.originals.is_empty() && !leaving.offered;
    let restated = leaving.record.window.iter().any(|part| part.rendition != Rendition::Whole);
    if alone && !restated && leaving.body != case.body && !OWN.iter().any(|own| case.body.contains(own)) {
        faults.push("alone: nothing was decided, and the body changed".to_owned());
    }
    if case.dry_run && !alone {
        faults.push("dry run: something was to be changed".to_owned());
    }
    // Where messages were left out, what stays has other places.
    if leaving.record.window.iter().any(|part| part.rendition == Rendition::Absent) {
        return faults;
    }
    let tool = wire::read(case.dialect, &case.body).map_or(wire::REHYDRATE, |request| request.tool_name());
    match Diff::of(case.dialect, tool, before.root(), after.root()) {
        Err(difference) => faults.push(format!("edit: {difference}")),
        Ok(diff) => faults.extend(of_diff(case, leaving, diff)),
    }
    faults
}

fn of_diff(case: &RequestCase, leaving: &Preview, diff: Diff) -> Vec<String> {
    let mut faults = Vec::new();
    if diff.offered != leaving.offered && !leaving.body.contains("larder_rehydrate") {
        faults.push("offer: our tool is not where it was said to be".to_owned());
    }
    if !diff.removed && json::apply(&case.body, diff.edits).ok().as_ref() != Some(&leaving.body) {
        faults.push("bytes: something other than the replaced texts changed".to_owned());
    }
    let Ok(request) = wire::read(case.dialect, &case.body) else { return faults };
    let sent = wire::read(case.dialect, &leaving.body);
    let prompt: Vec<&str> = sent.iter().flat_map(|sent| &sent.items).map(|item| item.text()).collect();
    for (old, new) in &diff.replaced {
        if !may_change(&request, old) {
            faults.push(format!("replaced: {:?} is not a result that may be condensed", cut(old)));
        }
        let leads_back = |pointer: &Pointer| {
            leaving
                .originals
                .iter()
                .any(|original| leads_to(pointer, original) && original.contains(old.as_str()))
        };
        let leads_back = measure::key().find_in(new).iter().any(|(_, pointer)| leads_back(pointer));
        // A result of several parts is replaced as one.
        let mut whole = request.items.iter().filter(|item| item.texts.iter().any(|part| part.text() == *old));
        if !leads_back && !whole.any(|item| measure::shows_all(item.text(), new, &prompt)) {
            faults.push(format!("replaced: nothing in {:?} leads back to {:?}", cut(new), cut(old)));
        }
    }
    faults
}

/// Whether a text is in a tool's result that may be condensed.
fn may_change(request: &Request<'_>, text: &str) -> bool {
    request
        .items
        .iter()
        .filter(|item| {
            item.role() == Role::Tool && item.result.as_ref().is_some_and(|result| result.summarizable)
        })
        .any(|item| item.texts.iter().any(|part| part.text() == text))
}

fn leads_to(pointer: &Pointer, original: &str) -> bool {
    pointer.id == measure::key().mint(ContentHash::new(original.as_bytes()))
}

/// Every pointer that was not there before leads to what is to be stored.
fn of_pointers(case: &RequestCase, leaving: &Preview) -> Vec<String> {
    let mut faults = Vec::new();
    for (_, pointer) in measure::key().find_in(&leaving.body) {
        if case.body.contains(pointer.id.as_str()) {
            continue;
        }
        match leaving.originals.iter().find(|original| leads_to(&pointer, original)) {
            None => faults.push(format!("pointer: {pointer} leads nowhere")),
            Some(original) if measure::resolve(original, &pointer).is_none() => {
                faults.push(format!("pointer: {pointer} leads out of {} bytes", original.len()));
            }
            Some(_) => {}
        }
    }
    faults
}

/// What leaves has no more tokens than was said.
fn of_counts(case: &RequestCase, left: &Preview) -> Option<String> {
    let model = ModelProfile { window: usize::MAX / 1_000, input_limit: None, max_output: None, cache: None };
    let settings = PolicySettings { enabled: false, emergency_floor: Some(0), ..PolicySettings::default() };
    let policy = ContextBudgetPolicy::from_settings(&settings, &model);
    let said = left.record.summary.tokens.after;
    let again = preview(case.dialect, &left.body, &policy, &case.counter, &measure::key());
    let has = again.ok()?.record.summary.tokens.before;
    (has > said).then(|| format!("count: said to leave with {said} tokens, and has {has}"))
}

/// What a body is broken with.
const SCRAPS: [&str; 22] = [
    "{\"role\":\"tool\",\"tool_call_id\":\"call_0\",\"content\":\"x\"},",
    "\"summarizable\":false,",
    "\"summarizable\":true,",
    "\"role\":\"user\",",
    "\"content\":null,",
    "\"content\":[],",
    "\"tools\":null,",
    "\"tool_choice\":{\"type\":\"allowed_tools\",\"tools\":[]},",
    "\"n\":2,",
    "\"type\":\"text\",",
    "\"cache_control\":{\"type\":\"ephemeral\"},",
    "\\ud83d",
    "\\u0073ummarizable",
    "\\\"",
    "\u{e9}",
    "null",
    "[],",
    "{},",
    "1e999",
    "\"",
    "]}",
    OUR_POINTER,
];

pub(in super::super) fn generate(random: &mut Random) -> Vec<u8> {
    let dialect = random.next() as u8;
    let mut body = bodies::request(format_of(dialect), random).into_bytes();
    // Whole bodies are what finds faults of editing; broken ones, faults of reading.
    let changes = random.below(6).saturating_sub(2);
    for _ in 0..changes {
        if random.below(2) == 0 {
            let at = random.below(body.len() + 1);
            body.splice(at..at, random.one(&SCRAPS).bytes());
        } else {
            mutate::change(&mut body, random);
        }
    }
    body.truncate(mutate::MOST_BYTES);
    let mut bytes = vec![dialect, random.next() as u8, random.next() as u8, 0];
    debug_assert_eq!(bytes.len(), HEAD);
    bytes.extend(body);
    bytes
}
