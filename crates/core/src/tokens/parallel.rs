//! Counting a large text by several threads. Knows safe cuts; how a share is counted is its caller's.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;

use super::cuts;
use crate::beside::processors;

/// Texts from this size on are counted by several threads.
const LARGE: usize = 1 << 18;
/// A thread takes this much of a large text at a time.
const SHARE: usize = 1 << 16;
/// More threads than this are not worth their start.
const MOST_THREADS: usize = 8;

/// The sum of `count` over the shares of `text`, which threads take in turn; a sum does not depend on their order.
pub(super) fn sum(text: &str, count: impl Fn(&str) -> usize + Sync) -> usize {
    if text.len() < LARGE {
        return count(text);
    }
    let (shares, next) = (cuts::shares(text, SHARE), AtomicUsize::new(0));
    let work = || {
        let mine = std::iter::from_fn(|| shares.get(next.fetch_add(1, Ordering::Relaxed)));
        mine.map(|share| count(share)).sum::<usize>()
    };
    std::thread::scope(|scope| {
        // Where no thread can be had, the others do its work.
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
        let workers: Vec<_> = (1..processors().min(MOST_THREADS)).filter_map(start).collect();
        let joined = |worker: ScopedJoinHandle<'_, usize>| match worker.join() {
            Ok(sum) => sum,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        work() + workers.into_iter().map(joined).sum::<usize>()
    })
}
