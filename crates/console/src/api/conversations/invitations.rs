//! Invitations over REST: whom another user named takes part by an act of their own, and has nothing of the conversation
//! before.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json as Answer};
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_store::{ConversationRecord, Invitation, StoreError, Track};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::blocking;
use crate::api::Problem;
use crate::api::endpoint::{Endpoints, routes};
use crate::api::extract::{Json, Path};

/// The endpoints of invitations.
pub(super) fn endpoints(to: &mut impl Endpoints) {
    routes!(to, list, accept, decline);
}

/// Invitations.
#[derive(Debug, Serialize, ToSchema)]
pub struct InvitationList {
    /// Those of the caller that wait, newest first.
    pub invitations: Vec<Invitation>,
}

/// An invitation that is accepted.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptedInvitation {
    /// The name under which the caller was invited.
    pub name: String,
    /// With an operator's key: the user who was invited. Default: the caller.
    #[serde(default)]
    pub user: Option<String>,
}

/// List the caller's invitations
///
/// An invitation names the conversation, its type and who invites, and nothing of what was said.
#[utoipa::path(
    get, path = "/api/v1/conversation-invitations", tag = "conversations",
    responses((status = 200, description = "Newest first", body = InvitationList))
)]
pub async fn list(Extension(caller): Extension<Caller>) -> Result<Answer<InvitationList>, Problem> {
    let invitations = crate::api::blocking(move || caller.store.conversations().invitations()).await?;
    Ok(Answer(InvitationList { invitations }))
}

/// Accept an invitation
///
/// The caller takes part from then on.
#[utoipa::path(
    post, path = "/api/v1/conversations/{id}/participants", tag = "conversations", request_body = AcceptedInvitation,
    params(("id" = String, Path, description = "The conversation")),
    responses(
        (status = 201, description = "The conversation as the caller sees it", body = ConversationRecord),
        (status = 404, description = "The caller has no such invitation", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "Nobody can be called that user", body = Problem, content_type = "application/problem+json"),
        (status = 507, description = "The disk is full, or the store as large as it may be", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn accept(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Json(accepted): Json<AcceptedInvitation>,
) -> Result<(StatusCode, Answer<ConversationRecord>), Problem> {
    let joined = blocking(move || {
        let caller = match accepted.user {
            Some(user) if caller.operator => Caller { store: app.store.user(&user)?, ..caller },
            Some(user) if user != caller.store.user() => {
                return Err(StoreError::UnknownConversation { id }.into());
            }
            _ => caller,
        };
        app.conversations(&caller).accept(&id, &accepted.name)
    });
    Ok((StatusCode::CREATED, Answer(joined.await?)))
}

/// Decline an invitation, or take back one to a conversation that the caller owns
#[utoipa::path(
    delete, path = "/api/v1/conversations/{id}/participants/{name}", tag = "conversations",
    params(
        ("id" = String, Path, description = "The conversation"),
        ("name" = String, Path, description = "The name of the one who is invited"),
    ),
    responses(
        (status = 204, description = "It is gone"),
        (status = 404, description = "No such invitation", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn decline(
    Extension(caller): Extension<Caller>,
    Path((id, name)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let track = move || caller.store.conversations().decline(Track { conversation: &id, participant: &name });
    crate::api::blocking(track).await?;
    Ok(StatusCode::NO_CONTENT)
}
