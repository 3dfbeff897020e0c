//! What `larder converse` prints.

use std::collections::BTreeSet;

use larder_conversation::intent::MemoryIntent;
use larder_conversation::memory::{Consent, Fact, PersonMemory, Share, consent_text};
use larder_conversation::sharing::SharePreview;
use larder_conversation::{ActionResult, Conversation, Reply, ReplyRecord, Started};
use larder_text::tokens::Counter;
use larder_text::words::counted;
use serde::Serialize;
use serde_json::Value;

use crate::error::CliError;
use crate::output;

/// Data of a conversation, for programs.
#[derive(Serialize)]
struct Named<'a, T> {
    conversation: &'a str,
    #[serde(flatten)]
    data: &'a T,
}

/// Prints data with the id of its conversation, which programs need to come back to it.
pub fn json(conversation: &Conversation, data: &impl Serialize) -> Result<(), CliError> {
    output::json(&Named { conversation: conversation.id(), data })
}

/// A text that another participant gave, for programs.
#[derive(Serialize)]
struct Received<'a> {
    received: &'a Share,
}

/// What others gave to this participant, but for what is `shown` already: each text once, so that a long conversation does
/// not repeat it before every message.
pub fn received(
    conversation: &Conversation,
    shown: &mut BTreeSet<String>,
    is_plain: bool,
) -> Result<(), CliError> {
    let counter = Counter::cl100k();
    for share in conversation.memory(&counter).shared_with_me()? {
        if !shown.insert(share.id.clone()) {
            continue;
        }
        if is_plain {
            let (from, text) = (output::visible(&share.from), output::visible(&share.text));
            output::text(&format!("{from} shared: {text}"))?;
        } else {
            json(conversation, &Received { received: &share })?;
        }
    }
    Ok(())
}

/// What is remembered of a participant, and what of it may be used in other sessions, for programs.
#[derive(Serialize)]
struct Remembered {
    facts: Vec<Fact>,
    consents: Vec<Consent>,
}

/// What is remembered of the participant, and what of it may be used in other sessions.
pub fn memory(
    conversation: &Conversation,
    memory: &PersonMemory<'_>,
    is_plain: bool,
) -> Result<(), CliError> {
    let (facts, consents) = (memory.all_facts()?, memory.consents()?);
    if !is_plain {
        return json(conversation, &Remembered { facts, consents });
    }
    if facts.is_empty() {
        output::text("Nothing is remembered of you.")?;
    }
    for fact in &facts {
        let (said, until) = (&fact.said, fact.valid_until.map(|until| format!(", until {}", until.date())));
        let (category, text) = (output::visible(&said.category), output::visible(&said.fact));
        output::text(&format!("{}  {category}: {text}{}", fact.id, until.unwrap_or_default()))?;
    }
    for consent in consents.iter().filter(|consent| consent.revoked.is_none()) {
        output::text(&format!("Since {}: {}", consent.since.date(), output::visible(&consent.shown)))?;
    }
    if memory.consent_to_everything()?.is_none() {
        output::say(&format!("/memory allow agrees to this: {}", consent_text(None)));
    }
    Ok(())
}

/// What would be shared, and what speaks against it.
pub fn preview(conversation: &Conversation, preview: &SharePreview, is_plain: bool) -> Result<(), CliError> {
    if !is_plain {
        return json(conversation, preview);
    }
    output::text(&format!("Preview:\n{}", output::visible(&preview.text)))?;
    for verdict in preview.verdicts.iter().filter(|verdict| verdict.stops) {
        let words = verdict.spans.join("; ");
        output::say(&format!("{} stops it: {}", verdict.by, output::visible(&words)));
        if !verdict.suggestion.is_empty() {
            output::text(&format!("Instead:\n{}", output::visible(&verdict.suggestion)))?;
        }
    }
    if preview.verdicts.is_empty() && preview.purpose.is_none() {
        output::say("note: the type names no check of what is shared, so nobody judged this text");
    }
    if !preview.warnings.is_empty() {
        let words = output::visible(&preview.warnings.join("; "));
        output::say(&format!("warning: the reader may take this as an attack: {words}"));
    }
    if preview.may_be_shared() {
        let to = preview.purpose.clone().unwrap_or_else(|| preview.to.join(", "));
        output::say(&format!("/confirm gives exactly this to {to}"));
    }
    Ok(())
}

/// What an action gave, as far as it was not printed while it was written.
pub fn result(conversation: &Conversation, result: &ActionResult, is_plain: bool) -> Result<(), CliError> {
    if !is_plain {
        return json(conversation, result);
    }
    output::bytes(b"\n")?;
    if let Some(data) = &result.data {
        output::json(data)?;
    }
    if let Some(draft) = result.reply.as_ref().and_then(|reply| reply.draft.as_ref()) {
        output::text(&format!("Draft to share:\n{}", output::visible(draft)))?;
    }
    output::say(&output::dim(&format!("stage {}", result.stage)));
    Ok(())
}

/// The rest of a reply that was printed as it was written, or the reply as an object.
pub fn reply(conversation: &Conversation, reply: &Reply, is_plain: bool) -> Result<(), CliError> {
    if !is_plain {
        return json(conversation, reply);
    }
    output::bytes(b"\n")?;
    if let Some(draft) = &reply.draft {
        output::text(&format!("\nDraft to share:\n{}", output::visible(draft)))?;
    }
    let mut facts = vec![format!("stage {}", reply.next_stage), reply.model.clone()];
    facts.push(format!("{} tokens in, {} out", reply.usage.input, reply.usage.output));
    facts.extend(reply.cost.map(|cost| format!("${cost}")));
    facts.push(format!("{} ms", reply.latency_ms));
    let window = conversation.record(reply.number)?.window;
    if window.left_out > 0 {
        facts.push(format!("{} did not fit", counted(window.left_out as u64, "message")));
    }
    if window.withheld > 0 {
        facts.push(format!("{} withheld", counted(window.withheld as u64, "message")));
    }
    if window.summarized > 0 {
        facts.push(format!("{} summarized", counted(window.summarized as u64, "message")));
    }
    output::say(&output::dim(&facts.join(" · ")));
    if reply.is_cut {
        output::say("note: the reply was cut short");
    }
    for notice in &reply.notices {
        output::say(&output::visible(notice));
    }
    for problem in &reply.problems {
        output::say(&format!("note: {problem}"));
    }
    Ok(())
}

/// What a message before a conversation led to, as far as it was not printed while it was written.
pub fn started(started: &Started, is_plain: bool) -> Result<(), CliError> {
    if !is_plain {
        return output::json(started);
    }
    output::bytes(b"\n")?;
    if let Some(wanted) = wanted(&started.data) {
        output::say(&output::dim(&output::visible(&wanted)));
    }
    Ok(())
}

/// What a message asks for: its intent and what else was found out, or all that was, where the type has no intents.
fn wanted(data: &Value) -> Option<String> {
    let found = data.as_object()?;
    let text =
        |value: &Value| value.as_str().map_or_else(|| value.to_string(), |text| text.replace('_', " "));
    let intent = found.get("intent").map(text);
    let more = found.iter().filter(|(name, _)| name.as_str() != "intent");
    let more: Vec<String> =
        more.map(|(name, value)| format!("{} {}", name.replace('_', " "), text(value))).collect();
    let more = more.join(", ");
    match (intent, more.is_empty()) {
        (Some(intent), true) => Some(format!("Asks for: {intent}")),
        (Some(intent), false) => Some(format!("Asks for: {intent} ({more})")),
        (None, false) => Some(format!("Found out: {more}")),
        (None, true) => None,
    }
}

/// What can be started now. A step that leads to another stage has no description.
pub fn actions(conversation: &Conversation) -> Result<String, CliError> {
    let known = &conversation.kind().kind.actions;
    let lines: Vec<String> = conversation
        .actions()?
        .into_iter()
        .map(|name| match known.get(&name) {
            Some(action) => format!("  {name}: {}", action.about.trim()),
            None => format!("  {name}"),
        })
        .collect();
    if lines.is_empty() {
        return Ok("there is nothing to start here".to_owned());
    }
    Ok(format!("/act with one of\n{}", lines.join("\n")))
}

/// What was sent for a reply, and why.
pub fn window(conversation: &Conversation, record: &ReplyRecord, is_plain: bool) -> Result<(), CliError> {
    if !is_plain {
        return json(conversation, &record.window);
    }
    output::text(&sent(record).join("\n"))
}

/// A line for each block before the message and each other part of a prompt, and one for whatever is not in it.
fn sent(record: &ReplyRecord) -> Vec<String> {
    let window = &record.window;
    let tokens = |count: usize| counted(count as u64, "token");
    let messages = |count: usize| counted(count as u64, "message");
    let mut lines: Vec<String> =
        window.blocks.iter().map(|(block, size)| format!("block {block}: {}", tokens(*size))).collect();
    lines.push(format!("system prompt: {}", tokens(window.system_tokens)));
    lines.push(format!("history: {}, {}", messages(window.sent.len()), tokens(window.history_tokens)));
    lines.push(format!("your message with its blocks: {}", tokens(window.last_tokens)));
    if !window.shortened.is_empty() {
        let shortened = messages(window.shortened.len());
        lines.push(format!("shortened: {shortened}, to the beginning and a pointer to the rest"));
    }
    if window.withheld > 0 {
        let why = window.intent.map_or("", |intent| match intent {
            MemoryIntent::AvoidRecall => "; you asked not to bring up the past",
            MemoryIntent::HighDistress => "; your message shows great distress",
            MemoryIntent::StageEnforcement => "; you asked to stay with the stage, or to leave it",
            MemoryIntent::CommitmentReference => "; you asked what was agreed",
        });
        lines.push(format!("withheld: {}{why}", messages(window.withheld)));
    }
    if window.summarized > 0 {
        let last = window.watermark.map_or_else(String::new, |last| format!(", up to message {last}"));
        lines.push(format!("summarized: {}{last}", messages(window.summarized)));
    }
    if window.left_out > 0 {
        let left_out = messages(window.left_out);
        lines.push(format!("left out: {left_out} without room, with a pointer in their place"));
    }
    for asked in &window.blocked_by_consent {
        lines.push(format!("not sent without a consent: {asked}"));
    }
    if window.safety {
        lines.push("the safety rules applied".to_owned());
    }
    lines.push(format!("recipe: {}", record.recipe));
    lines.push(format!("model: {}", record.model));
    lines
}

#[cfg(test)]
mod tests {
    use larder_conversation::WindowRecord;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_message_asks_for_is_said_in_words() {
        let said = |data: Value| wanted(&data).unwrap_or_default();
        assert_eq!(
            said(json!({"intent": "inner_work", "confidence": 0.5})),
            "Asks for: inner work (confidence 0.5)"
        );
        assert_eq!(said(json!({"intent": "talk"})), "Asks for: talk");
        assert_eq!(said(json!({"topic": "bees"})), "Found out: topic bees");
        assert_eq!((said(json!({})), said(Value::Null)), (String::new(), String::new()));
    }

    #[test]
    fn a_window_is_lines_with_what_was_sent_and_what_was_not() {
        let window = WindowRecord {
            sent: vec![3, 4],
            shortened: vec![3],
            summarized: 2,
            watermark: Some(2),
            withheld: 1,
            intent: Some(MemoryIntent::AvoidRecall),
            left_out: 3,
            blocks: vec![("facts".to_owned(), 40)],
            blocked_by_consent: vec!["other sessions".to_owned()],
            system_tokens: 500,
            history_tokens: 90,
            last_tokens: 1,
            ..WindowRecord::default()
        };
        let (recipe, model) = ("converse/tutor".to_owned(), "small".to_owned());
        let record = ReplyRecord { recipe, model, window, ..ReplyRecord::default() };
        let expected = [
            "block facts: 40 tokens",
            "system prompt: 500 tokens",
            "history: 2 messages, 90 tokens",
            "your message with its blocks: 1 token",
            "shortened: 1 message, to the beginning and a pointer to the rest",
            "withheld: 1 message; you asked not to bring up the past",
            "summarized: 2 messages, up to message 2",
            "left out: 3 messages without room, with a pointer in their place",
            "not sent without a consent: other sessions",
            "recipe: converse/tutor",
            "model: small",
        ];
        assert_eq!(sent(&record), expected);
    }
}
