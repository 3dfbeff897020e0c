//! Conversations over REST: begin, list, show, export and delete. What another user or participant said is as unknown here
//! as what was never said.

mod actions;
mod events;
mod invitations;
mod memory;
mod messages;
mod sharing;

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json as Answer};
use larder_conversation::{Conversation, ConversationError};
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_store::{
    ConversationCostRow, ConversationMessage, ConversationRecord, MemoryFilter, MemoryRecord, SessionRecord,
    StoreError, Track,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

pub use actions::{ActionInfo, ActionList};
pub use memory::{ConsentList, ConsentScope, RememberedFact, remembered};
pub use messages::{ListedMessage, MessageStatus, ReplyWindow, with_status};
pub use sharing::ShareList;

use super::Problem;
use super::endpoint::{Endpoints, routes};
use super::extract::{Json, Path, Query};

/// The endpoints of conversations.
pub(super) fn endpoints(to: &mut impl Endpoints) {
    routes!(to, list, begin, types, one, delete, session, export);
    actions::endpoints(to);
    invitations::endpoints(to);
    messages::endpoints(to);
    memory::endpoints(to);
    sharing::endpoints(to);
}

/// A conversation to begin.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewConversationBody {
    /// The name of its type.
    #[serde(rename = "type")]
    #[schema(example = "tutor")]
    pub kind: String,
    /// A line that tells it from others.
    #[serde(default)]
    pub title: String,
    /// Who takes part, the caller among them. Default: the caller alone.
    #[serde(default)]
    pub participants: Vec<NewParticipant>,
}

/// Someone who takes part.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewParticipant {
    /// The name in the conversation.
    pub name: String,
    /// The user. Default: the caller. Another user is invited, and takes part after accepting; an operator's key, or a
    /// caller without a key where none is required, makes anyone take part at once.
    #[serde(default)]
    pub user: Option<String>,
}

/// Conversations.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConversationList {
    /// Those that the caller began or takes part in, newest first.
    pub conversations: Vec<ConversationRecord>,
}

/// Types of conversations.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConversationTypeList {
    /// Those that can be begun, by name.
    pub types: Vec<ConversationTypeInfo>,
}

/// A type of conversations.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConversationTypeInfo {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The most participants.
    pub participants: u8,
    /// The stages that a session can begin in, besides the main line.
    pub asides: Vec<String>,
}

/// Whose side of a conversation.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ParticipantParams {
    /// The participant; not needed where the caller takes part under one name.
    pub participant: Option<String>,
}

/// Which of the caller's sides of a conversation.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SidesParams {
    /// A participant of the caller. Default: all of them.
    pub participant: Option<String>,
}

/// A session to begin.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSession {
    /// The participant; not needed where the caller takes part under one name.
    #[serde(default)]
    pub participant: Option<String>,
    /// The stage of an aside. Default: the main line.
    #[serde(default)]
    pub aside: Option<String>,
}

/// A session that was begun.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionBegun {
    /// Its number.
    pub session: u64,
}

/// Everything of the caller in a conversation.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConversationExport {
    /// The conversation.
    pub conversation: ConversationRecord,
    /// Each of the caller's sides.
    pub tracks: Vec<TrackExport>,
    /// What it cost.
    pub costs: Vec<ConversationCostRow>,
}

/// What one participant and the assistant said.
#[derive(Debug, Serialize, ToSchema)]
pub struct TrackExport {
    /// The participant.
    pub participant: String,
    /// Its sessions, in order.
    pub sessions: Vec<SessionRecord>,
    /// The messages of all of them, in order.
    pub messages: Vec<ConversationMessage>,
    /// What is remembered of the participant from this conversation, and its consents: facts, summaries, what was shared.
    #[schema(value_type = Vec<Object>)]
    pub memory: Vec<MemoryRecord>,
}

/// Runs work on conversations on a blocking thread.
///
/// # Errors
/// The errors of the work, as problems.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ConversationError> + Send + 'static,
) -> Result<T, Problem> {
    match larder_engine::blocking::run(work).await {
        Ok(done) => done.map_err(Problem::from),
        Err(error) => Err(Problem::internal(&error)),
    }
}

/// The caller's side of a conversation.
///
/// # Errors
/// There is none under this id and participant, or the store fails.
pub async fn open(
    app: &Arc<App>,
    caller: &Caller,
    id: String,
    participant: Option<String>,
) -> Result<Conversation, Problem> {
    let (app, caller) = (Arc::clone(app), caller.clone());
    blocking(move || app.conversations(&caller).open(&id, participant.as_deref())).await
}

/// List conversations
#[utoipa::path(
    get, path = "/api/v1/conversations", tag = "conversations",
    responses((status = 200, description = "Those that the caller began or takes part in", body = ConversationList))
)]
pub async fn list(Extension(caller): Extension<Caller>) -> Result<Answer<ConversationList>, Problem> {
    let conversations = super::blocking(move || caller.store.conversations().list()).await?;
    Ok(Answer(ConversationList { conversations }))
}

/// List the types of conversations
#[utoipa::path(
    get, path = "/api/v1/conversation-types", tag = "conversations",
    responses((status = 200, description = "Those of the project, and those that ship", body = ConversationTypeList))
)]
pub async fn types(State(app): State<Arc<App>>) -> Result<Answer<ConversationTypeList>, Problem> {
    Ok(Answer(ConversationTypeList { types: blocking(move || Ok(types_of(&app))).await? }))
}

/// The types that can be begun. Blocks the first time.
pub fn types_of(app: &App) -> Vec<ConversationTypeInfo> {
    let current = app.current();
    let types = current.types().iter().map(|loaded| ConversationTypeInfo {
        name: loaded.kind.name.clone(),
        description: loaded.kind.description.clone(),
        participants: loaded.kind.participants.most,
        asides: loaded.kind.asides().map(str::to_owned).collect(),
    });
    types.collect()
}

/// Begin a conversation
///
/// Other users are invited: each takes part after accepting by `POST …/{id}/participants` with a key of their own. With an
/// operator's key, or where no key is required, they take part at once.
#[utoipa::path(
    post, path = "/api/v1/conversations", tag = "conversations", request_body = NewConversationBody,
    responses(
        (status = 201, description = "Begun", body = ConversationRecord),
        (status = 404, description = "There is no such type", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "The type does not allow it, a name cannot be used, or too many invitations of the caller are open", body = Problem, content_type = "application/problem+json"),
        (status = 507, description = "The disk is full, or the store as large as it may be", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn begin(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Json(new): Json<NewConversationBody>,
) -> Result<(StatusCode, Answer<ConversationRecord>), Problem> {
    let begun = blocking(move || begin_for(&app, &caller, new));
    Ok((StatusCode::CREATED, Answer(begun.await?)))
}

/// Begins a conversation for a caller, who invites other users; those whom an operator names take part at once. Blocks.
///
/// # Errors
/// There is no such type, it does not allow that, or the store fails.
pub fn begin_for(
    app: &App,
    caller: &Caller,
    new: NewConversationBody,
) -> Result<ConversationRecord, ConversationError> {
    let user = caller.store.user();
    let participant = |one: NewParticipant| (one.name, one.user.unwrap_or_else(|| user.to_owned()));
    let named = new.participants.into_iter().map(participant);
    // Nobody takes part by another user's act, except an operator's.
    let (own, others): (Vec<_>, Vec<_>) = named.partition(|(_, of)| caller.operator || of == user);
    app.conversations(caller).begin_inviting(&new.kind, &new.title, &own, &others)
}

/// Show a conversation
#[utoipa::path(
    get, path = "/api/v1/conversations/{id}", tag = "conversations",
    params(("id" = String, Path, description = "The conversation")),
    responses(
        (status = 200, description = "Its participants, where the caller's stand, and of the others what the type lets be seen", body = ConversationRecord),
        (status = 404, description = "No such conversation of the caller", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn one(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Answer<ConversationRecord>, Problem> {
    Ok(Answer(blocking(move || app.conversations(&caller).show(&id)).await?))
}

/// Delete a conversation
///
/// Erases the caller's messages, with what is kept of the runs behind them, and ends the caller's part; with `participant`,
/// those of that name alone. What other participants said stays theirs.
#[utoipa::path(
    delete, path = "/api/v1/conversations/{id}", tag = "conversations",
    params(("id" = String, Path, description = "The conversation"), SidesParams),
    responses(
        (status = 204, description = "Erased"),
        (status = 404, description = "No such conversation of the caller", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn delete(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(SidesParams { participant }): Query<SidesParams>,
) -> Result<StatusCode, Problem> {
    let erasing = larder_engine::blocking::spawn(async move {
        app.conversations(&caller).delete(&id, participant.as_deref()).await
    });
    erasing.await.map_err(|error| Problem::internal(&error))??;
    Ok(StatusCode::NO_CONTENT)
}

/// Begin a session
///
/// On the main line, or in an aside. Nothing of earlier sessions is sent in it without a consent.
#[utoipa::path(
    post, path = "/api/v1/conversations/{id}/sessions", tag = "conversations", request_body = NewSession,
    params(("id" = String, Path, description = "The conversation")),
    responses(
        (status = 201, description = "Begun", body = SessionBegun),
        (status = 404, description = "No such conversation of the caller", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "There is no such aside", body = Problem, content_type = "application/problem+json"),
        (status = 507, description = "The disk is full, or the store as large as it may be", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn session(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Json(new): Json<NewSession>,
) -> Result<(StatusCode, Answer<SessionBegun>), Problem> {
    let conversation = open(&app, &caller, id, new.participant).await?;
    let session = conversation.begin_session(new.aside.as_deref()).await?;
    Ok((StatusCode::CREATED, Answer(SessionBegun { session })))
}

/// Export what the caller said in a conversation, with the replies, what is remembered of it, and what it cost
#[utoipa::path(
    get, path = "/api/v1/conversations/{id}/export", tag = "conversations",
    params(("id" = String, Path, description = "The conversation"), SidesParams),
    responses(
        (status = 200, description = "Everything of the caller, or of one participant", body = ConversationExport),
        (status = 404, description = "No such conversation of the caller", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn export(
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(SidesParams { participant: of }): Query<SidesParams>,
) -> Result<Answer<ConversationExport>, Problem> {
    let export = super::blocking(move || {
        let store = caller.store.conversations();
        let conversation = store.get(&id)?;
        let own = conversation.participants.iter().filter(|one| one.user == caller.store.user());
        let own = own.filter(|one| of.as_ref().is_none_or(|of| one.name == *of));
        let mut tracks = Vec::new();
        for participant in own {
            let track = Track { conversation: &conversation.id, participant: &participant.name };
            let mut messages = Vec::new();
            for session in 1..=participant.session {
                messages.extend(store.messages(track, session, 0..u64::MAX)?);
            }
            let sessions = store.sessions(track)?;
            let filter = MemoryFilter { participant: Some(&participant.name), ..MemoryFilter::default() };
            let mut memory = store.memory().list(&filter)?;
            memory.retain(|one| one.conversation.as_ref().is_none_or(|of| *of == conversation.id));
            tracks.push(TrackExport { participant: participant.name.clone(), sessions, messages, memory });
        }
        if tracks.is_empty() && of.is_some() {
            return Err(StoreError::UnknownConversation { id });
        }
        let costs = store.costs_of(&conversation.id)?;
        Ok(ConversationExport { conversation, tracks, costs })
    });
    Ok(Answer(export.await?))
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod rules_tests;

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
