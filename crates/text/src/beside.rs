//! Things done at once, where there are processors for them. Knows threads; what is done is its caller's.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::{ThreadPool, ThreadPoolBuilder};

/// What `aside` and `here` give; `aside` runs in another thread if that is `worth` waking one.
pub fn both<A: Send, B>(worth: bool, aside: impl FnOnce() -> A + Send, here: impl FnOnce() -> B) -> (A, B) {
    let Some(turn) = Turn::take(worth) else { return (aside(), here()) };
    let mut given = None;
    let here = turn.pool.in_place_scope(|scope| {
        scope.spawn(|_| given = Some(aside()));
        here()
    });
    let Some(given) = given else { unreachable!("a scope ends when all has ended that was begun in it") };
    (given, here)
}

/// The turn of one caller at the threads, with all that it does inside. Others do their work alone meanwhile: behind
/// somebody's large text, what is done aside would wait longer than it takes.
pub(crate) struct Turn {
    /// The threads.
    pub pool: &'static ThreadPool,
    /// Whether this is the outermost of the caller's turns.
    first: bool,
}

/// Whether it is somebody's turn.
static TAKEN: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether it is this thread's turn.
    static MINE: Cell<bool> = const { Cell::new(false) };
}

impl Turn {
    /// If it is `worth` it, there are threads, and it is nobody else's turn.
    pub fn take(worth: bool) -> Option<Self> {
        let pool = pool().filter(|_| worth)?;
        if MINE.get() || pool.current_thread_index().is_some() {
            return Some(Self { pool, first: false });
        }
        let is_free = TAKEN.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok();
        MINE.set(is_free);
        // Made only if it is free: a turn that is dropped is given back.
        is_free.then(|| Self { pool, first: true })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.first {
            MINE.set(false);
            TAKEN.store(false, Ordering::Release);
        }
    }
}

/// Threads that wait for work, kept because starting one takes longer than much of what is done aside. None where
/// there is one processor, or no thread can be had.
fn pool() -> Option<&'static ThreadPool> {
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
    use super::*;

    #[test]
    fn both_are_done_wherever_they_run() {
        for worth in [false, true] {
            let inner = || both(worth, || 1, || 2);
            assert_eq!(both(worth, inner, inner), ((1, 2), (1, 2)));
        }
    }

    #[test]
    fn who_comes_while_it_is_anothers_turn_does_its_work_alone() {
        let turn = Turn::take(true);
        std::thread::scope(|scope| {
            // Whoever came before and was sent away has not ended the turn.
            for _ in 0..2 {
                let other = scope
                    .spawn(|| both(true, || std::thread::current().id(), || std::thread::current().id()));
                let (aside, here) = other.join().unwrap();
                assert!(turn.is_none() || aside == here);
            }
        });
    }

    #[test]
    fn a_panic_aside_is_passed_on_and_ends_the_turn() {
        let panics = || both(true, || assert!(std::hint::black_box(false)), || ());
        assert!(std::panic::catch_unwind(panics).is_err());
        assert!(!MINE.get());
    }
}
