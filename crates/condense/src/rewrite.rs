//! Condensing by a model, the part without the model: which stretches of a text it may rewrite, which spans its words
//! must repeat, and the check of what it wrote.
//!
//! Knows content types and spans; does not know recipes, models, or how a text too long for one call is divided.

use std::ops::Range;

use hashbrown::HashSet;

use crate::analysis::salience::{self, ErrorSense, SpanKind};
use crate::condensed::{Author, Condensed};
use crate::content_type::ContentType;
use crate::engine::draft::CondensedDraft;
use crate::engine::job::Job;
use crate::engine::verify::{DraftViolation, verified};
use crate::request::{CondenseRequest, KnownText};
use crate::types::condenser_for;
use larder_text::hash::ContentHash;
use larder_text::pointer::PointerKey;
use larder_text::sections::Sections;
use larder_text::tokens::Counter;

/// The headings of a summarised conversation, in order (R2-6.4).
pub const HISTORY_HEADINGS: [&str; 5] =
    ["## Task Summary", "## Key Decisions", "## Errors Resolved", "## Current State", "## Remaining Work"];
/// The share of the target, as one part in so many, that the long form of the header may take.
const HEADER_SHARE: usize = 8;
/// A number of fewer digits may be a list's own.
const SALIENT_DIGITS: usize = 2;

/// A stretch of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Where it appears, in bytes.
    pub bytes: Range<usize>,
    /// Whether it appears byte for byte; otherwise a model may rewrite it.
    pub verbatim: bool,
}

/// Divides a text into stretches that tile it: those that code copies, and the rest, which a model may rewrite (C24).
///
/// Of a `context.md` section 0, the newest section and every heading are copied (R0-23.3, R0-23.4); of an earlier
/// turn section 0 and the headings.
pub fn segments(text: &str, content_type: ContentType) -> Vec<Segment> {
    let keeps_newest = match content_type {
        ContentType::ContextDoc => true,
        ContentType::PriorTurn => false,
        _ => return vec![Segment { bytes: 0..text.len(), verbatim: false }],
    };
    let mut out: Vec<Segment> = Vec::new();
    let mut push = |bytes: Range<usize>, verbatim: bool| match out.last_mut() {
        _ if bytes.is_empty() => {}
        Some(last) if last.verbatim == verbatim => last.bytes.end = bytes.end,
        _ => out.push(Segment { bytes, verbatim }),
    };
    let sections = Sections::parse(text);
    push(0..sections.preamble.end, true);
    let last = sections.sections.len().checked_sub(1);
    for (at, section) in sections.sections.iter().enumerate() {
        let whole = !section.id.may_condense() || keeps_newest && Some(at) == last;
        push(section.range.start..section.body.start, true);
        push(section.body.start..section.range.end, whole);
    }
    out
}

/// Spans of `original` that matter and are missing in what was written of it, the weightiest first.
pub fn missing<'t>(original: &'t str, written: &str) -> Vec<&'t str> {
    let mut seen = HashSet::new();
    let mut spans = salience::scan(original, ErrorSense::Strict);
    spans.retain(|span| span.kind.is_salient());
    // Sorting is stable: spans of one kind stay in the order of the text.
    spans.sort_by(|a, b| b.kind.weight().total_cmp(&a.kind.weight()));
    let values = spans.into_iter().map(|span| original[span.range].trim());
    values.filter(|value| seen.insert(*value) && !written.contains(value)).collect()
}

/// The first value in `written` (a number, price, date, URL, path or id) that does not appear in `original`: a model
/// that rounds or invents one is not to be believed.
pub fn invented(original: &str, written: &str) -> Option<String> {
    let salient = |kind, value: &str| match kind {
        SpanKind::Error => false,
        SpanKind::Number => value.bytes().filter(u8::is_ascii_digit).count() >= SALIENT_DIGITS,
        _ => true,
    };
    salience::scan(written, ErrorSense::Strict)
        .into_iter()
        .map(|span| (span.kind, &written[span.range]))
        .find(|&(kind, value)| salient(kind, value) && !original.contains(value))
        .map(|(_, value)| value.to_owned())
}

/// Why a model's words were not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RewriteError {
    /// More tokens than the target, or than the original.
    #[error("it is longer than the target")]
    TooLong,
    /// A pin or pointer is missing.
    #[error("it lost a pin or a pointer")]
    PinLost,
    /// The structure that readers rely on is broken.
    #[error("its structure is broken")]
    Unparsable,
}

/// The header that appears before a model's words, and leads to the original.
pub fn header(text: &str, key: &PointerKey, counter: &Counter, target: usize) -> String {
    let id = key.mint(ContentHash::new(text.as_bytes()));
    let long = format!(
        "[Retold by a model. Original, {} lines: {id}. To read its lines x to y, append #Lx-y to the pointer.]\n",
        text.lines().count()
    );
    if counter.count(&long) <= target / HEADER_SHARE { long } else { format!("[Retold. Original: {id}]\n") }
}

/// Takes what a model wrote for `request`, with its header, if it keeps every guarantee: at most the target's tokens
/// and the original's, every pin and every pointer of ours there, structure whole.
///
/// # Errors
/// What it broke.
pub fn accept(request: &CondenseRequest<'_>, words: &str, author: Author) -> Result<Condensed, RewriteError> {
    if request.content_type == ContentType::Chat && !has_history_headings(words) {
        return Err(RewriteError::Unparsable);
    }
    let job = Job::new(request, KnownText::from_request(request));
    let text = format!("{}{words}", header(request.text, request.key, request.counter, request.target));
    let rewritten = std::iter::once(0..request.text.len()).collect();
    let draft = CondensedDraft { text, shown: Vec::new(), rewritten, gaps: Vec::new() };
    let condenser = condenser_for(request.content_type, request.text);
    match verified(&job, condenser, draft) {
        Ok(condensed) => Ok(Condensed { author: Some(author), ..condensed }),
        Err(DraftViolation::TooLong) => Err(RewriteError::TooLong),
        Err(DraftViolation::PinLost) => Err(RewriteError::PinLost),
        Err(DraftViolation::Untiled | DraftViolation::Unparsable) => Err(RewriteError::Unparsable),
    }
}

/// Whether the five headings appear on lines of their own, each once and in order.
fn has_history_headings(words: &str) -> bool {
    let headings: Vec<&str> =
        words.lines().map(str::trim_end).filter(|line| line.starts_with("## ")).collect();
    headings == HISTORY_HEADINGS
}

#[cfg(test)]
#[path = "rewrite_tests.rs"]
mod tests;
