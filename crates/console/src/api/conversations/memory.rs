//! What is remembered of a participant over REST, by which consent, and how it is corrected and forgotten.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json as Answer};
use larder_conversation::memory::{Consent, EVERYTHING, Fact};
use larder_conversation::{Conversation, ConversationError};
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_text::tokens::Counter;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ParticipantParams, blocking, open};
use crate::api::Problem;
use crate::api::endpoint::{Endpoints, routes};
use crate::api::extract::{Json, Path, Query};

/// The endpoints of what is remembered.
pub(super) fn endpoints(to: &mut impl Endpoints) {
    routes!(to, list, correct, forget, consents, give, revoke, forget_person);
}

/// A fact, with the words that it comes from.
#[derive(Debug, Serialize, ToSchema)]
pub struct RememberedFact {
    /// The fact.
    pub fact: Fact,
    /// The words; null if their message was deleted.
    pub words: Option<String>,
}

/// What is remembered.
#[derive(Debug, Serialize, ToSchema)]
pub struct FactList {
    /// Of the participant, in all sessions and conversations, oldest first. Those that a newer one contradicts have an end.
    pub facts: Vec<RememberedFact>,
}

/// What a fact is to say.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CorrectedFact {
    /// The statement.
    pub fact: String,
}

/// What may be remembered beyond a session.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConsentList {
    /// All consents of the participant, oldest first; those that were revoked have the time.
    pub consents: Vec<Consent>,
    /// What a consent can be for.
    pub scopes: Vec<ConsentScope>,
}

/// What a consent can be for.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConsentScope {
    /// `profile` for everything, or a category of facts.
    pub scope: String,
    /// What belongs to it.
    pub about: String,
}

/// A consent to record.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewConsent {
    /// `profile` for everything, or a category of facts.
    pub scope: String,
    /// The text that was shown to the person, whole.
    pub shown: String,
    /// The participant; not needed where the caller takes part under one name.
    #[serde(default)]
    pub participant: Option<String>,
}

/// The facts of a participant with their words. Blocks.
///
/// # Errors
/// The store fails.
pub fn remembered(conversation: &Conversation) -> Result<Vec<RememberedFact>, ConversationError> {
    let counter = Counter::cl100k();
    let memory = conversation.memory(&counter);
    let with_words = |fact: Fact| Ok(RememberedFact { words: memory.source(&fact)?, fact });
    memory.all_facts()?.into_iter().map(with_words).collect()
}

impl ConsentList {
    /// The consents of a participant. Blocks.
    ///
    /// # Errors
    /// The store fails.
    pub fn read(conversation: &Conversation) -> Result<Self, ConversationError> {
        let scope =
            |scope: &str, about: &str| ConsentScope { scope: scope.to_owned(), about: about.to_owned() };
        let everything = scope(EVERYTHING, "everything: facts of every kind, earlier messages and summaries");
        let categories = conversation.kind().kind.memory.categories.iter();
        let categories = categories.map(|category| scope(&category.name, &category.about));
        let consents = conversation.memory(&Counter::cl100k()).consents()?;
        Ok(Self { consents, scopes: std::iter::once(everything).chain(categories).collect() })
    }
}

/// List what is remembered of a participant
#[utoipa::path(
    get, path = "/api/v1/conversations/{id}/memory", tag = "conversations",
    params(("id" = String, Path, description = "The conversation"), ParticipantParams),
    responses(
        (status = 200, description = "Facts, each with the words that it comes from", body = FactList),
        (status = 404, description = "No such conversation of the caller", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(who): Query<ParticipantParams>,
) -> Result<Answer<FactList>, Problem> {
    let conversation = open(&app, &caller, id, who.participant).await?;
    Ok(Answer(FactList { facts: blocking(move || remembered(&conversation)).await? }))
}

/// Correct a fact
///
/// What the person says takes the fact's place at once. The earlier one ends, and is erased with it.
#[utoipa::path(
    put, path = "/api/v1/conversations/{id}/memory/{fact}", tag = "conversations", request_body = CorrectedFact,
    params(
        ("id" = String, Path, description = "The conversation"),
        ("fact" = String, Path, description = "The fact"),
        ParticipantParams,
    ),
    responses(
        (status = 200, description = "The fact that holds now", body = Fact),
        (status = 404, description = "No such fact of the participant holds", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "It says nothing", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn correct(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path((id, fact)): Path<(String, String)>,
    Query(who): Query<ParticipantParams>,
    Json(new): Json<CorrectedFact>,
) -> Result<Answer<Fact>, Problem> {
    if new.fact.trim().is_empty() {
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "fact: say what is to be remembered"));
    }
    let conversation = open(&app, &caller, id, who.participant).await?;
    let corrected =
        blocking(move || Ok(conversation.memory(&Counter::cl100k()).correct(&fact, &new.fact)?)).await?;
    corrected.map(Answer).ok_or_else(no_fact)
}

/// Forget a fact, with its earlier versions and what replies have of it
#[utoipa::path(
    delete, path = "/api/v1/conversations/{id}/memory/{fact}", tag = "conversations",
    params(
        ("id" = String, Path, description = "The conversation"),
        ("fact" = String, Path, description = "The fact"),
        ParticipantParams,
    ),
    responses(
        (status = 204, description = "Erased in every file"),
        (status = 404, description = "No such fact of the participant", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn forget(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path((id, fact)): Path<(String, String)>,
    Query(who): Query<ParticipantParams>,
) -> Result<StatusCode, Problem> {
    let conversation = open(&app, &caller, id, who.participant).await?;
    let is_erased = blocking(move || Ok(conversation.memory(&Counter::cl100k()).erase(&fact)?)).await?;
    if is_erased { Ok(StatusCode::NO_CONTENT) } else { Err(no_fact()) }
}

fn no_fact() -> Problem {
    Problem::not_found("there is no such fact of this participant")
}

/// List consents, and what they can be for
#[utoipa::path(
    get, path = "/api/v1/conversations/{id}/consents", tag = "conversations",
    params(("id" = String, Path, description = "The conversation"), ParticipantParams),
    responses(
        (status = 200, description = "Each with the text that was shown", body = ConsentList),
        (status = 404, description = "No such conversation of the caller", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn consents(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(who): Query<ParticipantParams>,
) -> Result<Answer<ConsentList>, Problem> {
    let conversation = open(&app, &caller, id, who.participant).await?;
    Ok(Answer(blocking(move || ConsentList::read(&conversation)).await?))
}

/// Give a consent
///
/// It holds at once, also for what is remembered already. Where one for the same is in force, that is the answer.
#[utoipa::path(
    post, path = "/api/v1/conversations/{id}/consents", tag = "conversations", request_body = NewConsent,
    params(("id" = String, Path, description = "The conversation")),
    responses(
        (status = 201, description = "In force", body = Consent),
        (status = 404, description = "No such conversation of the caller", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "Nothing was shown, or a consent cannot be for that", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn give(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Json(new): Json<NewConsent>,
) -> Result<(StatusCode, Answer<Consent>), Problem> {
    if new.shown.trim().is_empty() {
        let words = "shown: the text that the person read before agreeing";
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, words));
    }
    let conversation = open(&app, &caller, id, new.participant).await?;
    let granted =
        blocking(move || Ok(conversation.memory(&Counter::cl100k()).grant(&new.scope, &new.shown)?)).await?;
    Ok((StatusCode::CREATED, Answer(granted)))
}

/// Revoke a consent
///
/// From the next message on nothing crosses sessions by it, and within a minute everything that was made under it is erased.
#[utoipa::path(
    post, path = "/api/v1/conversations/{id}/consents/{consent}/revoke", tag = "conversations",
    params(
        ("id" = String, Path, description = "The conversation"),
        ("consent" = String, Path, description = "The consent"),
        ParticipantParams,
    ),
    responses(
        (status = 200, description = "Revoked, now or before", body = Consent),
        (status = 404, description = "No such consent of the participant", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn revoke(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path((id, consent)): Path<(String, String)>,
    Query(who): Query<ParticipantParams>,
) -> Result<Answer<Consent>, Problem> {
    let conversation = open(&app, &caller, id, who.participant).await?;
    let revoked = blocking(move || Ok(conversation.memory(&Counter::cl100k()).revoke(&consent)?)).await?;
    revoked.map(Answer).ok_or_else(|| Problem::not_found("there is no such consent of this participant"))
}

/// Forget a person
///
/// Erases what the caller said and was told under a name in all conversations, its consents, everything that is remembered,
/// and the invitations of that name. What it shared is kept by those who read it in replies.
#[utoipa::path(
    delete, path = "/api/v1/conversation-persons/{participant}", tag = "conversations",
    params(("participant" = String, Path, description = "The name of the participant")),
    responses(
        (status = 204, description = "Erased in every file"),
        (status = 404, description = "Nothing is known of this person", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn forget_person(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(participant): Path<String>,
) -> Result<StatusCode, Problem> {
    let erasing =
        larder_engine::blocking::spawn(async move { app.conversations(&caller).forget(&participant).await });
    erasing.await.map_err(|error| Problem::internal(&error))??;
    Ok(StatusCode::NO_CONTENT)
}
