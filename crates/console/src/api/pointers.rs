//! Originals behind pointers over REST: their description, and their bytes, whole or in part. Pointers of other users do
//! not exist for the caller.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use larder_gateway::auth::Caller;
use larder_store::{Selection, StoreError, StoredPointer, UserStore};
use larder_text::pointer::Pointer;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Problem;
use super::endpoint::{Endpoints, routes};
use super::extract::{Path, Query, blocking};

/// The endpoints of pointers.
pub(super) fn endpoints(to: &mut impl Endpoints) {
    routes!(to, one, content);
}

/// The part of an original; at most one of these, none for all of it.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ContentParams {
    /// Lines `first:last` or `first-last`, from 1, both included, or one line, such as `7`.
    pub lines: Option<String>,
    /// Bytes `start:end` or `start-end`, from 0, the end excluded.
    pub bytes: Option<String>,
    /// Lines in which this regular expression matches.
    #[serde(alias = "pattern")]
    pub grep: Option<String>,
    /// The value at this JSONPath or JSON pointer.
    pub path: Option<String>,
}

impl ContentParams {
    /// The selection for the store.
    ///
    /// # Errors
    /// If more than one was given, or it is malformed.
    pub fn selection(&self) -> Result<Option<Selection>, Problem> {
        let selection = match (&self.lines, &self.bytes, &self.grep, &self.path) {
            (None, None, None, None) => return Ok(None),
            (Some(lines), None, None, None) => Selection::lines(lines),
            (None, Some(bytes), None, None) => Selection::bytes(bytes),
            (None, None, Some(grep), None) => Selection::grep(grep),
            (None, None, None, Some(path)) => Selection::path(path),
            _ => {
                let words = "give one of lines, bytes, grep and path";
                return Err(Problem::new(axum::http::StatusCode::BAD_REQUEST, words));
            }
        };
        Ok(Some(selection?))
    }
}

/// Parses a pointer in a path.
///
/// # Errors
/// If it is not a pointer.
pub fn parse(text: &str) -> Result<Pointer, Problem> {
    text.parse().map_err(|error| Problem::not_found(format!("pointer {text:?}: {error}")))
}

/// The bytes behind a pointer, whole or in part. Blocks.
///
/// # Errors
/// Those of the store.
pub fn read(store: &UserStore, pointer: &Pointer, part: Option<&Selection>) -> Result<Vec<u8>, StoreError> {
    match part {
        Some(part) => store.pointers().rehydrate(pointer, part),
        None => store.pointers().resolve(pointer),
    }
}

/// Describe a pointer
#[utoipa::path(
    get, path = "/api/v1/pointers/{id}", tag = "pointers",
    params(("id" = String, Path, description = "The pointer", example = "lp1-0123456789abc-0a1b2c")),
    responses(
        (status = 200, description = "What it refers to", body = StoredPointer),
        (status = 404, description = "Not one of this user's", body = Problem, content_type = "application/problem+json"),
        (status = 410, description = "Expired, with the date", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn one(
    Extension(caller): Extension<Caller>,
    Path(text): Path<String>,
) -> Result<Json<StoredPointer>, Problem> {
    let pointer = parse(&text)?;
    Ok(Json(blocking(move || caller.store.pointers().get(&pointer)).await?))
}

/// Read the original behind a pointer
#[utoipa::path(
    get, path = "/api/v1/pointers/{id}/content", tag = "pointers",
    params(("id" = String, Path, description = "The pointer"), ContentParams),
    responses(
        (status = 200, description = "The bytes; text where they are UTF-8", content(
            (String = "text/plain"),
            (Vec<u8> = "application/octet-stream"),
        )),
        (status = 404, description = "Not one of this user's", body = Problem, content_type = "application/problem+json"),
        (status = 410, description = "Expired, with the date", body = Problem, content_type = "application/problem+json"),
        (status = 416, description = "Outside the content", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn content(
    Extension(caller): Extension<Caller>,
    Path(text): Path<String>,
    Query(part): Query<ContentParams>,
) -> Result<Response, Problem> {
    let (pointer, part) = (parse(&text)?, part.selection()?);
    let bytes = blocking(move || read(&caller.store, &pointer, part.as_ref())).await?;
    Ok(raw(bytes))
}

/// Bytes by others, with headers that keep browsers from running them.
pub(super) fn raw(bytes: Vec<u8>) -> Response {
    let text = std::str::from_utf8(&bytes).is_ok();
    let kind = if text { "text/plain; charset=utf-8" } else { "application/octet-stream" };
    let mut response = ([(header::CONTENT_TYPE, kind)], bytes).into_response();
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
    response
}
