//! The REST API under `/api/v1`, its description, and `/metrics`. Everything that belongs to a user is answered to
//! that user only; who asks is in the request's extensions (`auth::Caller`), put there before these routes are
//! reached. Knows nothing of the wire formats of providers.

mod documents;
mod exchanges;
mod extract;
mod interventions;
mod live;
mod pointers;
mod policy;
mod recipes;
mod runs;
mod schemas;
mod transcripts;
mod turns;

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::routing::{MethodRouter, get, post};
use axum::{Json, Router};
use utoipa::OpenApi;

pub use documents::{Hits, SearchParams, document, files_of_turn, place_in_turn, vault_path};
pub use exchanges::{
    CompactionMap, Costs, DAYS, DailyCost, RequestListParams, RequestPage, SessionCosts, unknown,
    when_recorded,
};
pub use extract::{OPERATORS_ONLY, Path, Query, blocking};
pub use larder_gateway::problem::Problem;
pub use live::stream;
pub use pointers::{ContentParams, parse, read};
pub use policy::look;
pub use runs::RunDetail;
pub use transcripts::{
    SentAs, Transcript, TranscriptLines, TranscriptMessage, TranscriptParams, no_transcript,
};
pub use turns::{TurnDetail, TurnList, TurnListParams, UnfinishedTurn};

use larder_gateway::app::App;

/// Entries of a list unless said.
const DEFAULT_LIMIT: u64 = 50;
/// Entries of a list at most.
const MAX_LIMIT: u64 = 500;

/// How many entries a list has when so many were asked for.
fn limit(asked: Option<u64>) -> u64 {
    asked.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT)
}

/// The routes of the API, and `/metrics`.
pub fn router(app: Arc<App>) -> Router {
    let add = |router: Router<Arc<App>>, (path, route)| router.route(path, route);
    let router = routes().into_iter().fold(Router::new(), add);
    router.layer(DefaultBodyLimit::max(app.max_body_bytes())).with_state(app)
}

fn routes() -> Vec<(&'static str, MethodRouter<Arc<App>>)> {
    vec![
        ("/api/v1/openapi.json", get(openapi)),
        ("/api/v1/recipes", get(recipes::list)),
        ("/api/v1/recipes/{category}/{name}", get(recipes::one)),
        ("/api/v1/runs", get(runs::list)),
        ("/api/v1/runs/{id}", get(runs::one)),
        ("/api/v1/runs/{id}/receipt", get(runs::receipt)),
        ("/api/v1/pointers/{id}", get(pointers::one)),
        ("/api/v1/pointers/{id}/content", get(pointers::content)),
        ("/api/v1/policy", get(policy::show)),
        ("/api/v1/policy/inspect", post(policy::inspect)),
        ("/api/v1/interventions", get(interventions::list)),
        ("/api/v1/interventions/{id}", get(interventions::one)),
        ("/api/v1/interventions/{id}/resolve", post(interventions::resolve)),
        ("/api/v1/exchanges", get(exchanges::list)),
        ("/api/v1/exchanges/{id}", get(exchanges::one)),
        ("/api/v1/sessions", get(exchanges::sessions)),
        ("/api/v1/sessions/{session}", get(exchanges::session)),
        ("/api/v1/sessions/{session}/transcript", get(transcripts::show)),
        ("/api/v1/sessions/{session}/transcript/{line}/{form}", get(transcripts::payload)),
        ("/api/v1/costs", get(exchanges::costs)),
        ("/api/v1/live", get(live::show)),
        ("/api/v1/live/events", get(live::events)),
        ("/api/v1/turns", get(turns::list).post(turns::ask)),
        ("/api/v1/turns/{number}", get(turns::one)),
        ("/api/v1/turns/{number}/resume", post(turns::resume)),
        ("/api/v1/documents/{*path}", get(documents::one)),
        ("/api/v1/search", get(documents::search)),
        ("/metrics", get(live::metrics)),
    ]
}

/// What the routes take and give.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Larder",
        description = "What the gateway has in its windows, why, and what it cost. Every answer is about the user \
            whose key asks: `authorization: Bearer lk-…` or `x-api-key`; none is needed on this machine while no key \
            was made. What belongs to all users (`/metrics`, the settings) needs an operator's key.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    paths(
        openapi,
        recipes::list,
        recipes::one,
        runs::list,
        runs::one,
        runs::receipt,
        pointers::one,
        pointers::content,
        policy::show,
        policy::inspect,
        interventions::list,
        interventions::one,
        interventions::resolve,
        exchanges::list,
        exchanges::one,
        exchanges::sessions,
        exchanges::session,
        transcripts::show,
        transcripts::payload,
        exchanges::costs,
        live::show,
        live::events,
        live::metrics,
        turns::list,
        turns::ask,
        turns::one,
        turns::resume,
        documents::one,
        documents::search,
    )
)]
struct Description;

/// Show this description
#[utoipa::path(
    get, path = "/api/v1/openapi.json", tag = "description",
    responses((status = 200, description = "In the format of OpenAPI 3.1", body = Object))
)]
async fn openapi() -> Json<utoipa::openapi::OpenApi> {
    Json(Description::openapi())
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

#[cfg(test)]
#[path = "turns_tests.rs"]
mod turns_tests;
