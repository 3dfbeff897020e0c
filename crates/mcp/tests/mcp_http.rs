//! The Model Context Protocol over HTTP: sessions and requests without one, each with the caller's own store.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::request::Parts;
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use larder_mcp::{HttpOptions, McpCaller, router};
use serde_json::{Value, json};
use support::Shop;
use tower::ServiceExt;

/// Callers say who they are in a header, in place of a key.
fn served(shop: &Shop) -> Router {
    let guests: BTreeMap<String, McpCaller> =
        ["ann", "bob"].map(|user| (user.to_owned(), shop.caller(user))).into_iter().collect();
    let caller = move |parts: &Parts| {
        let user = parts.headers.get("x-user").and_then(|user| user.to_str().ok());
        let caller = user.and_then(|user| guests.get(user)).cloned();
        caller.ok_or_else(|| Box::new(StatusCode::UNAUTHORIZED.into_response()))
    };
    let hosts = vec!["localhost".to_owned()];
    router(HttpOptions { hosts, max_body: 10_000, stop: Default::default() }, Arc::new(caller))
}

fn post(user: &str, headers: &[(&str, &str)], message: &Value) -> Request<Body> {
    let mut request = Request::post("/mcp").header("host", "localhost").header("x-user", user);
    request = request.header("content-type", "application/json");
    request = request.header("accept", "application/json, text/event-stream");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::from(message.to_string())).unwrap()
}

/// The messages of an answer, whichever way they come.
async fn messages(response: Response) -> Vec<Value> {
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let text = String::from_utf8(body.to_vec()).unwrap();
    if let Ok(message) = serde_json::from_str(&text) {
        return vec![message];
    }
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    data.filter_map(|data| serde_json::from_str(data.trim()).ok()).collect()
}

fn call(id: u64, tool: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

/// Opens a session; gives its id.
async fn open(service: &Router, user: &str) -> String {
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
        {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let response = service.clone().oneshot(post(user, &[], &hello)).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    assert_eq!(messages(response).await[0]["result"]["serverInfo"]["name"], "larder");
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let ready = post(user, &[("mcp-session-id", &session)], &ready);
    assert_eq!(service.clone().oneshot(ready).await.unwrap().status(), StatusCode::ACCEPTED);
    session
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_belongs_to_its_user() {
    let shop = Shop::new([]);
    let pointer = shop.pointer("ann", b"a secret of Ann's");
    let service = served(&shop);
    let session = open(&service, "ann").await;
    let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    let request = call(2, "rehydrate", json!({"id": pointer}));
    let response = service.clone().oneshot(post("ann", &headers, &request)).await.unwrap();
    let found = messages(response).await.pop().unwrap();
    assert_eq!(found["result"]["structuredContent"]["text"], "a secret of Ann's");
    let stolen = service.clone().oneshot(post("bob", &headers, &request)).await.unwrap();
    assert_eq!(stolen.status(), StatusCode::NOT_FOUND, "Bob has no such session, whatever its id");
    let listen = Request::get("/mcp").header("host", "localhost").header("x-user", "bob");
    let listen = listen.header("accept", "text/event-stream").header("mcp-session-id", &session);
    let stolen = service.clone().oneshot(listen.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(stolen.status(), StatusCode::NOT_FOUND);
    open(&service, "bob").await;
    let again = service.clone().oneshot(post("bob", &headers, &request)).await.unwrap();
    assert_eq!(again.status(), StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_a_session_reach_the_callers_own_store() {
    let shop = Shop::new([]);
    let pointer = shop.pointer("ann", b"a secret of Ann's");
    let service = served(&shop);
    let mut request = call(1, "rehydrate", json!({"id": pointer}));
    request["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let headers =
        [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "rehydrate")];
    for (user, is_error) in [("ann", false), ("bob", true)] {
        let response = service.clone().oneshot(post(user, &headers, &request)).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let found = messages(response).await.pop().unwrap();
        assert_eq!(found["result"]["isError"], is_error, "{found}");
        assert_eq!(found.to_string().contains("a secret"), !is_error, "{found}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_large_bodies_and_foreign_hosts_are_refused() {
    let service = served(&Shop::new([]));
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let stranger = service.clone().oneshot(post("eve", &[], &hello)).await.unwrap();
    assert_eq!(stranger.status(), StatusCode::UNAUTHORIZED);
    let mut rebound = post("ann", &[], &hello);
    rebound.headers_mut().insert("host", "evil.example".parse().unwrap());
    assert_eq!(service.clone().oneshot(rebound).await.unwrap().status(), StatusCode::FORBIDDEN);
    let large = call(1, "count", json!({"text": "a".repeat(20_000)}));
    let large = service.clone().oneshot(post("ann", &[], &large)).await.unwrap();
    assert_eq!(large.status(), StatusCode::PAYLOAD_TOO_LARGE);
}
