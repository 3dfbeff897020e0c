//! Reports each completed request: live totals, metrics, traces and the log, fed by one call. Knows nothing of how
//! requests are served; records must contain no payload.

use std::sync::Arc;

use larder_core::pack::Rendition;
use larder_core::policy::BudgetDecision;
use larder_proxy::record::{Compaction, Outcome, RequestRecord, RequestSummary};
use larder_store::Timestamp;

use crate::live_stats::{self, LiveStats};
use crate::metrics::{self, Metrics};
use crate::otel::Otel;

/// Totals, metrics and traces of one gateway.
#[derive(Debug)]
pub struct Telemetry {
    /// What is going on right now.
    pub live: LiveStats,
    /// Counters and histograms; runs are reported to them directly.
    pub metrics: Arc<Metrics>,
    otel: Option<Otel>,
}

/// A request that is being answered; it counts as in flight until this is dropped.
#[derive(Debug)]
pub struct InFlight {
    _metrics: metrics::InFlightGauge,
    _live: live_stats::LiveRequest,
}

impl Telemetry {
    /// Creates empty telemetry. `now` is when the gateway started; without `otel` no traces are created.
    pub fn new(now: Timestamp, otel: Option<Otel>) -> Self {
        Self { live: LiveStats::new(now), metrics: Arc::default(), otel }
    }

    /// A request of `user` has come in.
    pub fn begin(&self, user: &str) -> InFlight {
        InFlight { _metrics: self.metrics.begin(), _live: self.live.begin(user) }
    }

    /// Records a completed request, whatever its outcome. Takes microseconds, never blocks, never fails.
    pub fn record(&self, exchange: &RequestRecord) {
        let new_session = self.live.record(exchange);
        self.metrics.record(exchange, new_session);
        log_decision(&exchange.summary);
        log_failure(&exchange.summary);
        log_summaries(exchange);
        if let Some(otel) = &self.otel {
            otel.record(&exchange.summary);
        }
    }

    /// Ends the event streams of open pages, which would otherwise never end. Call this before waiting for requests
    /// in flight.
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

/// Logs every budget check and refusal (R3-4.11). The reason is Larder's own text; names chosen by clients are
/// excluded.
fn log_decision(head: &RequestSummary) {
    let Some(decision) = &head.decision else { return };
    tracing::info!(
        request = head.id,
        model = head.reported_model(),
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

/// The largest parts with their tokens, largest first; empty for a request that fits.
fn largest(decision: &BudgetDecision) -> String {
    let parts: Vec<String> =
        decision.largest.iter().map(|largest| format!("{} {}", largest.part, largest.tokens)).collect();
    parts.join(", ")
}

/// Logs the first model call of a request (R4-8.3), with `input_tokens` as counted by Larder.
pub fn log_call(head: &RequestSummary, input_tokens: u64) {
    tracing::info!(
        request = head.id,
        operation = head.endpoint.as_str(),
        model = head.reported_model(),
        input_tokens,
        "call_started"
    );
}

/// Logs the end of all model calls of a request (R4-8.4, R4-8.5).
pub fn log_called(head: &RequestSummary) {
    let duration_ms = head.times.upstream_us / 1_000;
    let (request, operation, model) = (&head.id, head.endpoint.as_str(), head.reported_model());
    if head.outcome != Outcome::Ok {
        let error = head.error.as_deref().unwrap_or(head.outcome.as_str());
        tracing::info!(request, operation, model, duration_ms, error, "call_failed");
        return;
    }
    tracing::info!(
        request,
        operation,
        model,
        input_tokens = head.usage.map(|usage| usage.input),
        output_tokens = head.usage.map(|usage| usage.output),
        duration_ms,
        cost_usd = head.bill.map(|bill| bill.cost.to_string()),
        "call_completed"
    );
}

/// What became of a request that failed, on either side. Names that clients chose stay out.
fn log_failure(head: &RequestSummary) {
    if head.outcome != Outcome::Ok {
        tracing::info!(
            request = head.id,
            model = head.reported_model(),
            status = head.status,
            outcome = ?head.outcome,
            error = head.error,
            "request_failed"
        );
    }
}

/// Logs every part that was condensed (R0-27.6) outside recipes and layers. Whatever was not sent, or sent unchanged,
/// was not condensed.
fn log_summaries(exchange: &RequestRecord) {
    let head = &exchange.summary;
    // A larger budget may show more of a message that was condensed before.
    let is_summary = |compaction: &&Compaction| {
        compaction.to == Rendition::Condensed && compaction.after < compaction.before
    };
    for compaction in exchange.compactions.iter().filter(is_summary).filter(|_| head.took_effect()) {
        let Compaction { before, after, content_type, .. } = compaction;
        tracing::info!(
            event = "compressed",
            original_tokens = before,
            compressed_tokens = after,
            compression_ratio = *after as f64 / (*before).max(1) as f64,
            content_type,
            request = head.id,
            model = head.reported_model(),
            "smart_summarization"
        );
    }
}

#[cfg(test)]
mod tests {
    use larder_testkit::events::Events;

    use super::*;
    use larder_core::policy::LargestPart;
    use larder_proxy::record::Outcome;
    use larder_testkit::records as fake;

    /// Fields of an event that the reference does not name, in the column of requests.
    fn unnamed(events: &Events, event: &str) -> Vec<String> {
        let page = include_str!("../../../docs/reference/telemetry.md");
        let row = page.lines().find(|line| line.starts_with(&format!("| `{event}` |"))).expect(event);
        let named = row.split(" | ").nth(2).expect(event);
        let fields = events.named(event).into_iter().flat_map(std::collections::BTreeMap::into_keys);
        fields.filter(|field| field != "message" && !named.contains(&format!("`{field}`"))).collect()
    }

    #[test]
    fn calls_are_logged_from_their_beginning_to_their_end_and_every_event_is_in_the_reference() {
        let mut exchange = fake::exchange("ada", 1);
        exchange.compactions[0].to = Rendition::Condensed;
        let (telemetry, events) = (Telemetry::new(exchange.summary.time, None), Events::default());
        let logging = tracing::subscriber::set_default(events.clone());
        log_call(&exchange.summary, 1_440);
        log_called(&exchange.summary);
        telemetry.record(&exchange);
        exchange.summary.outcome = Outcome::UpstreamFailed;
        exchange.summary.error = Some("timeout".to_owned());
        log_called(&exchange.summary);
        telemetry.record(&exchange);
        drop(logging);
        let started = events.named("call_started").remove(0);
        assert_eq!((started["model"].as_str(), started["input_tokens"].as_str()), ("main", "1440"));
        let completed = events.named("call_completed");
        assert_eq!(completed.len(), 1);
        for (field, value) in [
            ("operation", "chat"),
            ("input_tokens", "1450"),
            ("output_tokens", "50"),
            ("duration_ms", "898"),
            ("cost_usd", "0.002"),
        ] {
            assert_eq!(completed[0][field], value, "{field}");
        }
        assert_eq!(events.named("call_failed").remove(0)["error"], "timeout");
        for event in [
            "context_budget_decision",
            "smart_summarization",
            "call_started",
            "call_completed",
            "call_failed",
            "request_failed",
        ] {
            assert!(!events.named(event).is_empty(), "{event}");
            assert_eq!(unnamed(&events, event), Vec::<String>::new(), "{event}: docs/reference/telemetry.md");
        }
    }

    #[test]
    fn a_message_of_which_more_is_shown_is_not_logged_as_compressed() {
        let mut exchange = fake::exchange("ada", 1);
        let expansion = Compaction {
            to: Rendition::Condensed,
            before: 500,
            after: 900,
            ..exchange.compactions[0].clone()
        };
        exchange.compactions = vec![expansion];
        let (telemetry, events) = (Telemetry::new(exchange.summary.time, None), Events::default());
        let logging = tracing::subscriber::set_default(events.clone());
        telemetry.record(&exchange);
        drop(logging);
        assert!(!events.named("context_budget_decision").is_empty());
        assert!(events.named("smart_summarization").is_empty());
    }

    #[test]
    fn decisions_and_summaries_are_logged_without_a_word_of_the_clients() {
        let mut exchange = fake::exchange("ada", 1);
        let secret = "what the client wrote";
        for name in [&mut exchange.summary.model, &mut exchange.compactions[0].label] {
            secret.clone_into(name);
        }
        exchange.summary.session = Some(secret.to_owned());
        exchange.compactions[0].before = 15_000;
        exchange.compactions[0].after = 9_500;
        let pointer = exchange.compactions[0].clone();
        exchange.compactions.push(Compaction { to: Rendition::Condensed, ..pointer });
        let (telemetry, events) = (Telemetry::new(exchange.summary.time, None), Events::default());
        let logging = tracing::subscriber::set_default(events.clone());
        telemetry.record(&exchange);
        // Nothing is condensed that is not sent, or where the policy runs dry; and vectors need no decision.
        exchange.summary.outcome = Outcome::Refused;
        let large = |part: &str, tokens| LargestPart { part: part.to_owned(), tokens };
        exchange.summary.decision.as_mut().unwrap().largest =
            vec![large("message 4 (tool)", 9_000), large("system prompt", 200)];
        telemetry.record(&exchange);
        exchange.summary.outcome = Outcome::Ok;
        exchange.summary.decision.as_mut().unwrap().dry_run = true;
        telemetry.record(&exchange);
        (exchange.summary.decision, exchange.compactions) = (None, Vec::new());
        telemetry.record(&exchange);
        drop(logging);

        let decided = events.named("context_budget_decision");
        let dry: Vec<&str> = decided.iter().map(|event| event["dry_run"].as_str()).collect();
        assert_eq!(dry, ["false", "false", "true"]);
        let decision = &decided[0];
        for (field, value) in [
            ("request", exchange.summary.id.as_str()),
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
