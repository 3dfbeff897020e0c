//! Why each unit of a text is shown or not: read from the very selection that was made, never worked out beside it.
//!
//! Knows selections and drafts; decides nothing.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::frame::{Draft, Job};
use super::pins::SpanKind;
use super::score::{for_each_term, query_terms};
use super::select::Selection;
use super::units::{Piece, Tier};
use super::{Condensed, Gap};

/// From this weight on, place and structure speak for a unit.
const WEIGHTY: f32 = 1.5;
/// A unit that adds less than this share of what an average one adds repeats what is shown.
const REPEATED: f32 = 0.25;

/// A condensed text with the reasons for what it shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The condensed text.
    pub condensed: Condensed,
    /// What became of each unit, in order; together they are the original.
    pub units: Vec<UnitReason>,
    /// Tokens beyond the target that [`Explanation::further`] is about.
    pub more: usize,
    /// Bytes of the original that those tokens would let in.
    pub further: Vec<Range<usize>>,
}

/// What became of a unit, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnitReason {
    /// Its bytes in the original.
    pub bytes: Range<usize>,
    /// First and last line, from 1, that it touches.
    pub lines: (usize, usize),
    /// Whether it is in the text.
    pub fate: Fate,
    /// Why.
    pub reasons: Vec<Reason>,
    /// Words of the query that it holds, in lower case.
    pub terms: Vec<String>,
    /// Tokens it costs.
    pub tokens: usize,
    /// What it was worth when all was chosen, beside what is shown; none for types that tell in other words.
    pub score: Option<Score>,
}

/// What a unit's worth is made of.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// How well it answers the query, 0 to 1.
    pub relevance: f32,
    /// What each byte adds to what is shown; an average unit adds 1 to nothing.
    pub novelty: f32,
    /// What its place and structure count for; 1 is average.
    pub weight: f32,
    /// What it is worth in all, marks taken off; the greatest is taken first within a tier.
    pub rank: f32,
}

/// Whether a unit is in the condensed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// As it is.
    Shown,
    /// Its beginning, or parts of it.
    Cut,
    /// In other words.
    Told,
    /// Behind the pointer of a gap.
    LeftOut,
}

/// What speaks for a unit, or against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The whole text fits.
    Fits,
    /// Holds what the caller pinned, or a pointer of ours.
    Required,
    /// Holds a mark of an earlier condensation.
    EarlierMark,
    /// Goes before all others: the request, the newest turn, the section in force.
    First,
    /// Reports an error.
    ErrorLine,
    /// Holds a URL, a price, a date, a path or another telling detail.
    TellingDetail,
    /// Holds words of the query.
    Query,
    /// A heading, a signature, the beginning: place and structure speak for it.
    Structure,
    /// Something shown cannot stand without it.
    NeededByAnother,
    /// Says what nothing shown says.
    Novel,
    /// Says what is shown already.
    Repeats,
    /// Others were worth more for the room there is.
    NoRoom,
    /// Shorter than the mark that would stand for it.
    ShorterThanAMark,
}

/// The reasons of a selection that shows `shown`.
pub(super) fn of_selection(selection: &Selection<'_>, shown: &[Range<usize>]) -> Vec<UnitReason> {
    let words = query_words(selection.job);
    let mut needed = vec![false; selection.pieces.len()];
    for (piece, _) in selection.pieces.iter().zip(&selection.shown).filter(|(_, shown)| **shown) {
        piece.needs.into_iter().flatten().for_each(|need| needed[need] = true);
    }
    let details = Details::of(selection.job);
    let unit = |(index, piece): (usize, &Piece)| {
        let fate = fate(&piece.range, shown);
        let score = selection.score(index);
        let mut unit = unit(selection.job, piece.range.clone(), fate, &details, &words);
        if fate == Fate::LeftOut {
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

/// The reasons that can be read from a draft alone.
pub(super) fn of_draft(job: &Job<'_>, draft: &Draft) -> Vec<UnitReason> {
    let (words, details) = (query_words(job), Details::of(job));
    let shown = draft.shown.iter().map(|range| (range.clone(), Fate::Shown));
    let told = draft.told.iter().map(|range| (range.clone(), Fate::Told));
    let gaps = draft.gaps.iter().map(|gap| (gap.bytes.clone(), Fate::LeftOut));
    let mut all: Vec<(Range<usize>, Fate)> = shown.chain(told).chain(gaps).collect();
    all.sort_by_key(|(range, _)| range.start);
    let unit = |(range, fate): (Range<usize>, Fate)| {
        let mut unit = unit(job, range, fate, &details, &words);
        match fate {
            Fate::LeftOut => unit.reasons.push(Reason::NoRoom),
            _ if unit.reasons.is_empty() => unit.reasons.push(Reason::Structure),
            _ => {}
        }
        unit
    };
    all.into_iter().map(unit).collect()
}

/// The one unit of a text that fits.
pub(super) fn of_whole(job: &Job<'_>) -> Vec<UnitReason> {
    let all = 0..job.request.text.len();
    let unit = unit(job, all, Fate::Shown, &Details::of(job), &query_words(job));
    vec![UnitReason { reasons: vec![Reason::Fits], ..unit }]
}

/// What the first gaps hide and the second do not.
pub(super) fn beyond(gaps: &[Gap], larger: &[Gap]) -> Vec<Range<usize>> {
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

/// Where the spans that speak for a unit stand, each by start.
struct Details {
    errors: Vec<Range<usize>>,
    telling: Vec<Range<usize>>,
}

impl Details {
    fn of(job: &Job<'_>) -> Self {
        let (errors, telling): (Vec<_>, Vec<_>) =
            job.telling().into_iter().partition(|span| span.kind == SpanKind::Error);
        let ranges = |spans: Vec<&super::pins::Span>| spans.iter().map(|span| span.range.clone()).collect();
        Self { errors: ranges(errors), telling: ranges(telling) }
    }
}

/// What speaks for a stretch whatever chose it.
fn unit(
    job: &Job<'_>,
    range: Range<usize>,
    fate: Fate,
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
        (touches(&job.marks), Reason::EarlierMark),
        (touches(&job.required) && !touches(&job.marks), Reason::Required),
        (touches(&details.errors), Reason::ErrorLine),
        (touches(&details.telling), Reason::TellingDetail),
        (!terms.is_empty(), Reason::Query),
    ];
    UnitReason {
        lines: job.lines.touched(&range),
        fate,
        reasons: why.into_iter().filter(|(holds, _)| *holds).map(|(_, reason)| reason).collect(),
        terms,
        tokens: job.request.counter.count(text),
        score: None,
        bytes: range,
    }
}

/// Words of the query that count, each with the terms that it is matched by.
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

/// The fate of a unit of which only what is in `shown`, sorted, can be read.
fn fate(unit: &Range<usize>, shown: &[Range<usize>]) -> Fate {
    let at = shown.partition_point(|range| range.end <= unit.start);
    match shown.get(at) {
        Some(range) if range.start <= unit.start && unit.end <= range.end => Fate::Shown,
        Some(range) if range.start < unit.end => Fate::Cut,
        _ => Fate::LeftOut,
    }
}
