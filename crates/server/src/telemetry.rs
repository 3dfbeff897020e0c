//! What is told of each request that ended: live totals, metrics, traces and the log, fed by one call. Knows nothing of
//! how requests are served; what it is told must hold no payload.

use larder_core::pack::Rendition;
use larder_store::Timestamp;

use crate::exchange::{Compaction, Decision, Exchange, Head, Outcome};
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
        log_decision(&exchange.head);
        log_failure(&exchange.head);
        log_summaries(exchange);
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

/// The event of every budget check and refusal (R3-4.11). The reason is in our words; names that clients chose stay out.
fn log_decision(head: &Head) {
    let Some(decision) = &head.decision else { return };
    tracing::info!(
        request = head.id,
        model = head.told_model(),
        status = decision.status.as_str(),
        reason = decision.reason,
        deficit = decision.deficit,
        prompt_tokens = head.tokens.after,
        prompt_budget = head.tokens.budget,
        response_reserve = head.tokens.reserve,
        emergency_floor = decision.emergency_floor,
        largest = largest(decision),
        dry_run = decision.dry_run,
        "context_budget_decision"
    );
}

/// The largest parts with their tokens, the largest first; nothing of a request that fits.
fn largest(decision: &Decision) -> String {
    let parts: Vec<String> =
        decision.largest.iter().map(|largest| format!("{} {}", largest.part, largest.tokens)).collect();
    parts.join(", ")
}

/// What became of a request that failed, whoever failed it. Names that clients chose stay out.
fn log_failure(head: &Head) {
    if head.outcome != Outcome::Ok {
        tracing::info!(
            request = head.id,
            model = head.told_model(),
            status = head.status,
            outcome = ?head.outcome,
            error = head.error,
            "request_failed"
        );
    }
}

/// The event of every part that was condensed (R0-27.6), which no recipe and no layer did. What did not leave, or left as
/// it came, was not condensed.
fn log_summaries(exchange: &Exchange) {
    let head = &exchange.head;
    let dry_run = head.decision.as_ref().is_some_and(|decision| decision.dry_run);
    let is_summary = |compaction: &&Compaction| compaction.to == Rendition::Condensed;
    for compaction in exchange.compactions.iter().filter(is_summary) {
        if dry_run || !head.outcome.sent() {
            return;
        }
        let Compaction { before, after, content_type, .. } = compaction;
        tracing::info!(
            event = "compressed",
            original_tokens = before,
            compressed_tokens = after,
            compression_ratio = *after as f64 / (*before).max(1) as f64,
            content_type,
            request = head.id,
            model = head.told_model(),
            "smart_summarization"
        );
    }
}

#[cfg(test)]
mod tests {
    use larder_testkit::events::Events;

    use super::*;
    use crate::desk::fake;
    use crate::exchange::{Largest, Outcome};

    #[test]
    fn decisions_and_summaries_are_logged_without_a_word_of_the_clients() {
        let mut exchange = fake::exchange("ada", 1);
        let secret = "what the client wrote";
        for name in [&mut exchange.head.model, &mut exchange.compactions[0].label] {
            secret.clone_into(name);
        }
        exchange.head.session = Some(secret.to_owned());
        exchange.compactions[0].before = 15_000;
        exchange.compactions[0].after = 9_500;
        let pointer = exchange.compactions[0].clone();
        exchange.compactions.push(Compaction { to: Rendition::Condensed, ..pointer });
        let (telemetry, events) = (Telemetry::new(exchange.head.time, None), Events::default());
        let logging = tracing::subscriber::set_default(events.clone());
        telemetry.record(&exchange);
        // Nothing is condensed that is not sent, or where the policy runs dry; and vectors need no decision.
        exchange.head.outcome = Outcome::Refused;
        let large = |part: &str, tokens| Largest { part: part.to_owned(), tokens };
        exchange.head.decision.as_mut().unwrap().largest =
            vec![large("message 4 (tool)", 9_000), large("system prompt", 200)];
        telemetry.record(&exchange);
        exchange.head.outcome = Outcome::Ok;
        exchange.head.decision.as_mut().unwrap().dry_run = true;
        telemetry.record(&exchange);
        (exchange.head.decision, exchange.compactions) = (None, Vec::new());
        telemetry.record(&exchange);
        drop(logging);

        let decided = events.named("context_budget_decision");
        let dry: Vec<&str> = decided.iter().map(|event| event["dry_run"].as_str()).collect();
        assert_eq!(dry, ["false", "false", "true"]);
        let decision = &decided[0];
        for (field, value) in [
            ("request", exchange.head.id.as_str()),
            ("model", "main"),
            ("status", "needs_summary"),
            ("reason", "a tool result is over its cap"),
            ("deficit", "0"),
            ("prompt_tokens", "1440"),
            ("prompt_budget", "2000"),
            ("response_reserve", "200"),
            ("emergency_floor", "100"),
            ("largest", ""),
        ] {
            assert_eq!(decision[field], value, "{field}");
        }
        assert_eq!(decided[1]["largest"], "message 4 (tool) 9000, system prompt 200");
        let condensed = events.named("smart_summarization");
        let [summary] = condensed.as_slice() else { panic!("one summary: {condensed:?}") };
        for (field, value) in [
            ("event", "compressed"),
            ("original_tokens", "15000"),
            ("compressed_tokens", "9500"),
            ("content_type", "generic"),
        ] {
            assert_eq!(summary[field], value, "{field}");
        }
        assert!(summary["compression_ratio"].starts_with("0.633"), "{summary:?}");
        let told = decided.iter().chain(&condensed).flat_map(|event| event.values());
        assert!(told.into_iter().all(|value| !value.contains(secret)));
    }
}
