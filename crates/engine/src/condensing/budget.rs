//! The limits of condensing for one run: calls, parallelism and time, and a tally of what was used.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use super::SummarizerError;
use crate::run::{CondensingTally, RunError, RunOutcome};

/// Calls that all condensing of one run may make: 100,000 tokens in chunks of 500 (R0-11.11). Longer texts are left to
/// the condensers by rule.
pub(super) const MAX_CALLS: usize = 200;
/// Calls in flight at once (R0-20.3).
const PARALLEL: usize = 4;

pub(super) struct SummarizerBudget {
    /// `None` if the timeout is too long for the clock to represent.
    pub(super) deadline: Option<Instant>,
    slots: Semaphore,
    calls_left: AtomicUsize,
    tally: Mutex<CondensingTally>,
}

impl SummarizerBudget {
    pub(super) fn new(timeout: Duration) -> Self {
        Self {
            deadline: Instant::now().checked_add(timeout),
            slots: Semaphore::new(PARALLEL),
            calls_left: AtomicUsize::new(MAX_CALLS),
            tally: Mutex::default(),
        }
    }

    pub(super) fn tally(&self) -> CondensingTally {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn note(&self, note: impl FnOnce(&mut CondensingTally)) {
        note(&mut self.tally.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Reserves `calls`, or nothing if fewer are left.
    pub(super) fn reserve(&self, calls: usize) -> Result<(), SummarizerError> {
        let left = |left: usize| left.checked_sub(calls);
        let reserved = self.calls_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left);
        reserved.map(drop).map_err(|_| SummarizerError::TooLong { calls })
    }

    /// Waits until fewer than [`PARALLEL`] calls are in flight.
    pub(super) async fn slot(&self) -> Result<SemaphorePermit<'_>, SummarizerError> {
        self.slots.acquire().await.map_err(|_| SummarizerError::Stopped)
    }

    pub(super) fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Adds a finished call to the tally, unless it was not made.
    pub(super) fn called(&self, outcome: &Result<RunOutcome, RunError>) {
        if matches!(outcome, Err(RunError::Unaffordable { .. })) {
            return;
        }
        self.note(|tally| {
            tally.calls += 1;
            let Ok(outcome) = outcome else { return };
            tally.usage += outcome.usage;
            if let Some(cost) = outcome.cost {
                tally.cost = Some(tally.cost.map_or(cost, |sum| sum + cost));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_reserved_all_or_none() {
        let budget = SummarizerBudget::new(Duration::from_secs(1));
        budget.reserve(MAX_CALLS - 1).unwrap();
        assert!(matches!(budget.reserve(2), Err(SummarizerError::TooLong { calls: 2 })));
        budget.reserve(1).unwrap();
    }

    #[tokio::test]
    async fn a_timeout_beyond_the_clock_is_never_late() {
        let endless = SummarizerBudget::new(Duration::MAX);
        assert!(endless.deadline.is_none() && !endless.is_late());
        assert!(SummarizerBudget::new(Duration::ZERO).is_late());
    }
}
