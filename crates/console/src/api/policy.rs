//! The policy over REST: its settings with help, the budget of each model, and the decision about a request.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use larder_engine::config::Setting;
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_gateway::model_budget::ModelBudget;
use larder_gateway::request::inspect as inspection;
use larder_proxy::record::{Endpoint, RequestRecord};
use larder_proxy::wire::ApiDialect;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Problem;
use super::endpoint::{Endpoints, routes};
use super::extract::{Operator, Query};

/// The endpoints of the policy.
pub(super) fn endpoints(to: &mut impl Endpoints) {
    routes!(to, show, inspect);
}

/// Current settings and budgets.
#[derive(Debug, Serialize, ToSchema)]
pub struct Policy {
    /// Every setting with its help and origin.
    pub settings: Vec<Setting>,
    /// The budget of each model.
    pub budgets: Vec<ModelBudget>,
}

/// The format of the body.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct InspectParams {
    /// Default: `chat`.
    #[serde(rename = "wire")]
    endpoint: Option<Endpoint>,
}

/// Show settings and budgets
#[utoipa::path(
    get, path = "/api/v1/policy", tag = "policy",
    responses(
        (status = 200, description = "Current values", body = Policy),
        (status = 403, description = "Not an operator key", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn show(_: Operator, State(app): State<Arc<App>>) -> Json<Policy> {
    Json(Policy { settings: app.settings(), budgets: app.budgets() })
}

/// Show what the gateway would do with a request
///
/// The body is the body of that request. Larder decides about it, but does not send, store or record it.
#[utoipa::path(
    post, path = "/api/v1/policy/inspect", tag = "policy", params(InspectParams),
    request_body(content = Object, description = "The request, as it would be sent to the gateway"),
    responses(
        (status = 200, description = "The record that it would leave", body = RequestRecord),
        (status = 422, description = "Not a valid request", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn inspect(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Query(InspectParams { endpoint }): Query<InspectParams>,
    body: Result<String, axum::extract::rejection::StringRejection>,
) -> Result<Json<RequestRecord>, Problem> {
    let endpoint = endpoint.unwrap_or(Endpoint::Generate(ApiDialect::Chat));
    Ok(Json(look(app, caller, endpoint, body?).await?))
}

/// The decision about a request that is not sent.
///
/// # Errors
/// If it is not a valid request.
pub async fn look(
    app: Arc<App>,
    caller: Caller,
    endpoint: Endpoint,
    body: String,
) -> Result<RequestRecord, Problem> {
    let work = move || inspection::inspect(&app, &caller.store, endpoint, &body);
    let looked = larder_engine::blocking::run(work).await.map_err(|error| Problem::internal(&error))?;
    looked.map_err(|words| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, words))
}
