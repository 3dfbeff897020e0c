//! `larder transcript`: prints the messages of a conversation through the gateway, as they came in and as they were
//! sent. Reads the store, so no gateway needs to run.

use larder_console::api::{Priced, TranscriptLines, TranscriptPageMessage};
use larder_store::{LineKind, SessionSummary, UserStore};
use larder_text::words::counted;
use serde_json::{Value, json};

use crate::args::Format;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output;

/// Conversations that are listed.
const LISTED: usize = 500;
/// Messages that are read at once.
const PAGE: u64 = 500;

pub fn run(
    context: &CommandContext,
    session: Option<&str>,
    branch: Option<u32>,
    all: bool,
) -> Result<(), CliError> {
    let store = context.user_to_read()?;
    let as_json = context.global.format == Format::Json;
    let Some(session) = session else { return list(&store, as_json) };
    let lines = TranscriptLines::read(&store, session, branch, all)?.ok_or_else(|| nothing(session))?;
    if let Some(branch) = branch.filter(|branch| !lines.branches().contains(branch)) {
        return Err(no_branch(session, branch, lines.branches()));
    }
    let (mut exported, mut next) = (Vec::new(), Some(0));
    while let Some(after) = next {
        let page = lines.page(&store, after, PAGE)?;
        for message in &page.messages {
            if as_json {
                exported.push(export(&store, message)?);
            } else {
                output::text(&describe(message, all))?;
            }
        }
        next = page.next;
    }
    if !as_json {
        return Ok(());
    }
    output::json(&json!({
        "session": session, "branch": lines.branch(), "branches": lines.branches(), "messages": exported,
    }))
}

fn no_branch(session: &str, branch: u32, branches: &[u32]) -> CliError {
    let there: Vec<String> = branches.iter().map(u32::to_string).collect();
    CliError::Fixable(format!(
        "session {session:?} has no branch {branch}; its branches are {}",
        there.join(", ")
    ))
}

fn nothing(session: &str) -> CliError {
    CliError::Fixable(format!(
        "there is no transcript of session {session:?} of this user; `larder transcript` lists the sessions, and \
         `gateway.transcripts` turns transcripts on"
    ))
}

fn list(store: &UserStore, as_json: bool) -> Result<(), CliError> {
    // One more, to know whether there are more.
    let found = store.exchanges().sessions(LISTED as u64 + 1)?;
    if let Some(words) = unlisted(found.len()) {
        output::say(&words);
    }
    let sessions: Vec<Priced<SessionSummary>> = found.into_iter().take(LISTED).map(Priced::from).collect();
    if as_json {
        return output::json(&sessions);
    }
    if sessions.is_empty() {
        output::say("no conversations are recorded here");
    }
    for Priced { sums: one, .. } in sessions {
        let sent = format!("{} → {} tokens", one.tokens_before, one.tokens_after);
        let requests = counted(one.requests, "request");
        output::text(&format!("{} {requests:>14} {sent:>24}  {}", one.last, one.session))?;
    }
    Ok(())
}

/// A note about sessions beyond the list.
fn unlisted(found: usize) -> Option<String> {
    (found > LISTED).then(|| {
        format!("these are the newest {LISTED} sessions; `larder transcript SESSION` also prints older ones")
    })
}

/// A message with its original bytes, so that an export is self-contained; `null` if they are lost or damaged.
fn export(store: &UserStore, message: &TranscriptPageMessage) -> Result<Value, CliError> {
    let bug = |error: serde_json::Error| CliError::Bug(error.to_string());
    let mut exported = serde_json::to_value(message).map_err(bug)?;
    exported["original"] = match store.contents().get(message.raw.hash) {
        Ok(bytes) => json!(String::from_utf8_lossy(&bytes)),
        Err(error) if error.is_damage() => Value::Null,
        Err(error) => return Err(error.into()),
    };
    Ok(exported)
}

/// A message for people, with its branch if the output mixes several.
fn describe(message: &TranscriptPageMessage, of_all: bool) -> String {
    let tool = message.tool.as_deref().map(|tool| format!(" {tool}")).unwrap_or_default();
    let kind = match message.kind {
        LineKind::Message => "",
        LineKind::Rendition => ", another rendition",
        LineKind::Reply => ", reply",
    };
    let branch = if of_all { format!(", branch {}", message.branch) } else { String::new() };
    let pointers: String = message.pointers.iter().map(|pointer| format!(" {pointer}")).collect();
    let mut text = format!(
        "--- {} {}{tool}{kind}{branch}, {}{pointers}\n{}",
        message.message,
        message.role,
        message.sent_as.as_str(),
        message.text
    );
    if message.cut {
        text.push_str("\n[the rest is in the export: --format json]");
    }
    for call in &message.calls {
        let more = if call.cut { " [the rest is in the export]" } else { "" };
        text.push_str(&format!("\ncalls {} {}{more}", call.name, call.arguments));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_truncated_list_says_so() {
        assert_eq!(unlisted(LISTED), None);
        assert!(unlisted(LISTED + 1).unwrap().contains("newest 500"));
    }
}
