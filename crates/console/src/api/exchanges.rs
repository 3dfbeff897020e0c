//! Recorded requests over REST: lists, single requests, sessions with their compaction maps, and costs.

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
use larder_store::{CostRow, ExchangeFilter, ReadBackRow, SessionSummary, StoreError, Timestamp, UserStore};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Problem;
use super::endpoint::{Endpoints, routes};
use super::extract::{Path, Query, blocking};
use super::limit;

/// The endpoints of requests, sessions and costs.
pub(super) fn endpoints(to: &mut impl Endpoints) {
    routes!(to, list, one, sessions, session, costs, read_back);
}

/// The most requests that the map of a session shows.
const MAP_REQUESTS: u64 = 200;
/// Milliseconds of a day.
const DAY_MS: u64 = 86_400_000;
/// How long to wait for a record that is still being written.
const RECORD_WAIT: Duration = Duration::from_secs(2);
/// The default number of days of costs.
pub const DAYS: u64 = 30;

/// The requests to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RequestListParams {
    /// Only of this session.
    pub session: Option<String>,
    /// Only requests answered by this model: its name in the table, or its id if the table does not have it.
    pub model: Option<String>,
    /// Only requests older than the one with this id.
    pub before: Option<String>,
    /// The number of entries, newest first. Default: 50, at most 500.
    pub limit: Option<u64>,
}

/// A page of requests.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RequestPage {
    /// Newest first, without their windows.
    pub exchanges: Vec<RequestSummary>,
    /// The `before` of the next page; `null` on the last page.
    pub next: Option<String>,
}

impl RequestPage {
    /// Reads a page. Blocks.
    ///
    /// # Errors
    /// If the store fails.
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

/// Records, newest first. A record that cannot be parsed is logged and skipped, so that it does not hide the others.
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

/// Show one request: its window part by part, with reasons
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

/// Reads the record of a request with `read`, which blocks. Records are written shortly after the reply, so this waits
/// for a missing one, up to `RECORD_WAIT`.
///
/// # Errors
/// If the store fails.
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

/// The problem for a request without a record.
pub fn unknown() -> Problem {
    Problem::not_found("no such request; a request is recorded when it ends")
}

/// Sessions.
#[derive(Debug, Serialize, ToSchema)]
pub struct Sessions {
    /// Most recently used first.
    pub sessions: Vec<Priced<SessionSummary>>,
}

/// Sums with their costs in dollars.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Priced<T> {
    /// What was summed.
    #[serde(flatten)]
    pub sums: T,
    /// The cost in US dollars.
    #[schema(value_type = String, example = "0.0105")]
    pub cost: Usd,
    /// What it would have cost without Larder.
    #[schema(value_type = String, example = "0.042")]
    pub cost_without: Usd,
    /// The difference, net of cache effects; may be negative.
    #[schema(example = "0.0315")]
    pub saved: String,
}

impl<T> Priced<T> {
    fn new(sums: T, cost_picos: u64, without_picos: u64) -> Self {
        let (cost, cost_without) = (Usd::from_picos(cost_picos), Usd::from_picos(without_picos));
        Self { sums, cost, cost_without, saved: saved(cost, cost_without) }
    }
}

impl From<SessionSummary> for Priced<SessionSummary> {
    fn from(sums: SessionSummary) -> Self {
        let (cost, without) = (sums.cost_picos, sums.without_picos);
        Self::new(sums, cost, without)
    }
}

impl From<CostRow> for Priced<CostRow> {
    fn from(sums: CostRow) -> Self {
        let (cost, without) = (sums.cost_picos, sums.without_picos);
        Self::new(sums, cost, without)
    }
}

/// List sessions
#[utoipa::path(
    get, path = "/api/v1/sessions", tag = "exchanges",
    responses((status = 200, description = "The last 500", body = Sessions))
)]
pub async fn sessions(Extension(caller): Extension<Caller>) -> Result<Json<Sessions>, Problem> {
    let found = blocking(move || caller.store.exchanges().sessions(super::MAX_LIMIT)).await?;
    Ok(Json(Sessions { sessions: found.into_iter().map(Priced::from).collect() }))
}

/// How the renditions of a session's parts changed over its life.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct CompactionMap {
    /// The session.
    pub session: String,
    /// Its last 200 requests, oldest first.
    pub requests: Vec<RequestSummary>,
    /// The changes of renditions in them, in order.
    pub compactions: Vec<MapEntry>,
}

/// One entry of a compaction map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MapEntry {
    /// The request of the change.
    pub request: String,
    /// The change.
    pub compaction: Compaction,
}

impl CompactionMap {
    /// Reads the map of a session; `None` if no request belongs to it. Blocks.
    ///
    /// # Errors
    /// If the store fails.
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
        (status = 200, description = "How the renditions of its parts changed", body = CompactionMap),
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

/// The period.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct CostParams {
    /// Days up to now. Default: 30.
    pub days: Option<u64>,
}

/// Costs by day, model and recipe.
#[derive(Debug, Serialize, ToSchema)]
pub struct Costs {
    /// Newest day first.
    pub costs: Vec<Priced<CostRow>>,
}

impl Costs {
    /// Reads the costs of the last days. Blocks.
    ///
    /// # Errors
    /// If the store fails.
    pub fn read(store: &UserStore, days: u64) -> Result<Self, StoreError> {
        let rows = store.exchanges().costs(since(store, days))?;
        Ok(Self { costs: rows.into_iter().map(Priced::from).collect() })
    }
}

/// When the last days began.
fn since(store: &UserStore, days: u64) -> Timestamp {
    let now = store.store().now().as_millis();
    Timestamp::from_millis(now.saturating_sub(days.saturating_mul(DAY_MS)))
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

/// What models read back.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReadBack {
    /// By tool, the most expensive first.
    pub tools: Vec<ReadBackCost>,
}

/// What models read back from the results of one tool.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReadBackCost {
    /// How often, and how many tokens that took.
    #[serde(flatten)]
    pub sums: ReadBackRow,
    /// The cost of the further calls of models in US dollars.
    #[schema(value_type = String, example = "0.0105")]
    pub cost: Usd,
}

impl ReadBack {
    /// Reads what was read back in the last days. Blocks.
    ///
    /// # Errors
    /// If the store fails.
    pub fn read(store: &UserStore, days: u64) -> Result<Self, StoreError> {
        let rows = store.exchanges().read_back(since(store, days))?.into_iter();
        Ok(Self {
            tools: rows.map(|sums| ReadBackCost { cost: Usd::from_picos(sums.cost_picos), sums }).collect(),
        })
    }
}

/// Show how often originals were read back, by tool, and what that cost
#[utoipa::path(
    get, path = "/api/v1/read-back", tag = "exchanges", params(CostParams),
    responses((status = 200, description = "The most expensive tool first", body = ReadBack))
)]
pub async fn read_back(
    Extension(caller): Extension<Caller>,
    Query(CostParams { days }): Query<CostParams>,
) -> Result<Json<ReadBack>, Problem> {
    Ok(Json(blocking(move || ReadBack::read(&caller.store, days.unwrap_or(DAYS))).await?))
}
