//! The REST API under `/api/v1`, its OpenAPI document, and `/metrics`. Data of a user is served to that user only; the
//! caller (`auth::Caller`) is in the request's extensions, set before these routes are reached. Knows nothing of the
//! wire formats of providers.

mod conversations;
mod documents;
mod exchanges;
mod extract;
mod interventions;
mod jobs;
mod live;
mod pointers;
mod policy;
mod recipes;
mod revisions;
mod runs;
mod shared;
mod transcripts;
mod turns;

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::{Json, Router};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use conversations::{
    ConsentList, ConsentScope, ConversationTypeInfo, ListedMessage, MessageStatus, RememberedFact,
    ReplyWindow, open as open_conversation, remembered, types_of, with_status,
};
pub use documents::{Hits, SearchParams, document, files_of_turn, place_in_turn, vault_path};
pub use exchanges::{
    CompactionMap, Costs, DAYS, MapEntry, Priced, ReadBack, ReadBackCost, RequestListParams, RequestPage,
    unknown, when_recorded,
};
pub use extract::{OPERATORS_ONLY, Path, Query, blocking};
pub use interventions::InterventionListParams;
pub use larder_gateway::problem::Problem;
pub use live::stream;
pub use pointers::{ContentParams, parse, read};
pub use policy::look;
pub use runs::RunDetail;
pub use shared::{Shared, publish_seen};
pub use transcripts::{
    SentAs, TranscriptLines, TranscriptPage, TranscriptPageMessage, TranscriptParams, no_transcript,
};
pub use turns::{TurnDetail, TurnList, TurnListParams, UnfinishedTurn};

use larder_gateway::app::App;

/// The default number of entries of a list.
const DEFAULT_LIMIT: u64 = 50;
/// The largest number of entries of a list.
const MAX_LIMIT: u64 = 500;

/// The number of entries for a requested limit.
fn limit(asked: Option<u64>) -> u64 {
    asked.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT)
}

/// The routes of the API, and `/metrics`.
pub fn router(app: Arc<App>) -> Router {
    let (router, _) = endpoints().split_for_parts();
    router.layer(DefaultBodyLimit::max(app.max_body_bytes())).with_state(app)
}

/// Every endpoint, each with its description. Each module lists its own.
fn endpoints() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(openapi))
        .merge(recipes::endpoints())
        .merge(runs::endpoints())
        .merge(pointers::endpoints())
        .merge(policy::endpoints())
        .merge(revisions::endpoints())
        .merge(interventions::endpoints())
        .merge(jobs::endpoints())
        .merge(exchanges::endpoints())
        .merge(transcripts::endpoints())
        .merge(live::endpoints())
        .merge(turns::endpoints())
        .merge(conversations::endpoints())
        .merge(documents::endpoints())
        .merge(shared::endpoints())
}

/// What holds for all endpoints.
#[derive(OpenApi)]
#[openapi(info(
    title = "Larder",
    description = "What the gateway sends to models, why, and what it costs. Every answer concerns the user whose key \
        asks: `authorization: Bearer lk-…` or `x-api-key`. No key is needed from this machine until the first one is \
        created. What belongs to all users (`/metrics`, the settings) needs an operator key.",
    license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
))]
struct Description;

/// Show this description
#[utoipa::path(
    get, path = "/api/v1/openapi.json", tag = "description",
    responses((status = 200, description = "In the format of OpenAPI 3.1", body = Object))
)]
async fn openapi() -> Json<utoipa::openapi::OpenApi> {
    Json(description())
}

/// The description of every endpoint. Its paths have no `*`, which only the router knows.
fn description() -> utoipa::openapi::OpenApi {
    let mut description = endpoints().into_openapi();
    let paths = std::mem::take(&mut description.paths.paths);
    description.paths.paths = paths.into_iter().map(|(path, item)| (path.replace("{*", "{"), item)).collect();
    description
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

#[cfg(test)]
#[path = "turns_tests.rs"]
mod turns_tests;
