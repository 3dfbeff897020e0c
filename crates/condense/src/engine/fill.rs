//! Fills up the target: what whole pieces leave unused goes to the beginnings of others, cut between words, or within
//! a word if no further word fits and too much of a small target would stay unused.
//!
//! Knows the selection; every step is checked against the exact count, so the target is never exceeded.

use std::ops::Range;

use crate::engine::job::Job;
use crate::engine::select::PieceSelection;
use crate::engine::units::Tier;

/// Tokens that may remain unused.
const SLACK: usize = 2;
/// Maximum number of filling steps; each counts the whole result once.
const MAX_STEPS: usize = 48;
/// Attempts to shorten a piece after the exact count exceeded the estimate.
const MAX_CUTS: usize = 6;

/// From this target on, at most one part in [`UNUSED`] remains unused if there is anything left to show.
const PROMISED_FROM: usize = 200;
const UNUSED: usize = 50;

/// Shows parts of further pieces until at most [`SLACK`] tokens are unused or nothing more can be shown.
pub(crate) fn fill(selection: &mut PieceSelection<'_>) {
    let target = selection.job.request.target;
    let tokens = fill_by(selection, |job, range, room| job.cut_at(range, room));
    if target >= PROMISED_FROM && target.saturating_sub(tokens) * UNUSED > target {
        fill_by(selection, |job, range, room| job.cut_within(range, room));
    }
}

/// Returns the end of the longest beginning of a range that takes at most the given number of tokens.
type Cut = fn(&Job<'_>, &Range<usize>, usize) -> Option<usize>;

/// Fills with beginnings cut by `cut`; returns the exact count.
fn fill_by(selection: &mut PieceSelection<'_>, cut: Cut) -> usize {
    let target = selection.job.request.target;
    let mut tokens = selection.tokens();
    let mut dead = vec![false; selection.pieces.len()];
    for _ in 0..MAX_STEPS {
        let free = target.saturating_sub(tokens);
        if free <= SLACK {
            break;
        }
        let Some(piece) = best_to_extend(selection, &dead, free) else { break };
        match extend(selection, piece, free, cut) {
            Some(now) => tokens = now,
            None => dead[piece] = true,
        }
    }
    tokens
}

/// The piece to continue with: one that follows shown text, so that it costs no marker; otherwise the best one
/// anywhere; finally those that should come first.
fn best_to_extend(selection: &PieceSelection<'_>, dead: &[bool], free: usize) -> Option<usize> {
    let can = |&piece: &usize| {
        let ready = || selection.pieces[piece].needs.into_iter().flatten().all(|need| selection.shown[need]);
        selection.may_show(piece) && !dead[piece] && selection.pieces[piece].divisible && ready()
    };
    let best = |which: &dyn Fn(usize) -> bool| {
        let pieces = (0..selection.pieces.len()).filter(can).filter(|&piece| which(piece));
        pieces.map(|piece| selection.candidate(piece)).max().map(|candidate| candidate.piece)
    };
    let joined = |piece: usize| joins(selection, piece);
    let wanted = |piece: usize| selection.pieces[piece].tier < Tier::Last;
    best(&|piece| wanted(piece) && joined(piece))
        .or_else(|| best(&|piece| wanted(piece) && free > selection.mark + SLACK && !joined(piece)))
        .or_else(|| best(&|piece| !wanted(piece) && joined(piece)))
}

fn joins(selection: &PieceSelection<'_>, piece: usize) -> bool {
    piece == 0 || selection.shown[piece - 1] || selection.partial.contains_key(&piece)
}

/// Shows more of a piece's beginning, as `free` tokens allow; returns the new exact count.
fn extend(selection: &mut PieceSelection<'_>, piece: usize, free: usize, cut: Cut) -> Option<usize> {
    let (job, range) = (selection.job, selection.pieces[piece].range.clone());
    let before = selection.partial.get(&piece).copied();
    let shown = before.map_or(0, |end| job.request.counter.count(&job.request.text[range.start..end]));
    let mark = if joins(selection, piece) { 0 } else { selection.mark };
    let mut room = (shown + free).checked_sub(mark)?;
    for _ in 0..MAX_CUTS {
        let end = cut(job, &range, room).filter(|&end| before.is_none_or(|before| before < end));
        let Some(end) = end else { break };
        selection.shown[piece] = end == range.end;
        selection.partial.insert(piece, end);
        let tokens = selection.tokens();
        if tokens <= job.request.target {
            return Some(tokens);
        }
        let Some(less) = room.checked_sub((tokens - job.request.target).max(1)) else { break };
        room = less;
    }
    selection.shown[piece] = false;
    match before {
        Some(end) => selection.partial.insert(piece, end),
        None => selection.partial.remove(&piece),
    };
    None
}
