//! What participants give to each other over REST: seen before anyone else does, given by an explicit act, and read by those
//! who are named.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json as Answer};
use larder_conversation::memory::Share;
use larder_conversation::sharing::{NewShare, SharePreview, Shared};
use larder_conversation::{Conversation, ConversationError};
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_gateway::replies::{self, Act, Acted};
use larder_text::tokens::Counter;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ParticipantParams, blocking, open};
use crate::api::Problem;
use crate::api::endpoint::{Endpoints, routes};
use crate::api::extract::{Json, Path, Query};

/// The endpoints of sharing.
pub(super) fn endpoints(to: &mut impl Endpoints) {
    routes!(to, list, give, preview);
}

/// What was given.
#[derive(Debug, Serialize, ToSchema)]
pub struct ShareList {
    /// By the participant.
    pub given: Vec<Share>,
    /// To the participant.
    pub received: Vec<Share>,
}

impl ShareList {
    /// What a participant gave and was given. Blocks.
    ///
    /// # Errors
    /// The store fails.
    pub fn read(conversation: &Conversation) -> Result<Self, ConversationError> {
        let counter = Counter::cl100k();
        let memory = conversation.memory(&counter);
        Ok(Self { given: memory.shared_by_me()?, received: memory.shared_with_me()? })
    }
}

/// What is shared.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfirmedShare {
    /// What the newest preview said with `confirm`.
    pub confirm: String,
}

/// List what a participant gave and was given
#[utoipa::path(
    get, path = "/api/v1/conversations/{id}/shares", tag = "conversations",
    params(("id" = String, Path, description = "The conversation"), ParticipantParams),
    responses(
        (status = 200, description = "Oldest first", body = ShareList),
        (status = 404, description = "No such conversation of the caller", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(who): Query<ParticipantParams>,
) -> Result<Answer<ShareList>, Problem> {
    let conversation = open(&app, &caller, id, who.participant).await?;
    Ok(Answer(blocking(move || ShareList::read(&conversation)).await?))
}

/// Preview a share
///
/// Nothing is given. The answer shows the whole text, who would get it, and what the judges of the type say of it; its
/// `confirm` is what the act of sharing names.
#[utoipa::path(
    post, path = "/api/v1/conversations/{id}/shares/preview", tag = "conversations", request_body = NewShare,
    params(("id" = String, Path, description = "The conversation"), ParticipantParams),
    responses(
        (status = 200, description = "What would be given, to whom", body = SharePreview),
        (status = 404, description = "No such conversation or message of the caller", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "The type does not allow it, or there is no text", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn preview(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(who): Query<ParticipantParams>,
    Json(new): Json<NewShare>,
) -> Result<Answer<SharePreview>, Problem> {
    let conversation = open(&app, &caller, id, who.participant).await?;
    match replies::act(&app, &caller, conversation, Act::Preview(new)).await? {
        Acted::Preview(preview) => Ok(Answer(preview)),
        Acted::Action(_) | Acted::Shared(_) => Err(Problem::internal(&"a preview gave something else")),
    }
}

/// Share what was previewed
///
/// With participants, they are given the text; with a purpose it is released for that, and read once every participant has
/// released something. The same share again is the one that there is.
#[utoipa::path(
    post, path = "/api/v1/conversations/{id}/shares", tag = "conversations", request_body = ConfirmedShare,
    params(("id" = String, Path, description = "The conversation"), ParticipantParams),
    responses(
        (status = 201, description = "Given", body = Shared),
        (status = 404, description = "No such conversation of the caller", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "It is not what the newest preview showed", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "A judge stops it", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn give(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(who): Query<ParticipantParams>,
    Json(ConfirmedShare { confirm }): Json<ConfirmedShare>,
) -> Result<(StatusCode, Answer<Shared>), Problem> {
    let conversation = open(&app, &caller, id, who.participant).await?;
    match replies::act(&app, &caller, conversation, Act::Share(confirm)).await? {
        Acted::Shared(shared) => Ok((StatusCode::CREATED, Answer(shared))),
        Acted::Action(_) | Acted::Preview(_) => Err(Problem::internal(&"sharing gave something else")),
    }
}
