//! Condenses by showing a subset of the original, with the clearest header and the coarsest division in which
//! everything required fits, and salient spans if possible.
//!
//! Knows the order of compromises; does not know content types.

use std::ops::Range;

use crate::analysis::relevance::Scores;
use crate::analysis::salience::SalientSpan;
use crate::condensed::{CondenseError, Gap};
use crate::engine::condenser::{Condenser, Divide};
use crate::engine::draft::{CondensedDraft, ExtractionOptions};
use crate::engine::explain;
use crate::engine::fill::fill;
use crate::engine::job::Job;
use crate::engine::render::{Header, Renderer};
use crate::engine::select::PieceSelection;
use crate::engine::units::{Grain, TextPiece, Tier, refine};
use crate::explanation::UnitReason;

/// Maximum share of the target, in per cent, for units with salient spans before only the spans themselves are kept:
/// with a query, most of the space belongs to its answers.
const SHARE_OF_SALIENT: usize = 60;
const SHARE_WITH_QUERY: usize = 35;
/// Maximum corrections of the estimated size.
const MAX_CORRECTIONS: usize = 4;
/// Fewer unused tokens are left to filling.
const WORTH_CORRECTING: usize = 48;

/// A condenser whose output is a subset of the original's bytes with marked gaps.
pub(crate) struct Extractive<D>(pub(crate) D);

impl<D: Divide> Condenser for Extractive<D> {
    fn condense(&self, job: &Job<'_>) -> Result<CondensedDraft, CondenseError> {
        extract(job, &self.0.units(job), &self.0.options(job), None)
    }

    fn condense_explained(
        &self,
        job: &Job<'_>,
    ) -> Result<(CondensedDraft, Option<Vec<UnitReason>>), CondenseError> {
        let mut reasons = Vec::new();
        let options = self.0.options(job);
        let draft = extract(job, &self.0.units(job), &options, Some(&mut reasons))?;
        Ok((draft, Some(reasons)))
    }

    fn parses(&self, text: &str) -> bool {
        self.0.parses(text)
    }
}

/// The best subset of `units` that meets the target; fills `reasons`, if given, with why each unit is shown or
/// omitted.
///
/// # Errors
/// If the required ranges, with the shortest markers, exceed the target.
pub(crate) fn extract(
    job: &Job<'_>,
    units: &[TextPiece],
    options: &ExtractionOptions,
    mut reasons: Option<&mut Vec<UnitReason>>,
) -> Result<CondensedDraft, CondenseError> {
    let target = job.request.target;
    let ranges: Vec<_> = units.iter().map(|unit| unit.range.clone()).collect();
    let scores = Scores::new(job.request.text, &ranges, job.request.query);
    let salient = job.salient();
    let mut needed = job.original_tokens;
    for &header in Header::ladder(job) {
        let renderer = Renderer::new(job, header).with_options(options);
        let dear = job.request.counter.count(&renderer.header()) > target / header.share();
        if dear && header != Header::Bare {
            continue;
        }
        let whole_up_to = options.whole_up_to;
        let first: &[&SalientSpan] = if options.salient_first { &salient } else { &[] };
        let attempt = HeaderAttempt {
            job,
            units,
            scores: &scores,
            salient: &salient,
            first,
            renderer: &renderer,
            whole_up_to,
        };
        match attempt.run(&mut reasons) {
            Ok(draft) => return Ok(draft),
            Err(more) => needed = more.min(job.original_tokens),
        }
    }
    Err(CondenseError::PinsExceedTarget { needed, target })
}

/// An attempt with one form of the header.
struct HeaderAttempt<'a> {
    job: &'a Job<'a>,
    units: &'a [TextPiece],
    scores: &'a Scores,
    salient: &'a [&'a SalientSpan],
    /// The spans that precede all text without any.
    first: &'a [&'a SalientSpan],
    renderer: &'a Renderer<'a>,
    /// See [`ExtractionOptions::whole_up_to`].
    whole_up_to: Option<usize>,
}

impl HeaderAttempt<'_> {
    /// Returns the draft, or the minimum tokens that the required ranges need.
    fn run(&self, reasons: &mut Option<&mut Vec<UnitReason>>) -> Result<CondensedDraft, usize> {
        let mut needed = usize::MAX;
        let mut legal: Vec<(Vec<TextPiece>, Option<usize>)> = Vec::new();
        // Every salient span takes at least a token.
        let may_fit = self.first.len() <= self.job.request.target;
        let undivided = self.first.is_empty() && self.job.required.is_empty();
        for grain in Grain::LADDER {
            if self.whole_up_to.is_some() && grain > Grain::Clause && !legal.is_empty() {
                break;
            }
            let pieces = self.pieces(grain);
            let mut selection = self.selection(&pieces);
            let required = selection.tokens();
            needed = needed.min(required);
            if required <= self.job.request.target {
                let salient = if may_fit { selection.tokens_for_all(Tier::Salient) } else { None };
                legal.push((pieces, salient));
                if !may_fit {
                    break;
                }
            }
            if undivided {
                break;
            }
        }
        // Use the coarsest division in which all salient spans leave room for the rest, otherwise any in which they
        // fit.
        let share = if self.job.request.query.is_some() { SHARE_WITH_QUERY } else { SHARE_OF_SALIENT };
        let roomy = legal.iter().filter(|(_, tokens)| {
            tokens.is_some_and(|n| n <= self.job.request.target.saturating_mul(share) / 100)
        });
        // With a query, salient spans over their share compete with its answers.
        let unasked = self.job.request.query.is_none();
        let tight = legal.iter().rev().filter(|(_, tokens)| unasked && tokens.is_some());
        for (pieces, _) in roomy.chain(tight) {
            let mut selection = self.selection(pieces);
            choose(&mut selection);
            if selection.shows_all(Tier::Salient) {
                return Ok(self.draft(selection, reasons));
            }
        }
        let (pieces, _) = legal.first().ok_or(needed)?;
        let mut selection = self.selection(pieces);
        selection.crowd(self.job.request.target.saturating_mul(share) / 100);
        choose(&mut selection);
        Ok(self.draft(selection, reasons))
    }

    fn pieces(&self, grain: Grain) -> Vec<TextPiece> {
        let job = self.job;
        refine(
            job.request.text,
            self.units,
            &job.required,
            self.first,
            job.view.seen,
            (grain, self.whole_up_to),
        )
    }

    fn selection<'s>(&'s self, pieces: &'s [TextPiece]) -> PieceSelection<'s> {
        PieceSelection::new(self.job, pieces, self.scores, self.renderer, self.salient)
    }

    fn draft(
        &self,
        mut selection: PieceSelection<'_>,
        reasons: &mut Option<&mut Vec<UnitReason>>,
    ) -> CondensedDraft {
        fill(&mut selection);
        let shown = selection.ranges();
        if let Some(reasons) = reasons {
            **reasons = explain::of_selection(&selection, &shown);
        }
        let (text, gaps) = (self.renderer.text(&shown), self.renderer.gaps(&shown));
        match self.job.source_map {
            Some(_) => CondensedDraft {
                text,
                shown: Vec::new(),
                rewritten: between(&gaps, self.job.lines.text_len()),
                gaps,
            },
            None => CondensedDraft { text, shown, rewritten: Vec::new(), gaps },
        }
    }
}

/// The parts of `len` bytes that are not in a gap.
fn between(gaps: &[Gap], len: usize) -> Vec<Range<usize>> {
    let starts = std::iter::once(0).chain(gaps.iter().map(|gap| gap.bytes.end));
    let ends = gaps.iter().map(|gap| gap.bytes.start).chain(std::iter::once(len));
    starts.zip(ends).filter(|(start, end)| start < end).map(|(start, end)| start..end).collect()
}

/// Chooses units, corrects the estimated size by the exact count, and continues while there is room.
fn choose(selection: &mut PieceSelection<'_>) {
    let target = selection.job.request.target;
    for _ in 0..MAX_CORRECTIONS {
        let any = selection.choose();
        let spent = trim(selection);
        if !any || target.saturating_sub(spent) < WORTH_CORRECTING {
            return;
        }
        selection.set_spent(spent);
    }
}

/// Undoes steps until the exact count is within the target; returns the count.
fn trim(selection: &mut PieceSelection<'_>) -> usize {
    loop {
        let tokens = selection.tokens();
        let over = tokens.saturating_sub(selection.job.request.target);
        if over == 0 || !selection.take_back(over) {
            return tokens;
        }
    }
}

#[cfg(test)]
#[path = "extractive_tests.rs"]
mod tests;
