//! Counters and histograms of the whole gateway in the OpenMetrics text format, which Prometheus reads. Names without
//! a prefix are those of R0-27, R3-2, R3-4 and R3-6. Labels are Larder's own words, names from the model table, and a
//! few names that the catalogue has or a provider confirmed, or of tools that were read back from: their number is bounded.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use larder_core::pack::Rendition;
use larder_engine::executor::{ReducedText, RunMetricsSink, RunReport};
use larder_models::price::Usd;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

use larder_core::policy::BudgetStatus;
use larder_proxy::record::{
    Bill, Compaction, ModelShare, NO_MODEL, OTHER_MODEL, Rehydration, RequestRecord, RequestSummary,
};
use larder_text::usage::Usage;

/// The content type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Maximum models with their own label; repeatedly replaced tables cannot add labels without end.
const MAX_MODELS: usize = 200;
/// Maximum tools with their own label; clients choose these names.
const MAX_TOOLS: usize = 50;
/// Maximum models outside the table with their own label.
const MAX_UNLISTED: usize = 50;
/// The label of all other models, and of other tools.
const OTHER: &str = OTHER_MODEL;
/// The label where no model was found for a request.
const NONE: &str = NO_MODEL;

/// Seconds, from 50 µs on.
const SECONDS: [f64; 16] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0,
    30.0, 120.0,
];
/// Milliseconds that condensing takes.
const MILLISECONDS: [f64; 11] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 250.0, 1_000.0];
/// Tokens.
const TOKENS: [f64; 10] =
    [100.0, 300.0, 1_000.0, 3_000.0, 10_000.0, 30_000.0, 100_000.0, 300_000.0, 1_000_000.0, 3_000_000.0];
/// Picodollars of a dollar.
const PICOS: f64 = 1e12;

type Dollars = Counter<f64, AtomicU64>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    wire: &'static str,
    model: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DecisionLabels {
    status: &'static str,
    dry_run: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModelLabels {
    model: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    model: String,
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ToolLabels {
    tool: String,
}

/// The metrics of one gateway.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    tools: Mutex<BTreeSet<String>>,
    models: Mutex<BTreeSet<String>>,
    unlisted: Mutex<BTreeSet<String>>,
    budget_violation: Counter,
    budget_decision: Family<DecisionLabels, Counter>,
    overflow_warnings: Counter,
    compression_invocations: Counter,
    compression_latency_ms: Histogram,
    tokens_saved: Histogram,
    summary_count: Counter,
    pointer_count: Counter,
    pointer_refetch_count: Counter,
    readings: Family<ToolLabels, Counter>,
    reading_tokens: Family<ToolLabels, Counter>,
    reading_cost: Family<ToolLabels, Dollars>,
    compactions: Counter,
    sessions: Counter,
    compactions_per_session: Gauge<f64, AtomicU64>,
    requests: Family<RequestLabels, Counter>,
    records_lost: Counter,
    in_flight: Gauge,
    degraded: Gauge,
    overhead: Histogram,
    duration: Histogram,
    upstream: Histogram,
    prompt_tokens: Family<KindLabels, Counter>,
    usage_tokens: Family<KindLabels, Counter>,
    cost: Family<ModelLabels, Dollars>,
    cost_without: Family<ModelLabels, Dollars>,
}

/// A request that is being answered.
#[derive(Debug)]
pub(crate) struct InFlightGauge(Gauge);

impl Drop for InFlightGauge {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Registers metrics while the struct of them is written down.
struct Register(Registry);

impl Register {
    fn add<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: M) -> M {
        self.0.register(name, help, metric.clone());
        metric
    }

    fn counter(&mut self, name: &str, help: &str) -> Counter {
        self.add(name, help, Counter::default())
    }

    fn histogram(&mut self, name: &str, help: &str, buckets: &[f64]) -> Histogram {
        self.add(name, help, Histogram::new(buckets.iter().copied()))
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let mut to = Register(Registry::default());
        let metrics = Self {
            tools: Mutex::default(),
            models: Mutex::default(),
            unlisted: Mutex::default(),
            budget_violation: to.counter(
                "context_budget_violation",
                "Prompts over their budget, as the provider counts them where it reports it; stays 0",
            ),
            budget_decision: to.add(
                "context_budget_decision",
                "Decisions of the context policy by status",
                Family::default(),
            ),
            overflow_warnings: to.counter("overflow_warnings", "Prompts that could not be made to fit"),
            compression_invocations: to.counter("compression_invocations", "Times something was condensed"),
            compression_latency_ms: to.histogram(
                "compression_latency_ms",
                "Time to decide and condense, in milliseconds, for prompts in which a part changed form",
                &MILLISECONDS,
            ),
            tokens_saved: to.histogram("tokens_saved", "Tokens saved by one compaction", &TOKENS),
            summary_count: to.counter("summary_count", "Parts that were condensed"),
            pointer_count: to.counter("pointer_count", "Parts that were replaced by a pointer"),
            pointer_refetch_count: to.counter("pointer_refetch_count", "Originals that models read back"),
            readings: to.add(
                "larder_read_back",
                "Originals that models read back, by the tool whose results they are",
                Family::default(),
            ),
            reading_tokens: to.add(
                "larder_read_back_tokens",
                "Tokens of the further calls of models that reading back took",
                Family::default(),
            ),
            reading_cost: to.add(
                "larder_read_back_cost_usd",
                "Cost of these calls, in US dollars",
                Family::default(),
            ),
            compactions: to.counter("compactions", "Parts of conversations whose form changed"),
            sessions: to.counter("sessions", "Sessions seen"),
            compactions_per_session: to.add(
                "compactions_per_session",
                "Compactions per session, on average since the start",
                Gauge::default(),
            ),
            requests: to.add("larder_requests", "Requests that ended", Family::default()),
            records_lost: to.counter(
                "larder_records_lost",
                "Records of requests that could not be stored, as with a full disk: costs and lists lack these requests",
            ),
            in_flight: to.add("larder_requests_in_flight", "Requests being answered", Gauge::default()),
            degraded: to.add(
                "larder_store_degraded",
                "1 while the store cannot write: what fits whole goes whole, the rest is refused",
                Gauge::default(),
            ),
            overhead: to.histogram(
                "larder_gateway_overhead_seconds",
                "Duration of a request without the wait for the upstream",
                &SECONDS,
            ),
            duration: to.histogram("larder_request_duration_seconds", "Duration of a request", &SECONDS),
            upstream: to.histogram(
                "larder_upstream_wait_seconds",
                "Time that a request waited for the upstream",
                &SECONDS,
            ),
            prompt_tokens: to.add(
                "larder_prompt_tokens",
                "Prompt tokens as counted by Larder, before and after the policy",
                Family::default(),
            ),
            usage_tokens: to.add(
                "larder_usage_tokens",
                "Tokens as providers reported them",
                Family::default(),
            ),
            cost: to.add("larder_cost_usd", "Cost of requests, in US dollars", Family::default()),
            cost_without: to.add(
                "larder_cost_without_usd",
                "Cost of the same requests without Larder, cache effects included, in US dollars",
                Family::default(),
            ),
            registry: to.0,
        };
        metrics.zero();
        metrics
    }
}

impl Metrics {
    /// Makes series that dashboards watch exist before anything happened.
    fn zero(&self) {
        for status in BudgetStatus::ALL {
            for dry_run in ["false", "true"] {
                drop(
                    self.budget_decision.get_or_create(&DecisionLabels { status: status.as_str(), dry_run }),
                );
            }
        }
    }

    /// Counts records of requests that could not be stored.
    pub fn lose_records(&self, records: usize) {
        self.records_lost.inc_by(records as u64);
    }

    /// Notes whether the store can write.
    pub fn set_degraded(&self, degraded: bool) {
        self.degraded.set(i64::from(degraded));
    }

    /// Counts a request until the guard is dropped.
    pub(crate) fn begin(&self) -> InFlightGauge {
        self.in_flight.inc();
        InFlightGauge(self.in_flight.clone())
    }

    /// Takes in a request that ended.
    pub(crate) fn record(&self, exchange: &RequestRecord, new_session: bool) {
        let head = &exchange.summary;
        let model = self.model(head);
        let (wire, outcome) = (head.endpoint.as_str(), head.outcome.as_str());
        self.requests.get_or_create(&RequestLabels { wire, model: model.clone(), outcome }).inc();
        let seconds = |micros: u64| micros as f64 / 1e6;
        self.overhead.observe(seconds(head.times.overhead_us()));
        self.duration.observe(seconds(head.times.total_us));
        if head.times.upstream_us > 0 {
            self.upstream.observe(seconds(head.times.upstream_us));
        }
        self.decide(head);
        self.sessions.inc_by(u64::from(new_session));
        self.pointer_refetch_count.inc_by(head.shape.rehydrations);
        exchange.rehydrations.iter().for_each(|read| self.read_back(read));
        if head.took_effect() && !exchange.compactions.is_empty() {
            self.compression_latency_ms.observe(head.times.policy_us as f64 / 1e3);
            for Compaction { to, before, after, .. } in &exchange.compactions {
                self.compactions.inc();
                self.shrink(*to, *before, *after);
            }
        }
        if head.outcome.sent() {
            self.spend(head, &model);
        }
    }

    fn read_back(&self, read: &Rehydration) {
        let tool = match read.tool.as_str() {
            "" => NONE,
            tool if is_tool_name(tool) && has_room(&self.tools, tool, MAX_TOOLS) => tool,
            _ => OTHER,
        };
        let label = ToolLabels { tool: tool.to_owned() };
        self.readings.get_or_create(&label).inc();
        self.reading_tokens.get_or_create(&label).inc_by(read.spent_tokens);
        if let Some(cost) = read.cost {
            self.reading_cost.get_or_create(&label).inc_by(cost.picos() as f64 / PICOS);
        }
    }

    fn decide(&self, head: &RequestSummary) {
        self.budget_violation.inc_by(head.violations);
        if let Some(decision) = &head.decision {
            self.decided(decision.status.as_str(), decision.dry_run);
        }
    }

    fn decided(&self, status: &'static str, dry_run: bool) {
        let dry_run = if dry_run { "true" } else { "false" };
        self.budget_decision.get_or_create(&DecisionLabels { status, dry_run }).inc();
        self.overflow_warnings.inc_by(u64::from(status == BudgetStatus::Reject.as_str()));
    }

    fn shrink(&self, to: Rendition, before: u64, after: u64) {
        self.tokens_saved.observe(before.saturating_sub(after) as f64);
        match to {
            Rendition::Condensed => {
                self.compression_invocations.inc();
                self.summary_count.inc();
            }
            Rendition::Pointer => drop(self.pointer_count.inc()),
            Rendition::Whole | Rendition::Absent => {}
        }
    }

    fn spend(&self, head: &RequestSummary, model: &str) {
        let count = |family: &Family<KindLabels, Counter>, kind, tokens| {
            family.get_or_create(&KindLabels { model: model.to_owned(), kind }).inc_by(tokens);
        };
        count(&self.prompt_tokens, "before", head.tokens.before);
        count(&self.prompt_tokens, "after", head.tokens.after);
        let used = |model: &str, usage: &Usage| {
            let count = |kind, tokens| {
                self.usage_tokens.get_or_create(&KindLabels { model: model.to_owned(), kind }).inc_by(tokens);
            };
            count("input", usage.input);
            count("cached_input", usage.cached_input);
            count("cache_write", usage.cache_write);
            count("output", usage.output);
        };
        let billed = |model: &str, bill: Bill| {
            let label = ModelLabels { model: model.to_owned() };
            let dollars = |amount: Usd| amount.picos() as f64 / PICOS;
            self.cost.get_or_create(&label).inc_by(dollars(bill.cost));
            self.cost_without.get_or_create(&label).inc_by(dollars(bill.without));
        };
        for ModelShare { model, usage, cost, .. } in &head.models {
            let model = self.listed(model);
            used(&model, usage);
            if let Some(cost) = *cost {
                billed(&model, Bill { cost, without: cost });
            }
        }
        if head.models.is_empty() {
            head.usage.iter().for_each(|usage| used(model, usage));
            head.bill.into_iter().for_each(|bill| billed(model, bill));
        }
    }

    /// The label of a model of the table.
    fn listed(&self, model: &str) -> String {
        if has_room(&self.models, model, MAX_MODELS) { model.to_owned() } else { OTHER.to_owned() }
    }

    /// The label of the model that answered.
    fn model(&self, head: &RequestSummary) -> String {
        let Some(model) = head.reported_model() else { return NONE.to_owned() };
        let is_listed = head.answered_by.as_ref().is_some_and(|model| model.server.is_none());
        if is_listed || model == OTHER {
            return self.listed(model);
        }
        // Clients choose these names, so they do not use up the labels for the table's models.
        if has_room(&self.unlisted, model, MAX_UNLISTED) { model.to_owned() } else { OTHER.to_owned() }
    }

    /// All metrics in the text format of OpenMetrics.
    ///
    /// # Errors
    /// If a metric cannot be written, which is a bug.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let sessions = self.sessions.get();
        let compactions = if sessions == 0 { 0.0 } else { self.compactions.get() as f64 / sessions as f64 };
        self.compactions_per_session.set(compactions);
        let mut out = String::new();
        text::encode(&mut out, &self.registry)?;
        Ok(out)
    }
}

/// Whether this is what providers accept as the name of a tool.
fn is_tool_name(name: &str) -> bool {
    name.len() <= 64 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Whether a name is among those that have a label, now that it may have been added.
fn has_room(names: &Mutex<BTreeSet<String>>, name: &str, max: usize) -> bool {
    let mut names = names.lock().unwrap_or_else(PoisonError::into_inner);
    let is_known = names.contains(name);
    if !is_known && names.len() < max {
        return names.insert(name.to_owned());
    }
    is_known
}

/// What the engine does for any caller: recipes as models, turns, tools over MCP. Requests are not runs, so nothing
/// is counted twice.
impl RunMetricsSink for Metrics {
    fn run_ended(&self, report: &RunReport) {
        if let Some(status) = report.status {
            self.decided(status.as_str(), false);
        }
        self.budget_violation.inc_by(u64::from(report.violates));
        if !report.shrunk.is_empty() {
            self.compression_latency_ms.observe(report.packing.as_secs_f64() * 1e3);
        }
        for ReducedText { to, before, after } in &report.shrunk {
            self.shrink(*to, *before as u64, *after as u64);
        }
    }

    fn text_condensed(&self, ReducedText { to, before, after }: ReducedText, took: Duration) {
        self.compression_latency_ms.observe(took.as_secs_f64() * 1e3);
        self.shrink(to, before as u64, after as u64);
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
