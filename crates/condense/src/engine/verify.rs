//! The check that every draft must pass: size, pins, tiling, structure. Nothing is returned unchecked.
//!
//! Knows drafts and jobs; does not know how a draft was made.

use std::ops::Range;

use crate::condensed::{Condensed, Gap};
use crate::engine::condenser::Condenser;
use crate::engine::draft::CondensedDraft;
use crate::engine::job::{Job, contains};
use larder_text::pointer::Pointer;

/// The guarantee that a draft violates. Only a bug violates one; a simpler condenser then takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DraftViolation {
    TooLong,
    PinLost,
    Untiled,
    Unparsable,
}

/// Counts a draft's tokens and checks every guarantee.
pub(crate) fn verified(
    job: &Job<'_>,
    condenser: &dyn Condenser,
    draft: CondensedDraft,
) -> Result<Condensed, DraftViolation> {
    let request = job.request;
    let tokens = request.counter.count(&draft.text);
    if tokens > request.target || tokens > job.original_tokens {
        return Err(DraftViolation::TooLong);
    }
    let stands = |range: &Range<usize>| {
        contains(&draft.shown, range) || draft.text.contains(&request.text[range.clone()])
    };
    let pinned = request.pins.iter().all(|pin| draft.text.contains(pin.as_str()));
    if !pinned || !job.required.iter().all(stands) {
        return Err(DraftViolation::PinLost);
    }
    if !tiles(&draft, request.text.len()) {
        return Err(DraftViolation::Untiled);
    }
    if condenser.parses(request.text) && !condenser.parses(&draft.text) {
        return Err(DraftViolation::Unparsable);
    }
    let in_original =
        |gap: Gap| Gap { bytes: job.in_original(gap.bytes.start)..job.in_original(gap.bytes.end), ..gap };
    Ok(Condensed {
        tokens,
        original_tokens: job.original_tokens,
        content_type: request.content_type,
        pointer: Pointer::whole(job.id.clone()),
        probes: job.probes(&draft.shown, &draft.text),
        gaps: draft.gaps.into_iter().map(in_original).collect(),
        text: draft.text,
        author: None,
    })
}

fn tiles(draft: &CondensedDraft, len: usize) -> bool {
    let gaps = draft.gaps.iter().map(|gap| &gap.bytes);
    let mut all: Vec<&Range<usize>> = draft.shown.iter().chain(&draft.rewritten).chain(gaps).collect();
    all.sort_by_key(|range| range.start);
    let mut at = 0;
    all.into_iter().all(|range| range.start == std::mem::replace(&mut at, range.end)) && at == len
}

/// Checks that what a condenser drafts for a text larger than its target passes; the plain condenser, which takes over
/// otherwise, would hide a mistake.
#[cfg(test)]
pub(crate) fn check_draft(
    condenser: &dyn Condenser,
    content_type: crate::content_type::ContentType,
    text: &str,
    target: usize,
) {
    let counter = larder_text::tokens::Counter::o200k();
    let key = larder_text::pointer::PointerKey::new([7; 32]);
    let request = crate::request::CondenseRequest {
        text,
        content_type,
        target,
        query: None,
        pins: &[],
        counter: &counter,
        key: &key,
    };
    let job = Job::new(&request, crate::request::KnownText::from_request(&request));
    if counter.count(text) > target
        && let Ok(draft) = condenser.condense(&job)
    {
        let checked = verified(&job, condenser, draft);
        assert!(checked.is_ok(), "{checked:?}");
    }
}
