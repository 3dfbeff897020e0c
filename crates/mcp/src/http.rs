//! The protocol over HTTP: the route `/mcp`, for callers that the gateway has authenticated. Knows no tool.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::response::Response;
use axum::routing::any;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::{McpCaller, Server};

/// Finds the caller of a request in the extensions that the gateway has set. A refusal is sent unchanged.
pub type ResolveCaller = dyn Fn(&Parts) -> Result<McpCaller, Box<Response>> + Send + Sync;

type Service = StreamableHttpService<Server, LocalSessionManager>;

/// How the route answers.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// The allowed `Host` headers, so that no web page reaches a server on the loopback address through DNS rebinding.
    /// Empty allows all, which is right if every request needs a key.
    pub hosts: Vec<String>,
    /// The most bytes of a request.
    pub max_body: usize,
    /// Ends sessions and their streams.
    pub stop: CancellationToken,
}

struct Http {
    options: HttpOptions,
    caller: Arc<ResolveCaller>,
    /// One for each user, so that no session id leads to a session of another user.
    services: Mutex<BTreeMap<String, Service>>,
}

/// A router with the route `/mcp`.
pub fn router(options: HttpOptions, caller: Arc<ResolveCaller>) -> Router {
    let http = Arc::new(Http { options, caller, services: Mutex::default() });
    let answer = move |request: Request| {
        let http = Arc::clone(&http);
        async move { http.answer(request).await }
    };
    Router::new().route("/mcp", any(answer))
}

impl Http {
    async fn answer(&self, request: Request) -> Response {
        let (mut parts, body) = request.into_parts();
        let caller = match (self.caller)(&parts) {
            Ok(caller) => caller,
            Err(refusal) => return *refusal,
        };
        let service = self.service(caller.engine.store.user());
        // Set for every request, so that a session survives neither a reload nor the revocation of its key.
        parts.extensions.insert(caller);
        service.handle(Request::from_parts(parts, body)).await.map(Body::new)
    }

    fn service(&self, user: &str) -> Service {
        let mut services = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        services.entry(user.to_owned()).or_insert_with(|| self.new_service()).clone()
    }

    fn new_service(&self) -> Service {
        let HttpOptions { hosts, max_body, stop } = self.options.clone();
        let mut config = StreamableHttpServerConfig::default();
        config.allowed_hosts = hosts;
        config.max_request_body_bytes = max_body;
        config.cancellation_token = stop;
        StreamableHttpService::new(|| Ok(Server { caller: None }), Arc::default(), config)
    }
}
