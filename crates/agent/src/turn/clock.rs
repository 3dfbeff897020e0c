//! The time of a turn: the store's clock, made monotonic within a turn and across resumes.

use larder_store::Store;
use larder_vault::Timestamp;

/// A monotonic clock.
#[derive(Debug, Clone)]
pub(super) struct TurnClock {
    store: Store,
    last: Timestamp,
    /// When the turn was started or resumed.
    since: Timestamp,
    /// Milliseconds spent before that.
    before: u64,
}

impl TurnClock {
    /// Continues from `last`, after `before` milliseconds.
    pub(super) fn new(store: &Store, last: Timestamp, before: u64) -> Self {
        let mut clock = Self { store: store.clone(), last, since: last, before };
        clock.since = clock.now();
        clock
    }

    /// The present moment, or the last one if the clock went back.
    pub(super) fn now(&mut self) -> Timestamp {
        let millis = i64::try_from(self.store.now().as_millis()).ok();
        self.last = millis.and_then(Timestamp::from_millis).unwrap_or(self.last).max(self.last);
        self.last
    }

    /// The last reading.
    pub(super) const fn last(&self) -> Timestamp {
        self.last
    }

    /// Milliseconds since `earlier`.
    pub(super) fn millis_since(&mut self, earlier: Timestamp) -> u64 {
        u64::try_from(self.now().as_millis() - earlier.as_millis()).unwrap_or(0)
    }

    /// Milliseconds that the turn has run, pauses not counted.
    pub(super) fn spent(&mut self) -> u64 {
        self.before.saturating_add(self.millis_since(self.since))
    }
}
