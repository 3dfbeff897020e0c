//! One claim traced back: the claim, the tool result it comes from, and the bytes that say it, marked in the original.

use std::sync::Arc;

use std::ops::Range;

use axum::Extension;
use axum::extract::State;
use axum::response::Html;
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_store::{StoreError, UserDocuments};
use larder_text::pointer::{Fragment, Pointer};
use larder_vault::ToolResult;
use larder_vault::context::Claim;
use maud::{Markup, PreEscaped, html};

use super::super::documents::when;
use super::super::figures::{name, number, segment};
use super::super::layout::{NavItem, PageError, page};
use super::super::ui::{self, heading, panel, verbatim};
use super::read::{claims, results, text};
use super::tables::{call_status, linked};
use crate::api::{Path, Problem, blocking};

/// Bytes shown before and after the marked ones.
const AROUND: usize = 600;

/// The bytes that say something, in their context.
struct SourceRange {
    pointer: Pointer,
    /// Of the whole original.
    range: Range<usize>,
    bytes: usize,
    before: String,
    says: String,
    after: String,
}

/// A claim and its evidence.
struct TracedClaim {
    claim: Claim,
    result: Option<ToolResult>,
    source: Option<SourceRange>,
}

/// `/turns/{number}/claims/{block}`
pub async fn one(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path((number, block)): Path<(u32, String)>,
) -> Result<Html<String>, PageError> {
    let (of, who, named) = (app.clone(), caller.clone(), block.clone());
    let found = blocking(move || trace(&of.documents_of(&who.store)?, number, &named)).await?;
    let traced = found.ok_or_else(|| Problem::not_found(format!("turn {number} has no such claim")))?;
    let title = format!("Claim of turn {number}");
    Ok(page(&caller, NavItem::Documents, &title, &whole(&traced, number, &block)))
}

fn trace(documents: &UserDocuments, number: u32, block: &str) -> Result<Option<TracedClaim>, StoreError> {
    let row = documents.catalog().turn(number)?;
    let at = row.map_or_else(|| documents.place().turn(number).context(), |row| row.context);
    let of_block = |claim: &Claim| claim.origin.as_ref().is_some_and(|origin| origin.block.as_str() == block);
    let Some(claim) = claims(&text(documents, &at)?, &at).into_iter().find(of_block) else { return Ok(None) };
    let origin = claim.origin.clone();
    let mut traced = TracedClaim { claim, result: None, source: None };
    let Some(origin) = origin else { return Ok(Some(traced)) };
    if let Some(link) = origin.document.filter(|link| link.file.name() == "toolresults.md") {
        let all = results(&text(documents, &link.file)?, &link.file);
        traced.result = all.into_iter().find(|result| Some(result.block()) == link.block);
    }
    if let Some(pointer) = origin.bytes {
        traced.source = source(documents, pointer)?;
    }
    Ok(Some(traced))
}

/// The bytes of a pointer in their context; `None` if they are no longer stored or not this user's.
fn source(documents: &UserDocuments, pointer: Pointer) -> Result<Option<SourceRange>, StoreError> {
    let original = match documents.store().pointers().resolve(&Pointer::whole(pointer.id.clone())) {
        Ok(original) => original,
        Err(
            StoreError::NotOurs { .. }
            | StoreError::UnknownPointer { .. }
            | StoreError::Expired { .. }
            | StoreError::MissingBlob { .. },
        ) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let range = match pointer.fragment {
        Some(Fragment::Bytes { start, end }) if start <= end && end <= original.len() => start..end,
        Some(Fragment::Bytes { .. }) => return Ok(None),
        Some(Fragment::Lines { first, last }) => lines(&original, first, last),
        None => 0..original.len(),
    };
    let piece =
        |range: Range<usize>| String::from_utf8_lossy(original.get(range).unwrap_or_default()).into_owned();
    let from = boundary(&original, range.start.saturating_sub(AROUND));
    let to = boundary(&original, range.end.saturating_add(AROUND).min(original.len()));
    Ok(Some(SourceRange {
        before: piece(from..range.start),
        says: piece(range.start..range.end.min(range.start.saturating_add(64 * 1024))),
        after: piece(range.end..to.max(range.end)),
        bytes: original.len(),
        range,
        pointer,
    }))
}

fn lines(bytes: &[u8], first: usize, last: usize) -> Range<usize> {
    let mut starts = vec![0];
    starts.extend(bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1));
    let at = |line: usize| starts.get(line).copied().unwrap_or(bytes.len());
    at(first.saturating_sub(1))..at(last)
}

/// The first position from `at` on that is not within a character.
fn boundary(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().take(3).take_while(|byte| (**byte & 0xC0) == 0x80).count()
}

fn whole(traced: &TracedClaim, turn: u32, block: &str) -> Markup {
    let claim = &traced.claim;
    let about = html! { (name(block)) " of " a href={ "/turns/" (turn) "#claims" } { "turn " (turn) } };
    let mut facts = vec![
        ("Confidence", html! { (claim.confidence) }),
        ("Source", name(&claim.source)),
        ("Holds for", html! { (claim.ttl) }),
    ];
    if let Some(link) = claim.origin.as_ref().and_then(|origin| origin.document.as_ref()) {
        facts.push(("Document", html! { a href=(linked(link)) { (name(link.file.short())) } }));
    }
    html! {
        (heading(name(&claim.claim), about, None))
        (panel("claim", "The claim", ui::facts(facts)))
        @if let Some(result) = &traced.result { (call(result, claim)) }
        (bytes(traced.source.as_ref()))
    }
}

fn call(result: &ToolResult, claim: &Claim) -> Markup {
    let mut facts = vec![
        ("Status", call_status(result.status)),
        ("Round", html! { (result.iteration) }),
        ("Ended (UTC)", when(result.at)),
        ("Bytes", html! { (number(result.bytes)) }),
    ];
    if let Some(link) = claim.origin.as_ref().and_then(|origin| origin.document.as_ref()) {
        facts.push(("Whole", html! { a href=(linked(link)) { "result " (result.number) } }));
    }
    panel(
        "result",
        "The result that says it",
        html! {
            p.mono { (name(&result.call)) }
            (ui::facts(facts))
        },
    )
}

fn bytes(source: Option<&SourceRange>) -> Markup {
    let Some(source) = source else {
        let gone = html! { p.muted { "The bytes of this claim are unknown or no longer stored." } };
        return panel("bytes", "The bytes", gone);
    };
    let pointer = source.pointer.to_string();
    let whole = Pointer::whole(source.pointer.id.clone()).to_string();
    // Only the first line feed of a `pre` is dropped.
    let inner = |text: &str| PreEscaped(verbatim(text).into_string().split_off(1));
    panel(
        "bytes",
        "The bytes",
        html! {
            p {
                "Bytes " (number(source.range.start as u64)) " to " (number(source.range.end as u64)) " of "
                (number(source.bytes as u64)) ", marked in their context"
            }
            pre.payload tabindex="0" role="group" aria-label="The bytes in their context" dir="auto" {
                (verbatim(&source.before)) mark { (inner(&source.says)) } (inner(&source.after))
            }
            p {
                span.mono { (pointer) } " "
                button.secondary type="button" data-copy=(pointer) { "Copy" } " "
                a href={ "/pointers/" (segment(&pointer)) } { "Exactly these bytes" } " · "
                a href={ "/api/v1/pointers/" (segment(&whole)) "/content" } { "The whole original" }
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_characters_are_not_cut() {
        assert_eq!(lines(b"a\nbc\nd", 2, 2), 2..5);
        assert_eq!(lines(b"a\nbc\nd", 3, 9), 5..6);
        assert_eq!(boundary("aé".as_bytes(), 2), 3);
        assert_eq!(boundary(b"ab", 9), 9);
    }
}
