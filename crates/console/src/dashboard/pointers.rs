//! What is behind a pointer: who asks sees the original, as text that stays text.

use axum::Extension;
use axum::response::Html;
use larder_gateway::auth::Caller;
use larder_text::pointer::Pointer;
use maud::{Markup, PreEscaped, html};
use serde::Deserialize;

use super::figures::{moment, name, number, segment};
use super::layout::{NavItem, PageError, page};
use crate::api::{ContentParams, Path, Query, blocking, parse, read};

/// Bytes of a payload that a page shows; the rest is a link away.
const SHOWN_BYTES: usize = 64 * 1024;

/// What is kept of a part.
#[derive(Debug, Default)]
pub struct StoredText {
    /// The message as it went upstream.
    pub sent: Option<Vec<u8>>,
    /// The original.
    pub original: Option<Vec<u8>>,
    /// The pointer to it.
    pub pointer: Option<Pointer>,
}

/// What was sent beside the original.
pub fn pair(kept: &StoredText) -> Markup {
    html! {
        div.pair {
            @if let Some(sent) = &kept.sent { div { h3 { "As sent" } (payload(sent, "As sent")) } }
            @if let Some(original) = &kept.original {
                div { h3 { "The original" } (payload(original, "The original")) }
            }
        }
        @if kept.sent.is_none() && kept.original.is_none() {
            p.muted { "Neither transcript nor store keep this part." }
        }
        @if let Some(pointer) = &kept.pointer { (address(pointer)) }
    }
}

fn address(pointer: &Pointer) -> Markup {
    let text = pointer.to_string();
    html! {
        p {
            span.mono { (text) } " "
            button.quiet type="button" data-copy=(text) { "Copy" } " "
            a href={ "/api/v1/pointers/" (segment(&text)) "/content" } { "The whole original" }
        }
    }
}

/// Bytes that somebody else wrote, as text.
fn payload(bytes: &[u8], label: &str) -> Markup {
    let shown = bytes.get(..SHOWN_BYTES).unwrap_or(bytes);
    let more = bytes.len().saturating_sub(shown.len());
    html! {
        pre.payload tabindex="0" role="group" aria-label=(label) dir="auto" { (verbatim(&String::from_utf8_lossy(shown))) }
        @if more > 0 { p.muted { "and " (number(more as u64)) " bytes more" } }
    }
}

/// Text that a browser shows with every character of it: a parser drops the first line feed of a `pre`, makes line feeds
/// of carriage returns, and leaves NUL out.
pub fn verbatim(text: &str) -> Markup {
    let escaped = html! { (text) }.into_string().replace('\r', "&#13;").replace('\0', "\u{fffd}");
    PreEscaped(format!("\n{escaped}"))
}

/// A part of an original, and whether only the piece is wanted.
#[derive(Debug, Deserialize)]
pub struct PointerPageParams {
    #[serde(flatten)]
    part: ContentParams,
    #[serde(default)]
    piece: Option<String>,
}

/// `/pointers/{id}`
pub async fn one(
    Extension(caller): Extension<Caller>,
    Path(text): Path<String>,
    Query(asked): Query<PointerPageParams>,
) -> Result<Html<String>, PageError> {
    let (pointer, part) = (parse(&text)?, asked.part.selection()?);
    let (store, of) = (caller.store.clone(), pointer.clone());
    let found = blocking(move || Ok((store.pointers().get(&of)?, read(&store, &of, part.as_ref())?)));
    let (stored, bytes) = found.await?;
    if asked.piece.is_some() {
        let kept = StoredText { original: Some(bytes), pointer: Some(pointer), ..StoredText::default() };
        return Ok(Html(pair(&kept).into_string()));
    }
    let content = html! {
        div.head {
            div {
                h1 { (name(&stored.display_text)) }
                p { (name(&stored.kind)) " · " (number(stored.bytes)) " bytes · stored " (moment(stored.created)) }
            }
        }
        section.panel {
            (payload(&bytes, "The original"))
            (address(&pointer))
            form.inline method="get" role="search" aria-label="Narrow it" {
                div {
                    label for="grep" { "Lines that match" }
                    input #grep name="grep" value=[asked.part.grep.as_deref()] placeholder="ERROR|WARN";
                }
                button type="submit" { "Show" }
            }
        }
    };
    Ok(page(&caller, NavItem::Requests, "Original", &content))
}
