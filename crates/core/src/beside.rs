//! Two things done at once, where there are processors for both. Knows threads; what is done is its caller's.

use std::sync::OnceLock;

use rayon::{ThreadPool, ThreadPoolBuilder};

/// What `aside` and `here` give; `aside` runs in another thread if that is `worth` waking one.
pub fn both<A: Send, B>(worth: bool, aside: impl FnOnce() -> A + Send, here: impl FnOnce() -> B) -> (A, B) {
    let Some(pool) = pool().filter(|_| worth) else { return (aside(), here()) };
    let mut given = None;
    let here = pool.in_place_scope(|scope| {
        scope.spawn(|_| given = Some(aside()));
        here()
    });
    let Some(given) = given else { unreachable!("a scope ends when all has ended that was begun in it") };
    (given, here)
}

/// Threads that wait for work, kept because starting one takes longer than much of what is done aside. None where
/// there is one processor, or no thread can be had.
pub(crate) fn pool() -> Option<&'static ThreadPool> {
    static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();
    let start = || {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let threads =
            ThreadPoolBuilder::new().num_threads(processors).thread_name(|at| format!("beside-{at}"));
        (processors > 1).then(|| threads.build().ok()).flatten()
    };
    POOL.get_or_init(start).as_ref()
}

#[cfg(test)]
mod tests {
    use super::both;

    #[test]
    fn both_are_done_wherever_they_run() {
        for worth in [false, true] {
            let inner = || both(worth, || 1, || 2);
            assert_eq!(both(worth, inner, || 3), ((1, 2), 3));
        }
    }

    #[test]
    fn a_panic_aside_is_passed_on() {
        let panics = || both(true, || assert!(std::hint::black_box(false)), || ());
        assert!(std::panic::catch_unwind(panics).is_err());
    }
}
