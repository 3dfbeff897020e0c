//! Counting a large text by several threads. Knows safe cuts; how a share is counted is its caller's.

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use super::cuts;
use crate::beside;

/// Texts from this size on are counted by several threads.
const LARGE: usize = 1 << 18;
/// A thread takes this much of a large text at a time.
const SHARE: usize = 1 << 16;

/// The sum of `count` over the shares of `text`, which threads take in turn; a sum does not depend on their order.
pub(super) fn sum(text: &str, count: impl Fn(&str) -> usize + Sync) -> usize {
    if text.len() < LARGE {
        return count(text);
    }
    let shares = cuts::shares(text, SHARE);
    match beside::pool() {
        Some(pool) => pool.install(|| shares.par_iter().map(|share| count(share)).sum()),
        None => shares.into_iter().map(count).sum(),
    }
}
