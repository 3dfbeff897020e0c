//! Time and ids that are the same in every run.

use std::sync::atomic::{AtomicU64, Ordering};

/// The first moment of every fixed clock: 2026-01-01T00:00:00Z in Unix milliseconds.
pub const START_MS: u64 = 1_767_225_600_000;

/// A clock in Unix milliseconds that begins at [`START_MS`] and moves on by `step_ms` with each look.
pub fn clock(step_ms: u64) -> impl Fn() -> u64 + Send + Sync + 'static {
    let looks = AtomicU64::new(0);
    move || START_MS + step_ms * looks.fetch_add(1, Ordering::SeqCst)
}

/// Ids `prefix-1`, `prefix-2`, ….
pub fn ids(prefix: &'static str) -> impl Fn() -> String + Send + Sync + 'static {
    let given = AtomicU64::new(0);
    move || format!("{prefix}-{}", given.fetch_add(1, Ordering::SeqCst) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_and_ids_count() {
        let (clock, ids) = (clock(10), ids("run"));
        assert_eq!([clock(), clock()], [START_MS, START_MS + 10]);
        assert_eq!([ids(), ids()], ["run-1", "run-2"]);
    }
}
