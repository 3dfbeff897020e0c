//! Splits the time of a request into work of the gateway and waiting for the upstream and the client. Knows nothing
//! of the work itself.

use std::time::{Duration, Instant};

use larder_proxy::record::Times;

/// The clock of one request.
#[derive(Debug)]
pub struct RequestTiming {
    started: Instant,
    /// Time spent waiting for the upstream, or for the client's body.
    waited: Duration,
    /// Time that the gateway itself has spent; `None` until it responds.
    busy: Option<Duration>,
}

/// A stretch of work on a reply, from [`RequestTiming::begin_work`] to [`RequestTiming::end_work`].
#[must_use]
#[derive(Debug)]
pub struct WorkSpan {
    started: Instant,
    waited: Duration,
}

impl RequestTiming {
    /// Starts the clock.
    pub fn start() -> Self {
        Self { started: Instant::now(), waited: Duration::ZERO, busy: None }
    }

    /// Adds time spent waiting for others.
    pub fn add_wait(&mut self, time: Duration) {
        self.waited += time;
    }

    /// The head of the reply is ready. Until now the gateway was busy whenever it did not wait; from here on it is
    /// busy only during a [`WorkSpan`], since a slow client must not count as the gateway's work.
    pub fn respond(&mut self) {
        self.busy = Some(self.started.elapsed().saturating_sub(self.waited));
    }

    /// Whether the head of the reply is out, so that its status can no longer change.
    pub const fn has_responded(&self) -> bool {
        self.busy.is_some()
    }

    /// Begins a stretch of work on a reply.
    pub fn begin_work(&self) -> WorkSpan {
        WorkSpan { started: Instant::now(), waited: self.waited }
    }

    /// Ends a span; waiting within it does not count as work.
    pub fn end_work(&mut self, span: &WorkSpan) {
        let waited = self.waited.saturating_sub(span.waited);
        let worked = span.started.elapsed().saturating_sub(waited);
        self.busy = self.busy.map(|before| before + worked);
    }

    /// Writes the totals into a record.
    pub fn write_to(&self, times: &mut Times) {
        let total = self.started.elapsed();
        times.total_us = micros(total);
        times.upstream_us = micros(self.busy.map_or(self.waited, |busy| total.saturating_sub(busy)));
    }
}

/// Whole microseconds.
pub fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_not_counted_as_work() {
        let hour = Duration::from_hours(1);
        let mut timing = RequestTiming::start();
        timing.add_wait(hour);
        let mut times = Times::default();
        timing.write_to(&mut times);
        assert_eq!(times.upstream_us, micros(hour), "before the reply, only waits are the upstream's");
        timing.respond();
        assert_eq!(timing.busy, Some(Duration::ZERO), "more was waited than has passed");
        let span = timing.begin_work();
        timing.add_wait(hour);
        timing.end_work(&span);
        assert_eq!(timing.busy, Some(Duration::ZERO), "a wait within a span is not work");
        timing.write_to(&mut times);
        assert_eq!(times.upstream_us, times.total_us, "all but work is the upstream's once the reply began");
    }
}
