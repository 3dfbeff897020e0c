//! All routes and their permissions. Knows paths; what is behind them belongs to each module.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{ACCEPT, LOCATION};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use larder_engine::blocking;
use larder_proxy::record::{Outcome, cut_name};
use larder_proxy::wire::ApiDialect;
use serde_json::json;
use tokio::task::JoinError;

use crate::app::App;
use crate::auth::{AuthError, Caller};
use crate::error::RequestError;
use crate::limits::read_body;
use crate::mcp_caller;
use crate::problem::Problem;
use crate::request;

/// The sign-in page.
pub const SIGN_IN: &str = "/sign-in";

/// Routes of other crates that are served next to the gateway's own.
#[derive(Default)]
pub struct Extra {
    /// For authenticated callers: each request carries its [`Caller`], and its body has been read.
    pub private: Router,
    /// For anyone, without a key.
    pub public: Router,
}

/// Everything that is served.
pub fn router(app: &Arc<App>, extra: Extra) -> Router {
    let messages = larder_mcp::router(mcp_caller::options(app), mcp_caller::read(app))
        .layer(middleware::from_fn_with_state(Arc::clone(app), mcp_caller::admit));
    let looked_at = extra.private.layer(middleware::from_fn_with_state(Arc::clone(app), with_room));
    let behind_keys = Router::new()
        .merge(request::router().with_state(Arc::clone(app)))
        .merge(looked_at)
        .merge(messages)
        .layer(middleware::from_fn_with_state(Arc::clone(app), authenticate));
    let alive = || get(|| async { "ok" });
    Router::new()
        .route("/healthz", alive())
        .route("/health", alive())
        .route("/livez", alive())
        .route("/readyz", get(ready))
        .with_state(Arc::clone(app))
        .merge(extra.public)
        .merge(behind_keys)
        .fallback(nowhere)
}

/// Most callers who end up here omitted the path prefix that their client does not add.
async fn nowhere(request: Request) -> Response {
    let path = cut_name(request.uri().path());
    if path.starts_with("/api/") {
        let words = format!("nothing is served at {path}: /api/v1/openapi.json describes the API");
        return Problem::not_found(words).into_response();
    }
    let words = format!(
        "nothing is served at {path}: the base URL of a client of OpenAI's ends in /v1, that of a client of Anthropic's has no path"
    );
    request::error(
        ApiDialect::Chat,
        &RequestError::new(StatusCode::NOT_FOUND, "not_found", Outcome::Invalid, words),
    )
}

/// Whether requests are accepted, and whether the current files are in effect. Only operators see why they are not:
/// the message quotes the files.
async fn ready(
    State(app): State<Arc<App>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
) -> Response {
    let status = if app.stop.is_cancelled() { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    let mut refused = app.refused();
    if refused.is_some()
        && !matches!(known(&app, &Method::GET, &headers, peer).await, Ok(Ok(caller)) if caller.operator)
    {
        refused = Some("a change was refused; an operator's key shows why".to_owned());
    }
    let degraded = app.degraded().await;
    let body = json!({"ready": status.is_success(), "degraded": degraded, "refused_change": refused, "hot": app.warmth.shown()});
    (status, Json(body)).into_response()
}

/// Puts the caller into the request, or refuses it.
async fn authenticate(
    State(app): State<Arc<App>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Response {
    match known(&app, request.method(), request.headers(), peer).await {
        Ok(Ok(caller)) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Ok(Err(error)) => refused(&app, &request, &error),
        Err(error) => request::error(ApiDialect::Chat, &RequestError::bug(&error.to_string())),
    }
}

/// Who calls. Looks into the store, and computes for some 20 ms when it sees a key for the first time.
async fn known(
    app: &Arc<App>,
    method: &Method,
    headers: &HeaderMap,
    peer: SocketAddr,
) -> Result<Result<Caller, AuthError>, JoinError> {
    if app.auth.answers_at_once(headers) {
        return Ok(app.caller(method, headers, peer));
    }
    let (door, method, headers) = (Arc::clone(app), method.clone(), headers.clone());
    blocking::run(move || door.caller(&method, &headers, peer)).await
}

/// Reads the body of a request if there is memory for it, which is held until the head of the reply is ready.
async fn with_room(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    let (current, mut room) = (app.current(), app.admission.body_memory());
    let (parts, body) = request.into_parts();
    let gateway = &current.gateway;
    match read_body(body, gateway.max_body_bytes, gateway.body_timeout, &mut room).await {
        Ok(body) => next.run(Request::from_parts(parts, Body::from(body))).await,
        Err(error) => {
            let error = RequestError::from(error);
            Problem::new(error.status, error.message).into_response()
        }
    }
}

impl App {
    fn caller(&self, method: &Method, headers: &HeaderMap, peer: SocketAddr) -> Result<Caller, AuthError> {
        self.auth.caller(method, headers, peer, self.keys_required())
    }
}

/// Redirects browsers to the sign-in page; programs get an error in their own format.
fn refused(app: &App, request: &Request, error: &AuthError) -> Response {
    let accepts = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if error.status() == StatusCode::UNAUTHORIZED
        && request.method() == Method::GET
        && accepts.contains("text/html")
    {
        return (StatusCode::SEE_OTHER, [(LOCATION, SIGN_IN)]).into_response();
    }
    request::error(
        request::dialect(request.uri().path(), request.headers()),
        &RequestError::from_auth(error, app.store.now()),
    )
}
