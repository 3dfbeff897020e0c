//! The original behind a pointer, always shown as text.

use axum::Extension;
use axum::response::Html;
use larder_gateway::auth::Caller;
use larder_text::pointer::Pointer;
use maud::{Markup, html};
use serde::Deserialize;

use super::figures::{moment, name, number, segment};
use super::layout::{NavItem, PageError, page};
use super::ui::{heading, payload, untitled_panel};
use crate::api::{ContentParams, Path, Query, blocking, parse, read};

/// Bytes of a payload that a page shows; the rest is a link away.
const SHOWN_BYTES: usize = 64 * 1024;

/// A part as sent and its original, as far as they are stored.
#[derive(Debug, Default)]
pub struct StoredText {
    /// The message as it went upstream.
    pub sent: Option<Vec<u8>>,
    /// The original.
    pub original: Option<Vec<u8>>,
    /// The pointer to it.
    pub pointer: Option<Pointer>,
}

/// What was sent, next to the original.
pub fn pair(kept: &StoredText) -> Markup {
    html! {
        div.side-by-side {
            @if let Some(sent) = &kept.sent { div { h3 { "As sent" } (shortened("As sent", sent)) } }
            @if let Some(original) = &kept.original {
                div { h3 { "The original" } (shortened("The original", original)) }
            }
        }
        @if kept.sent.is_none() && kept.original.is_none() {
            p.muted { "Neither the transcript nor the store holds this part." }
        }
        @if let Some(pointer) = &kept.pointer { (address(pointer)) }
    }
}

fn address(pointer: &Pointer) -> Markup {
    let text = pointer.to_string();
    html! {
        p {
            span.mono { (text) } " "
            button.secondary type="button" data-copy=(text) { "Copy" } " "
            a href={ "/api/v1/pointers/" (segment(&text)) "/content" } { "The whole original" }
        }
    }
}

/// The beginning of bytes by others, as text.
fn shortened(label: &str, bytes: &[u8]) -> Markup {
    let shown = bytes.get(..SHOWN_BYTES).unwrap_or(bytes);
    let more = bytes.len().saturating_sub(shown.len());
    html! {
        (payload(label, &String::from_utf8_lossy(shown)))
        @if more > 0 { p.muted { "and " (number(more as u64)) " bytes more" } }
    }
}

/// The part of the original to show, and whether the script asks for the fragment alone.
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
    let about = html! { (name(&stored.kind)) " · " (number(stored.bytes)) " bytes · stored " (moment(stored.created)) };
    let content = html! {
        (heading(name(&stored.display_text), about, None))
        (untitled_panel(html! {
            (shortened("The original", &bytes))
            (address(&pointer))
            form.inline method="get" role="search" aria-label="Show matching lines" {
                div {
                    label for="grep" { "Lines that match" }
                    input #grep name="grep" value=[asked.part.grep.as_deref()] placeholder="ERROR|WARN";
                }
                button type="submit" { "Show" }
            }
        }))
    };
    Ok(page(&caller, NavItem::Requests, "Original", &content))
}
