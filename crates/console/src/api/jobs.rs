//! Background jobs over REST: list, show, repeat, cancel.

use axum::Extension;
use axum::Json as Answer;
use larder_gateway::auth::Caller;
use larder_store::Job;
use serde::Serialize;
use utoipa::ToSchema;

use super::Problem;
use super::endpoint::{Endpoints, routes};
use super::extract::{Path, blocking};

/// The endpoints of background jobs.
pub(super) fn endpoints(to: &mut impl Endpoints) {
    routes!(to, list, one, retry, cancel);
}

/// Background jobs.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Jobs)]
pub struct JobList {
    /// Oldest first.
    pub jobs: Vec<Job>,
}

/// List background jobs that wait, run or have failed
#[utoipa::path(
    get, path = "/api/v1/jobs", tag = "jobs",
    responses((status = 200, description = "Those of the caller", body = JobList))
)]
pub async fn list(Extension(caller): Extension<Caller>) -> Result<Answer<JobList>, Problem> {
    let jobs = blocking(move || caller.store.jobs().list()).await?;
    Ok(Answer(JobList { jobs }))
}

/// Show one background job
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}", tag = "jobs",
    params(("id" = u64, Path, description = "Its number")),
    responses(
        (status = 200, description = "The job", body = Job),
        (status = 404, description = "No such job", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn one(Extension(caller): Extension<Caller>, Path(id): Path<u64>) -> Result<Answer<Job>, Problem> {
    Ok(Answer(blocking(move || caller.store.jobs().get(id)).await?))
}

/// Make a background job due now
#[utoipa::path(
    post, path = "/api/v1/jobs/{id}/retry", tag = "jobs",
    params(("id" = u64, Path, description = "Its number")),
    responses(
        (status = 200, description = "It is due, with all its attempts", body = Job),
        (status = 404, description = "No such job", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "It is running", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn retry(
    Extension(caller): Extension<Caller>,
    Path(id): Path<u64>,
) -> Result<Answer<Job>, Problem> {
    Ok(Answer(blocking(move || caller.store.jobs().retry(id)).await?))
}

/// Remove a background job
#[utoipa::path(
    post, path = "/api/v1/jobs/{id}/cancel", tag = "jobs",
    params(("id" = u64, Path, description = "Its number")),
    responses(
        (status = 200, description = "It is removed", body = Job),
        (status = 404, description = "No such job", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "It is running", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn cancel(
    Extension(caller): Extension<Caller>,
    Path(id): Path<u64>,
) -> Result<Answer<Job>, Problem> {
    Ok(Answer(blocking(move || caller.store.jobs().cancel(id)).await?))
}
