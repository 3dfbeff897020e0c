//! Routes that nothing else knows, which are forwarded unchanged.

use std::sync::Arc;
use std::time::Instant;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use larder_engine::blocking;
use larder_models::price::Usd;
use larder_models::table::Provider;
use larder_models::upstream::UpstreamTarget;
use larder_proxy::record::{Endpoint, Outcome, cut_name};
use larder_proxy::wire::ApiDialect;
use larder_text::json as spans;

use crate::app::{App, Snapshot};
use crate::auth::Caller;
use crate::error::RequestError;
use crate::limits::read_body;
use crate::request::active::ActiveRequest;
use crate::request::relay::{self, InFlightRequest};
use crate::request::route_rule::{RouteCharge, RouteRule, RouteState};
use crate::request::{batch_results, dialect, outgoing, patience, refuse_signed, reply, unit_price};

/// Maximum bytes of a body that are searched for the name of its model.
const MAX_NAMING: usize = 64 << 10;

/// Everything else is forwarded, by the one rule of [`RouteRule`]. Reading is free and not recorded, but for the results
/// of batches.
pub async fn pass(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let (current, path) = (app.current(), parts.uri.path());
    let dialect = dialect(path, &parts.headers);
    let provider = provider(path, dialect);
    let rule = match admitted(&caller, &parts) {
        Ok(rule) => rule,
        Err(error) => return reply::error(dialect, &error),
    };
    let kept_at = match held_by(&caller, &current, provider, (rule, &parts.method)) {
        Ok(target) => target,
        Err(error) => return reply::error(dialect, &error),
    };
    if let Some(target) =
        kept_at.as_ref().filter(|_| reads(&parts.method) && rule.charge != RouteCharge::Results)
    {
        let response = read_through(&app, &current, target, &parts, body).await;
        return response.unwrap_or_else(|error| reply::error(dialect, &error));
    }
    app.recorder.has_room().await;
    let mut active = match ActiveRequest::open(&app, &caller, Endpoint::Passed, &parts.headers) {
        Ok(active) => active,
        Err(error) => return reply::error(dialect, &error),
    };
    let route = format!("{} {}", parts.method, parts.uri.path());
    active.record.summary.route = Some(cut_name(&route));
    let started = Instant::now();
    let gateway = &current.gateway;
    let body = read_body(body, gateway.max_body_bytes, gateway.body_timeout, &mut active.body_memory).await;
    active.timing.add_wait(started.elapsed());
    let body = match body {
        Ok(body) => body,
        Err(error) => return reply::refuse(active, dialect, error.into()),
    };
    let ready = destination(&mut active, &current, &parts, (provider, rule), kept_at, body);
    let ready = ready.and_then(|ready| refuse_signed(&ready.target, &parts.headers).map(|()| ready));
    let Forwarded { target, path, body } = match ready {
        Ok(ready) => ready,
        Err(error) => return reply::refuse(active, dialect, error),
    };
    let funded = match rule.charge {
        RouteCharge::Later | RouteCharge::Results => has_budget(&app, &caller, &mut active).await,
        RouteCharge::Unit => unit_price::charge(&mut active, &current, parts.uri.path(), &body).await,
        RouteCharge::Free | RouteCharge::Unknown => Ok(()),
    };
    if let Err(error) = funded {
        return reply::refuse(active, dialect, error);
    }
    let mut outgoing = outgoing(&target, &parts, body);
    if let Some(path) = path {
        outgoing.path = target.path(&path);
    }
    if rule.charge == RouteCharge::Results {
        batch_results::ask_whole(&mut outgoing.headers);
    }
    let sending = InFlightRequest { outgoing, patience: patience(gateway), target };
    let mut sent = sending.send(&mut active).await;
    let is_refusable = rule.charge == RouteCharge::Results && caller.limits.picos_per_day.is_some();
    if let Ok(incoming) = &mut sent
        && is_refusable
        && incoming.status.is_success()
    {
        let started = Instant::now();
        let checked = batch_results::check(&mut active, &current, dialect, incoming).await;
        active.timing.add_wait(started.elapsed());
        if let Err(error) = checked {
            return reply::refuse(active, dialect, error);
        }
        sent = sending.send(&mut active).await;
    }
    // It is not sent again.
    drop(sending);
    active.body_memory.shrink(0);
    match sent {
        Ok(incoming) => {
            let ours = reply::ours(&active.record);
            if rule.charge == RouteCharge::Unit && !incoming.status.is_success() {
                unit_price::release(&mut active);
            }
            if rule.charge == RouteCharge::Results && incoming.status.is_success() {
                return batch_results::forward(active, Arc::clone(&current), dialect, incoming, &ours).await;
            }
            relay::pass(active, incoming, &ours)
        }
        Err(error) => {
            let error = RequestError::from(error);
            if rule.charge == RouteCharge::Unit && error.class == "upstream_unreachable" {
                unit_price::release(&mut active);
            }
            reply::refuse(active, dialect, error)
        }
    }
}

fn reads(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// The model that a body names.
fn model_of(body: &[u8]) -> Option<String> {
    let document = spans::Document::parse_request(std::str::from_utf8(body).ok()?).ok()?;
    let model = document.root().given("model")?.text()?.into_owned();
    Some(model).filter(|model| !model.is_empty())
}

/// The rule for a request, if its caller may use the route at all.
fn admitted(caller: &Caller, parts: &Parts) -> Result<RouteRule, RequestError> {
    let rule = RouteRule::of(&parts.method, parts.uri.path());
    let has_no_tokens = rule.charge == RouteCharge::Unit && caller.limits.picos_per_day.is_none();
    if (rule.charge == RouteCharge::Unknown || has_no_tokens) && !caller.limits.is_unlimited() {
        return Err(forbidden(
            "this key has a budget, and the usage of this route cannot be counted; use a key without limits",
        ));
    }
    Ok(rule)
}

/// The server that keeps what a route is about, which is the one for other models: what it keeps has no model. `None` for
/// routes that keep nothing and may name one.
///
/// # Errors
/// If there is none, or its key is shared by users who may not see what each other keeps there.
fn held_by(
    caller: &Caller,
    current: &Snapshot,
    provider: Provider,
    (rule, method): (RouteRule, &Method),
) -> Result<Option<Arc<UpstreamTarget>>, RequestError> {
    if rule.state == RouteState::Answers && !reads(method) {
        return Ok(None);
    }
    let target = current.routes.other(provider).ok_or_else(|| no_server(provider))?;
    let is_shared = caller.key.is_some() && target.has_key();
    if is_shared && rule.state == RouteState::Keeps && !caller.operator {
        return Err(forbidden(
            "what this route keeps at the provider is not separated by user there, since all users of this Larder share \
             one key: use an operator's key, or where Larder has no key of the provider's, send your own, with \
             Larder's in x-api-key or authorization",
        ));
    }
    Ok(Some(target))
}

pub(super) fn forbidden(words: &str) -> RequestError {
    RequestError::new(StatusCode::FORBIDDEN, "permission_error", Outcome::Refused, words)
}

fn no_server(provider: Provider) -> RequestError {
    let key = provider.as_str();
    let words = format!(
        "no such route here, and no server that it could pass to: set `{key}` under [gateway] in larder.toml, or name a \
         model of the table if the route takes one"
    );
    RequestError::new(StatusCode::NOT_FOUND, "not_found", Outcome::Invalid, words)
}

/// A request that is forwarded without a window.
struct Forwarded {
    target: Arc<UpstreamTarget>,
    /// Its path, if that names the model and the server knows the model by another name.
    path: Option<String>,
    body: Bytes,
}

/// The server of a forwarded request, and its path and body for it.
fn destination(
    active: &mut ActiveRequest,
    current: &Snapshot,
    parts: &Parts,
    (provider, rule): (Provider, RouteRule),
    kept_at: Option<Arc<UpstreamTarget>>,
    body: Bytes,
) -> Result<Forwarded, RequestError> {
    let named =
        (body.len() <= MAX_NAMING || rule.state == RouteState::Answers).then(|| model_of(&body)).flatten();
    let in_path = || {
        let rest = parts.uri.path().strip_prefix(provider.info().server?.gateway_prefix?)?;
        Some(rest.split('/').next()?.replace("%3A", ":").replace("%3a", ":"))
    };
    let model = named.clone().or_else(in_path);
    let serving = match (&kept_at, &model) {
        (None, Some(model)) => current.routes.serving(provider, model)?,
        _ => None,
    };
    let is_served = serving.is_some();
    let (target, id, path) = match serving {
        Some((target, id)) => {
            let is_renamed = model.as_deref() != Some(id);
            let path =
                (is_renamed && named.is_none()).then(|| with_model(parts.uri.path(), provider, id)).flatten();
            (target, named.filter(|_| is_renamed).map(|_| id), path)
        }
        None => {
            let other = kept_at.or_else(|| current.routes.other(provider));
            (other.ok_or_else(|| no_server(provider))?, None, None)
        }
    };
    // Costs are grouped by this name, and clients may ask for any path.
    active.set_model(model.as_deref().unwrap_or(target.name()));
    let in_catalogue = |model: &String| current.shared().models.table().catalogue().has(model);
    active.record.summary.model_is_known = is_served || model.as_ref().is_none_or(in_catalogue);
    let Some(id) = id else { return Ok(Forwarded { target, path, body }) };
    let bug = |error: &dyn std::error::Error| RequestError::bug(&error.to_string());
    let text = std::str::from_utf8(&body).map_err(|error| bug(&error))?;
    let document = spans::Document::parse_request(text).map_err(|error| bug(&error))?;
    let edit =
        document.root().given("model").map(|model| spans::Edit::replace(model.span(), spans::encoded(id)));
    let body = spans::apply(text, edit.into_iter().collect()).map_err(|error| bug(&error))?;
    Ok(Forwarded { target, path, body: body.into() })
}

/// A path of the provider's own with another model.
fn with_model(path: &str, provider: Provider, id: &str) -> Option<String> {
    let prefix = provider.info().server?.gateway_prefix?;
    let (_, operation) = path.strip_prefix(prefix)?.split_once('/')?;
    Some(format!("{prefix}{}/{operation}", id.replace(':', "%3A").replace('/', "%2F")))
}

/// Fails where the key's budget is used up: what a batch takes is known only later.
async fn has_budget(app: &Arc<App>, caller: &Caller, active: &mut ActiveRequest) -> Result<(), RequestError> {
    if caller.limits.is_unlimited() {
        return Ok(());
    }
    let (of, by) = (Arc::clone(app), caller.clone());
    let reserved = blocking::run(move || of.auth.reserve(&by, 1, Usd::from_picos(1)));
    let reserved = reserved.await.map_err(|error| RequestError::bug(&error.to_string()))?;
    active.budget.hold(reserved.map_err(|error| RequestError::from_auth(&error, app.store.now()))?);
    Ok(())
}

/// The answer to a request that only reads.
async fn read_through(
    app: &App,
    current: &Snapshot,
    target: &Arc<UpstreamTarget>,
    parts: &Parts,
    body: Body,
) -> Result<Response, RequestError> {
    let place = app.admission.take().ok_or_else(RequestError::busy)?;
    let mut room = app.admission.body_memory();
    let gateway = &current.gateway;
    let body = read_body(body, gateway.max_body_bytes, gateway.body_timeout, &mut room).await?;
    let incoming = target.send(&outgoing(target, parts, body), patience(gateway)).await?;
    Ok(relay::forward(incoming, place))
}

/// The provider that a request passes to: the one with paths of its own, or the one that understands the client.
fn provider(path: &str, dialect: ApiDialect) -> Provider {
    let is_own = |prefix: &str| path.starts_with(prefix);
    let by_path = |provider: &Provider| {
        provider.info().server.and_then(|server| server.gateway_prefix).is_some_and(is_own)
    };
    Provider::ALL.into_iter().find(by_path).unwrap_or_else(|| dialect.provider())
}
