//! Callers of the MCP route: their store, and how their use of models is paid for.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::BodyExt as _;
use larder_engine::executor::ModelSet;
use larder_mcp::{AskBudget, AskReservation, HttpOptions, McpCaller, ResolveCaller, Roots};
use larder_models::chat::Usage;
use larder_models::price::Usd;
use larder_proxy::wire::ApiDialect;

use crate::app::App;
use crate::auth::{AuthError, BudgetReservation, Caller};
use crate::error::RequestError;
use crate::limits::read_body;
use crate::request::{self, total};

/// How callers of the gateway are resolved.
pub fn read(app: &Arc<App>) -> Arc<ResolveCaller> {
    let (app, roots) = (Arc::clone(app), Arc::new(Roots::none()));
    Arc::new(move |parts| {
        let Some(caller) = parts.extensions.get::<Caller>() else {
            return Err(Box::new(request::error(
                ApiDialect::Chat,
                &RequestError::bug("a request without a caller"),
            )));
        };
        let current = app.current();
        Ok(McpCaller {
            engine: Arc::new(current.engine(&caller.store)),
            asking: current.config.asking(),
            roots: Arc::clone(&roots),
            budget: Some(Arc::new(KeyBudget { app: Arc::clone(&app), caller: caller.clone() })),
        })
    })
}

/// How the MCP route is served.
pub fn options(app: &App) -> HttpOptions {
    HttpOptions {
        // Authentication has already checked the request's origin.
        hosts: Vec::new(),
        max_body: app.current().gateway.max_body_bytes,
        stop: app.stop.clone(),
    }
}

/// Gives a client's message a request slot, and its body memory, until it is answered. A stream on which a client
/// only listens takes no slot.
pub async fn admit(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let refused = |error: RequestError| request::error(ApiDialect::Chat, &error);
    let Some(place) = app.admission.take() else { return refused(RequestError::busy()) };
    let (current, mut room) = (app.current(), app.admission.body_memory());
    let (parts, body) = request.into_parts();
    let gateway = &current.gateway;
    let body = match read_body(body, gateway.max_body_bytes, gateway.body_timeout, &mut room).await {
        Ok(body) => body,
        Err(error) => return refused(error.into()),
    };
    let response = next.run(Request::from_parts(parts, Body::from(body))).await;
    // An answer may be a stream, which ends when the call does.
    response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _until_the_end = (&place, &room);
            frame
        }))
    })
}

/// The budget of a caller's key.
struct KeyBudget {
    app: Arc<App>,
    caller: Caller,
}

impl AskBudget for KeyBudget {
    fn reserve(&self, tokens: u64, reach: &ModelSet) -> Result<Box<dyn AskReservation>, String> {
        match self.app.auth.reserve_for(&self.caller, tokens, reach) {
            Ok(held) => Ok(Box::new(KeyHold(held))),
            Err(error @ AuthError::OverLimit(_)) => {
                Err(format!("{error}; a smaller `max_tokens` reserves less"))
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

struct KeyHold(BudgetReservation);

impl AskReservation for KeyHold {
    fn settle(self: Box<Self>, usage: Usage, cost: Option<Usd>) {
        self.0.settle_or_log(total(&usage), cost.unwrap_or_default());
    }
}
