//! Records of recipe runs over REST: lists, one with its answer, receipts.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use larder_gateway::auth::Caller;
use larder_store::{RunFilter, RunId, RunRecord, StoreError, Timestamp, UserStore};
use larder_text::pointer::Pointer;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Problem;
use super::endpoint::{Endpoints, routes};
use super::extract::{Path, Query, blocking};
use super::limit;

/// The endpoints of runs.
pub(super) fn endpoints(to: &mut impl Endpoints) {
    routes!(to, list, one, receipt);
}

/// The runs to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RunListParams {
    /// Only runs of this recipe (its name without category).
    recipe: Option<String>,
    /// Only runs since this day or time (UTC).
    #[param(value_type = Option<String>, example = "2026-11-22")]
    since: Option<Timestamp>,
    /// The number of entries, newest first. Default: 50, at most 500.
    limit: Option<u64>,
}

/// Records of runs.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Runs)]
pub struct RunList {
    /// Newest first.
    pub runs: Vec<RunRecord>,
}

/// One run.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunDetail {
    /// Its record.
    pub record: RunRecord,
    /// The answer, if any.
    pub output: Option<String>,
    /// The pointers in its prompt.
    #[schema(value_type = Vec<String>)]
    pub pointers: Vec<Pointer>,
}

impl RunDetail {
    /// Reads one run of a user. Blocks.
    ///
    /// # Errors
    /// When there is none, or the store fails.
    pub fn read(store: &UserStore, id: &RunId) -> Result<Self, StoreError> {
        let record = store.runs().get(id)?;
        let output = record.output.map(|hash| store.contents().get(hash)).transpose()?;
        let output = output.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok(Self { output, pointers: store.runs().pointers(id)?, record })
    }
}

fn id(text: &str) -> Result<RunId, Problem> {
    text.parse().map_err(|error| Problem::not_found(format!("run {text:?}: {error}")))
}

/// List runs
#[utoipa::path(
    get, path = "/api/v1/runs", tag = "runs", params(RunListParams),
    responses((status = 200, description = "Records of runs", body = RunList))
)]
pub async fn list(
    Extension(caller): Extension<Caller>,
    Query(which): Query<RunListParams>,
) -> Result<Json<RunList>, Problem> {
    let filter = RunFilter { recipe: which.recipe, since: which.since, limit: Some(limit(which.limit)) };
    let runs = blocking(move || caller.store.runs().list(&filter)).await?;
    Ok(Json(RunList { runs }))
}

/// Show one run
#[utoipa::path(
    get, path = "/api/v1/runs/{id}", tag = "runs", params(("id" = String, Path, description = "The run")),
    responses(
        (status = 200, description = "Record, answer and pointers", body = RunDetail),
        (status = 404, description = "No such run", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn one(
    Extension(caller): Extension<Caller>,
    Path(text): Path<String>,
) -> Result<Json<RunDetail>, Problem> {
    let id = id(&text)?;
    Ok(Json(blocking(move || RunDetail::read(&caller.store, &id)).await?))
}

/// Show the receipt of a run: the parts of its prompt, the reasons, and the budget
#[utoipa::path(
    get, path = "/api/v1/runs/{id}/receipt", tag = "runs", params(("id" = String, Path, description = "The run")),
    responses(
        (status = 200, description = "The receipt", body = Object),
        (status = 404, description = "No such run", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn receipt(
    Extension(caller): Extension<Caller>,
    Path(text): Path<String>,
) -> Result<Response, Problem> {
    let id = id(&text)?;
    let json = blocking(move || caller.store.contents().get(caller.store.runs().get(&id)?.receipt)).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], json).into_response())
}
