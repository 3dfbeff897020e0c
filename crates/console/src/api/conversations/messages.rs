//! The messages of a conversation over REST: post, read, answer once more, edit, delete, and what was sent for a reply.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json as Answer};
use larder_conversation::{Conversation, Reply, ReplyRecord};
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_gateway::replies;
use larder_store::{ConversationMessage, Speaker, StoreError};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{ParticipantParams, blocking, events, open};
use crate::api::Problem;
use crate::api::endpoint::{Endpoints, routes};
use crate::api::extract::{Json, Path, Query};

/// The endpoints of messages.
pub(super) fn endpoints(to: &mut impl Endpoints) {
    routes!(to, list, post, edit, regenerate, resume, delete, window);
}

/// The header that makes a repeated post the same one.
const KEY: &str = "idempotency-key";

/// A message to post.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMessageBody {
    /// What is said.
    pub text: String,
    /// The participant; not needed where the caller takes part under one name.
    #[serde(default)]
    pub participant: Option<String>,
}

/// The messages to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct MessageListParams {
    /// The participant; not needed where the caller takes part under one name.
    pub participant: Option<String>,
    /// The session. Default: the current one.
    pub session: Option<u64>,
}

/// Messages of a session.
#[derive(Debug, Serialize, ToSchema)]
pub struct MessageList {
    /// In order.
    pub messages: Vec<ListedMessage>,
}

/// A message, and what became of it.
#[derive(Debug, Serialize, ToSchema)]
pub struct ListedMessage {
    /// The message.
    #[serde(flatten)]
    pub message: ConversationMessage,
    /// Of a participant's message, whether it has a reply; null for one of the assistant.
    pub status: Option<MessageStatus>,
}

/// Whether a message of a participant has a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageStatus {
    /// It has one.
    Answered,
    /// Its reply is being written, or its model failed: it is answered when it is posted again under its key, or else before
    /// the next message.
    Waiting,
    /// It has none, and none will be written unless it is sent again.
    Unanswered,
}

/// What became of each message of a session.
pub fn with_status(messages: Vec<ConversationMessage>) -> Vec<ListedMessage> {
    let answered: BTreeSet<u64> = messages.iter().filter_map(|message| message.reply_to).collect();
    let status = |message: &ConversationMessage| match message.speaker {
        Speaker::Assistant => None,
        Speaker::Participant if message.pending => Some(MessageStatus::Waiting),
        Speaker::Participant if answered.contains(&message.number) => Some(MessageStatus::Answered),
        Speaker::Participant => Some(MessageStatus::Unanswered),
    };
    messages.into_iter().map(|message| ListedMessage { status: status(&message), message }).collect()
}

/// The reply to look at.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WindowParams {
    /// The participant; not needed where the caller takes part under one name.
    pub participant: Option<String>,
    /// The number of a reply or of the message that it answers. Default: the newest reply of the session.
    pub message: Option<u64>,
}

/// What was sent for a reply, and why.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReplyWindow {
    /// The number of the reply.
    pub reply: u64,
    /// How it was made: stage, recipe and runs, parsed fields, the messages and blocks that were sent with their tokens,
    /// what was withheld, and what it cost.
    #[schema(value_type = Object)]
    pub record: ReplyRecord,
}

impl ReplyWindow {
    /// Reads what was sent for a reply, by its number or that of its message; for the newest one without a number. Blocks.
    ///
    /// # Errors
    /// There is no such reply, or the store fails.
    pub fn read(
        conversation: &Conversation,
        number: Option<u64>,
    ) -> Result<Self, larder_conversation::ConversationError> {
        let reply = match number {
            Some(number) => conversation.written(number)?.map_or(number, |reply| reply.number),
            None => {
                let messages = conversation.messages(None)?;
                let newest = messages.iter().rev().find(|message| message.speaker == Speaker::Assistant);
                newest.ok_or(StoreError::UnknownMessage { number: 0 })?.number
            }
        };
        Ok(Self { reply, record: conversation.record(reply)? })
    }
}

/// The reply to a stored message, as JSON or as events.
async fn answered(
    app: Arc<App>,
    caller: Caller,
    conversation: Conversation,
    message: u64,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let started =
        larder_engine::blocking::run(move || replies::answer(&app, &caller, conversation, message, true));
    let stream = started.await.map_err(|error| Problem::internal(&error))??;
    let reader = stream.read(events::last(headers));
    if events::wanted(headers) {
        return Ok(events::stream(reader));
    }
    Ok(Answer(reader.ended().await?).into_response())
}

/// The key of a request that may be repeated.
fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let key = headers.get(KEY).map(|key| key.to_str().map(str::to_owned)).transpose();
    key.map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "Idempotency-Key: expected ASCII"))
}

/// Post a message and wait for the reply
///
/// With `accept: text/event-stream` the reply is streamed: `text` events with pieces of it, `restart` if what was sent is
/// void, `draft` with a text that may be shared, and `done` with the reply, or `problem`. It is written to its end and
/// stored even if the client leaves. Messages are answered in order, each once: one that waits because its model failed is
/// tried once more before the next, and is left without a reply if that fails, which `notices` of the next reply say. A post that is repeated with the same `Idempotency-Key` gets the same reply.
#[utoipa::path(
    post, path = "/api/v1/conversations/{id}/messages", tag = "conversations", request_body = NewMessageBody,
    params(
        ("id" = String, Path, description = "The conversation"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeated post the same one"),
    ),
    responses(
        (status = 200, description = "The reply, or events", content(
            (Reply = "application/json"), (Reply = "text/event-stream"),
        )),
        (status = 404, description = "No such conversation of the caller", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "The message is too long for the model", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "The message is empty, or the key is of another one", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "The budget of the key or of the type is used up", body = Problem, content_type = "application/problem+json"),
        (status = 502, description = "A model failed; the message is kept and waits. A post with the same key tries again, the next message is answered after it", body = Problem, content_type = "application/problem+json"),
        (status = 507, description = "The disk is full, or the store as large as it may be", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn post(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Json(new): Json<NewMessageBody>,
) -> Result<Response, Problem> {
    let conversation = open(&app, &caller, id, new.participant).await?;
    let key = key(&headers)?;
    let side = conversation.clone();
    let posted = blocking(move || side.post(&new.text, key.as_deref())).await?;
    answered(app, caller, conversation, posted.number, &headers).await
}

/// List the messages of a session
#[utoipa::path(
    get, path = "/api/v1/conversations/{id}/messages", tag = "conversations",
    params(("id" = String, Path, description = "The conversation"), MessageListParams),
    responses(
        (status = 200, description = "In order", body = MessageList),
        (status = 404, description = "No such conversation of the caller, or no such session in it", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(which): Query<MessageListParams>,
) -> Result<Answer<MessageList>, Problem> {
    let conversation = open(&app, &caller, id, which.participant).await?;
    let messages = blocking(move || conversation.messages(which.session)).await?;
    Ok(Answer(MessageList { messages: with_status(messages) }))
}

/// Edit the last message and answer it anew
#[utoipa::path(
    put, path = "/api/v1/conversations/{id}/messages/last", tag = "conversations", request_body = NewMessageBody,
    params(
        ("id" = String, Path, description = "The conversation"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeated edit the same one"),
    ),
    responses(
        (status = 200, description = "The reply, or events", content(
            (Reply = "application/json"), (Reply = "text/event-stream"),
        )),
        (status = 404, description = "No such conversation of the caller, or no message in it", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "The budget of the key or of the type is used up", body = Problem, content_type = "application/problem+json"),
        (status = 502, description = "A model failed; the message is kept", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "The message is too long for the model", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "The message is empty, or the key is of another one", body = Problem, content_type = "application/problem+json"),
        (status = 507, description = "The disk is full, or the store as large as it may be", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn edit(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Json(new): Json<NewMessageBody>,
) -> Result<Response, Problem> {
    revised(app, caller, id, new.participant, Some(new.text), &headers).await
}

/// Answer the last message once more
#[utoipa::path(
    post, path = "/api/v1/conversations/{id}/regenerate", tag = "conversations",
    params(
        ("id" = String, Path, description = "The conversation"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeated request the same one"),
        ParticipantParams,
    ),
    responses(
        (status = 200, description = "The reply, or events", content(
            (Reply = "application/json"), (Reply = "text/event-stream"),
        )),
        (status = 404, description = "No such conversation of the caller, or no message in it", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "The budget of the key or of the type is used up", body = Problem, content_type = "application/problem+json"),
        (status = 502, description = "A model failed; the message is kept", body = Problem, content_type = "application/problem+json"),
        (status = 507, description = "The disk is full, or the store as large as it may be", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn regenerate(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(who): Query<ParticipantParams>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    revised(app, caller, id, who.participant, None, &headers).await
}

async fn revised(
    app: Arc<App>,
    caller: Caller,
    id: String,
    participant: Option<String>,
    text: Option<String>,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let conversation = open(&app, &caller, id, participant).await?;
    let (side, key) = (conversation.clone(), key(headers)?);
    let revising =
        larder_engine::blocking::spawn(async move { side.revise(text.as_deref(), key.as_deref()).await });
    let posted = revising.await.map_err(|error| Problem::internal(&error))??;
    answered(app, caller, conversation, posted.number, headers).await
}

/// Read the reply to a message, from its beginning or after `Last-Event-ID`
///
/// The same events as of the post, whether the reply is being written or was written long ago, here or by another process.
/// If what the client has read is void, `restart` comes first.
#[utoipa::path(
    get, path = "/api/v1/conversations/{id}/messages/{number}/events", tag = "conversations",
    params(
        ("id" = String, Path, description = "The conversation"),
        ("number" = u64, Path, description = "The message that is answered"),
        ("Last-Event-ID" = Option<String>, Header, description = "The last event that was read"),
        ParticipantParams,
    ),
    responses(
        (status = 200, description = "Events", body = Reply, content_type = "text/event-stream"),
        (status = 404, description = "No such message of the caller", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn resume(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path((id, number)): Path<(String, u64)>,
    Query(who): Query<ParticipantParams>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let conversation = open(&app, &caller, id, who.participant).await?;
    let started = larder_engine::blocking::run(move || {
        let message = conversation.message(number)?;
        if message.speaker == Speaker::Assistant {
            return Err(StoreError::UnknownMessage { number }.into());
        }
        replies::answer(&app, &caller, conversation, number, true)
    });
    let stream = started.await.map_err(|error| Problem::internal(&error))??;
    Ok(events::stream(stream.read(events::last(&headers))))
}

/// Delete a message with its reply, or a reply
#[utoipa::path(
    delete, path = "/api/v1/conversations/{id}/messages/{number}", tag = "conversations",
    params(
        ("id" = String, Path, description = "The conversation"),
        ("number" = u64, Path, description = "The message"),
        ParticipantParams,
    ),
    responses(
        (status = 204, description = "Erased, with what is kept of the runs behind it"),
        (status = 404, description = "No such message of the caller", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn delete(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path((id, number)): Path<(String, u64)>,
    Query(who): Query<ParticipantParams>,
) -> Result<StatusCode, Problem> {
    let conversation = open(&app, &caller, id, who.participant).await?;
    let erasing = larder_engine::blocking::spawn(async move { conversation.delete_message(number).await });
    erasing.await.map_err(|error| Problem::internal(&error))??;
    Ok(StatusCode::NO_CONTENT)
}

/// Show what was sent for a reply, and why
#[utoipa::path(
    get, path = "/api/v1/conversations/{id}/window", tag = "conversations",
    params(("id" = String, Path, description = "The conversation"), WindowParams),
    responses(
        (status = 200, description = "References, sizes and reasons", body = ReplyWindow),
        (status = 404, description = "No such reply of the caller", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn window(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(which): Query<WindowParams>,
) -> Result<Answer<ReplyWindow>, Problem> {
    let conversation = open(&app, &caller, id, which.participant).await?;
    Ok(Answer(blocking(move || ReplyWindow::read(&conversation, which.message)).await?))
}
