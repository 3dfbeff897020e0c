//! Traces for an OpenTelemetry collector: one span per request, with the GenAI attribute names. Off unless an
//! endpoint is configured. Contains sizes, table names and hashes only: nothing that a client wrote is sent.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use larder_models::chat::ModelError;
use larder_models::plain_client::PlainClient;
use larder_text::hash::ContentHash;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{Span, SpanKind, Status, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, SpanExporter as Exporter};
use tokio::runtime::Handle;

use larder_proxy::record::{Endpoint, Outcome, RequestSummary};

/// The path for traces under the collector's address.
const PATH: &str = "v1/traces";
/// Timeout for the collector to accept a batch.
const LIMIT: Duration = Duration::from_secs(10);
/// Digits of a hash that replaces a name.
const HASH_DIGITS: usize = 16;

/// Traces that cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum OtelError {
    /// The address cannot be used.
    #[error(transparent)]
    Address(#[from] ModelError),
    /// The exporter cannot be created.
    #[error("cannot export traces: {0}")]
    Exporter(#[from] ExporterBuildError),
}

/// The way to one collector.
pub struct Otel {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

impl fmt::Debug for Otel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Otel(..)")
    }
}

/// Sends the exporter's output. The exporter runs on its own thread, outside the runtime.
#[derive(Debug)]
struct Sender {
    collector: Arc<PlainClient>,
    runtime: Handle,
}

type SentSpan<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for Sender {
    fn send_bytes<'a, 'sent>(&'a self, request: Request<Bytes>) -> SentSpan<'sent>
    where
        'a: 'sent,
        Self: 'sent,
    {
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let collector = Arc::clone(&self.collector);
            let call = async move { collector.post_bytes(PATH, head.headers, body).await };
            let sent = self.runtime.spawn(call).await?;
            if let Err(error) = &sent {
                tracing::warn!(%error, "traces were not sent");
            }
            let (status, body) = sent?;
            Ok(Response::builder().status(status).body(body)?)
        })
    }
}

impl Otel {
    /// The way to the collector at `endpoint`, such as `http://127.0.0.1:4318`. To be called inside the runtime.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub fn new(endpoint: &str) -> Result<Self, OtelError> {
        let collector = Arc::new(PlainClient::new("the collector of traces", endpoint, None, LIMIT)?);
        let sender = Sender { collector, runtime: Handle::current() };
        let address = format!("{}/{PATH}", endpoint.trim_end_matches('/'));
        let exporter =
            SpanExporter::builder().with_http().with_http_client(sender).with_endpoint(address).build()?;
        Ok(Self::to(exporter))
    }

    fn to(exporter: impl Exporter + 'static) -> Self {
        let resource = Resource::builder()
            .with_service_name("larder")
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        let provider =
            SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter).build();
        let tracer = provider.tracer("larder");
        Self { provider, tracer }
    }

    /// Queues the span of a completed request. Drops it if the queue is full; never waits.
    pub fn record(&self, head: &RequestSummary) {
        let start = UNIX_EPOCH + Duration::from_millis(head.time.as_millis());
        let end = start + Duration::from_micros(head.times.total_us);
        let mut span = self.tracer.build_with_context(
            self.tracer
                .span_builder(name(head))
                .with_kind(SpanKind::Client)
                .with_start_time(start)
                .with_attributes(attributes(head)),
            &parent(head),
        );
        if !matches!(head.outcome, Outcome::Ok | Outcome::ClientGone) {
            span.set_status(Status::error(head.outcome.as_str()));
        }
        span.end_with_timestamp(end);
    }

    /// Sends the queue and stops. Blocks for up to five seconds.
    pub fn shutdown(&self) {
        if let Err(error) = self.provider.shutdown() {
            tracing::warn!(%error, "the last traces were not sent");
        }
    }
}

/// The trace that the client named, if it did.
fn parent(head: &RequestSummary) -> Context {
    let Some(traceparent) = &head.traceparent else { return Context::new() };
    let carrier = HashMap::from([("traceparent".to_owned(), traceparent.clone())]);
    TraceContextPropagator::new().extract_with_context(&Context::new(), &carrier)
}

const fn operation(wire: Endpoint) -> &'static str {
    match wire {
        Endpoint::Generate(_) => "chat",
        Endpoint::Embeddings => "embeddings",
        Endpoint::CountTokens => "count_tokens",
        Endpoint::Passed => "passed",
    }
}

/// The name of the span: operation and model of the table.
fn name(head: &RequestSummary) -> String {
    let model = head.answered_by.as_ref().map_or("", |model| &model.id);
    format!("{} {model}", operation(head.endpoint)).trim_end().to_owned()
}

/// The hash of a client-chosen name: equal names have equal hashes, which reveal nothing else.
fn hashed(name: &str) -> String {
    let mut hash = ContentHash::new(name.as_bytes()).to_hex();
    hash.truncate(HASH_DIGITS);
    hash
}

fn attributes(head: &RequestSummary) -> Vec<KeyValue> {
    let count = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let mut out = vec![
        KeyValue::new("gen_ai.operation.name", operation(head.endpoint)),
        KeyValue::new("http.response.status_code", i64::from(head.status)),
        KeyValue::new("larder.request.id", head.id.clone()),
        KeyValue::new("larder.wire", head.endpoint.as_str()),
        KeyValue::new("larder.outcome", head.outcome.as_str()),
        KeyValue::new("larder.stream", head.stream),
        KeyValue::new("larder.user.hash", hashed(&head.user)),
        KeyValue::new("larder.tokens.before", count(head.tokens.before)),
        KeyValue::new("larder.tokens.after", count(head.tokens.after)),
        KeyValue::new("larder.tokens.budget", count(head.tokens.budget)),
        KeyValue::new("larder.parts.condensed", count(head.shape.parts.condensed)),
        KeyValue::new("larder.parts.pointer", count(head.shape.parts.pointer)),
        KeyValue::new("larder.compactions", count(head.shape.compactions)),
        KeyValue::new("larder.rehydrations", count(head.shape.rehydrations)),
        KeyValue::new("larder.overhead_us", count(head.times.overhead_us())),
    ];
    if let Some(model) = &head.answered_by {
        out.push(KeyValue::new("gen_ai.provider.name", model.provider.info().telemetry_name));
        out.push(KeyValue::new("gen_ai.request.model", model.id.clone()));
    }
    if head.tokens.output > 0 {
        out.push(KeyValue::new("gen_ai.request.max_tokens", count(head.tokens.output)));
    }
    if let Some(usage) = &head.usage {
        out.push(KeyValue::new("gen_ai.usage.input_tokens", count(usage.input)));
        out.push(KeyValue::new("gen_ai.usage.output_tokens", count(usage.output)));
        out.push(KeyValue::new("gen_ai.usage.cache_read.input_tokens", count(usage.cached_input)));
        out.push(KeyValue::new("gen_ai.usage.cache_creation.input_tokens", count(usage.cache_write)));
    }
    if let Some(session) = &head.session {
        out.push(KeyValue::new("gen_ai.conversation.id", hashed(session)));
    }
    if let Some(decision) = &head.decision {
        out.push(KeyValue::new("larder.decision.status", decision.status.as_str()));
        out.push(KeyValue::new("larder.decision.deficit", count(decision.deficit as u64)));
        out.push(KeyValue::new("larder.decision.dry_run", decision.dry_run));
    }
    if let Some(recipe) = &head.recipe {
        out.push(KeyValue::new("larder.recipe", recipe.clone()));
    }
    if !matches!(head.outcome, Outcome::Ok) {
        let class = head.error.clone().unwrap_or_else(|| head.outcome.as_str().to_owned());
        out.push(KeyValue::new("error.type", class));
    }
    out
}

#[cfg(test)]
#[path = "otel_tests.rs"]
mod tests;
