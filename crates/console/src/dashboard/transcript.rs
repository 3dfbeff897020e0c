//! The transcript of a session: its messages in order, each next to its original.

use axum::Extension;
use axum::response::Html;
use larder_gateway::auth::Caller;
use larder_store::{LineKind, StoreError, TranscriptLine, UserStore};
use maud::{Markup, html};

use super::figures::{moment, name, number, segment};
use super::layout::{FragmentParams, NavItem, PageError, page};
use super::pointers::{self, StoredText};
use super::ui::{self, Column, Row, chip, disclosure, heading, pager, panel, payload};
use crate::api::{
    Path, Problem, Query, SentAs, TranscriptPage, TranscriptPageMessage, TranscriptParams, blocking,
    no_transcript,
};

/// Bytes of a message that a row shows; the rest opens in place.
const SHOWN_BYTES: usize = 2_000;

/// `/sessions/{session}/transcript`
pub async fn show(
    Extension(caller): Extension<Caller>,
    Path(session): Path<String>,
    Query(which): Query<TranscriptParams>,
) -> Result<Html<String>, PageError> {
    let store = caller.store.clone();
    let (of, asked) = (session.clone(), which.clone());
    let found =
        blocking(move || TranscriptPage::read(&store, &of, &asked)).await?.ok_or_else(no_transcript)?;
    let base = format!("/sessions/{}", segment(&session));
    let about = html! {
        "of session " a href=(base) { (name(&session)) } ": " (number(found.total)) " "
        @if which.all { "lines in the order written" } @else { "messages" }
    };
    let later = found
        .next
        .map(|next| ("Later messages", format!("{base}/transcript?after={next}{}", other_params(&which))));
    let content = html! {
        (heading("Transcript", about, Some(ways(&base, &found))))
        (panel("messages", "What was said", html! {
            p.muted { "Each message as the model read it. Open one to compare what was sent with what came in." }
            (table(&base, &found.messages))
            (pager(later.as_slice()))
        }))
    };
    Ok(page(&caller, NavItem::Sessions, "Transcript", &content))
}

/// The parameters that the next page has in common with this one.
fn other_params(which: &TranscriptParams) -> String {
    let branch = which.branch.map(|branch| format!("&branch={branch}")).unwrap_or_default();
    let all = if which.all { "&all=true" } else { "" };
    let limit = which.limit.map(|limit| format!("&limit={limit}")).unwrap_or_default();
    format!("{branch}{all}{limit}")
}

/// The other ways to look at it.
fn ways(base: &str, found: &TranscriptPage) -> Markup {
    html! {
        @if found.branches.len() > 1 {
            @for branch in &found.branches {
                @if found.branch == Some(*branch) { span { "Branch " (branch) } }
                @else { a href={ (base) "/transcript?branch=" (branch) } { "Branch " (branch) } }
                " "
            }
        }
        @if found.branch.is_some() { a href={ (base) "/transcript?all=true" } { "Every line" } }
        @else { a href={ (base) "/transcript" } { "The newest history" } }
    }
}

fn table(base: &str, messages: &[TranscriptPageMessage]) -> Markup {
    let columns = [
        Column::text("Sent"),
        Column::text("#"),
        Column::text("Role"),
        Column::text("What the model read"),
        Column::number("Bytes").wide(),
        Column::text("Time (UTC)").wide(),
    ];
    ui::table("Messages", columns, messages.iter().map(|message| row(base, message)))
}

fn row(base: &str, message: &TranscriptPageMessage) -> Row<6> {
    let role = html! {
        (message.role)
        @if let Some(tool) = &message.tool { br; (name(tool)) }
        @match message.kind {
            LineKind::Message => {}
            LineKind::Rendition => { br; span.muted { "another rendition" } }
            LineKind::Reply => { br; span.muted { "reply" } }
        }
    };
    let bytes = html! {
        @if let Some(sent) = &message.sent { span.muted { (number(message.raw.bytes)) " → " } (number(sent.bytes)) }
        @else { (number(message.raw.bytes)) }
    };
    let cells = [
        badge(base, message),
        html! { (message.message) },
        role,
        words(message),
        bytes,
        moment(message.time),
    ];
    Row::with_id(cells, format!("line-{}", message.line))
}

fn words(message: &TranscriptPageMessage) -> Markup {
    let shown = &message.text[..message.text.floor_char_boundary(SHOWN_BYTES)];
    let more = message.text.len() - shown.len();
    html! {
        @if !shown.is_empty() {
            (payload(format!("Message {}", message.message), shown))
        }
        @if message.cut { p.muted { "and more" } } @else if more > 0 { p.muted { "and " (number(more as u64)) " bytes more" } }
        @for call in &message.calls {
            p { span.muted { "calls " } (name(&call.name)) " " code { (first(&call.arguments)) } }
        }
    }
}

/// The beginning of a text.
fn first(text: &str) -> String {
    let end = text.floor_char_boundary(SHOWN_BYTES);
    let dots = if end < text.len() { "…" } else { "" };
    format!("{}{dots}", &text[..end])
}

/// How a message was sent; opens to what was sent next to what came in.
fn badge(base: &str, message: &TranscriptPageMessage) -> Markup {
    let address = format!("{base}/transcript/{}", message.line);
    let colour = match message.sent_as {
        SentAs::Whole => "rendition-whole",
        SentAs::Shortened => "rendition-condensed",
        SentAs::LeftOut => "rendition-absent",
    };
    let hint = format!("show message {} as it came in", message.message);
    disclosure(&address, chip(colour, message.sent_as.as_str()), hint, "Open what came in")
}

/// `/sessions/{session}/transcript/{line}`: what was sent next to what came in.
pub async fn one(
    Extension(caller): Extension<Caller>,
    Path((session, line)): Path<(String, u64)>,
    Query(FragmentParams { piece }): Query<FragmentParams>,
) -> Result<Html<String>, PageError> {
    let (store, of) = (caller.store.clone(), session.clone());
    let found = blocking(move || {
        let Some(line) = TranscriptPage::line(&store, &of, line)? else { return Ok(None) };
        Ok(Some((kept(&store, &line)?, line)))
    });
    let (kept, of) = found.await?.ok_or_else(|| Problem::not_found("the transcript has no such message"))?;
    let base = format!("/sessions/{}", segment(&session));
    let pair = html! {
        (pointers::pair(&kept))
        p { a href={ "/api/v1" (base) "/transcript/" (line) "/raw" } { "The whole message as it came in" } }
    };
    if piece {
        return Ok(Html(pair.into_string()));
    }
    let about = html! {
        (of.role) " · " (moment(of.time)) " · of " a href={ (base) "/transcript" } { "session " (name(&session)) }
    };
    let content = html! {
        (heading(format!("Message {}", of.message), about, None))
        (panel("behind", "What was sent, and what came in", pair))
    };
    Ok(page(&caller, NavItem::Sessions, "Message", &content))
}

/// A message as sent and its original, as far as transcript and store hold them. Blocks.
fn kept(store: &UserStore, line: &TranscriptLine) -> Result<StoredText, StoreError> {
    // The original of one result reads better than the message that holds it.
    let pointer = Some(&line.pointers).filter(|all| all.len() == 1).and_then(|all| all.first());
    let original = match pointer {
        Some(pointer) => store.pointers().resolve(pointer)?,
        None => store.contents().get(line.raw.hash)?,
    };
    Ok(StoredText {
        sent: Some(store.contents().get(line.sent.unwrap_or(line.raw).hash)?),
        original: Some(original),
        pointer: pointer.cloned(),
    })
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
