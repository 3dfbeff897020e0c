//! Work split between threads that end with the call. Keeps no state, so callers share nothing; knows no task.

use std::num::NonZero;
use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Builder};

/// Threads of one call at most, the caller's included.
const MAX_THREADS: usize = 8;
/// The name of every helper thread.
const NAME: &str = "larder-parallel";

/// The results of `aside` and `here`. `aside` runs in a thread of its own if it is `worth` starting one, which takes some
/// tens of microseconds, and if one can be started.
pub fn join_if_worth<A: Send, B>(
    worth: bool,
    aside: impl FnOnce() -> A + Send,
    here: impl FnOnce() -> B,
) -> (A, B) {
    if !worth {
        return (aside(), here());
    }
    let (mut task, mut result) = (Some(aside), None);
    let here = thread::scope(|scope| {
        let (task, result) = (&mut task, &mut result);
        // If no thread can be started, the task is still there afterwards.
        let _ = Builder::new()
            .name(NAME.to_owned())
            .spawn_scoped(scope, move || *result = task.take().map(|task| task()));
        here()
    });
    match (result, task) {
        (Some(result), _) => (result, here),
        (None, Some(task)) => (task(), here),
        (None, None) => unreachable!("a panic in the task is passed on by the scope"),
    }
}

/// The sum of `measure` over `items`, which threads take one after the other.
pub fn sum<T: Sync>(items: &[T], measure: impl Fn(&T) -> usize + Sync) -> usize {
    let next = AtomicUsize::new(0);
    let share = || {
        let mut sum = 0;
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            sum += measure(item);
        }
        sum
    };
    thread::scope(|scope| {
        let helper = |_| Builder::new().name(NAME.to_owned()).spawn_scoped(scope, share).ok();
        let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS);
        let helpers: Vec<_> = (1..threads.min(items.len())).filter_map(helper).collect();
        let own = share();
        let joined = helpers.into_iter().map(|helper| match helper.join() {
            Ok(sum) => sum,
            Err(panic) => panic::resume_unwind(panic),
        });
        own + joined.sum::<usize>()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_nest_and_return_both_results() {
        for worth in [false, true] {
            let inner = || join_if_worth(worth, || 1, || 2);
            assert_eq!(join_if_worth(worth, inner, inner), ((1, 2), (1, 2)));
        }
    }

    #[test]
    fn every_item_is_counted_once() {
        let items: Vec<usize> = (0..1_000).collect();
        assert_eq!(sum(&items, |&item| item), 499_500);
        assert_eq!(sum(&items[..1], |_| 7), 7);
        assert_eq!(sum(&items[..0], |_| 7), 0);
    }

    #[test]
    fn a_panic_in_a_task_reaches_the_caller() {
        let panics = || join_if_worth(true, || assert!(std::hint::black_box(false)), || ());
        assert!(std::panic::catch_unwind(panics).is_err());
    }
}
