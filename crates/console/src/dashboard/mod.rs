//! The dashboard: pages rendered on the server, and one small script for what moves. Pages load nothing from other
//! hosts, and text by others (names, payloads, reasons) is always escaped. Authentication happens before these routes;
//! each caller sees their own data only.

mod conversation;
mod costs;
mod documents;
mod figures;
mod interventions;
mod layout;
mod links;
mod map;
mod markdown;
mod overview;
mod pointers;
mod policy;
mod requests;
mod runs;
mod sessions;
mod sharing;
mod sign_in;
mod transcript;
mod turn;
mod ui;
mod vault;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::map_response;
use axum::response::Response;
use axum::routing::{get, post};

pub use layout::problem_page;

use larder_gateway::app::App;
use larder_gateway::routes::SIGN_IN;

/// The style sheet: design tokens first, then what uses them.
const STYLE: &str = concat!(
    include_str!("style/tokens.css"),
    include_str!("style/layout.css"),
    include_str!("style/components.css"),
    include_str!("style/pictures.css"),
    include_str!("style/documents.css"),
    include_str!("style/conversation.css"),
    include_str!("style/media.css"),
);
const SCRIPT: &str = include_str!("script.js");
const ICON: &str = include_str!("icon.svg");

/// Headers of every page: nothing from other hosts, nothing inline, no framing, no caching.
const HEADERS: [(HeaderName, &str); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (header::CACHE_CONTROL, "no-store"),
];

/// The pages for signed-in callers.
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/", get(overview::show))
        .route("/live", get(overview::events))
        .route("/requests", get(requests::list))
        .route("/requests/{id}", get(requests::one))
        .route("/requests/{id}/parts/{part}", get(requests::part))
        .route("/pointers/{id}", get(pointers::one))
        .route("/sessions", get(sessions::list))
        .route("/sessions/{session}", get(sessions::one))
        .route("/sessions/{session}/transcript", get(transcript::show))
        .route("/sessions/{session}/transcript/{line}", get(transcript::one))
        .route("/runs", get(runs::list))
        .route("/runs/{id}", get(runs::one))
        .route("/documents", get(documents::list))
        .route("/turns/{number}", get(turn::one))
        .route("/turns/{number}/claims/{block}", get(turn::claim))
        .route("/live/turns/{number}", get(turn::events))
        .route("/vault", get(vault::tree))
        .route("/vault/{*path}", get(vault::one))
        .route("/shared/{id}", post(sharing::publish))
        .route("/shared/{id}/revoke", post(sharing::revoke))
        .merge(conversations())
        .route("/costs", get(costs::show))
        .route("/interventions", get(interventions::list))
        .route("/interventions/{id}", post(interventions::resolve))
        .route("/jobs/{id}", post(interventions::act_on_job))
        .route("/policy", get(policy::show).post(policy::inspect))
        .layer(DefaultBodyLimit::max(app.max_body_bytes()))
        .layer(map_response(guard))
        .with_state(app)
}

/// The pages of conversations.
fn conversations() -> Router<Arc<App>> {
    Router::new()
        .route("/conversations", get(conversation::list).post(conversation::begin))
        .route("/conversations/{id}", get(conversation::one))
        .route("/conversations/{id}/accept", post(conversation::accept))
        .route("/conversations/{id}/decline", post(conversation::decline))
        .route("/conversations/{id}/messages", post(conversation::say))
        .route("/conversations/{id}/last", post(conversation::change_last))
        .route("/conversations/{id}/aside", get(conversation::aside))
        .route("/conversations/{id}/acts", get(conversation::acts))
        .route("/conversations/{id}/actions", post(conversation::act))
        .route("/conversations/{id}/sessions", post(conversation::begin_session))
        .route("/conversations/{id}/shares/preview", post(conversation::preview))
        .route("/conversations/{id}/shares", post(conversation::share))
        .route("/conversations/{id}/memory", get(conversation::memory))
        .route("/conversations/{id}/consents", post(conversation::give))
        .route("/conversations/{id}/consents/{consent}/revoke", post(conversation::revoke))
        .route("/conversations/{id}/facts/{fact}", post(conversation::correct))
        .route("/conversations/{id}/facts/{fact}/forget", post(conversation::forget))
        .route("/conversations/{id}/delete", post(conversation::delete))
        .route("/conversations/{id}/forget-me", post(conversation::forget_person))
}

/// The pages for anybody: signing in and out, and the assets.
pub fn open_router(app: Arc<App>) -> Router {
    let asset = |kind: &'static str, text: &'static str| {
        get(move || async move { ([(header::CONTENT_TYPE, kind)], text) })
    };
    Router::new()
        .route(SIGN_IN, get(sign_in::show).post(sign_in::enter))
        .route("/sign-out", post(sign_in::leave))
        .route("/assets/style.css", asset("text/css; charset=utf-8", STYLE))
        .route("/assets/script.js", asset("text/javascript; charset=utf-8", SCRIPT))
        .route("/assets/icon.svg", asset("image/svg+xml", ICON))
        .layer(map_response(guard))
        .with_state(app)
}

async fn guard(mut response: Response) -> Response {
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

#[cfg(test)]
#[path = "colour_tests.rs"]
mod colour_tests;
