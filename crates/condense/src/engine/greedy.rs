//! Greedy selection: how many steps fit in order, and how many more to try.
//!
//! Knows numbers only; the condenser knows what a step shows and costs.

use std::ops::RangeInclusive;

/// Maximum number of further steps tried after those that fit in order; each counts the whole page.
const MAX_FILLS: usize = 24;
/// Target size beyond which counting is so expensive that fewer attempts are made.
const CHEAP_TARGET: usize = 8_192;
/// Distance of the first guess from the start; it doubles with each guess.
const FIRST_GUESS: usize = 8;

/// The largest number in `range` for which `fits` holds. `fits` must hold up to some number and not beyond; the start
/// is assumed to fit. Tries small numbers first, since larger ones are more expensive to check.
pub(crate) fn max_fitting(range: RangeInclusive<usize>, fits: impl Fn(usize) -> bool) -> usize {
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

/// The number of further steps to try for a target of `target` tokens.
pub(crate) fn attempts(target: usize) -> usize {
    (MAX_FILLS * CHEAP_TARGET / target.max(CHEAP_TARGET)).max(1)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn the_largest_fitting_number_is_found_wherever_it_is() {
        for limit in 0..300 {
            assert_eq!(max_fitting(0..=200, |n| n <= limit), limit.min(200));
        }
        assert_eq!(max_fitting(5..=5, |_| false), 5, "the start is assumed to fit");
    }

    #[test]
    fn no_number_far_beyond_the_limit_is_tried() {
        let largest = Cell::new(0);
        let fits = |n: usize| {
            largest.set(largest.get().max(n));
            n <= 10
        };
        assert_eq!(max_fitting(0..=1_000_000, fits), 10);
        assert!(largest.get() < 100, "{}", largest.get());
    }

    #[test]
    fn large_targets_are_filled_in_fewer_attempts() {
        assert_eq!(
            (attempts(100), attempts(2 * CHEAP_TARGET), attempts(1 << 40)),
            (MAX_FILLS, MAX_FILLS / 2, 1)
        );
    }
}
