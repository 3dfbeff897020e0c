//! What is told of each request that ended: live totals, metrics and traces, fed by one call. Knows nothing of how
//! requests are served; what it is told must hold no payload.

use larder_store::Timestamp;

use crate::exchange::Exchange;
use crate::live::{self, Live};
use crate::metrics::{self, Metrics};
use crate::otel::Otel;

/// Totals, metrics and traces of one gateway.
#[derive(Debug)]
pub struct Telemetry {
    /// What is going on right now.
    pub live: Live,
    /// Counters and histograms.
    pub metrics: Metrics,
    otel: Option<Otel>,
}

/// A request that is being answered; it counts as in flight until this is dropped.
#[derive(Debug)]
pub struct InFlight {
    _metrics: metrics::InFlight,
    _live: live::InFlight,
}

impl Telemetry {
    /// Nothing recorded yet. `now` is when the gateway started; without `otel` no traces are made.
    pub fn new(now: Timestamp, otel: Option<Otel>) -> Self {
        Self { live: Live::new(now), metrics: Metrics::default(), otel }
    }

    /// A request of `user` has come in.
    pub fn begin(&self, user: &str) -> InFlight {
        InFlight { _metrics: self.metrics.begin(), _live: self.live.begin(user) }
    }

    /// A request has ended, however it ended. Takes microseconds, never blocks, never fails.
    pub fn record(&self, exchange: &Exchange) {
        let new_session = self.live.record(exchange);
        self.metrics.record(exchange, new_session);
        if let Some(otel) = &self.otel {
            otel.record(&exchange.head);
        }
    }

    /// Ends the event streams of open pages, which would otherwise never end. To be called before requests in flight
    /// are waited for.
    pub fn close(&self) {
        self.live.close();
    }

    /// Sends the traces that wait. Blocks for up to five seconds.
    pub fn flush(&self) {
        if let Some(otel) = &self.otel {
            otel.shutdown();
        }
    }
}
