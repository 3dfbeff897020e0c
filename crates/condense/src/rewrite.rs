//! Condensing with a model, without the model itself: which parts of a text it may rewrite, which spans its output
//! must repeat, and how the output is checked.
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
use larder_text::transcript;

/// The headings of a summarised conversation, in order.
pub const HISTORY_HEADINGS: [&str; 5] =
    ["## Task Summary", "## Key Decisions", "## Errors Resolved", "## Current State", "## Remaining Work"];
/// The heading that lists items with a status (R2-6.5), and the statuses.
const STATE: usize = 3;
const STATUSES: [&str; 3] = ["complete", "in progress", "not started"];
/// What stands under a heading with nothing to report.
const NOTHING: &str = "None.";
/// The share of the target, as one part in this many, that the long form of the header may take.
const HEADER_SHARE: usize = 8;
/// Numbers with fewer digits may just be list numbers.
const SALIENT_DIGITS: usize = 2;

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Its byte range.
    pub bytes: Range<usize>,
    /// Whether it is copied byte for byte; otherwise a model may rewrite it.
    pub verbatim: bool,
}

/// Divides a text into segments that tile it: those that are copied, and those that a model may rewrite.
///
/// In `context.md`, section 0, the newest section and every heading are copied (R0-23.3, R0-23.4); in an earlier
/// turn, section 0 and the headings.
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

/// Salient spans of `original` that are missing from the rewritten text, heaviest first. The numbers of messages are
/// none.
pub fn missing<'t>(original: &'t str, written: &str) -> Vec<&'t str> {
    let mut seen = HashSet::new();
    let mut spans = salience::scan(original, ErrorSense::Strict);
    spans.retain(|span| span.kind.is_salient() && !transcript::is_label(original, span.range.start));
    // The sort is stable: spans of one kind stay in document order.
    spans.sort_by(|a, b| b.kind.weight().total_cmp(&a.kind.weight()));
    let values = spans.into_iter().map(|span| original[span.range].trim());
    values.filter(|value| seen.insert(*value) && !written.contains(value)).collect()
}

/// The first value in `written` (a number, price, date, URL, path or id) that does not appear in `original`: a model
/// that rounds or invents one is not trusted.
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

/// Why a model's output was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RewriteError {
    /// It has more tokens than the target or the original.
    #[error("it is longer than the target")]
    TooLong,
    /// A pin or pointer is missing.
    #[error("it lost a pin or a pointer")]
    PinLost,
    /// The structure that readers rely on is broken.
    #[error("its structure is broken")]
    Unparsable,
    /// A line of the state of a conversation says neither complete, in progress nor not started (R2-6.5).
    #[error("a line under ## Current State has no status")]
    NoStatus,
}

/// The header before a model's output, with the pointer to the original.
pub fn header(text: &str, key: &PointerKey, counter: &Counter, target: usize) -> String {
    let id = key.mint(ContentHash::new(text.as_bytes()));
    let long = format!(
        "[Retold by a model. Original, {} lines: {id}. To read its lines x to y, append #Lx-y to the pointer.]\n",
        text.lines().count()
    );
    if counter.count(&long) <= target / HEADER_SHARE { long } else { format!("[Retold. Original: {id}]\n") }
}

/// Accepts a model's output for `request`, adding a header, if it keeps every guarantee: at most the tokens of the
/// target and the original, every pin and every Larder pointer present, structure intact.
///
/// # Errors
/// Which guarantee it violates.
pub fn accept(request: &CondenseRequest<'_>, words: &str, author: Author) -> Result<Condensed, RewriteError> {
    if request.content_type == ContentType::Chat && !has_history_headings(words) {
        return Err(RewriteError::Unparsable);
    }
    if request.content_type == ContentType::Chat && !states_have_status(words) {
        return Err(RewriteError::NoStatus);
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

/// Whether the five headings are on lines of their own, each once and in order.
fn has_history_headings(words: &str) -> bool {
    let headings: Vec<&str> =
        words.lines().map(str::trim_end).filter(|line| line.starts_with("## ")).collect();
    headings == HISTORY_HEADINGS
}

/// Whether every item of the current state has a status.
fn states_have_status(words: &str) -> bool {
    let Some(state) = HistorySections::of(words) else { return true };
    let has_status = |line: &&str| {
        let line = line.to_lowercase();
        STATUSES.iter().any(|status| line.contains(status))
    };
    state.0[STATE].iter().all(has_status)
}

/// Summaries under the five headings as one summary under them: nothing is said twice (C53). `None` if a part has other
/// headings.
pub fn merged_histories(parts: &[String]) -> Option<String> {
    let parts: Vec<HistorySections<'_>> =
        parts.iter().map(|part| HistorySections::of(part)).collect::<Option<_>>()?;
    let mut out = String::new();
    for (at, heading) in HISTORY_HEADINGS.into_iter().enumerate() {
        let mut seen = HashSet::new();
        let lines = parts.iter().flat_map(|part| &part.0[at]).filter(|line| seen.insert(line.trim()));
        out.extend([heading, "\n"]);
        let start = out.len();
        lines.for_each(|line| out.extend([*line, "\n"]));
        if out.len() == start {
            out.extend([NOTHING, "\n"]);
        }
        out.push('\n');
    }
    Some(out.trim_end().to_owned())
}

/// The summary with more lines at its end, or under the first of its headings if it has all of them: what is under the
/// others would be called a decision, resolved, done or left to do.
pub fn with_lines(words: &str, lines: &[&str]) -> String {
    let next = format!("\n{}", HISTORY_HEADINGS[1]);
    let place = HistorySections::of(words).and_then(|_| words.find(&next));
    let (before, after) = words.split_at(place.unwrap_or(words.len()));
    let mut out = before.trim_end().to_owned();
    lines.iter().for_each(|line| out.extend(["\n", line]));
    if !after.is_empty() {
        out.extend(["\n", after]);
    }
    out
}

/// The lines of a summarised conversation under each heading, without empty ones.
struct HistorySections<'w>([Vec<&'w str>; HISTORY_HEADINGS.len()]);

impl<'w> HistorySections<'w> {
    /// `None` unless the text has exactly the five headings, and nothing before them.
    fn of(words: &'w str) -> Option<Self> {
        if !has_history_headings(words) {
            return None;
        }
        let (mut sections, mut at) = (Self(Default::default()), None);
        for line in words.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
            match (HISTORY_HEADINGS.iter().position(|heading| *heading == line), at) {
                (Some(heading), _) => at = Some(heading),
                (None, Some(at)) if line.trim() != NOTHING => sections.0[at].push(line),
                (None, Some(_)) => {}
                (None, None) => return None,
            }
        }
        Some(sections)
    }
}

#[cfg(test)]
#[path = "rewrite_tests.rs"]
mod tests;
