//! Two things done at once, where there are processors for both. Knows threads; what is done is its caller's.

use std::sync::OnceLock;
use std::thread::{self, Builder};

/// What `aside` and `here` give; `aside` runs in a thread of its own if that is `worth` its start.
pub(crate) fn both<A: Send, B>(
    worth: bool,
    aside: impl Fn() -> A + Sync,
    here: impl FnOnce() -> B,
) -> (A, B) {
    if !worth || processors() < 2 {
        return (aside(), here());
    }
    thread::scope(|scope| match Builder::new().spawn_scoped(scope, &aside) {
        Ok(worker) => {
            let here = here();
            (worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), here)
        }
        // Where no thread can be had, one after the other.
        Err(_) => (aside(), here()),
    })
}

/// Processors to be had. Asking takes longer than looking at a page, so it is asked once.
pub(crate) fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}
