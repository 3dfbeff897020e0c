//! Taking steps in their order: how many fit, and how often to try further ones.
//!
//! Knows numbers only; what a step shows and what it costs is the condenser's affair.

use std::ops::RangeInclusive;

/// How often a page is filled up with further steps after those that fit in their order; each counts the whole page.
const MOST_FILLS: usize = 24;
/// Tokens of target beyond which a count is dear enough that fewer are made.
const CHEAP_TARGET: usize = 8_192;
/// How far the first guess lies from the beginning; each next one is twice as far.
const FIRST_GUESS: usize = 8;

/// The most of `range` that `fits`, which says yes up to some number and no from there on; its start is taken to fit.
pub(super) fn most(range: RangeInclusive<usize>, fits: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high, mut guess) = (*range.start(), range.end().saturating_add(1), FIRST_GUESS);
    while high.saturating_sub(low) > 1 {
        let middle = low + guess.min((high - low) / 2);
        if fits(middle) {
            low = middle;
            guess = guess.saturating_mul(2);
        } else {
            high = middle;
            guess = usize::MAX;
        }
    }
    low
}

/// How many further steps to try for a page of `target` tokens.
pub(super) fn attempts(target: usize) -> usize {
    (MOST_FILLS * CHEAP_TARGET / target.max(CHEAP_TARGET)).max(1)
}
