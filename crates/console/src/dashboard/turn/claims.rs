//! One claim traced back: the claim, the result of the tool that it comes from, and the bytes that say it, marked where
//! they stand in the original.

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
use super::super::pointers::verbatim;
use super::read::{claims, results, text};
use super::tables::{call_status, linked};
use crate::api::{Path, Problem, blocking};

/// Bytes around the stretch that are shown.
const AROUND: usize = 600;

/// The bytes that say something, in what stands around them.
struct SourceRange {
    pointer: Pointer,
    /// Of the whole original.
    range: Range<usize>,
    bytes: usize,
    before: String,
    says: String,
    after: String,
}

/// A claim and everything that it stands on.
struct TracedClaim {
    claim: Claim,
    result: Option<ToolResult>,
    stretch: Option<SourceRange>,
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
    let mut traced = TracedClaim { claim, result: None, stretch: None };
    let Some(origin) = origin else { return Ok(Some(traced)) };
    if let Some(link) = origin.document.filter(|link| link.file.name() == "toolresults.md") {
        let all = results(&text(documents, &link.file)?, &link.file);
        traced.result = all.into_iter().find(|result| Some(result.block()) == link.block);
    }
    if let Some(pointer) = origin.bytes {
        traced.stretch = stretch(documents, pointer)?;
    }
    Ok(Some(traced))
}

/// The bytes of a pointer where they stand; none if they are no more, or not this user's.
fn stretch(documents: &UserDocuments, pointer: Pointer) -> Result<Option<SourceRange>, StoreError> {
    let original = match documents.store().pointers().resolve(&Pointer::whole(pointer.id.clone())) {
        Ok(original) => original,
        Err(
            StoreError::NotOurs { .. } | StoreError::UnknownPointer { .. } | StoreError::MissingBlob { .. },
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

/// The first place from `at` on that does not stand within a character.
fn boundary(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().take(3).take_while(|byte| (**byte & 0xC0) == 0x80).count()
}

fn whole(traced: &TracedClaim, turn: u32, block: &str) -> Markup {
    let claim = &traced.claim;
    html! {
        div.head {
            div {
                h1 { (name(&claim.claim)) }
                p { (name(block)) " of " a href={ "/turns/" (turn) "#claims" } { "turn " (turn) } }
            }
        }
        section.panel aria-labelledby="claim" {
            h2 #claim { "The claim" }
            dl.facts {
                div { dt { "Confidence" } dd { (claim.confidence) } }
                div { dt { "Source" } dd { (name(&claim.source)) } }
                div { dt { "Holds for" } dd { (claim.ttl) } }
                @if let Some(link) = claim.origin.as_ref().and_then(|origin| origin.document.as_ref()) {
                    div { dt { "Document" } dd { a href=(linked(link)) { (name(link.file.short())) } } }
                }
            }
        }
        @if let Some(result) = &traced.result { (call(result, claim)) }
        (bytes(traced.stretch.as_ref()))
    }
}

fn call(result: &ToolResult, claim: &Claim) -> Markup {
    let link = claim.origin.as_ref().and_then(|origin| origin.document.as_ref());
    html! {
        section.panel aria-labelledby="result" {
            h2 #result { "The result that says it" }
            p.mono { (name(&result.call)) }
            dl.facts {
                div { dt { "Status" } dd { (call_status(result.status)) } }
                div { dt { "Round" } dd { (result.iteration) } }
                div { dt { "Ended (UTC)" } dd { (when(result.at)) } }
                div { dt { "Bytes" } dd { (number(result.bytes)) } }
                @if let Some(link) = link {
                    div { dt { "Whole" } dd { a href=(linked(link)) { "result " (result.number) } } }
                }
            }
        }
    }
}

fn bytes(stretch: Option<&SourceRange>) -> Markup {
    let Some(stretch) = stretch else {
        return html! {
            section.panel aria-labelledby="bytes" {
                h2 #bytes { "The bytes" }
                p.muted { "No bytes are known for this claim, or they are kept no more." }
            }
        };
    };
    let pointer = stretch.pointer.to_string();
    let whole = Pointer::whole(stretch.pointer.id.clone()).to_string();
    // Only what stands first in a `pre` loses its line break.
    let inner = |text: &str| PreEscaped(verbatim(text).into_string().split_off(1));
    html! {
        section.panel aria-labelledby="bytes" {
            h2 #bytes { "The bytes" }
            p {
                "Bytes " (number(stretch.range.start as u64)) " to " (number(stretch.range.end as u64)) " of "
                (number(stretch.bytes as u64)) ", marked where they stand"
            }
            pre.payload tabindex="0" role="group" aria-label="The bytes in their place" dir="auto" {
                (verbatim(&stretch.before)) mark { (inner(&stretch.says)) } (inner(&stretch.after))
            }
            p {
                span.mono { (pointer) } " "
                button.quiet type="button" data-copy=(pointer) { "Copy" } " "
                a href={ "/pointers/" (segment(&pointer)) } { "Exactly these bytes" } " · "
                a href={ "/api/v1/pointers/" (segment(&whole)) "/content" } { "The whole original" }
            }
        }
    }
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
