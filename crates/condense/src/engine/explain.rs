//! The reasons why units are shown or omitted, read from the actual selection rather than computed separately.
//!
//! Knows selections and drafts; decides nothing.

use std::ops::Range;

use crate::analysis::salience::{SalientSpan, SpanKind};
use crate::condensed::Gap;
use crate::engine::draft::CondensedDraft;
use crate::engine::job::Job;
use crate::engine::select::PieceSelection;
use crate::engine::units::{TextPiece, Tier};
use crate::explanation::{Reason, UnitOutcome, UnitReason};
use larder_text::query::query_terms;
use larder_text::words::for_each_term;

/// From this weight on, position and structure are given as a reason.
const WEIGHTY: f32 = 1.5;
/// A unit that adds less than this share of the average repeats text already shown.
const REPEATED: f32 = 0.25;

/// The reasons for a selection that shows `shown`.
pub(crate) fn of_selection(selection: &PieceSelection<'_>, shown: &[Range<usize>]) -> Vec<UnitReason> {
    let words = query_words(selection.job);
    let mut needed = vec![false; selection.pieces.len()];
    for (piece, _) in selection.pieces.iter().zip(&selection.shown).filter(|(_, shown)| **shown) {
        piece.needs.into_iter().flatten().for_each(|need| needed[need] = true);
    }
    let details = Details::of(selection.job);
    let unit = |(index, piece): (usize, &TextPiece)| {
        let outcome = outcome(&piece.range, shown);
        let score = selection.score(index);
        let mut unit = unit(selection.job, piece.range.clone(), outcome, &details, &words);
        if outcome == UnitOutcome::LeftOut {
            unit.reasons.push(if score.novelty < REPEATED { Reason::Repeats } else { Reason::NoRoom });
        } else {
            let chosen = selection.shown[index] || selection.partial.contains_key(&index);
            let why = [
                (piece.tier == Tier::First, Reason::First),
                (score.weight >= WEIGHTY, Reason::Structure),
                (needed[index], Reason::NeededByAnother),
                (!chosen, Reason::ShorterThanAMark),
            ];
            unit.reasons.extend(why.into_iter().filter(|(holds, _)| *holds).map(|(_, reason)| reason));
            if unit.reasons.is_empty() {
                unit.reasons.push(Reason::Novel);
            }
        }
        UnitReason { score: Some(score), ..unit }
    };
    selection.pieces.iter().enumerate().map(unit).collect()
}

/// The reasons that can be derived from a draft alone.
pub(crate) fn of_draft(job: &Job<'_>, draft: &CondensedDraft) -> Vec<UnitReason> {
    let (words, details) = (query_words(job), Details::of(job));
    let shown = draft.shown.iter().map(|range| (range.clone(), UnitOutcome::Shown));
    let rewritten = draft.rewritten.iter().map(|range| (range.clone(), UnitOutcome::Rewritten));
    let gaps = draft.gaps.iter().map(|gap| (gap.bytes.clone(), UnitOutcome::LeftOut));
    let mut all: Vec<(Range<usize>, UnitOutcome)> = shown.chain(rewritten).chain(gaps).collect();
    all.sort_by_key(|(range, _)| range.start);
    let unit = |(range, outcome): (Range<usize>, UnitOutcome)| {
        let mut unit = unit(job, range, outcome, &details, &words);
        match outcome {
            UnitOutcome::LeftOut => unit.reasons.push(Reason::NoRoom),
            _ if unit.reasons.is_empty() => unit.reasons.push(Reason::Structure),
            _ => {}
        }
        unit
    };
    all.into_iter().map(unit).collect()
}

/// The single unit of a text that fits.
pub(crate) fn of_whole(job: &Job<'_>) -> Vec<UnitReason> {
    let all = 0..job.request.text.len();
    let unit = unit(job, all, UnitOutcome::Shown, &Details::of(job), &query_words(job));
    vec![UnitReason { reasons: vec![Reason::Fits], ..unit }]
}

/// What the first gaps hide and the second do not.
pub(crate) fn newly_shown(gaps: &[Gap], larger: &[Gap]) -> Vec<Range<usize>> {
    let mut further = Vec::new();
    let mut next = 0;
    for gap in gaps {
        let mut at = gap.bytes.start;
        while larger.get(next).is_some_and(|hidden| hidden.bytes.end <= at) {
            next += 1;
        }
        for hidden in larger[next..].iter().take_while(|hidden| hidden.bytes.start < gap.bytes.end) {
            if hidden.bytes.start > at {
                further.push(at..hidden.bytes.start);
            }
            at = at.max(hidden.bytes.end);
        }
        if at < gap.bytes.end {
            further.push(at..gap.bytes.end);
        }
    }
    further
}

/// The spans that support a unit, sorted by start.
struct Details {
    errors: Vec<Range<usize>>,
    salient: Vec<Range<usize>>,
}

impl Details {
    fn of(job: &Job<'_>) -> Self {
        let (errors, salient): (Vec<_>, Vec<_>) =
            job.salient().into_iter().partition(|span| span.kind == SpanKind::Error);
        let ranges = |spans: Vec<&SalientSpan>| spans.iter().map(|span| span.range.clone()).collect();
        Self { errors: ranges(errors), salient: ranges(salient) }
    }
}

/// The reasons for showing a range that apply to every condenser.
fn unit(
    job: &Job<'_>,
    range: Range<usize>,
    outcome: UnitOutcome,
    details: &Details,
    words: &[(String, Vec<u64>)],
) -> UnitReason {
    let text = &job.request.text[range.clone()];
    let mut terms = Vec::new();
    if !words.is_empty() {
        let mut held = hashbrown::HashSet::new();
        for_each_term(text, |term| {
            held.insert(term);
        });
        let holds = |(_, hashes): &&(String, Vec<u64>)| hashes.iter().any(|hash| held.contains(hash));
        terms = words.iter().filter(holds).map(|(word, _)| word.clone()).collect();
    }
    let touches = |ranges: &[Range<usize>]| touches(ranges, &range);
    let why = [
        (touches(&job.markers), Reason::PriorMarker),
        (touches(&job.required) && !touches(&job.markers), Reason::Required),
        (touches(&details.errors), Reason::ErrorLine),
        (touches(&details.salient), Reason::SalientDetail),
        (!terms.is_empty(), Reason::Query),
    ];
    UnitReason {
        lines: job.lines.touched(&range),
        outcome,
        reasons: why.into_iter().filter(|(holds, _)| *holds).map(|(_, reason)| reason).collect(),
        terms,
        tokens: job.request.counter.count(text),
        score: None,
        bytes: range,
    }
}

/// The significant words of the query, each with the terms that match it.
fn query_words(job: &Job<'_>) -> Vec<(String, Vec<u64>)> {
    let query = job.request.query.unwrap_or_default();
    let counted = query_terms(query);
    let mut words: Vec<(String, Vec<u64>)> = Vec::new();
    for word in query.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let mut hashes = Vec::new();
        for_each_term(word, |hash| {
            if counted.binary_search(&hash).is_ok() {
                hashes.push(hash);
            }
        });
        let word = word.to_lowercase();
        if !hashes.is_empty() && words.iter().all(|(known, _)| *known != word) {
            words.push((word, hashes));
        }
    }
    words
}

fn touches(ranges: &[Range<usize>], unit: &Range<usize>) -> bool {
    let at = ranges.partition_point(|range| range.end <= unit.start);
    ranges.get(at).is_some_and(|range| range.start < unit.end)
}

/// The outcome of a unit, given the sorted ranges `shown`.
fn outcome(unit: &Range<usize>, shown: &[Range<usize>]) -> UnitOutcome {
    let at = shown.partition_point(|range| range.end <= unit.start);
    match shown.get(at) {
        Some(range) if range.start <= unit.start && unit.end <= range.end => UnitOutcome::Shown,
        Some(range) if range.start < unit.end => UnitOutcome::Cut,
        _ => UnitOutcome::LeftOut,
    }
}
