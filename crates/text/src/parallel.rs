//! Worker threads for large texts. They belong to their owner, not to the process; this module knows no tasks.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::processor::Processor;

/// Worker threads, as many as there are processors; started on first use and kept until dropped, because starting a
/// thread takes longer than much of the work.
#[derive(Debug, Default)]
pub struct Workers {
    /// `None` with a single processor, or if threads cannot be started.
    pool: OnceLock<Option<ThreadPool>>,
    /// Workers reserved by a caller. A caller that finds none free works alone: waiting behind someone else's large
    /// text would take longer.
    busy: AtomicUsize,
}

impl Workers {
    /// Runs both closures and returns their results. If the work is `worth` waking a thread and one is free, `aside`
    /// runs there.
    pub fn join_if_worth<A: Send, B>(
        &self,
        worth: bool,
        aside: impl FnOnce() -> A + Send,
        here: impl FnOnce() -> B,
    ) -> (A, B) {
        let Some(reserved) = self.reserve(usize::from(worth)) else { return (aside(), here()) };
        let mut result = None;
        let caller = Processor::current();
        let here = reserved.pool.in_place_scope(|scope| {
            scope.spawn(|_| {
                caller.leave();
                result = Some(aside());
            });
            here()
        });
        let Some(aside) = result else { unreachable!("a scope ends after everything spawned in it") };
        (aside, here)
    }

    /// The sum of `measure` over `items`, divided among the free threads.
    pub fn sum<T: Sync>(&self, items: &[T], measure: impl Fn(&T) -> usize + Sync) -> usize {
        let (next, total) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let share = || {
            let rest = || items.get(next.fetch_add(1, Ordering::Relaxed));
            let sum = std::iter::from_fn(rest).map(&measure).sum();
            total.fetch_add(sum, Ordering::Relaxed);
        };
        // The caller's thread has its share, too.
        let others = self.threads().saturating_sub(1);
        let caller = Processor::current();
        match self.reserve(others.min(items.len().saturating_sub(1))) {
            Some(reserved) => reserved.pool.in_place_scope(|scope| {
                (0..reserved.count).for_each(|_| {
                    scope.spawn(|_| {
                        caller.leave();
                        share();
                    });
                });
                share();
            }),
            None => share(),
        }
        total.into_inner()
    }

    fn threads(&self) -> usize {
        self.pool.get_or_init(start).as_ref().map_or(0, ThreadPool::current_num_threads)
    }

    /// Up to `max` free workers, for as long as the reservation lives.
    fn reserve(&self, max: usize) -> Option<ReservedWorkers<'_>> {
        if max == 0 {
            return None;
        }
        let pool = self.pool.get_or_init(start).as_ref()?;
        let free = |busy: usize| max.min(self.threads().saturating_sub(busy));
        let take = |busy| Some(busy + free(busy)).filter(|&now| now > busy);
        let before = self.busy.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        Some(ReservedWorkers { pool, count: free(before), busy: &self.busy })
    }
}

/// Runs a task that waits for a worker, if there is one and the caller is a worker, and returns whether it did. The task may be
/// anybody's and of any length, so it is for long tasks whose caller has more urgent ones, and for few times in each.
pub fn give_way() -> bool {
    matches!(rayon::yield_now(), Some(rayon::Yield::Executed))
}

/// Workers reserved for one caller.
struct ReservedWorkers<'w> {
    pool: &'w ThreadPool,
    count: usize,
    busy: &'w AtomicUsize,
}

impl Drop for ReservedWorkers<'_> {
    fn drop(&mut self) {
        self.busy.fetch_sub(self.count, Ordering::Relaxed);
    }
}

fn start() -> Option<ThreadPool> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let builder =
        ThreadPoolBuilder::new().num_threads(processors).thread_name(|at| format!("larder-text-{at}"));
    (processors > 1).then(|| builder.build().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_nest_and_return_both_results() {
        let workers = Workers::default();
        for worth in [false, true] {
            let inner = || workers.join_if_worth(worth, || 1, || 2);
            assert_eq!(workers.join_if_worth(worth, inner, inner), ((1, 2), (1, 2)));
        }
    }

    #[test]
    fn every_item_is_measured_once() {
        let (workers, items) = (Workers::default(), Vec::from_iter(0..1_000));
        assert_eq!(workers.sum(&items, |&item| item), 499_500);
        assert_eq!(workers.sum(&items[..1], |_| 7), 7);
        assert_eq!(workers.sum(&items[..0], |_| 7), 0);
    }

    #[test]
    fn a_caller_works_alone_while_no_worker_is_free() {
        let workers = Workers::default();
        let reserved = workers.reserve(usize::MAX);
        let thread = || std::thread::current().id();
        let (aside, here) = workers.join_if_worth(true, thread, thread);
        assert_eq!(aside, here);
        drop(reserved);
        assert_eq!(workers.busy.into_inner(), 0);
    }

    #[test]
    fn a_panic_in_a_task_reaches_the_caller_and_frees_the_worker() {
        let workers = Workers::default();
        let panics = || workers.join_if_worth(true, || assert!(std::hint::black_box(false)), || ());
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        assert_eq!(workers.busy.into_inner(), 0);
    }
}
