//! The way of one request: read, decide, store, send, relay, record. Knows HTTP and the order of things; what a format
//! looks like is `wire`'s business, what stands in the window the policy's.

mod bill;
pub mod cache;
mod fault;
pub mod inspect;
mod ledger;
mod made;
mod others;
mod prepare;
mod recipes;
pub mod recorder;
mod rehydrate;
mod relay;
mod reply;
pub mod route;
mod shelf;
mod taken;
mod transcript;

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_ENCODING, HeaderName, HeaderValue};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::{any, get, post};
use axum::{Extension, Router};
use bytes::Bytes;
use larder_engine::settings::GatewaySettings;
use larder_models::upstream::{self, Outgoing, RetryLimits, UpstreamTarget};
use larder_proxy::record::{Endpoint, Outcome};
use larder_proxy::wire::ApiDialect;

use crate::app::{App, Snapshot};
use crate::auth::{ApiKey, Caller};
use crate::limits::{drain, read_body};
pub use fault::Fault;
use ledger::Ledger;
use prepare::{Ready, Way};
use relay::{Call, Sending};
pub use reply::error;
pub use shelf::Shelf;

/// Beginning of the names of models that are recipes.
pub const RECIPE: &str = "recipe/";

/// Bytes of a body that is decided over at once where it begins a conversation: handing it to another thread would take
/// longer.
const SMALL: usize = 4 << 10;

/// Everything below `/v1`.
pub fn router() -> Router<Arc<App>> {
    let completes = |wire, format| {
        post(
            move |State(app): State<Arc<App>>, Extension(caller): Extension<Caller>, request: Request| async move {
                complete(app, caller, wire, format, request).await
            },
        )
    };
    Router::new()
        .route("/v1/chat/completions", completes(Endpoint::Chat, ApiDialect::Chat))
        .route("/v1/responses", completes(Endpoint::Responses, ApiDialect::Responses))
        .route("/v1/messages", completes(Endpoint::Messages, ApiDialect::Messages))
        .route("/v1/messages/count_tokens", completes(Endpoint::CountTokens, ApiDialect::Messages))
        .route("/v1/embeddings", post(others::embeddings))
        .route("/v1/models", get(others::models))
        .route("/v1/models/{*id}", get(others::model))
        .route("/v1/{*path}", any(others::pass))
        .route("/model/{*path}", any(others::pass))
}

/// One request to a model or a recipe.
async fn complete(
    app: Arc<App>,
    caller: Caller,
    wire: Endpoint,
    format: ApiDialect,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    app.recorder.has_room().await;
    let current = app.current();
    let mut ledger = match Ledger::open(&app, &caller, wire, &parts.headers) {
        Ok(ledger) => ledger,
        Err(fault) => {
            drain(body, current.gateway.body_timeout).await;
            return reply::error(format, &fault);
        }
    };
    let body = match read(&mut ledger, &parts.headers, body, &current.gateway).await {
        Ok(body) => body,
        Err(fault) => return reply::refuse(ledger, format, fault),
    };
    let is_quick = body.len() <= SMALL && !prepare::may_go_on(format, &body);
    if is_quick && ledger.caller.limits.is_unlimited() {
        let way = prepare::prepare(&mut ledger, &current, format, &parts.headers, body);
        return answer(ledger, way, format, &parts, &current).await;
    }
    // Reads the store, and computes for as long as the body is large: not on the threads that serve everybody.
    let (headers, snapshot) = (parts.headers.clone(), Arc::clone(&current));
    let prepared = tokio::task::spawn_blocking(move || {
        let way = prepare::prepare(&mut ledger, &snapshot, format, &headers, body);
        (ledger, way)
    });
    match prepared.await {
        Ok((ledger, way)) => answer(ledger, way, format, &parts, &current).await,
        Err(error) => reply::error(format, &Fault::bug(&error.to_string())),
    }
}

/// Goes the way that was found for a request.
async fn answer(
    ledger: Ledger,
    way: Result<Way, Fault>,
    format: ApiDialect,
    parts: &Parts,
    current: &Snapshot,
) -> Response {
    match way {
        Ok(Way::Upstream(ready)) => upstream(ledger, format, *ready, parts, &current.gateway).await,
        Ok(Way::Recipe(job)) => recipes::run(ledger, format, *job, current).await,
        Err(fault) => reply::refuse(ledger, format, fault),
    }
}

/// Reads the body of a request.
async fn read(
    ledger: &mut Ledger,
    headers: &HeaderMap,
    body: Body,
    gateway: &GatewaySettings,
) -> Result<Bytes, Fault> {
    let encoding = headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes);
    if encoding.is_some_and(|encoding| !encoding.eq_ignore_ascii_case(b"identity")) {
        let words = "the body is compressed: send it as it is, without content-encoding, since its tokens are counted";
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(Fault::new(status, "invalid_request", Outcome::Invalid, words));
    }
    let started = Instant::now();
    let body = read_body(body, gateway.max_body_bytes, gateway.body_timeout, &mut ledger.room).await;
    ledger.waited(started.elapsed());
    Ok(body?)
}

/// Sends a request to its upstream and relays the reply.
async fn upstream(
    mut ledger: Ledger,
    format: ApiDialect,
    ready: Ready,
    parts: &Parts,
    gateway: &GatewaySettings,
) -> Response {
    let Ready { target, body, answerer } = ready;
    let ours = reply::ours(&ledger.exchange);
    let choices = ledger.choices;
    let mut sending =
        Sending { outgoing: outgoing(&target, parts, body), patience: patience(gateway), target };
    let sent = sending.send(&mut ledger).await;
    if answerer.is_none() {
        // No further round will be made of it, however long the reply takes.
        sending.outgoing.body = Bytes::new();
    }
    ledger.room.shrink(sending.outgoing.body.len());
    match sent {
        Ok(incoming) => Call { ledger, format, choices, sending, answerer, ours }.respond(incoming).await,
        Err(error) => reply::refuse(ledger, format, error.into()),
    }
}

/// A request of a client as it goes to `target`, with another body.
fn outgoing(target: &UpstreamTarget, parts: &Parts, body: Bytes) -> Outgoing {
    let keeps_key = |_: &HeaderName, value: &HeaderValue| !target.has_key() && !is_ours(value);
    Outgoing {
        method: parts.method.clone(),
        path: target.path(parts.uri.path_and_query().map_or("", |path| path.as_str())),
        headers: upstream::passing(&parts.headers, keeps_key),
        body,
    }
}

/// Whether a header carries one of Larder's own keys, which nobody else may see.
fn is_ours(value: &HeaderValue) -> bool {
    value.to_str().is_ok_and(|text| text.split([' ', '\t', ',']).any(ApiKey::is_meant))
}

/// How long upstreams are waited for.
fn patience(gateway: &GatewaySettings) -> RetryLimits {
    RetryLimits {
        retries: gateway.retries,
        longest_pause: gateway.retry_after_max,
        silence: gateway.upstream_timeout,
    }
}
