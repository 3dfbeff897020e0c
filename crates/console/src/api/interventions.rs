//! Requests for a human over REST: list, show, resolve.

use axum::Extension;
use axum::Json as Answer;
use larder_gateway::auth::Caller;
use larder_store::Intervention;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Problem;
use super::endpoint::{Endpoints, routes};
use super::extract::{Json, Path, Query, blocking};

/// The endpoints of interventions.
pub(super) fn endpoints(to: &mut impl Endpoints) {
    routes!(to, list, one, resolve);
}

/// The interventions to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct InterventionListParams {
    /// Include resolved ones.
    #[serde(default)]
    pub all: bool,
}

/// Requests for a human.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Interventions)]
pub struct InterventionList {
    /// Oldest first.
    pub interventions: Vec<Intervention>,
}

/// The resolution of a request for a human.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Resolution {
    /// What was decided.
    pub resolution: String,
}

/// List requests for a human
#[utoipa::path(
    get, path = "/api/v1/interventions", tag = "interventions", params(InterventionListParams),
    responses((status = 200, description = "Open ones, or all", body = InterventionList))
)]
pub async fn list(
    Extension(caller): Extension<Caller>,
    Query(InterventionListParams { all }): Query<InterventionListParams>,
) -> Result<Answer<InterventionList>, Problem> {
    let interventions = blocking(move || caller.store.interventions().list(!all)).await?;
    Ok(Answer(InterventionList { interventions }))
}

/// Show one request for a human
#[utoipa::path(
    get, path = "/api/v1/interventions/{id}", tag = "interventions",
    params(("id" = u64, Path, description = "Its number")),
    responses(
        (status = 200, description = "The request", body = Intervention),
        (status = 404, description = "No such request", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn one(
    Extension(caller): Extension<Caller>,
    Path(id): Path<u64>,
) -> Result<Answer<Intervention>, Problem> {
    Ok(Answer(blocking(move || caller.store.interventions().get(id)).await?))
}

/// Resolve a request for a human
#[utoipa::path(
    post, path = "/api/v1/interventions/{id}/resolve", tag = "interventions",
    params(("id" = u64, Path, description = "Its number")),
    request_body = Resolution,
    responses(
        (status = 200, description = "Resolved", body = Intervention),
        (status = 404, description = "No such request", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "Already resolved; the first resolution stays", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn resolve(
    Extension(caller): Extension<Caller>,
    Path(id): Path<u64>,
    Json(Resolution { resolution }): Json<Resolution>,
) -> Result<Answer<Intervention>, Problem> {
    Ok(Answer(blocking(move || caller.store.interventions().resolve(id, &resolution)).await?))
}
