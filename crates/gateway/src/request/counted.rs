//! Requests of which nothing is decided, but which are counted and billed: embeddings, and the compaction of a history by
//! its provider. Their replies come in one piece, with their usage.

use std::sync::Arc;
use std::time::Instant;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use larder_engine::blocking;
use larder_models::upstream::{Incoming, UpstreamTarget};
use larder_proxy::record::{Endpoint, Tokens, cut_name};
use larder_proxy::wire::{ApiDialect, PartialUsage, WholeReply};
use larder_text::hash::ContentHash;
use larder_text::json as spans;

use crate::app::{App, Snapshot};
use crate::auth::Caller;
use crate::error::RequestError;
use crate::request::active::ActiveRequest;
use crate::request::bill::{self, Pricing};
use crate::request::relay::{self, InFlightRequest};
use crate::request::{outgoing, patience, read, reply};

/// Bytes of vectors, and of a compacted history.
const MAX_REPLY_BYTES: usize = 64 << 20;

type AppState = State<Arc<App>>;

/// `POST /v1/embeddings`.
pub async fn embeddings(state: AppState, caller: Extension<Caller>, request: Request) -> Response {
    answer(state, caller, Endpoint::Embeddings, request).await
}

/// `POST /v1/responses/compact`: billed like a reply. The history passes whole, since the provider seals what it makes of
/// it.
pub async fn compact(state: AppState, caller: Extension<Caller>, request: Request) -> Response {
    answer(state, caller, Endpoint::Generate(ApiDialect::Responses), request).await
}

async fn answer(
    State(app): AppState,
    Extension(caller): Extension<Caller>,
    endpoint: Endpoint,
    request: Request,
) -> Response {
    let dialect = endpoint.dialect().unwrap_or(ApiDialect::Chat);
    let (parts, body) = request.into_parts();
    let mut active = match ActiveRequest::open(&app, &caller, endpoint, &parts.headers) {
        Ok(active) => active,
        Err(error) => return reply::error(dialect, &error),
    };
    active.record.summary.route = Some(cut_name(&format!("{} {}", parts.method, parts.uri.path())));
    let current = app.current();
    let body = match read(&mut active, &parts.headers, body, &current.gateway).await {
        Ok(body) => body,
        Err(error) => return reply::refuse(active, dialect, error),
    };
    let snapshot = Arc::clone(&current);
    let ready = blocking::run(move || {
        let ready = ready(&mut active, &snapshot, body);
        (active, ready)
    });
    let (mut active, ready) = match ready.await {
        Ok((active, Ok(ready))) => (active, ready),
        Ok((active, Err(error))) => return reply::refuse(active, dialect, error),
        Err(error) => return reply::error(dialect, &RequestError::bug(&error.to_string())),
    };
    let sending = InFlightRequest {
        outgoing: outgoing(&ready.target, &parts, ready.body),
        patience: patience(&current.gateway),
        target: ready.target,
    };
    match sending.send(&mut active).await {
        Ok(incoming) if incoming.status.is_success() => relay_whole(active, dialect, incoming).await,
        Ok(incoming) => {
            let ours = reply::ours(&active.record);
            relay::pass(active, incoming, &ours)
        }
        Err(error) => reply::refuse(active, dialect, error.into()),
    }
}

/// A request that may leave.
struct CountedRequest {
    target: Arc<UpstreamTarget>,
    body: Bytes,
}

fn ready(
    active: &mut ActiveRequest,
    current: &Snapshot,
    body: Bytes,
) -> Result<CountedRequest, RequestError> {
    let text = std::str::from_utf8(&body).map_err(|error| RequestError::invalid(error.to_string()))?;
    let document =
        spans::Document::parse_request(text).map_err(|error| RequestError::invalid(error.to_string()))?;
    let member = |name| document.root().given(name);
    let Some(model) = member("model") else {
        return Err(RequestError::invalid("model: name the model to ask"));
    };
    let name = model.text().ok_or_else(|| RequestError::invalid("model: expected a string"))?;
    active.set_model(&name);
    let endpoint = active.record.summary.endpoint;
    let route = current.routes.find(endpoint, &name, current.shared())?;
    let counts = active.app().caches.counts(&route.counter);
    let counted = |name| {
        let text = member(name).map_or("", spans::Value::raw);
        let hash = ContentHash::new(text.as_bytes());
        let tokens = counts.get(&hash).unwrap_or_else(|| {
            let tokens = route.counter.count(text);
            counts.insert(hash, tokens);
            tokens
        });
        u64::try_from(tokens).unwrap_or(u64::MAX)
    };
    let tokens = counted("input").saturating_add(counted("instructions"));
    active.record.summary.tokens =
        Tokens { messages: tokens, before: tokens, after: tokens, ..Tokens::default() };
    if endpoint != Endpoint::Embeddings {
        let longest = route.policy.longest_reply();
        active.usage.longest = longest.map_or(0, |tokens| u64::try_from(tokens).unwrap_or(u64::MAX));
    }
    active.set_route(&route);
    let service = member("service_tier").and_then(spans::Value::text);
    let may = bill::billable(ApiDialect::Responses, service.as_deref(), text);
    active.budget.pricing = route.prices.map(|prices| Pricing { prices, before: 0, may });
    active.reserve()?;
    let body = match route.rename {
        false => body.clone(),
        true => {
            let with = serde_json::to_string(&route.model.id).unwrap_or_default();
            let edit = spans::Edit { range: model.span(), with };
            spans::apply(text, vec![edit]).map_err(|error| RequestError::bug(&error.to_string()))?.into()
        }
    };
    Ok(CountedRequest { target: route.target, body })
}

/// Relays a reply once it is there with its usage.
async fn relay_whole(mut active: ActiveRequest, dialect: ApiDialect, mut incoming: Incoming) -> Response {
    let started = Instant::now();
    let body = match incoming.body(MAX_REPLY_BYTES).await {
        Ok(body) => body,
        Err(error) => return reply::refuse(active, dialect, error.into()),
    };
    active.timing.add_wait(started.elapsed());
    let mut whole = WholeReply::new(dialect, None);
    if std::str::from_utf8(&body).is_ok_and(|text| whole.take(text).is_ok())
        && let Some(used) = whole.rounds().last().usage
    {
        active.usage.update(PartialUsage::complete(used));
    }
    active.complete(incoming.status);
    let ours = reply::ours(&active.record);
    active.finish();
    reply::copied(&incoming, &ours, true).body(Body::from(body)).unwrap_or_default()
}
