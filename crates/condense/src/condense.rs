//! Condenses a text: chooses the condenser of its type, verifies its draft, and falls back to condensing by lines.

use crate::condensed::{CondenseError, Condensed};
use crate::engine::condenser::Condenser;
use crate::engine::draft::CondensedDraft;
use crate::engine::job::Job;
use crate::engine::{explain as reasons, verify};
use crate::explanation::{Explanation, UnitReason};
use crate::request::{CondenseRequest, KnownText, ReaderView};
use crate::types::{PLAIN, condenser_for};
use larder_text::pointer::Pointer;
use larder_text::terminal::PlainText;

/// Condenses a text to its target; a text that already meets the target is returned unchanged.
///
/// The result has at most `target` tokens, contains every pin and each of Larder's pointers in the text, and has a
/// pointer to everything it omits. It depends only on the request.
///
/// # Errors
/// [`CondenseError::PinAbsent`] if the text does not contain a pin; [`CondenseError::PinsExceedTarget`] if pins,
/// pointers and gap markers need more than the target.
pub fn condense(request: &CondenseRequest<'_>) -> Result<Condensed, CondenseError> {
    condense_in_view(request, ReaderView::default())
}

/// [`condense`] for a reader with prior knowledge. If parts of the text have been seen before, the rest is condensed
/// by lines, whatever its type.
///
/// # Errors
/// As [`condense`].
pub fn condense_in_view(
    request: &CondenseRequest<'_>,
    view: ReaderView<'_>,
) -> Result<Condensed, CondenseError> {
    run(request, view, false).map(|(condensed, _)| condensed)
}

/// [`condense`] with the reasons why each unit is shown or omitted, and with what `more` tokens beyond the target
/// would add, as determined by condensing again to the larger target.
///
/// # Errors
/// As [`condense`].
pub fn explain(request: &CondenseRequest<'_>, more: usize) -> Result<Explanation, CondenseError> {
    let (condensed, units) = run(request, ReaderView::default(), true)?;
    let larger = CondenseRequest { target: request.target.saturating_add(more), ..*request };
    let further = reasons::newly_shown(&condensed.gaps, &condense(&larger)?.gaps);
    Ok(Explanation { condensed, units, more, further })
}

/// The condensed text, with reasons if `explained`.
fn run(
    request: &CondenseRequest<'_>,
    view: ReaderView<'_>,
    explained: bool,
) -> Result<(Condensed, Vec<UnitReason>), CondenseError> {
    if let Some(pin) = request.pins.iter().find(|pin| !request.text.contains(pin.as_str())) {
        return Err(CondenseError::PinAbsent { pin: pin.clone() });
    }
    let known = view.known.unwrap_or_else(|| KnownText::from_request(request));
    let job = Job::new(request, known).in_view(view);
    if known.tokens <= request.target && view.seen.is_empty() {
        let units = if explained { reasons::of_whole(&job) } else { Vec::new() };
        return Ok((unchanged(&job), units));
    }
    let done = match plain_text(request) {
        Some(plain) => {
            let shorter = CondenseRequest { text: &plain.text, ..*request };
            let seen: Vec<_> = view.seen.iter().map(|range| plain.in_plain(range)).collect();
            let job = Job::new(&shorter, known).of_plain(&plain).in_view(ReaderView { seen: &seen, ..view });
            shortened_or_without_markers(&job, explained).map(|(condensed, mut units)| {
                for unit in &mut units {
                    unit.bytes = job.in_original(unit.bytes.start)..job.in_original(unit.bytes.end);
                }
                // Codes at the very end stand after the last unit.
                units.last_mut().into_iter().for_each(|last| last.bytes.end = request.text.len());
                (condensed, units)
            })
        }
        None => shortened_or_without_markers(&job, explained),
    };
    // What would fit may fail verification: only what was tried is promised.
    if let Err(CondenseError::PinsExceedTarget { needed, target }) = done
        && (target + 1..known.tokens).contains(&needed)
        && let Err(CondenseError::PinsExceedTarget { needed, .. }) =
            run(&CondenseRequest { target: needed, ..*request }, view, false)
    {
        return Err(CondenseError::PinsExceedTarget { needed, target });
    }
    done
}

/// The text without terminal codes: it is clearer, and rules recognise in it what they know. `None` if it has none, nothing
/// else, or if a pin or one of Larder's pointers would not be the same.
fn plain_text(request: &CondenseRequest<'_>) -> Option<PlainText> {
    let plain = PlainText::of(request.text)?;
    let pointers = |text| request.key.find_in(text).into_iter().map(|(_, pointer)| pointer);
    let holds = !plain.text.trim().is_empty()
        && request.pins.iter().all(|pin| plain.text.contains(pin.as_str()))
        && pointers(request.text).eq(pointers(&plain.text));
    holds.then_some(plain)
}

fn shortened_or_without_markers(
    job: &Job<'_>,
    explained: bool,
) -> Result<(Condensed, Vec<UnitReason>), CondenseError> {
    match shortened(job, explained) {
        Err(CondenseError::PinsExceedTarget { .. }) if !job.markers.is_empty() => {
            shortened(&job.without_markers(), explained)
        }
        other => other,
    }
}

/// The draft of the type's condenser if it passes verification, otherwise that of condensing by lines.
fn shortened(job: &Job<'_>, explained: bool) -> Result<(Condensed, Vec<UnitReason>), CondenseError> {
    let attempt = |condenser: &'static dyn Condenser| {
        let (draft, units) =
            if explained { with_reasons(job, condenser)? } else { (condenser.condense(job)?, Vec::new()) };
        Ok(verify::verified(job, condenser, draft).map(|condensed| (condensed, units)))
    };
    let condenser = if job.view.seen.is_empty() {
        condenser_for(job.request.content_type, job.request.text)
    } else {
        PLAIN
    };
    if let Ok(verified) = attempt(condenser)? {
        return Ok(verified);
    }
    attempt(PLAIN)?.map_err(|_| CondenseError::PinsExceedTarget {
        needed: job.original_tokens,
        target: job.request.target,
    })
}

fn with_reasons(
    job: &Job<'_>,
    condenser: &dyn Condenser,
) -> Result<(CondensedDraft, Vec<UnitReason>), CondenseError> {
    let (draft, units) = condenser.condense_explained(job)?;
    let units = units.unwrap_or_else(|| reasons::of_draft(job, &draft));
    Ok((draft, units))
}

/// The smallest target at which one item of every kind is still shown: a line of each log template, the name of each
/// file in a diff. `None` for types without such kinds. Ignores the request's target.
pub fn essential(request: &CondenseRequest<'_>) -> Option<usize> {
    let known = KnownText::from_request(request);
    let essential = |job: &Job<'_>| condenser_for(request.content_type, job.request.text).essential(job);
    let needed = match plain_text(request) {
        Some(plain) => {
            let request = CondenseRequest { text: &plain.text, ..*request };
            essential(&Job::new(&request, known).of_plain(&plain))
        }
        None => essential(&Job::new(request, known)),
    };
    Some(needed?.min(known.tokens))
}

/// The result for an original that meets the target.
pub(crate) fn unchanged(job: &Job<'_>) -> Condensed {
    let text = job.request.text;
    Condensed {
        text: text.to_owned(),
        tokens: job.original_tokens,
        original_tokens: job.original_tokens,
        content_type: job.request.content_type,
        pointer: Pointer::whole(job.id.clone()),
        gaps: Vec::new(),
        probes: job.probes(std::slice::from_ref(&(0..text.len())), text),
        author: None,
    }
}
