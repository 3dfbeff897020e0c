//! Long runs of a repeated pattern (a megabyte of `a`, of spaces, of line breaks), counted without encoding them in
//! full. Knows token lengths, not how a vocabulary finds them.
//!
//! Merging a single piece takes more than linear time, and only such runs produce pieces of a megabyte without
//! effort. In the middle of a run the encoding settles on one repeated token. Two neighbouring tokens of an encoding
//! remain neighbours wherever they meet, so where that token follows itself, copies may be inserted or removed: the
//! run is shortened by whole tokens, the short text is encoded, and the removed tokens are added to the count. A
//! piece of the pre-tokenizer may contain several such tokens (`'s's` is one piece), and the end of the run must fall
//! at the same offset in a piece as before, so tokens are removed by the dozen.

use std::ops::Range;

/// Shorter texts and runs are encoded as they are.
const LONG: usize = 8 * 1024;
/// Bytes kept at each end of a run, many times the longest token.
const KEPT: usize = 2 * 1024;
/// Bytes that must repeat before the length of a run is measured.
const STRETCH: usize = 64;
/// Tokens are removed in multiples of this: a multiple of any number that one piece of a settled run is known to
/// contain.
const DOZEN: usize = 12;
/// Longest pattern considered, in bytes: one character of any script, or two ASCII ones.
const LONGEST_PERIOD: usize = 4;

/// A stretch to remove from a text, in whole tokens of one length.
struct Removal {
    bytes: Range<usize>,
    token: usize,
}

/// The count of `text` if it is long and contains a long run that can be shortened; `lengths` returns the bytes of
/// each token of a text.
pub(super) fn count_shortened(text: &str, lengths: impl Fn(&str) -> Vec<usize>) -> Option<usize> {
    if text.len() < LONG {
        return None;
    }
    let removals: Vec<Removal> =
        runs(text.as_bytes()).into_iter().filter_map(|run| removal(text, run, &lengths)).collect();
    let mut short = String::new();
    let (mut splices, mut removed, mut kept_from) = (Vec::new(), 0, 0);
    for Removal { bytes, token } in &removals {
        short.push_str(text.get(kept_from..bytes.start)?);
        splices.push((short.len(), *token));
        removed += bytes.len() / token;
        kept_from = bytes.end;
    }
    if removals.is_empty() {
        return None;
    }
    short.push_str(text.get(kept_from..)?);
    let tokens = lengths(&short);
    splices.iter().all(|&(at, token)| repeats_at(&tokens, at, token)).then_some(tokens.len() + removed)
}

/// Runs of at least 8 KiB in which each byte equals the one a period before it, with their periods, in order. Of
/// overlapping runs, the one with the shortest period is returned.
fn runs(bytes: &[u8]) -> Vec<(Range<usize>, usize)> {
    let mut found: Vec<(Range<usize>, usize)> = Vec::new();
    // A run covers at least one of these positions, with enough bytes after it to decide.
    for probe in (0..bytes.len()).step_by(LONG / 2) {
        let (Some(stretch), false) =
            (bytes.get(probe..probe + STRETCH), found.last().is_some_and(|(run, _)| run.contains(&probe)))
        else {
            continue;
        };
        let Some(period) =
            (1..=LONGEST_PERIOD).find(|&period| stretch[period..] == stretch[..STRETCH - period])
        else {
            continue;
        };
        let floor = found.last().map_or(0, |(run, _)| run.end);
        let same = |at: &usize| bytes.get(at + period) == bytes.get(*at);
        let start = probe - (floor..probe).rev().take_while(same).count();
        let end = probe + period + (probe..bytes.len() - period).take_while(same).count();
        if end - start >= LONG {
            found.push((start..end, period));
        }
    }
    found
}

/// What can be removed from a run, if its encoding settles on one token.
fn removal(text: &str, run: (Range<usize>, usize), lengths: &impl Fn(&str) -> Vec<usize>) -> Option<Removal> {
    let (Range { start, end }, period) = run;
    let start = text.ceil_char_boundary(start);
    let sample = lengths(text.get(start..text.floor_char_boundary(start + 2 * KEPT))?);
    let middle = sample.len() / 2;
    let token = *sample.get(middle)?;
    let settled =
        token % period == 0 && sample.get(middle.checked_sub(1)?..middle + 2)?.iter().all(|&l| l == token);
    let from = text.floor_char_boundary(start + KEPT);
    let removable = end.checked_sub(KEPT)?.checked_sub(from)? / (token * DOZEN) * (token * DOZEN);
    (settled && removable > 0).then_some(Removal { bytes: from..from + removable, token })
}

/// Whether a token of this length ends within one token of byte `at`, and another follows.
fn repeats_at(tokens: &[usize], at: usize, token: usize) -> bool {
    let mut offset = 0;
    let index = tokens.iter().position(|length| {
        offset += length;
        offset >= at
    });
    index.is_some_and(|i| tokens.get(i..i + 3).is_some_and(|next| next.iter().all(|&length| length == token)))
}
