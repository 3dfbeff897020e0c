//! `larder transcript`: what was said in a conversation through the gateway, each message as it came and as it was
//! sent. Reads the store; no gateway need run.

use larder_server::api::{Message, Session, Transcript, WhichMessages};
use larder_store::{LineKind, UserStore};
use serde_json::{Value, json};

use crate::args::Format;
use crate::context::Context;
use crate::error::CliError;
use crate::output;

/// Conversations that are listed.
const LISTED: u64 = 500;
/// Messages that are read at once.
const PAGE: u64 = 500;

pub fn run(context: &Context, session: Option<&str>, branch: Option<u32>, all: bool) -> Result<(), CliError> {
    let store = context.store()?;
    let as_json = context.global.format == Format::Json;
    let Some(session) = session else { return list(&store, as_json) };
    let mut which = WhichMessages { branch, all, after: None, limit: Some(PAGE) };
    let mut exported = Vec::new();
    loop {
        let page = Transcript::read(&store, session, &which)?.ok_or_else(|| nothing(session))?;
        for message in &page.messages {
            if as_json {
                exported.push(export(&store, session, message)?);
            } else {
                output::text(&told(message))?;
            }
        }
        which.after = page.next;
        if which.after.is_none() {
            break;
        }
    }
    if as_json { output::json(&json!({"session": session, "messages": exported})) } else { Ok(()) }
}

fn nothing(session: &str) -> CliError {
    CliError::Fixable(format!(
        "no transcript is kept of session {session:?} of this user; `larder transcript` lists the sessions, and \
         `gateway.transcripts` says whether they are kept"
    ))
}

fn list(store: &UserStore, as_json: bool) -> Result<(), CliError> {
    let sessions: Vec<Session> = store.sessions(LISTED)?.into_iter().map(Session::from).collect();
    if as_json {
        return output::json(&sessions);
    }
    if sessions.is_empty() {
        output::say("no conversations are recorded here");
    }
    for one in sessions {
        let sent = format!("{} → {} tokens", one.tokens_before, one.tokens_after);
        output::text(&format!("{} {:>5} requests {sent:>24}  {}", one.last, one.requests, one.session))?;
    }
    Ok(())
}

/// A message with its bytes as they came, so that an export needs nothing else.
fn export(store: &UserStore, session: &str, message: &Message) -> Result<Value, CliError> {
    let bug = |error: serde_json::Error| CliError::Bug(error.to_string());
    let mut exported = serde_json::to_value(message).map_err(bug)?;
    if let Some(line) = Transcript::line(store, session, message.line)? {
        exported["original"] = json!(String::from_utf8_lossy(&store.blob(line.raw.hash)?));
    }
    Ok(exported)
}

fn told(message: &Message) -> String {
    let tool = message.tool.as_deref().map(|tool| format!(" {tool}")).unwrap_or_default();
    let kind = match message.kind {
        LineKind::Message => "",
        LineKind::Rendition => ", another form",
        LineKind::Reply => ", reply",
    };
    let pointers: String = message.pointers.iter().map(|pointer| format!(" {pointer}")).collect();
    let mut text = format!(
        "--- {} {}{tool}{kind}, {}{pointers}\n{}",
        message.message,
        message.role,
        message.sent_as.as_str(),
        message.text
    );
    if message.cut {
        text.push_str("\n[the rest is in the export: --format json]");
    }
    for call in &message.calls {
        text.push_str(&format!("\ncalls {} {}", call.name, call.arguments));
    }
    text
}
