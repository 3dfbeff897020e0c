//! Slots: reads them, and checks that they fit the documents and the budget.

use super::code::DiagnosticCode;
use super::diagnostic::{DiagnosticSink, Spanned};
use super::file::{Prompts, RecipeFile};
use super::model::{DEFAULT_PRIORITY, OverflowPolicy, SlotSource, SlotSpec, own_slots};
use super::yaml::YamlNode;
use super::{fields, file, inputs};
use crate::pack::{Cap, Overflow, Slot, SlotForm};
use larder_text::message::Role;

const SOURCES: [(&str, SlotSource); 4] = [
    ("prompt", SlotSource::Prompt),
    ("variant", SlotSource::Variant),
    ("messages", SlotSource::Messages),
    ("documents", SlotSource::Documents),
];
const ROLES: [(&str, Role); 3] =
    [("system", Role::System), ("user", Role::User), ("assistant", Role::Assistant)];
const OVERFLOWS: [(&str, OverflowPolicy); 5] = [
    ("condense", OverflowPolicy::Condense),
    ("point", OverflowPolicy::Point),
    ("drop_oldest", OverflowPolicy::DropOldest),
    ("truncate_at_boundary", OverflowPolicy::TruncateAtBoundary),
    ("refuse", OverflowPolicy::Refuse),
];
const KEYS: [&str; 10] =
    ["name", "role", "from", "cap", "floor", "overflow", "soft", "protect_last", "docs", "priority"];
/// The document that `input_sections` are taken from.
const CONTEXT: &str = "context.md";
/// The largest number of tokens allowed in a slot.
const MAX_TOKENS: u64 = 100_000_000;
/// The minimum number of protected messages: the last two stay in any case.
const MIN_PROTECTED: u64 = 2;
/// The maximum number of protected messages.
const MAX_PROTECTED: u64 = 10_000;

/// Reads `slots`.
pub(super) fn slots(node: Option<&YamlNode<'_>>, sink: &mut DiagnosticSink<'_>) -> Vec<Spanned<SlotSpec>> {
    let Some(node) = node else { return Vec::new() };
    let mut slots: Vec<Spanned<SlotSpec>> = Vec::new();
    for item in fields::list(node, "slots", sink) {
        let Some(slot) = slot(item, sink) else { continue };
        if !slot.slot.name.is_empty() && slots.iter().any(|other| other.value.slot.name == slot.slot.name) {
            sink.report(
                DiagnosticCode::Duplicate,
                &item.span,
                format!("slot `{}` is declared twice", slot.slot.name),
                "",
            );
        } else {
            slots.push(Spanned { value: slot, span: item.span.clone() });
        }
    }
    slots
}

fn slot(node: &YamlNode<'_>, sink: &mut DiagnosticSink<'_>) -> Option<SlotSpec> {
    if !fields::check_keys(node, "slots", &KEYS, sink) {
        return None;
    }
    for key in ["name", "from", "cap"] {
        if node.get(key).is_none() {
            file::missing(&format!("slots.{key}"), &node.span, sink);
        }
    }
    let name = node.get("name").and_then(|value| fields::name(value, "slots.name", sink));
    let source = node.get("from").and_then(|value| fields::choice(value, "slots.from", &SOURCES, sink));
    let cap = node.get("cap").and_then(|value| cap(value, sink));
    let role = node.get("role").and_then(|value| fields::choice(value, "slots.role", &ROLES, sink));
    let soft = node.get("soft").and_then(|value| fields::percent(value, "slots.soft", sink));
    let mut number = |key: &str, range| {
        let value =
            node.get(key).and_then(|value| fields::whole(value, &format!("slots.{key}"), range, sink));
        value.and_then(|n| usize::try_from(n).ok()).unwrap_or(0)
    };
    let floor = number("floor", 0..=MAX_TOKENS);
    let protect_last = number("protect_last", MIN_PROTECTED..=MAX_PROTECTED);
    let priority = node.get("priority").and_then(|value| inputs::priority(value, "slots.priority", sink));
    let docs = docs(node.get("docs"), sink);
    let policies = policies(node.get("overflow"), sink);
    let is_complete = name.is_some() && cap.is_some() && source.is_some();
    // A slot with a mistake still takes its documents: they are not reported as being in no slot.
    let source = source.or((!docs.is_empty()).then_some(SlotSource::Documents))?;
    let overflow = if policies.is_empty() { default_overflow(source) } else { policies };
    let is_messages = source == SlotSource::Messages;
    let slot = Slot {
        name: name.map(|name| name.value).unwrap_or_default().into(),
        cap: cap.unwrap_or(Cap::Flexible),
        floor,
        overflow: allowed(&overflow),
        priority: priority.unwrap_or(DEFAULT_PRIORITY),
        form: if is_messages { SlotForm::Messages } else { SlotForm::Joined },
        soft: soft.map(|percent| f64::from(percent) / 100.0),
        protect_last,
    };
    let role = role.unwrap_or(default_role(source));
    let spec = SlotSpec { slot, role, source, overflow, docs };
    if is_complete {
        check_slot(&spec, node, sink);
    }
    Some(spec)
}

/// What the policies of a slot allow together. Unless refusal is chosen, parts may be dropped: a request over budget
/// is never sent (C31).
fn allowed(policies: &[OverflowPolicy]) -> Overflow {
    let has = |policy| policies.contains(&policy);
    Overflow {
        condense: has(OverflowPolicy::Condense),
        truncate: has(OverflowPolicy::TruncateAtBoundary),
        point: has(OverflowPolicy::Point),
        drop: !has(OverflowPolicy::Refuse),
    }
}

fn default_role(source: SlotSource) -> Role {
    match source {
        SlotSource::Prompt | SlotSource::Variant => Role::System,
        SlotSource::Messages | SlotSource::Documents => Role::User,
    }
}

fn default_overflow(source: SlotSource) -> Vec<OverflowPolicy> {
    match source {
        SlotSource::Prompt | SlotSource::Variant => vec![OverflowPolicy::Refuse],
        SlotSource::Messages => vec![OverflowPolicy::Condense, OverflowPolicy::DropOldest],
        SlotSource::Documents => vec![OverflowPolicy::Condense, OverflowPolicy::Point],
    }
}

/// `1000`, `60%` or `flexible`.
fn cap(node: &YamlNode<'_>, sink: &mut DiagnosticSink<'_>) -> Option<Cap> {
    match node.to_json() {
        serde_json::Value::String(text) if text == "flexible" => Some(Cap::Flexible),
        serde_json::Value::String(text) if text.ends_with('%') => {
            fields::percent(node, "slots.cap", sink).map(|percent| Cap::Share(f64::from(percent) / 100.0))
        }
        serde_json::Value::Number(_) => {
            let tokens = fields::whole(node, "slots.cap", 1..=MAX_TOKENS, sink)?;
            usize::try_from(tokens).ok().map(Cap::Tokens)
        }
        _ => {
            fields::wrong_type(node, "slots.cap", "a number of tokens, a percentage or `flexible`", sink);
            None
        }
    }
}

fn policies(node: Option<&YamlNode<'_>>, sink: &mut DiagnosticSink<'_>) -> Vec<OverflowPolicy> {
    let Some(node) = node else { return Vec::new() };
    let mut policies = Vec::new();
    for item in fields::list(node, "slots.overflow", sink) {
        match fields::choice(item, "slots.overflow", &OVERFLOWS, sink) {
            Some(policy) if policies.contains(&policy) => {
                let name = OVERFLOWS.iter().find(|(_, other)| *other == policy).map_or("", |(name, _)| name);
                let message = format!("`{name}` appears twice in `slots.overflow`");
                sink.report(DiagnosticCode::Duplicate, &item.span, message, "");
            }
            Some(policy) => policies.push(policy),
            None => {}
        }
    }
    policies
}

fn docs(node: Option<&YamlNode<'_>>, sink: &mut DiagnosticSink<'_>) -> Vec<String> {
    let Some(node) = node else { return Vec::new() };
    let items = fields::list(node, "slots.docs", sink).iter();
    let items = items.filter_map(|item| fields::text(item, "slots.docs", sink)).collect();
    fields::values(&fields::distinct(items, "slots.docs", sink))
}

/// Rules of one slot.
fn check_slot(spec: &SlotSpec, node: &YamlNode<'_>, sink: &mut DiagnosticSink<'_>) {
    let slot = &spec.slot;
    let fixed_text = matches!(spec.source, SlotSource::Prompt | SlotSource::Variant);
    let mut taken = own_slots::ALL.to_vec();
    taken.extend(own_slots::OF_PROMPTS.iter().filter(|_| !fixed_text));
    if taken.contains(&&*slot.name) {
        let what = if own_slots::ALL.contains(&&*slot.name) {
            "a slot that Larder adds itself"
        } else {
            "slots of prompts"
        };
        let message = format!("`{}` names {what}", slot.name);
        let help = "give the slot another name; these are taken: ".to_owned() + &taken.join(", ");
        let span = node.get("name").unwrap_or(node).span.clone();
        sink.report(DiagnosticCode::NameTaken, &span, message, help);
    }
    let mut complain = |key: &str, message: String, help: &str| {
        let span = node.get(key).unwrap_or(node).span.clone();
        sink.report(DiagnosticCode::Slot, &span, message, help);
    };
    if fixed_text && spec.overflow != [OverflowPolicy::Refuse] {
        let message = format!("slot `{}` contains a prompt, which is never shortened", slot.name);
        complain("overflow", message, "omit overflow");
    }
    for key in ["floor", "priority"].into_iter().filter(|key| fixed_text && node.get(key).is_some()) {
        let message =
            format!("slot `{}` contains a prompt, which is sent in full before anything else", slot.name);
        complain(key, message, &format!("remove {key}"));
    }
    if fixed_text && matches!(slot.cap, Cap::Share(_)) {
        let message =
            format!("slot `{}` contains a prompt, which has no share of what others leave", slot.name);
        complain("cap", message, "write a number of tokens, or `flexible`");
    }
    let has = |policy| spec.overflow.contains(&policy);
    if has(OverflowPolicy::Refuse) && has(OverflowPolicy::DropOldest) {
        let message = format!("slot `{}` both drops and refuses what does not fit", slot.name);
        complain("overflow", message, "keep one of `drop_oldest` and `refuse`");
    } else if spec.source == SlotSource::Documents && has(OverflowPolicy::DropOldest) {
        let message = format!("slot `{}` contains documents, of which none is older than another", slot.name);
        let help = "remove drop_oldest: what does not fit is left out by priority, unless `refuse` is listed";
        complain("overflow", message, help);
    }
    if spec.source == SlotSource::Messages && node.get("role").is_some() {
        let message = format!("slot `{}` contains messages, which keep the roles they have", slot.name);
        complain("role", message, "remove role");
    }
    if spec.source == SlotSource::Documents && spec.role != Role::User {
        let message = format!("slot `{}` contains documents, which are sent as the user's", slot.name);
        complain("role", message, "remove role");
    }
    if spec.source == SlotSource::Documents && spec.docs.is_empty() {
        let message = format!("slot `{}` names no documents", slot.name);
        complain("from", message, "add `docs` with names of input_docs");
    }
    if spec.source != SlotSource::Documents && !spec.docs.is_empty() {
        let message = format!("slot `{}` contains no documents", slot.name);
        complain("docs", message, "remove docs, or write `from: documents`");
    }
    if spec.source != SlotSource::Messages && slot.protect_last > 0 {
        let message = format!("slot `{}` contains no messages to protect", slot.name);
        complain("protect_last", message, "remove protect_last, or write `from: messages`");
    }
    if matches!(slot.cap, Cap::Tokens(cap) if slot.floor > cap) {
        complain("floor", format!("the floor of slot `{}` is above its cap", slot.name), "lower the floor");
    }
    if spec.source != SlotSource::Messages && slot.soft.is_some() {
        let message = format!("slot `{}` contains no messages to condense", slot.name);
        complain("soft", message, "remove soft, or write `from: messages`");
    }
    if spec.source == SlotSource::Messages && slot.soft.is_some() && !has(OverflowPolicy::Condense) {
        let message = format!("slot `{}` has a soft trigger, but its overflow condenses nothing", slot.name);
        complain("soft", message, "remove soft, or add `condense` to overflow");
    }
    if slot.soft.is_some() && !matches!(slot.cap, Cap::Tokens(_)) {
        let message =
            format!("slot `{}` has a soft trigger, but no cap in tokens to measure it by", slot.name);
        complain("soft", message, "remove soft, or give the slot a cap in tokens");
    }
    if slot.soft.is_some_and(|soft| soft >= 1.0) {
        let message = format!("the soft trigger of slot `{}` is not below its cap", slot.name);
        complain("soft", message, "at 100 % messages are condensed at once: set soft below it");
    }
}

/// Rules that involve slots, documents, prompts and budget together.
pub(super) fn check_together(file: &RecipeFile, sink: &mut DiagnosticSink<'_>) {
    let Some(first) = file.slots.first() else { return };
    for source in [SlotSource::Prompt, SlotSource::Variant, SlotSource::Messages] {
        let mut of_source = file.slots.iter().filter(|slot| slot.value.source == source);
        let wanted = match source {
            SlotSource::Prompt => !matches!(&file.prompts, Prompts::Files(files) if files.is_empty()),
            SlotSource::Variant => !file.variants.is_empty(),
            _ => false,
        };
        let name = SOURCES.iter().find(|(_, other)| *other == source).map_or("", |(name, _)| name);
        match (of_source.next(), of_source.next()) {
            (None, _) if wanted => {
                let message = format!("no slot contains the {name} text");
                sink.report(
                    DiagnosticCode::Slot,
                    &first.span,
                    message,
                    format!("add a slot with `from: {name}`"),
                );
            }
            (Some(slot), _) if source == SlotSource::Variant && !wanted => {
                let message = "a slot uses variants, but the recipe has none";
                sink.report(DiagnosticCode::Slot, &slot.span, message, "add `variants`, or remove the slot");
            }
            (_, Some(second)) => {
                let message = format!("a second slot with `from: {name}`");
                sink.report(DiagnosticCode::Slot, &second.span, message, "merge the two");
            }
            _ => {}
        }
    }
    check_documents(file, sink);
    check_caps(file, sink);
}

/// Each document is in exactly one slot.
fn check_documents(file: &RecipeFile, sink: &mut DiagnosticSink<'_>) {
    let sections = (!file.input_sections.is_empty()).then_some(CONTEXT);
    let known: Vec<&str> =
        file.input_docs.iter().map(|doc| doc.value.name.as_str()).chain(sections).collect();
    let mut placed: Vec<&str> = Vec::new();
    for slot in &file.slots {
        for doc in &slot.value.docs {
            if !known.contains(&doc.as_str()) {
                let message =
                    format!("slot `{}` names `{doc}`, which the recipe does not read", slot.value.slot.name);
                let help = super::diagnostic::suggest(doc, known.iter().copied());
                sink.report(DiagnosticCode::Slot, &slot.span, message, help);
            } else if placed.contains(&doc.as_str()) {
                let message = format!("`{doc}` is in two slots");
                sink.report(DiagnosticCode::Slot, &slot.span, message, "list it in one of them only");
            }
            placed.push(doc);
        }
    }
    if let (Some(sections), Some(first)) =
        (sections.filter(|name| !placed.contains(name)), file.slots.first())
    {
        let message = format!("`{sections}`, whose sections input_sections names, is in no slot");
        let help = format!("list {sections} under `docs` of a slot, or remove input_sections");
        sink.report(DiagnosticCode::Slot, &first.span, message, help);
    }
    for doc in file.input_docs.iter().filter(|doc| !placed.contains(&doc.value.name.as_str())) {
        let message = format!("`{}` is in no slot", doc.value.name);
        sink.report(DiagnosticCode::Slot, &doc.span, message, "list it under `docs` of a slot");
    }
}

/// Checks that fixed caps and floors fit their allotment, and shares do not exceed 100 %.
fn check_caps(file: &RecipeFile, sink: &mut DiagnosticSink<'_>) {
    let Some(budget) = &file.budget else { return };
    let needs = |spec: &SlotSpec| match spec.slot.cap {
        Cap::Tokens(tokens) => tokens,
        Cap::Share(_) | Cap::Flexible => spec.slot.floor,
    };
    let is_prompt = |slot: &SlotSpec| matches!(slot.source, SlotSource::Prompt | SlotSource::Variant);
    let sum = |prompts: bool| {
        let of_kind = file.slots.iter().map(|slot| &slot.value).filter(|slot| is_prompt(slot) == prompts);
        of_kind.map(needs).fold(0, usize::saturating_add)
    };
    for (part, asked, allotted) in
        [("prompt", sum(true), budget.tokens.prompt), ("input", sum(false), budget.tokens.input)]
    {
        if asked > allotted {
            let message = format!("slots ask for {asked} tokens of token_budget.{part}, which is {allotted}");
            sink.report(
                DiagnosticCode::SlotsExceedBudget,
                &budget.span,
                message,
                "lower caps or floors, or raise the budget",
            );
        }
    }
    let limits = budget.tokens;
    let most = limits.total.saturating_sub(limits.output).saturating_sub(limits.response_reserve);
    for slot in &file.slots {
        let Slot { cap, floor, name, .. } = &slot.value.slot;
        if let Cap::Share(share) = cap
            && *floor as f64 > most as f64 * share
        {
            let percent = (share * 100.0).round();
            let tokens = (most as f64 * share) as usize;
            let message = format!(
                "the floor of slot `{name}`, {floor}, is above its cap, {percent} % of at most {most}, which are {tokens}"
            );
            sink.report(DiagnosticCode::Slot, &slot.span, message, "lower the floor, or raise the cap");
        }
        check_remaining(file, slot, most, sink);
    }
    let shares = file.slots.iter().filter_map(|slot| match slot.value.slot.cap {
        Cap::Share(share) => Some((share * 100.0).round() as usize),
        _ => None,
    });
    let shares: usize = shares.sum();
    if shares > 100 {
        let span = file.slots.first().map_or(budget.span.clone(), |slot| slot.span.clone());
        sink.report(
            DiagnosticCode::SlotsExceedBudget,
            &span,
            format!("shares add up to {shares}%"),
            "the maximum is 100%",
        );
    }
}

/// Checks that no document of a slot asks for more remaining tokens than the slot can have: it would never be added.
fn check_remaining(file: &RecipeFile, slot: &Spanned<SlotSpec>, most: usize, sink: &mut DiagnosticSink<'_>) {
    let cap = match slot.value.slot.cap {
        Cap::Tokens(cap) => cap.min(most),
        Cap::Share(share) => (most as f64 * share) as usize,
        Cap::Flexible => most,
    };
    let here = file.input_docs.iter().filter(|doc| slot.value.docs.contains(&doc.value.name));
    for doc in here.filter(|doc| doc.value.min_remaining >= cap.max(1)) {
        let (name, asked) = (&doc.value.name, doc.value.min_remaining);
        let slot = &slot.value.slot.name;
        let message = format!(
            "`{name}` is added while more than {asked} tokens are left, but slot `{slot}` has at most {cap}"
        );
        sink.report(
            DiagnosticCode::Slot,
            &doc.span,
            message,
            "lower min_remaining, or raise the cap of the slot",
        );
    }
}
