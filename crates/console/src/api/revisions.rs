//! Revisions of what is learned at run time over REST: list, show, revert. They belong to all users.

use std::sync::Arc;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use larder_engine::config::LearnedValue;
use larder_gateway::app::App;
use larder_store::{Revision, Store, StoreError};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Problem;
use super::endpoint::{Endpoints, routes};
use super::extract::{Operator, Path, Query, blocking};

/// The endpoints of revisions.
pub(super) fn endpoints(to: &mut impl Endpoints) {
    routes!(to, list, one, revert);
}

/// The page of the list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RevisionListParams {
    /// Only revisions with a smaller number, for the next page.
    pub before: Option<u64>,
}

/// The revisions of what is learned.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = Revisions)]
pub struct RevisionList {
    /// Newest first, at most 100. In revision 0, which is not listed, nothing is learned.
    pub revisions: Vec<Revision>,
    /// The `before` of the next page; `null` on the last page.
    pub next: Option<u64>,
}

impl RevisionList {
    /// Reads a page of revisions. Blocks.
    ///
    /// # Errors
    /// The store fails.
    pub fn read(store: &Store, which: &RevisionListParams) -> Result<Self, StoreError> {
        let revisions = store.revisions().list(which.before)?;
        let next = revisions.last().map(|revision| revision.number).filter(|number| *number > 1);
        Ok(Self { revisions, next })
    }
}

/// A revision and everything learned in it.
#[derive(Debug, Serialize, ToSchema)]
pub struct RevisionDetail {
    /// Its number.
    pub number: u64,
    /// When and why it was written, and what it changed; `null` for revision 0.
    pub revision: Option<Revision>,
    /// Everything learned in it.
    pub learned: Vec<LearnedValue>,
}

/// A revision and what the current settings make of it. Blocks.
///
/// # Errors
/// If it does not exist.
pub fn detail(app: &App, number: u64) -> Result<RevisionDetail, StoreError> {
    let revisions = app.store.revisions();
    let settings = revisions.settings(number)?;
    let revision = revisions.get(number)?;
    let (_, learned) = app.current().config.revised(number, &settings);
    Ok(RevisionDetail { number, revision, learned })
}

/// List the revisions of what is learned at run time
#[utoipa::path(
    get, path = "/api/v1/revisions", tag = "revisions", params(RevisionListParams),
    responses(
        (status = 200, description = "A page of revisions", body = RevisionList),
        (status = 403, description = "Not an operator key", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn list(
    _: Operator,
    State(app): State<Arc<App>>,
    Query(which): Query<RevisionListParams>,
) -> Result<Answer<RevisionList>, Problem> {
    Ok(Answer(blocking(move || RevisionList::read(&app.store, &which)).await?))
}

/// Show a revision and everything learned in it
#[utoipa::path(
    get, path = "/api/v1/revisions/{number}", tag = "revisions",
    params(("number" = u64, Path, description = "Its number; 0 for the settings alone")),
    responses(
        (status = 200, description = "The revision", body = RevisionDetail),
        (status = 403, description = "Not an operator key", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "No such revision", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn one(
    _: Operator,
    State(app): State<Arc<App>>,
    Path(number): Path<u64>,
) -> Result<Answer<RevisionDetail>, Problem> {
    Ok(Answer(blocking(move || detail(&app, number)).await?))
}

/// Learn again exactly what a revision had, in a new one
#[utoipa::path(
    post, path = "/api/v1/revisions/{number}/revert", tag = "revisions",
    params(("number" = u64, Path, description = "Its number; 0 forgets everything learned")),
    responses(
        (status = 200, description = "The newest revision", body = RevisionDetail),
        (status = 403, description = "Not an operator key", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "No such revision", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "It has values that cannot be used", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn revert(
    _: Operator,
    State(app): State<Arc<App>>,
    Path(number): Path<u64>,
) -> Result<Answer<RevisionDetail>, Problem> {
    let revert = move || {
        let learned = app.store.revisions().settings(number)?;
        if let Err(error) = app.current().config.check_revision(number, &learned) {
            return Ok(Err(Problem::new(StatusCode::CONFLICT, error.to_string())));
        }
        Ok(Ok(detail(&app, app.store.revisions().revert(number)?)?))
    };
    blocking(revert).await?.map(Answer)
}
