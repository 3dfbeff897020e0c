//! Turns over REST: ask a question, resume, list and show turns. Knows no phases.

use std::sync::Arc;

use std::convert::Infallible;

use axum::extract::State;
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json as Answer};
use futures::Stream;
use larder_agent::turn::{TurnEvent, TurnOutcome, TurnRequest};
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_gateway::turns::{StartedTurn, TurnJob, start};
use larder_proxy::record::cut_name;
use larder_store::{DraftSummary, StoreError, TurnRow, UserDocuments};
use larder_vault::{Mode, TurnMetrics};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Problem;
use super::documents::files_of_turn;
use super::endpoint::{Endpoints, routes};
use super::extract::{Json, Path, Query, blocking};
use super::limit;

/// The endpoints of turns.
pub(super) fn endpoints(to: &mut impl Endpoints) {
    routes!(to, list, ask, one, resume);
}

/// The content type of a stream of events.
pub(super) const EVENTS: &str = "text/event-stream";

/// A question.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTurn {
    /// The question, stored byte for byte.
    pub query: String,
    /// The recipes and tools that answer it. Default: `chat`; `code` has no folder to work in here.
    #[serde(default)]
    #[schema(value_type = Option<String>, example = "chat")]
    pub mode: Option<Mode>,
    /// The conversation that it belongs to; references are resolved there first.
    #[serde(default)]
    pub session: Option<String>,
    /// Stream progress, as with `accept: text/event-stream`.
    #[serde(default)]
    pub stream: bool,
}

impl NewTurn {
    fn request(self) -> Result<TurnRequest, Problem> {
        let session = self.session.map(|name| cut_name(name.trim())).filter(|name| !name.is_empty());
        if session.as_ref().is_some_and(|name| name.chars().any(char::is_control)) {
            let words = "session: expected a name without control characters";
            return Err(Problem::new(StatusCode::BAD_REQUEST, words));
        }
        Ok(TurnRequest { query: self.query, mode: self.mode.unwrap_or(Mode::Chat), session, workspace: None })
    }
}

/// How to resume a turn.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ResumeParams {
    /// Stream progress, as with `accept: text/event-stream`.
    #[serde(default)]
    pub stream: bool,
}

/// The page of the list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct TurnListParams {
    /// Only turns with a smaller number, for the next page.
    pub before: Option<u32>,
    /// The number of entries. Default: 50, at most 500.
    pub limit: Option<u64>,
}

/// Turns of the caller.
#[derive(Debug, Serialize, ToSchema)]
pub struct TurnList {
    /// Committed ones, newest first.
    pub turns: Vec<TurnRow>,
    /// Running turns, and stopped ones that can be resumed; on the first page only.
    pub unfinished: Vec<UnfinishedTurn>,
    /// The `before` of the next page; `null` on the last page.
    pub next: Option<u32>,
}

/// A turn that has not ended.
#[derive(Debug, Serialize, ToSchema)]
pub struct UnfinishedTurn {
    /// Its draft.
    #[serde(flatten)]
    pub draft: DraftSummary,
    /// Whether this gateway or another process is running it.
    pub running: bool,
}

/// One turn.
#[derive(Debug, Serialize, ToSchema)]
pub struct TurnDetail {
    /// Its row, once it is committed.
    pub turn: Option<TurnRow>,
    /// Its draft, until then.
    pub unfinished: Option<UnfinishedTurn>,
    /// Its time and cost, run by run.
    pub metrics: Option<TurnMetrics>,
    /// The paths of its documents, for `/api/v1/documents/`.
    pub documents: Vec<String>,
}

impl TurnList {
    /// Reads a page of turns. Blocks.
    ///
    /// # Errors
    /// The store fails.
    pub fn read(app: &Arc<App>, caller: &Caller, which: &TurnListParams) -> Result<Self, StoreError> {
        let documents = app.documents_of(&caller.store)?;
        let most = limit(which.limit);
        let mut turns = documents.catalog().recent_turns(most.saturating_add(1), which.before, None)?;
        let more = turns.len() as u64 > most;
        turns.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        let drafts = if which.before.is_none() { documents.drafts().list()? } else { Vec::new() };
        let unfinished =
            drafts.into_iter().rev().map(|draft| UnfinishedTurn::new(app, &documents, draft)).collect();
        let next = turns.last().filter(|_| more).map(|turn| turn.number);
        Ok(Self { turns, unfinished, next })
    }
}

impl UnfinishedTurn {
    pub(super) fn new(app: &Arc<App>, documents: &UserDocuments, draft: DraftSummary) -> Self {
        let here = app.running_turns.get(documents.user(), draft.number).is_some();
        Self { running: here || documents.leases().is_held(draft.number), draft }
    }
}

impl TurnDetail {
    /// Reads one turn. Blocks.
    ///
    /// # Errors
    /// The store fails.
    pub fn read(app: &Arc<App>, caller: &Caller, number: u32) -> Result<Option<Self>, StoreError> {
        let documents = app.documents_of(&caller.store)?;
        let turn = documents.catalog().turn(number)?;
        let draft = if turn.is_none() { documents.drafts().list()? } else { Vec::new() };
        let unfinished = draft.into_iter().find(|draft| draft.number == number);
        let unfinished = unfinished.map(|draft| UnfinishedTurn::new(app, &documents, draft));
        if turn.is_none() && unfinished.is_none() {
            return Ok(None);
        }
        let files = files_of_turn(&documents, number)?;
        let metrics = files.iter().find(|path| path.name() == "metrics.json");
        let metrics = metrics.map(|path| documents.files().read(path)).transpose()?.flatten();
        let metrics = metrics.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let paths = files.into_iter().map(|path| path.to_string()).collect();
        Ok(Some(Self { turn, unfinished, metrics, documents: paths }))
    }
}

/// Answer a question
///
/// Runs a whole turn and returns its outcome. With `stream`, server-sent events report progress: each is named after its
/// kind (`started`, `phase`, `phase_done`, `tool`, `tool_done`, `gathered`, `compacted`, `answer`, `clarify`,
/// `finished`, `warning`), and the last one is `outcome`, or `problem` if the turn failed. If the client
/// disconnects, the turn stops and can be resumed from its last checkpoint. Tool calls that need confirmation are
/// refused.
#[utoipa::path(
    post, path = "/api/v1/turns", tag = "turns", request_body = NewTurn,
    responses(
        (status = 200, description = "The outcome, or events", content(
            (TurnOutcome = "application/json"),
            (TurnEvent = "text/event-stream"),
        )),
        (status = 403, description = "The key has a budget in money, but a model has no price", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "The question is empty, or has a NUL character", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "The budget of the key does not cover a turn", body = Problem, content_type = "application/problem+json"),
        (status = 502, description = "A model failed; the turn can be resumed", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Too many concurrent requests", body = Problem, content_type = "application/problem+json"),
        (status = 507, description = "The disk is full, or the store as large as it may be", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn ask(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Json(asked): Json<NewTurn>,
) -> Result<Response, Problem> {
    let stream = asked.stream || wants_events(&headers);
    let started = start(&app, &caller, TurnJob::Ask(asked.request()?))?;
    answer(started, stream).await
}

/// Resume a stopped turn
///
/// Continues from its last checkpoint, and responds as for a new question.
#[utoipa::path(
    post, path = "/api/v1/turns/{number}/resume", tag = "turns",
    params(("number" = u32, Path, description = "Its number"), ResumeParams),
    responses(
        (status = 200, description = "The outcome, or events", content(
            (TurnOutcome = "application/json"),
            (TurnEvent = "text/event-stream"),
        )),
        (status = 403, description = "The key has a budget in money, but a model has no price", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "No unfinished turn has this number", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "Already running, or interrupted under an incompatible version", body = Problem, content_type = "application/problem+json"),
        (status = 502, description = "A model failed; the turn can be resumed", body = Problem, content_type = "application/problem+json"),
        (status = 507, description = "The disk is full, or the store as large as it may be", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn resume(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Path(number): Path<u32>,
    Query(ResumeParams { stream }): Query<ResumeParams>,
) -> Result<Response, Problem> {
    let started = start(&app, &caller, TurnJob::Resume(number))?;
    answer(started, stream || wants_events(&headers)).await
}

/// List turns
#[utoipa::path(
    get, path = "/api/v1/turns", tag = "turns", params(TurnListParams),
    responses((status = 200, description = "Committed turns, newest first, and unfinished ones", body = TurnList))
)]
pub async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Query(which): Query<TurnListParams>,
) -> Result<Answer<TurnList>, Problem> {
    Ok(Answer(blocking(move || TurnList::read(&app, &caller, &which)).await?))
}

/// Show one turn
#[utoipa::path(
    get, path = "/api/v1/turns/{number}", tag = "turns",
    params(("number" = u32, Path, description = "Its number")),
    responses(
        (status = 200, description = "Its state, time and cost, and documents", body = TurnDetail),
        (status = 404, description = "No such turn", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn one(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(number): Path<u32>,
) -> Result<Answer<TurnDetail>, Problem> {
    let found = blocking(move || TurnDetail::read(&app, &caller, number)).await?;
    found.map(Answer).ok_or_else(|| Problem::not_found(format!("there is no turn {number}")))
}

fn wants_events(headers: &HeaderMap) -> bool {
    headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).any(|value| value.contains(EVENTS))
}

async fn answer(started: StartedTurn, stream: bool) -> Result<Response, Problem> {
    if stream {
        return Ok(Sse::new(event_stream(started)).keep_alive(KeepAlive::default()).into_response());
    }
    started.ended().await.map(|outcome| Answer(outcome).into_response())
}

/// All events, then the outcome or the problem.
fn event_stream(started: StartedTurn) -> impl Stream<Item = Result<Event, Infallible>> {
    futures::stream::unfold(Some(started), |started| async move {
        let mut started = started?;
        if let Some(event) = started.events.recv().await {
            let json = serde_json::to_value(&event).unwrap_or_default();
            let kind = json.get("event").and_then(|kind| kind.as_str()).unwrap_or("warning").to_owned();
            return Some((Ok(Event::default().event(kind).data(json.to_string())), Some(started)));
        }
        Some((Ok(last_event(started.ended().await)), None))
    })
}

fn last_event(ended: Result<TurnOutcome, Problem>) -> Event {
    let (kind, data) = match ended {
        Ok(outcome) => ("outcome", serde_json::to_string(&outcome)),
        Err(problem) => ("problem", serde_json::to_string(&problem)),
    };
    Event::default().event(kind).data(data.unwrap_or_default())
}
