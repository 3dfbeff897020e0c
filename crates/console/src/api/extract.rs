//! axum's extractors with problems as errors, the check for operator keys, and work on blocking threads.

use axum::extract::{FromRequest, FromRequestParts};
use axum::http::StatusCode;
use axum::http::request::Parts;
use larder_gateway::auth::Caller;
use larder_store::StoreError;

use super::Problem;

/// Parameters of the query.
#[derive(Debug, FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(Problem))]
pub struct Query<T>(pub T);

/// Parameters of the path.
#[derive(Debug, FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(Problem))]
pub struct Path<T>(pub T);

/// A body of JSON.
#[derive(Debug, FromRequest)]
#[from_request(via(axum::Json), rejection(Problem))]
pub struct Json<T>(pub T);

/// Admits operators to what belongs to all users, and refuses everyone else.
#[derive(Debug)]
pub struct Operator;

impl<S: Sync> FromRequestParts<S> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        match parts.extensions.get::<Caller>() {
            Some(caller) if caller.operator => Ok(Self),
            _ => Err(Problem::new(StatusCode::FORBIDDEN, OPERATORS_ONLY)),
        }
    }
}

/// Why something is not shown to callers without an operator key.
pub const OPERATORS_ONLY: &str = "this belongs to all users and needs an operator's key; \
    `larder keys create --user NAME --operator` creates one";

/// Runs work on the store on a blocking thread.
///
/// # Errors
/// The errors of the work, as problems.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Problem> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(Problem::from),
        Err(error) => Err(Problem::internal(&error)),
    }
}
