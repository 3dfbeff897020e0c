//! The time of a turn: the store's clock, made monotonic within a turn and across resumes.

use larder_store::Store;
use larder_vault::DocumentTime;

/// A monotonic clock.
#[derive(Debug, Clone)]
pub(super) struct TurnClock {
    store: Store,
    last: DocumentTime,
    /// When the turn was started or resumed.
    since: DocumentTime,
    /// Milliseconds spent before that.
    before: u64,
}

impl TurnClock {
    /// Continues from `last`, after `before` milliseconds.
    pub(super) fn new(store: &Store, last: DocumentTime, before: u64) -> Self {
        let mut clock = Self { store: store.clone(), last, since: last, before };
        clock.since = clock.now();
        clock
    }

    /// The present moment, or the last one if the clock went back or past the year 9999.
    pub(super) fn now(&mut self) -> DocumentTime {
        let now = DocumentTime::from(self.store.now());
        if !now.is_last() {
            self.last = self.last.max(now);
        }
        self.last
    }

    /// The last reading.
    pub(super) const fn last(&self) -> DocumentTime {
        self.last
    }

    /// Milliseconds since `earlier`.
    pub(super) fn millis_since(&mut self, earlier: DocumentTime) -> u64 {
        u64::try_from(self.now().as_millis() - earlier.as_millis()).unwrap_or(0)
    }

    /// Milliseconds that the turn has run, pauses not counted.
    pub(super) fn spent(&mut self) -> u64 {
        self.before.saturating_add(self.millis_since(self.since))
    }
}
