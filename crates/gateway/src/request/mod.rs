//! The path of one request: read, decide, store, send, relay, record. Knows HTTP and the order of steps; `wire` knows
//! the dialects, and the policy decides the window.

mod active;
mod batch_results;
mod bill;
mod budget;
mod conversations;
mod counted;
mod fields;
pub mod inspect;
mod model_list;
mod packing_ahead;
mod passthrough;
mod prepare;
mod recipes;
mod rehydrate;
mod relay;
mod reply;
mod route_rule;
mod timing;
mod unit_price;
mod unpriced;
mod usage;

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{ALLOW, AUTHORIZATION, CONTENT_ENCODING, HeaderName, HeaderValue, UPGRADE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{any, get, post};
use axum::{Extension, Router};
use bytes::Bytes;
use larder_engine::blocking;
use larder_engine::settings::GatewaySettings;
use larder_models::table::Provider;
use larder_models::upstream::{self, Outgoing, RetryLimits, UpstreamTarget};
use larder_proxy::record::{Endpoint, Outcome, cut_name};
use larder_proxy::wire::{ApiDialect, ModelPath};

use crate::app::{App, Snapshot};
use crate::auth::{ApiKey, Caller};
use crate::error::RequestError;
use crate::limits::{drain, read_body};
use active::ActiveRequest;
pub use budget::total;
use prepare::{Destination, UpstreamRequest};
use relay::{InFlightRequest, ResponseRelay};
pub use reply::error;

/// Beginning of the names of models that are recipes.
pub const RECIPE: &str = "recipe/";
/// Beginning of the names of models that are conversation types.
pub const CONVERSATION: &str = "conversation/";

/// The start of a header with a signature of AWS's.
const SIGNATURE: &str = "AWS4-";

/// A body of at most this size that starts a conversation is decided inline if nothing has to be read for it: handing it to
/// another thread would take longer.
const SMALL: usize = 4 << 10;

/// Everything below `/v1`.
pub fn router() -> Router<Arc<App>> {
    let generates = |endpoint, dialect| {
        post(
            move |State(app): State<Arc<App>>, Extension(caller): Extension<Caller>, request: Request| async move {
                generate(app, caller, endpoint, dialect, request).await
            },
        )
    };
    let router = ApiDialect::ALL.into_iter().fold(Router::new(), |router, dialect| match dialect.path() {
        Some(path) => router.route(path, generates(Endpoint::Generate(dialect), dialect)),
        None => router,
    });
    let router = router
        .route("/v1/messages/count_tokens", generates(Endpoint::CountTokens, ApiDialect::Messages))
        .route("/v1/responses", get(no_web_socket))
        // The list of stored completions.
        .route("/v1/chat/completions", get(passthrough::pass))
        .route("/v1/embeddings", post(counted::embeddings))
        .route("/v1/responses/compact", post(counted::compact))
        .route("/v1/models", get(model_list::models))
        .route("/v1/models/{*id}", get(model_list::model))
        .route("/v1/{*path}", any(passthrough::pass));
    let prefixes = Provider::ALL.into_iter().filter_map(|provider| provider.info().server?.gateway_prefix);
    let router =
        prefixes.fold(router, |router, prefix| router.route(&format!("{prefix}{{*path}}"), any(of_provider)));
    router.layer(middleware::from_fn(refuse_ambiguous))
}

/// Refuses a path that its server might take for another route than the one that is decided here.
async fn refuse_ambiguous(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if route_rule::is_unambiguous(path) {
        return next.run(request).await;
    }
    let words = format!(
        "no such route: {}; write its path without `.`, `..`, backslashes and empty parts, and escape other characters \
         than letters, digits and punctuation of URLs once",
        cut_name(path)
    );
    let error = RequestError::new(StatusCode::NOT_FOUND, "not_found", Outcome::Invalid, words);
    reply::error(dialect(path, request.headers()), &error)
}

/// A request to a path of a provider's own, which may name a model to ask.
async fn of_provider(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    match ModelPath::read(request.uri().path()).filter(|_| request.method() == Method::POST) {
        Some(path) => generate(app, caller, Endpoint::Generate(path.dialect), path.dialect, request).await,
        None => passthrough::pass(State(app), Extension(caller), request).await,
    }
}

/// The dialect of a client.
pub fn dialect(path: &str, headers: &HeaderMap) -> ApiDialect {
    ApiDialect::from_request(path, |name| headers.contains_key(name))
}

/// Responses may be asked for over a WebSocket, which is not served. On this status clients that try one first turn to
/// HTTP at once; on others they try it several times more.
async fn no_web_socket(headers: HeaderMap) -> Response {
    let is_one = headers.get(UPGRADE).is_some_and(|to| to.as_bytes().eq_ignore_ascii_case(b"websocket"));
    let status = if is_one { StatusCode::UPGRADE_REQUIRED } else { StatusCode::METHOD_NOT_ALLOWED };
    let words = "responses are served over HTTP and not over a WebSocket: send them with POST";
    let error = RequestError::new(status, "invalid_request", Outcome::Invalid, words);
    let mut response = reply::error(ApiDialect::Responses, &error);
    let (name, value) = if is_one { (UPGRADE, "HTTP/1.1") } else { (ALLOW, "POST") };
    response.headers_mut().insert(name, HeaderValue::from_static(value));
    response
}

/// One request to a model or a recipe.
async fn generate(
    app: Arc<App>,
    caller: Caller,
    endpoint: Endpoint,
    dialect: ApiDialect,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    app.recorder.has_room().await;
    let current = app.current();
    let mut active = match ActiveRequest::open(&app, &caller, endpoint, &parts.headers) {
        Ok(active) => active,
        Err(error) => {
            drain(body, current.gateway.body_timeout).await;
            return reply::error(dialect, &error);
        }
    };
    let body = match read(&mut active, &parts.headers, body, &current.gateway).await {
        Ok(body) => body,
        Err(error) => return reply::refuse(active, dialect, error),
    };
    let has_history =
        |body: &[u8]| std::str::from_utf8(body).is_ok_and(|text| dialect.may_have_history(text));
    let is_quick = body.len() <= SMALL && !has_history(&body);
    // Where values were learned, a conversation that starts is noted to use them. The newest revision is known as long as
    // the erasures are.
    let reads_nothing =
        || app.store.knows_erasures() && app.store.revisions().newest().is_ok_and(|newest| newest == 0);
    if is_quick && active.caller.limits.is_unlimited() && reads_nothing() {
        let destination = prepare::prepare(&mut active, &current, dialect, &parts, body);
        return answer(active, destination, dialect, &parts, &current).await;
    }
    // Reads the store, and computes for as long as the body is large: not on the threads that serve everybody.
    let (head, snapshot) = (parts.clone(), Arc::clone(&current));
    let prepared = blocking::run(move || {
        let destination = prepare::prepare(&mut active, &snapshot, dialect, &head, body);
        (active, destination)
    });
    match prepared.await {
        Ok((active, destination)) => answer(active, destination, dialect, &parts, &current).await,
        Err(error) => reply::error(dialect, &RequestError::bug(&error.to_string())),
    }
}

/// Sends a request to its destination.
async fn answer(
    active: ActiveRequest,
    destination: Result<Destination, RequestError>,
    dialect: ApiDialect,
    parts: &Parts,
    current: &Snapshot,
) -> Response {
    match destination {
        Ok(Destination::Upstream(request)) => {
            upstream(active, dialect, request, parts, &current.gateway).await
        }
        // Boxed, so that requests to models take no room for what these need.
        Ok(Destination::Recipe(run)) => Box::pin(recipes::run(active, dialect, *run, current)).await,
        Ok(Destination::Conversation(said)) => Box::pin(conversations::run(active, dialect, said)).await,
        Err(error) => reply::refuse(active, dialect, error),
    }
}

/// Reads the body of a request.
async fn read(
    active: &mut ActiveRequest,
    headers: &HeaderMap,
    body: Body,
    gateway: &GatewaySettings,
) -> Result<Bytes, RequestError> {
    let encoding = headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes);
    if encoding.is_some_and(|encoding| !encoding.eq_ignore_ascii_case(b"identity")) {
        let words = "the body is compressed: send it uncompressed, without content-encoding, because its tokens are counted";
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(RequestError::new(status, "invalid_request", Outcome::Invalid, words));
    }
    let started = Instant::now();
    let body = read_body(body, gateway.max_body_bytes, gateway.body_timeout, &mut active.body_memory).await;
    active.timing.add_wait(started.elapsed());
    Ok(body?)
}

/// Sends a request to its upstream and relays the reply.
async fn upstream(
    mut active: ActiveRequest,
    dialect: ApiDialect,
    request: Box<UpstreamRequest>,
    parts: &Parts,
    gateway: &GatewaySettings,
) -> Response {
    let UpstreamRequest { target, path, body, rehydrator, correction, learns } = *request;
    let ours = reply::ours(&active.record);
    let choices = active.usage.choices;
    let mut outgoing = outgoing(&target, parts, body);
    if let Some(path) = path {
        outgoing.path = target.path(&path);
    }
    let mut sending = InFlightRequest { outgoing, patience: patience(gateway), target };
    let sent = sending.send(&mut active).await;
    if rehydrator.is_none() {
        // No further round will follow, however long the reply takes.
        sending.outgoing.body = Bytes::new();
    }
    active.body_memory.shrink(sending.outgoing.body.len());
    match sent {
        Ok(incoming) => {
            let relay =
                ResponseRelay { active, dialect, choices, sending, rehydrator, correction, learns, ours };
            Box::new(relay).respond(incoming).await
        }
        Err(error) => reply::refuse(active, dialect, error.into()),
    }
}

/// A client's request to be sent to `target`, with another body.
fn outgoing(target: &UpstreamTarget, parts: &Parts, body: Bytes) -> Outgoing {
    let keeps_key = |_: &HeaderName, value: &HeaderValue| !target.has_key() && !is_ours(value);
    Outgoing {
        method: parts.method.clone(),
        path: target.path(parts.uri.path_and_query().map_or("", |path| path.as_str())),
        headers: upstream::passing(&parts.headers, keeps_key),
        body,
    }
}

/// Rejects a request that its client signed for this gateway's address and that nothing here signs again.
fn refuse_signed(target: &UpstreamTarget, headers: &HeaderMap) -> Result<(), RequestError> {
    let is_signature = |value: &HeaderValue| value.as_bytes().starts_with(SIGNATURE.as_bytes());
    if target.has_key() || !headers.get_all(AUTHORIZATION).iter().any(is_signature) {
        return Ok(());
    }
    let words = "nothing was sent: the request is signed with AWS credentials for the address of this gateway, and \
                 Amazon Bedrock would reject it. Let the gateway sign: set bedrock_aws_profile under [gateway] in \
                 larder.toml, or aws_profile of the model if it is in the table, to `default` or to a profile. Or send \
                 a Bedrock API key in place of a signature (AWS_BEARER_TOKEN_BEDROCK)";
    Err(passthrough::forbidden(words))
}

/// Whether a header contains one of Larder's own keys, which no one else may see.
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
