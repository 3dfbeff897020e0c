//! Recorded requests over REST: lists, one whole, sessions with their compaction maps, and what it all cost.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_models::price::Usd;
use larder_proxy::record::{Compaction, RequestRecord, RequestSummary, saved};
use larder_store::{CostRow, ExchangeFilter, SessionSummary, StoreError, Timestamp, UserStore};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Problem;
use super::extract::{Path, Query, blocking};
use super::limit;

/// Requests of a session that its map shows.
pub const MAP_REQUESTS: u64 = 200;
/// Milliseconds of a day.
const DAY_MS: u64 = 86_400_000;
/// How long a record that is still to be written is waited for.
const RECORD_WAIT: Duration = Duration::from_secs(2);
/// Days of costs unless said.
pub const DAYS: u64 = 30;

/// The requests to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RequestListParams {
    /// Only of this session.
    pub session: Option<String>,
    /// Only those that this model answered: its name in the table, or its id where the table does not have it.
    pub model: Option<String>,
    /// Only older ones than this request (its id).
    pub before: Option<String>,
    /// At most so many, the newest; 50 unless said, 500 at most.
    pub limit: Option<u64>,
}

/// A page of requests.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RequestPage {
    /// Newest first, without their lists.
    pub exchanges: Vec<RequestSummary>,
    /// What to give as `before` for the next page; `null` on the last.
    pub next: Option<String>,
}

impl RequestPage {
    /// Reads a page. Blocks.
    ///
    /// # Errors
    /// When the store fails.
    pub fn read(store: &UserStore, which: &RequestListParams) -> Result<Self, StoreError> {
        let limit = limit(which.limit);
        let exchanges: Vec<RequestSummary> = read_all(store, which, limit.saturating_add(1))?;
        let more = exchanges.len() as u64 > limit;
        let mut page = Self { exchanges, next: None };
        if more {
            page.exchanges.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
            page.next = page.exchanges.last().map(|head| head.id.clone());
        }
        Ok(page)
    }
}

/// Records, newest first. One that cannot be read is left out and logged: it must not hide the others.
fn read_all<T: DeserializeOwned>(
    store: &UserStore,
    which: &RequestListParams,
    limit: u64,
) -> Result<Vec<T>, StoreError> {
    let filter = ExchangeFilter {
        session: which.session.clone(),
        model: which.model.clone(),
        since: None,
        before: which.before.clone(),
        limit: Some(limit),
    };
    let records = store.exchanges().list(&filter)?;
    let parse = |json: String| {
        serde_json::from_str(&json)
            .map_err(|error| tracing::warn!(%error, "the record of a request cannot be read"))
            .ok()
    };
    Ok(records.into_iter().filter_map(parse).collect())
}

/// List requests
#[utoipa::path(
    get, path = "/api/v1/exchanges", tag = "exchanges", params(RequestListParams),
    responses((status = 200, description = "A page of requests", body = RequestPage))
)]
pub async fn list(
    Extension(caller): Extension<Caller>,
    Query(which): Query<RequestListParams>,
) -> Result<Json<RequestPage>, Problem> {
    Ok(Json(blocking(move || RequestPage::read(&caller.store, &which)).await?))
}

/// Show one request whole: its window part by part, and why
#[utoipa::path(
    get, path = "/api/v1/exchanges/{id}", tag = "exchanges", params(("id" = String, Path, description = "The request")),
    responses(
        (status = 200, description = "The record", body = RequestRecord),
        (status = 404, description = "No such request", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn one(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let json = when_recorded(&app, &caller, &id, |store, id| store.exchanges().get(id)).await?;
    let json = json.ok_or_else(unknown)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], json).into_response())
}

/// Reads the record of a request with `read`, which blocks. Records are written a moment after the reply: one that is
/// still to come is waited for, up to `RECORD_WAIT`.
///
/// # Errors
/// When the store fails.
pub async fn when_recorded<T: Send + 'static>(
    app: &Arc<App>,
    caller: &Caller,
    id: &str,
    read: fn(&UserStore, &str) -> Result<Option<T>, StoreError>,
) -> Result<Option<T>, Problem> {
    let look = || {
        let (store, id) = (caller.store.clone(), id.to_owned());
        blocking(move || read(&store, &id))
    };
    if let Some(found) = look().await? {
        return Ok(Some(found));
    }
    let _ = tokio::time::timeout(RECORD_WAIT, app.recorded(caller.store.user(), id)).await;
    look().await
}

/// What is said of a request that is not there.
pub fn unknown() -> Problem {
    Problem::not_found("no such request; a request is recorded when it ends")
}

/// Sessions.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Sessions {
    /// The one used last first.
    pub sessions: Vec<SessionCosts>,
}

/// Sums over the requests of one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionCosts {
    /// Its id.
    pub session: String,
    /// Its first request.
    #[schema(value_type = String, format = DateTime)]
    pub first: Timestamp,
    /// Its last request.
    #[schema(value_type = String, format = DateTime)]
    pub last: Timestamp,
    /// How many.
    pub requests: u64,
    /// Tokens of their prompts as they came.
    pub tokens_before: u64,
    /// Tokens of their prompts as sent.
    pub tokens_after: u64,
    /// Parts of them whose form changed.
    pub compactions: u64,
    /// What they cost, in dollars.
    #[schema(value_type = String, example = "0.0105")]
    pub cost: Usd,
    /// What they would have cost without Larder.
    #[schema(value_type = String, example = "0.042")]
    pub cost_without: Usd,
    /// The difference, net of cache effects; may be negative.
    #[schema(example = "0.0315")]
    pub saved: String,
}

impl From<SessionSummary> for SessionCosts {
    fn from(of: SessionSummary) -> Self {
        let (cost, cost_without) = (Usd::from_picos(of.cost_picos), Usd::from_picos(of.without_picos));
        Self {
            session: of.session,
            first: of.first,
            last: of.last,
            requests: of.requests,
            tokens_before: of.tokens_before,
            tokens_after: of.tokens_after,
            compactions: of.compactions,
            cost,
            cost_without,
            saved: saved(cost, cost_without),
        }
    }
}

/// List sessions
#[utoipa::path(
    get, path = "/api/v1/sessions", tag = "exchanges",
    responses((status = 200, description = "The last 500", body = Sessions))
)]
pub async fn sessions(Extension(caller): Extension<Caller>) -> Result<Json<Sessions>, Problem> {
    let found = blocking(move || caller.store.exchanges().sessions(super::MAX_LIMIT)).await?;
    Ok(Json(Sessions { sessions: found.into_iter().map(SessionCosts::from).collect() }))
}

/// What became of the parts of a session's window over its life (R3-4.33).
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct CompactionMap {
    /// The session.
    pub session: String,
    /// Its last 200 requests, oldest first.
    pub requests: Vec<RequestSummary>,
    /// What was condensed or pointed at in them, in order.
    pub compactions: Vec<MapEntry>,
}

/// One entry of a compaction map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MapEntry {
    /// The request in which it happened.
    pub request: String,
    /// What happened.
    pub compaction: Compaction,
}

impl CompactionMap {
    /// Reads the map of a session; `None` if no request belongs to it. Blocks.
    ///
    /// # Errors
    /// When the store fails.
    pub fn read(store: &UserStore, session: &str) -> Result<Option<Self>, StoreError> {
        let which = RequestListParams { session: Some(session.to_owned()), ..RequestListParams::default() };
        let mut records: Vec<RequestRecord> = read_all(store, &which, MAP_REQUESTS)?;
        records.reverse();
        let mut map = Self { session: session.to_owned(), requests: Vec::new(), compactions: Vec::new() };
        for RequestRecord { summary: head, compactions, .. } in records {
            let entry = |compaction| MapEntry { request: head.id.clone(), compaction };
            if head.took_effect() {
                map.compactions.extend(compactions.into_iter().map(entry));
            }
            map.requests.push(head);
        }
        Ok((!map.requests.is_empty()).then_some(map))
    }
}

/// Show the compaction map of one session
#[utoipa::path(
    get, path = "/api/v1/sessions/{session}", tag = "exchanges",
    params(("session" = String, Path, description = "The session")),
    responses(
        (status = 200, description = "What became of the parts of its window", body = CompactionMap),
        (status = 404, description = "No such session", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn session(
    Extension(caller): Extension<Caller>,
    Path(session): Path<String>,
) -> Result<Json<CompactionMap>, Problem> {
    let map = blocking(move || CompactionMap::read(&caller.store, &session)).await?;
    map.map(Json).ok_or_else(|| Problem::not_found("no request belongs to this session"))
}

/// For how long.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct CostParams {
    /// Days up to now; 30 unless said.
    pub days: Option<u64>,
}

/// Costs by day, model and recipe.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Costs {
    /// Newest day first.
    pub costs: Vec<DailyCost>,
}

/// What the requests of one day to one model cost, or the runs of one recipe: of those that a request asked for, the
/// request counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DailyCost {
    /// The day (UTC).
    #[schema(example = "2026-11-22")]
    pub day: String,
    /// The model's name in the table, or its id where the table does not have it.
    pub model: String,
    /// The recipe: with its category for requests that ran one, without for runs by themselves, as for questions over MCP,
    /// turns and summaries.
    pub recipe: Option<String>,
    /// How many.
    pub requests: u64,
    /// Of these, without a known price; they are not part of the sums.
    pub unpriced: u64,
    /// Prompt tokens: what the provider reported, and estimates where it reported nothing.
    pub input_tokens: u64,
    /// Reply tokens, likewise.
    pub output_tokens: u64,
    /// What they cost, in dollars.
    #[schema(value_type = String, example = "0.0105")]
    pub cost: Usd,
    /// What they would have cost without Larder.
    #[schema(value_type = String, example = "0.042")]
    pub cost_without: Usd,
    /// The difference, net of cache effects; may be negative.
    #[schema(example = "0.0315")]
    pub saved: String,
}

impl From<CostRow> for DailyCost {
    fn from(row: CostRow) -> Self {
        let (cost, cost_without) = (Usd::from_picos(row.cost_picos), Usd::from_picos(row.without_picos));
        Self {
            day: row.day,
            model: row.model,
            recipe: row.recipe,
            requests: row.requests,
            unpriced: row.unpriced,
            input_tokens: row.tokens_in,
            output_tokens: row.tokens_out,
            cost,
            cost_without,
            saved: saved(cost, cost_without),
        }
    }
}

impl Costs {
    /// Reads the costs of the last days. Blocks.
    ///
    /// # Errors
    /// When the store fails.
    pub fn read(store: &UserStore, days: u64) -> Result<Self, StoreError> {
        let now = store.store().now().as_millis();
        let since = now.saturating_sub(days.saturating_mul(DAY_MS));
        let rows = store.exchanges().costs(Timestamp::from_millis(since))?;
        Ok(Self { costs: rows.into_iter().map(DailyCost::from).collect() })
    }
}

/// Show costs by day, model and recipe
#[utoipa::path(
    get, path = "/api/v1/costs", tag = "exchanges", params(CostParams),
    responses((status = 200, description = "Newest day first", body = Costs))
)]
pub async fn costs(
    Extension(caller): Extension<Caller>,
    Query(CostParams { days }): Query<CostParams>,
) -> Result<Json<Costs>, Problem> {
    Ok(Json(blocking(move || Costs::read(&caller.store, days.unwrap_or(DAYS))).await?))
}
