//! Web pages: the readable text of their main content, preceded by what the page says about itself.
//!
//! Coordinates the parts; further shortening is left to the shared engine.

mod capture;
mod facts;
mod linked_data;
mod main_text;
mod outline;
mod rewrite;
mod trim;

pub use self::capture::{PageText, WebPage, web_page};
use self::facts::PageFacts;
use self::rewrite::{Readable, ReadablePage};
use crate::condensed::CondenseError;
use crate::engine::condenser::Condenser;
use crate::engine::draft::{CondensedDraft, ExtractionOptions};
use crate::engine::extractive::extract;
use crate::engine::job::Job;
use crate::engine::units::TextPiece;
use crate::request::CondenseRequest;
use crate::types::markdown;
use larder_text::elements;
use larder_text::markup::Token;
use larder_text::table_spans;

/// The condenser of HTML.
pub(crate) const CONDENSER: &dyn Condenser = &Html;

/// How many bytes may precede the start of a page.
const PROLOGUE: usize = 2_048;
/// The weight of the line of facts.
const FACTS: f32 = 6.0;

struct Html;

/// Whether `text` starts like a page, optionally after an XML declaration and comments.
pub(crate) fn looks_like(text: &str) -> bool {
    let head = &text.as_bytes()[..text.floor_char_boundary(PROLOGUE.min(text.len()))];
    let head = head.strip_prefix("\u{feff}".as_bytes()).unwrap_or(head).trim_ascii_start();
    let begins =
        |head: &[u8], with: &[u8]| head.get(..with.len()).is_some_and(|b| b.eq_ignore_ascii_case(with));
    let page =
        |head: &[u8]| begins(head, b"<!doctype html") || begins(head, b"<html>") || begins(head, b"<html ");
    if begins(head, b"<?xml") || begins(head, b"<!--") {
        return memchr::memchr_iter(b'<', head).any(|at| page(&head[at..]));
    }
    page(head)
}

impl Condenser for Html {
    fn condense(&self, job: &Job<'_>) -> Result<CondensedDraft, CondenseError> {
        let page = job.request.text;
        let stand = |text: &str| job.required.iter().all(|range| text.contains(&page[range.clone()]));
        let first = readable(page, &[]);
        let first = if stand(&first.text) { Some(shorten(job, &first)) } else { None };
        match first {
            Some(Ok(draft)) if stand(&draft.text) => Ok(draft),
            // A required range may be markup, or have a marker in the middle.
            first => shorten(job, &readable(page, &job.required)).map_err(|error| match first {
                Some(Err(other)) => larger(error, other),
                _ => error,
            }),
        }
    }
}

/// The error that needs the larger target.
fn larger(one: CondenseError, other: CondenseError) -> CondenseError {
    let needed = |error: &CondenseError| match error {
        CondenseError::PinsExceedTarget { needed, .. } => *needed,
        CondenseError::PinAbsent { .. } => usize::MAX,
    };
    if needed(&one) >= needed(&other) { one } else { other }
}

/// The readable text, made to meet the target.
fn shorten(job: &Job<'_>, readable: &Readable) -> Result<CondensedDraft, CondenseError> {
    // Ranges that must be shown together are searched for together.
    let pins: Vec<String> =
        job.required.iter().map(|range| job.request.text[range.clone()].to_owned()).collect();
    let request = CondenseRequest { text: &readable.text, pins: &pins, ..*job.request };
    extract(
        &Job::for_rewritten(job, &request, &readable.source_map),
        &units(readable),
        &ExtractionOptions::default(),
        None,
    )
}

/// The readable text of `page`; the ranges in `verbatim` are copied unchanged.
fn readable(page: &str, verbatim: &[std::ops::Range<usize>]) -> Readable {
    let tokens = elements::tokens(page);
    let outline = outline::outline(page, &tokens, table_spans::columns(page, &tokens));
    let kept = main_content(page, &tokens, &outline);
    let facts = PageFacts::of(page, &tokens);
    ReadablePage { page, tokens: &tokens, outline: &outline, kept: &kept, facts: &facts }.readable(verbatim)
}

/// Whether each run of the page is main content.
fn main_content(page: &str, tokens: &[Token], outline: &outline::PageOutline) -> Vec<bool> {
    let mut kept = main_text::main_text(page, tokens, outline);
    trim::trim(page, outline, &mut kept);
    kept
}

fn units(readable: &Readable) -> Vec<TextPiece> {
    let text = &readable.text;
    let mut pieces = Vec::new();
    if readable.facts > 0 {
        pieces.push(TextPiece { divisible: false, ..TextPiece::plain(0..readable.facts, FACTS) });
    }
    if readable.facts < text.len() {
        markdown::divide(text, readable.facts..text.len(), &mut pieces);
    }
    pieces
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
