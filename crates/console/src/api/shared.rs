//! What users publish for all users, over REST: what may be and what is published, publishing and revoking.

use std::sync::Arc;

use axum::Extension;
use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_store::{Publication, UserDocuments};
use larder_tools::{ShareCandidate, ShareError, publish, share_candidates};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Problem;
use super::endpoint::{Endpoints, routes};
use super::extract::{Json, Path, blocking};

/// The endpoints of what is shared.
pub(super) fn endpoints(to: &mut impl Endpoints) {
    routes!(to, list, add, revoke);
}

/// What the caller may publish, and what all users published.
#[derive(Debug, Serialize, ToSchema)]
pub struct SharedList {
    /// Facts and research of the caller that proved right and stay true.
    pub candidates: Vec<ShareCandidate>,
    /// What is published, oldest first.
    pub published: Vec<Publication>,
}

/// The text that a person saw and publishes.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Publishing {
    /// The statements of the candidate.
    pub statements: Vec<String>,
}

impl SharedList {
    /// What this user may publish, and what is published. Blocks.
    ///
    /// # Errors
    /// Memory or the store fails.
    pub fn read(documents: &UserDocuments) -> Result<Self, ShareError> {
        let candidates = share_candidates(documents, documents.store().store().now().into())?;
        Ok(Self { candidates, published: documents.store().publications().list()? })
    }
}

/// The problem of what was not published.
fn not_shared(error: ShareError) -> Problem {
    match error {
        ShareError::Store(error) => error.into(),
        ShareError::NotOffered { .. } => Problem::not_found(error.to_string()),
        ShareError::Changed { .. } | ShareError::TooMany => {
            Problem::new(StatusCode::CONFLICT, error.to_string())
        }
        ShareError::Memory(error) => Problem::internal(&error),
    }
}

/// Publishes what the caller saw.
///
/// # Errors
/// It is no candidate, it has changed, or the store fails.
pub async fn publish_seen(
    app: Arc<App>,
    caller: Caller,
    id: String,
    statements: Vec<String>,
) -> Result<Publication, Problem> {
    let published = blocking(move || {
        let documents = app.documents_of(&caller.store)?;
        Ok(publish(&documents, app.store.now().into(), &id, &statements))
    });
    published.await?.map_err(not_shared)
}

/// List what you may publish for all users, and what is published
#[utoipa::path(
    get, path = "/api/v1/shared", tag = "shared",
    responses((status = 200, description = "The caller's candidates, and what all users published", body = SharedList))
)]
pub async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Answer<SharedList>, Problem> {
    let shared = blocking(move || Ok(SharedList::read(&app.documents_of(&caller.store)?))).await?;
    Ok(Answer(shared.map_err(not_shared)?))
}

/// Publish a fact, or the evergreen facts of research, for all users
#[utoipa::path(
    post, path = "/api/v1/shared/{id}", tag = "shared",
    params(("id" = String, Path, description = "The id of a candidate", example = "fact-001")),
    request_body = Publishing,
    responses(
        (status = 200, description = "Published, as a copy with its source", body = Publication),
        (status = 404, description = "Not offered for publication", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "The text is no longer the one that was sent", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn add(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Json(Publishing { statements }): Json<Publishing>,
) -> Result<Answer<Publication>, Problem> {
    Ok(Answer(publish_seen(app, caller, id, statements).await?))
}

/// Revoke something that you published; with an operator key, anything
#[utoipa::path(
    post, path = "/api/v1/shared/{id}/revoke", tag = "shared",
    params(("id" = u64, Path, description = "The number of the publication")),
    responses(
        (status = 200, description = "No longer published", body = Publication),
        (status = 404, description = "You published nothing with this number", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn revoke(
    Extension(caller): Extension<Caller>,
    Path(id): Path<u64>,
) -> Result<Answer<Publication>, Problem> {
    Ok(Answer(blocking(move || caller.store.publications().revoke(id, caller.operator)).await?))
}
