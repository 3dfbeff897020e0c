//! Actions over REST: what a participant can start now, and starting it.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json as Answer};
use larder_conversation::{ActionResult, Conversation, ConversationError, Started};
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_gateway::replies::{self, Act, Acted};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ParticipantParams, blocking, open};
use crate::api::Problem;
use crate::api::endpoint::{Endpoints, routes};
use crate::api::extract::{Json, Path, Query};

/// The endpoints of actions.
pub(super) fn endpoints(to: &mut impl Endpoints) {
    routes!(to, list, start, before);
}

/// What a participant can start now.
#[derive(Debug, Serialize, ToSchema)]
pub struct ActionList {
    /// By name.
    pub actions: Vec<ActionInfo>,
}

/// An action.
#[derive(Debug, Serialize, ToSchema)]
pub struct ActionInfo {
    /// Its name.
    pub name: String,
    /// What it does; empty for a step that leads to another stage.
    pub about: String,
}

impl ActionList {
    /// What a participant can start now. Blocks.
    ///
    /// # Errors
    /// The store fails.
    pub fn read(conversation: &Conversation) -> Result<Self, ConversationError> {
        let known = &conversation.kind().kind.actions;
        let about = |name: &String| known.get(name).map(|action| action.about.clone()).unwrap_or_default();
        let names = conversation.actions()?.into_iter();
        Ok(Self { actions: names.map(|name| ActionInfo { about: about(&name), name }).collect() })
    }
}

/// An action to start.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAction {
    /// Its name.
    #[schema(example = "quiz")]
    pub action: String,
    /// What the participant says to it.
    #[serde(default)]
    pub text: Option<String>,
    /// The participant; not needed where the caller takes part under one name.
    #[serde(default)]
    pub participant: Option<String>,
}

/// List what a participant can start now
#[utoipa::path(
    get, path = "/api/v1/conversations/{id}/actions", tag = "conversations",
    params(("id" = String, Path, description = "The conversation"), ParticipantParams),
    responses(
        (status = 200, description = "In the stage in which the participant is", body = ActionList),
        (status = 404, description = "No such conversation of the caller", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(who): Query<ParticipantParams>,
) -> Result<Answer<ActionList>, Problem> {
    let conversation = open(&app, &caller, id, who.participant).await?;
    Ok(Answer(blocking(move || ActionList::read(&conversation)).await?))
}

/// Start an action
///
/// An action of the type, a step that leads to another stage, or `open` to have the assistant speak first. What it gives is
/// the caller's alone; others see of it what is shared.
#[utoipa::path(
    post, path = "/api/v1/conversations/{id}/actions", tag = "conversations", request_body = NewAction,
    params(("id" = String, Path, description = "The conversation")),
    responses(
        (status = 200, description = "What it gave, and the stage after it", body = ActionResult),
        (status = 404, description = "No such conversation of the caller", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "It cannot be started now", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "The budget of the key or of the type is used up", body = Problem, content_type = "application/problem+json"),
        (status = 502, description = "A model failed", body = Problem, content_type = "application/problem+json"),
        (status = 507, description = "The disk is full, or the store as large as it may be", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn start(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Json(new): Json<NewAction>,
) -> Result<Answer<ActionResult>, Problem> {
    let conversation = open(&app, &caller, id, new.participant).await?;
    match replies::act(&app, &caller, conversation, Act::Action(new.action, new.text)).await? {
        Acted::Action(result) => Ok(Answer(result)),
        Acted::Preview(_) | Acted::Shared(_) => Err(Problem::internal(&"an action gave no result")),
    }
}

/// A message before a conversation.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FirstMessage {
    /// What somebody wants to know.
    #[schema(example = "What is this?")]
    pub text: String,
}

/// Answer a message before a conversation is open
///
/// By the type's action on `start`. Neither the message nor the answer is part of any conversation.
#[utoipa::path(
    post, path = "/api/v1/conversation-types/{name}/start", tag = "conversations", request_body = FirstMessage,
    params(("name" = String, Path, description = "The type")),
    responses(
        (status = 200, description = "What the message wants, as data, and the answer", body = Started),
        (status = 404, description = "There is no such type", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "The type has no action for that, or the message is empty", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "The budget of the key or of the type is used up", body = Problem, content_type = "application/problem+json"),
        (status = 502, description = "A model failed", body = Problem, content_type = "application/problem+json"),
        (status = 507, description = "The disk is full, or the store as large as it may be", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn before(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    Json(first): Json<FirstMessage>,
) -> Result<Answer<Started>, Problem> {
    Ok(Answer(replies::start(&app, &caller, name, first.text).await?))
}
