//! The circuit breaker: after several consecutive failures a provider is not called for a while, then probed by one
//! call. Knows no calls, only their outcomes.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::chat::ModelError;

/// When to open, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerPolicy {
    /// Failures in a row that open the breaker.
    pub failures: u32,
    /// How long it stays open before a probe.
    pub open_for: Duration,
}

impl Default for BreakerPolicy {
    fn default() -> Self {
        Self { failures: 5, open_for: Duration::from_secs(30) }
    }
}

#[derive(Debug)]
pub struct Breaker {
    policy: BreakerPolicy,
    state: Mutex<BreakerState>,
}

#[derive(Debug, Default)]
struct BreakerState {
    failures: u32,
    /// Set while the breaker is open or half open.
    open_until: Option<Instant>,
    probing: bool,
}

impl Breaker {
    pub fn new(policy: BreakerPolicy) -> Self {
        Self { policy, state: Mutex::default() }
    }

    /// Lets a call through, or refuses it with the failures in a row and the time until the next probe.
    pub fn admit(&self) -> Result<BreakerPermit<'_>, (u32, Duration)> {
        let mut state = self.lock();
        let Some(open_until) = state.open_until else {
            return Ok(BreakerPermit { breaker: self, is_probe: false });
        };
        let wait = open_until.saturating_duration_since(Instant::now());
        if !wait.is_zero() || state.probing {
            return Err((state.failures, wait));
        }
        state.probing = true;
        Ok(BreakerPermit { breaker: self, is_probe: true })
    }

    fn lock(&self) -> MutexGuard<'_, BreakerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A permitted call. Dropped without a report, as when its caller gives up, it counts as no outcome.
#[derive(Debug)]
pub struct BreakerPermit<'b> {
    breaker: &'b Breaker,
    is_probe: bool,
}

impl BreakerPermit<'_> {
    /// Tells how the call went.
    pub fn report<T>(self, outcome: Result<T, &ModelError>) {
        // Released before `self` drops, which locks again.
        let mut state = self.breaker.lock();
        if outcome.is_err_and(is_failure) {
            state.failures = state.failures.saturating_add(1);
            if state.failures >= self.breaker.policy.failures {
                state.open_until = Instant::now().checked_add(self.breaker.policy.open_for);
            }
        } else {
            state.failures = 0;
            state.open_until = None;
        }
        drop(state);
    }
}

impl Drop for BreakerPermit<'_> {
    fn drop(&mut self) {
        if self.is_probe {
            self.breaker.lock().probing = false;
        }
    }
}

/// Whether the provider is at fault. One that rejects a request, or asks for a pause, is working.
fn is_failure(error: &ModelError) -> bool {
    matches!(
        error,
        ModelError::Unreachable { .. }
            | ModelError::Server { .. }
            | ModelError::Protocol { .. }
            | ModelError::Timeout { .. }
    )
}
