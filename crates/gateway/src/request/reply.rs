//! Heads of replies: which upstream headers reach the client, which ones Larder adds, and the form of errors.

use axum::body::Body;
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::response::{Builder, Response};
use larder_models::upstream::Incoming;
use larder_proxy::record::RequestRecord;
use larder_proxy::wire::ApiDialect;

use crate::error::RequestError;
use crate::request::active::ActiveRequest;

/// The id under which the request is recorded.
pub const REQUEST: HeaderName = HeaderName::from_static("x-larder-request");
/// The conversation that the request was assigned to.
pub const SESSION: HeaderName = HeaderName::from_static("x-larder-session");
/// Tokens of the prompt as received.
pub const BEFORE: HeaderName = HeaderName::from_static("x-larder-tokens-before");
/// Tokens of the prompt as it was sent.
pub const AFTER: HeaderName = HeaderName::from_static("x-larder-tokens-after");
/// Fields of the request that a recipe or a conversation left out.
const IGNORED: HeaderName = HeaderName::from_static("x-larder-ignored");
/// Pointers in the prompt as it was sent.
const POINTERS: HeaderName = HeaderName::from_static("x-larder-pointers");

/// Our headers on the reply to a request.
pub fn ours(exchange: &RequestRecord) -> HeaderMap {
    let head = &exchange.summary;
    let mut ours = HeaderMap::with_capacity(6);
    let mut put = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            ours.insert(name, value);
        }
    };
    put(REQUEST, &head.id);
    if let Some(session) = &head.session {
        put(SESSION, session);
    }
    if !head.ignored.is_empty() {
        put(IGNORED, &head.ignored.join(", "));
    }
    if head.decision.is_some() {
        put(BEFORE, &head.tokens.before.to_string());
        put(AFTER, &head.tokens.after.to_string());
        put(POINTERS, &exchange.summary.shape.pointers.to_string());
    }
    ours
}

/// The head of a reply: the upstream's and Larder's headers. The length is kept only for a body that is forwarded
/// unchanged.
pub fn copied(incoming: &Incoming, ours: &HeaderMap, same_body: bool) -> Builder {
    let mut builder = Response::builder().status(incoming.status);
    if let Some(headers) = builder.headers_mut() {
        headers.clone_from(&incoming.headers);
        if !same_body {
            headers.remove(header::CONTENT_LENGTH);
        }
        for (name, value) in ours {
            headers.insert(name, value.clone());
        }
    }
    builder
}

/// The reply to a request that ended with a fault, in its own format.
pub fn refuse(mut active: ActiveRequest, dialect: ApiDialect, fault: RequestError) -> Response<Body> {
    let fault = active.fail(fault);
    let mut response = error(dialect, &fault);
    response.headers_mut().extend(ours(&active.record));
    active.finish();
    response
}

/// A fault as a reply.
pub fn error(dialect: ApiDialect, fault: &RequestError) -> Response<Body> {
    let mut builder =
        Response::builder().status(fault.status).header(header::CONTENT_TYPE, "application/json");
    if let Some(seconds) = fault.retry_after {
        builder = builder.header(header::RETRY_AFTER, seconds);
    }
    builder.body(Body::from(fault.problem().body(dialect))).unwrap_or_default()
}
