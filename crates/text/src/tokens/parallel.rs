//! Counting a large text by several threads. Knows safe cuts; the caller counts each share.

use super::cuts;
use crate::parallel;

/// Texts from this size on are counted by several threads.
const LARGE: usize = 1 << 18;
/// A thread takes this much of a large text at a time.
const SHARE: usize = 1 << 16;

/// The sum of `count` over the shares of `text`; it does not depend on their order.
pub(super) fn sum(text: &str, count: impl Fn(&str) -> usize + Sync) -> usize {
    if text.len() < LARGE {
        return count(text);
    }
    parallel::sum(&cuts::shares(text, SHARE), |share| count(share))
}
