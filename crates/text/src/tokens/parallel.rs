//! Counting a large text by several threads. Knows safe cuts; how a share is counted is its caller's.

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use super::cuts;
use crate::beside::Turn;

/// Texts from this size on are counted by several threads.
const LARGE: usize = 1 << 18;
/// A thread takes this much of a large text at a time.
const SHARE: usize = 1 << 16;

/// The sum of `count` over the shares of `text`, which threads take in turn; a sum does not depend on their order.
pub(super) fn sum(text: &str, count: impl Fn(&str) -> usize + Sync) -> usize {
    let Some(turn) = Turn::take(text.len() >= LARGE) else { return count(text) };
    let shares = cuts::shares(text, SHARE);
    turn.pool.install(|| shares.par_iter().map(|share| count(share)).sum())
}
