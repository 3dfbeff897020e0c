//! The REST API under `/api/v1`, its OpenAPI document, and `/metrics`. Data of a user is served to that user only; the
//! caller (`auth::Caller`) is in the request's extensions, set before these routes are reached. Knows nothing of the
//! wire formats of providers.

mod conversations;
#[cfg(test)]
mod description;
mod documents;
mod endpoint;
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

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

pub use conversations::{
    ActionInfo, ActionList, ConsentList, ConsentScope, ConversationTypeInfo, ListedMessage, MessageStatus,
    NewConversationBody, NewParticipant, RememberedFact, ReplyWindow, ShareList, begin_for,
    blocking as blocking_conversation, remembered, types_of, with_status,
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
pub use revisions::{RevisionList, RevisionListParams};
pub use runs::RunDetail;
pub use shared::{SharedList, publish_seen};
pub use transcripts::{
    SentAs, TranscriptLines, TranscriptPage, TranscriptPageMessage, TranscriptParams, no_transcript,
};
pub use turns::{TurnDetail, TurnList, TurnListParams, UnfinishedTurn};

use endpoint::{Endpoints, routes};
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
    let mut router = Router::new();
    endpoints(&mut router);
    router.layer(DefaultBodyLimit::max(app.max_body_bytes())).with_state(app)
}

/// Every endpoint. Each module lists its own.
fn endpoints(to: &mut impl Endpoints) {
    routes!(to, openapi);
    recipes::endpoints(to);
    runs::endpoints(to);
    pointers::endpoints(to);
    policy::endpoints(to);
    revisions::endpoints(to);
    interventions::endpoints(to);
    jobs::endpoints(to);
    exchanges::endpoints(to);
    transcripts::endpoints(to);
    live::endpoints(to);
    turns::endpoints(to);
    conversations::endpoints(to);
    documents::endpoints(to);
    shared::endpoints(to);
}

/// The description of every endpoint, which a test writes: making it here would cost a megabyte of code.
const OPENAPI: &str = include_str!("../../openapi.json");

/// Show this description
#[utoipa::path(
    get, path = "/api/v1/openapi.json", tag = "description",
    responses((status = 200, description = "In the format of OpenAPI 3.1", body = Object))
)]
async fn openapi() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], OPENAPI)
}

#[cfg(test)]
use description::description;

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

#[cfg(test)]
#[path = "turns_tests.rs"]
mod turns_tests;
