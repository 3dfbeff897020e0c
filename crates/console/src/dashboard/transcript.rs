//! The transcript of a session: what was said, in its order, each message beside its original (R3-4.35, R3-5.14).

use axum::Extension;
use axum::response::Html;
use larder_gateway::auth::Caller;
use larder_store::{LineKind, StoreError, TranscriptLine, UserStore};
use maud::{Markup, html};
use serde::Deserialize;

use super::figures::{moment, name, number, segment};
use super::layout::{NavItem, PageError, page};
use super::pointers::{self, StoredText, verbatim};
use crate::api::{
    Path, Problem, Query, SentAs, Transcript, TranscriptMessage, TranscriptParams, blocking, no_transcript,
};

/// Bytes of a message that a row shows; its badge opens to the rest.
const SHOWN_BYTES: usize = 2_000;

/// `/sessions/{session}/transcript`
pub async fn show(
    Extension(caller): Extension<Caller>,
    Path(session): Path<String>,
    Query(which): Query<TranscriptParams>,
) -> Result<Html<String>, PageError> {
    let store = caller.store.clone();
    let (of, asked) = (session.clone(), which.clone());
    let found = blocking(move || Transcript::read(&store, &of, &asked)).await?.ok_or_else(no_transcript)?;
    let base = format!("/sessions/{}", segment(&session));
    let content = html! {
        div.head {
            div {
                h1 { "Transcript" }
                p {
                    "of session " a href=(base) { (name(&session)) } ": " (number(found.total)) " "
                    @if which.all { "lines as they were written" } @else { "messages" }
                }
            }
            div.tools { (ways(&base, &found)) }
        }
        section.panel aria-labelledby="messages" {
            h2 #messages { "What was said" }
            p.muted { "Each message as the model read it. A badge opens to what was sent beside what came." }
            (table(&base, &found.messages))
            div.pages {
                @if let Some(next) = found.next {
                    a href={ (base) "/transcript?after=" (next) (kept_up(&which)) } { "Later messages" }
                }
            }
        }
    };
    Ok(page(&caller, NavItem::Sessions, "Transcript", &content))
}

/// What the next page is asked for besides.
fn kept_up(which: &TranscriptParams) -> String {
    let branch = which.branch.map(|branch| format!("&branch={branch}")).unwrap_or_default();
    let all = if which.all { "&all=true" } else { "" };
    let limit = which.limit.map(|limit| format!("&limit={limit}")).unwrap_or_default();
    format!("{branch}{all}{limit}")
}

/// The other ways to look at it.
fn ways(base: &str, found: &Transcript) -> Markup {
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

fn table(base: &str, messages: &[TranscriptMessage]) -> Markup {
    html! {
        div.scroll role="group" aria-label="Messages" tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "Sent" }
                        th scope="col" { "#" }
                        th scope="col" { "Who" }
                        th scope="col" { "What was read" }
                        th.figure.optional scope="col" { "Bytes" }
                        th.optional scope="col" { "Time (UTC)" }
                    }
                }
                tbody { @for message in messages { (row(base, message)) } }
            }
        }
    }
}

fn row(base: &str, message: &TranscriptMessage) -> Markup {
    html! {
        tr id={ "line-" (message.line) } {
            td { (badge(base, message)) }
            td { (message.message) }
            td {
                (message.role)
                @if let Some(tool) = &message.tool { br; (name(tool)) }
                @match message.kind {
                    LineKind::Message => {}
                    LineKind::Rendition => { br; span.muted { "another form" } }
                    LineKind::Reply => { br; span.muted { "reply" } }
                }
            }
            td { (words(message)) }
            td.figure.optional {
                @if let Some(sent) = &message.sent { span.muted { (number(message.raw.bytes)) " → " } (number(sent.bytes)) }
                @else { (number(message.raw.bytes)) }
            }
            td.optional { (moment(message.time)) }
        }
    }
}

fn words(message: &TranscriptMessage) -> Markup {
    let shown = &message.text[..message.text.floor_char_boundary(SHOWN_BYTES)];
    let more = message.text.len() - shown.len();
    html! {
        @if !shown.is_empty() {
            pre.payload tabindex="0" role="group" aria-label={ "Message " (message.message) } dir="auto" { (verbatim(shown)) }
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

/// How a message was sent; opens to what was sent beside what came.
fn badge(base: &str, message: &TranscriptMessage) -> Markup {
    let address = format!("{base}/transcript/{}", message.line);
    let form = match message.sent_as {
        SentAs::Whole => "form-whole",
        SentAs::Shortened => "form-condensed",
        SentAs::LeftOut => "form-absent",
    };
    html! {
        details.badge data-load=(address) {
            summary {
                span class={ "chip " (form) } { (message.sent_as.as_str()) }
                span.hidden { ", show message " (message.message) " as it came" }
            }
            div.raw { a href=(address) { "Open what came" } }
        }
    }
}

/// Whether only the piece is wanted, for a page that is there already.
#[derive(Debug, Deserialize)]
pub struct RangeParams {
    #[serde(default)]
    piece: bool,
}

/// `/sessions/{session}/transcript/{line}`: what was sent beside what came.
pub async fn one(
    Extension(caller): Extension<Caller>,
    Path((session, line)): Path<(String, u64)>,
    Query(RangeParams { piece }): Query<RangeParams>,
) -> Result<Html<String>, PageError> {
    let (store, of) = (caller.store.clone(), session.clone());
    let found = blocking(move || {
        let Some(line) = Transcript::line(&store, &of, line)? else { return Ok(None) };
        Ok(Some((kept(&store, &line)?, line)))
    });
    let (kept, of) = found.await?.ok_or_else(|| Problem::not_found("the transcript has no such message"))?;
    let base = format!("/sessions/{}", segment(&session));
    let pair = html! {
        (pointers::pair(&kept))
        p { a href={ "/api/v1" (base) "/transcript/" (line) "/raw" } { "The whole message as it came" } }
    };
    if piece {
        return Ok(Html(pair.into_string()));
    }
    let content = html! {
        div.head {
            div {
                h1 { "Message " (of.message) }
                p {
                    (of.role) " · " (moment(of.time)) " · of " a href={ (base) "/transcript" } {
                        "session " (name(&session))
                    }
                }
            }
        }
        section.panel aria-labelledby="behind" {
            h2 #behind { "What was sent, and what came" }
            (pair)
        }
    };
    Ok(page(&caller, NavItem::Sessions, "Message", &content))
}

/// What the transcript and the store keep of a message. Blocks.
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
