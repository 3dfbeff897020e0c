//! What `larder converse` prints.

use std::collections::BTreeSet;

use larder_conversation::memory::Share;
use larder_conversation::sharing::SharePreview;
use larder_conversation::{ActionResult, Conversation, Reply};
use larder_text::tokens::Counter;
use larder_text::words::counted;
use serde::Serialize;

use crate::error::CliError;
use crate::output;

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
            output::json(&Received { received: &share })?;
        }
    }
    Ok(())
}

/// What would be shared, and what speaks against it.
pub fn preview(preview: &SharePreview, is_plain: bool) -> Result<(), CliError> {
    if !is_plain {
        return output::json(preview);
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
pub fn result(result: &ActionResult, is_plain: bool) -> Result<(), CliError> {
    if !is_plain {
        return output::json(result);
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
        return output::json(reply);
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
