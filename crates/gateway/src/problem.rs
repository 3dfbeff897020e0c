//! Errors as RFC 9457 problems, with the HTTP status for missing or impossible things. Never reveals paths of this
//! machine or anything of another user.

use axum::Json;
use axum::extract::path::ErrorKind;
use axum::extract::rejection::{
    FormRejection, JsonRejection, PathRejection, QueryRejection, StringRejection,
};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use larder_store::{SelectError, StoreError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::status;

/// The content type of problems.
pub const CONTENT_TYPE: &str = "application/problem+json";

/// Why a request of the API failed, and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Always `about:blank`: the status identifies the kind of problem.
    #[serde(rename = "type")]
    pub kind: String,
    /// The status in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong and how to fix it.
    pub detail: String,
}

impl Problem {
    /// A problem with this status.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            kind: "about:blank".to_owned(),
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
        }
    }

    /// Nothing is there.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// An internal error; the log has the details.
    pub fn internal(error: &dyn std::fmt::Display) -> Self {
        tracing::error!(%error, "a request of the API failed");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error; see the gateway's log")
    }

    /// The status as a type.
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status(), Json(self)).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
        response
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::from(&error)
    }
}

impl From<&StoreError> for Problem {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::NotOurs { .. }
            | StoreError::UnknownPointer { .. }
            | StoreError::UnknownRun { .. }
            | StoreError::UnknownRevision { .. }
            | StoreError::UnknownIntervention { .. }
            | StoreError::UnknownPublication { .. }
            | StoreError::UnknownConversation { .. }
            | StoreError::UnknownMessage { .. }
            | StoreError::UnknownJob { .. } => Self::not_found(error.to_string()),
            StoreError::InvalidName { .. } | StoreError::InvalidUser { .. } => {
                Self::new(StatusCode::BAD_REQUEST, error.to_string())
            }
            StoreError::Expired { .. } => Self::new(StatusCode::GONE, error.to_string()),
            // Its owner and location are no one else's business.
            StoreError::Foreign { .. } | StoreError::Symlink { .. } => {
                Self::not_found("there is no such document")
            }
            StoreError::NotText { .. } | StoreError::KeyTaken { .. } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string())
            }
            StoreError::BadTurn { .. }
            | StoreError::InterventionResolved { .. }
            | StoreError::Answered { .. }
            | StoreError::ErasedMeanwhile
            | StoreError::KeyGone { .. }
            | StoreError::NotLast { .. }
            | StoreError::JobRunning { .. }
            | StoreError::BeingDeleted { .. } => Self::new(StatusCode::CONFLICT, error.to_string()),
            StoreError::Select(select) => select.clone().into(),
            StoreError::DiskFull { .. }
            | StoreError::OverLimit
            | StoreError::ReadOnly { .. }
            | StoreError::Locked { .. } => {
                tracing::error!(%error, "the store cannot be used");
                Self::new(
                    status::of_store(error),
                    "the store cannot be used just now: its disk is full or read-only, it has reached retention.max_gb, or \
                     another process holds it; \
                     the log of the gateway says which",
                )
            }
            _ => Self::internal(error),
        }
    }
}

impl From<SelectError> for Problem {
    fn from(error: SelectError) -> Self {
        let status = match error {
            SelectError::LinesOutOfRange { .. } | SelectError::BytesOutOfRange { .. } => {
                StatusCode::RANGE_NOT_SATISFIABLE
            }
            SelectError::NothingThere { .. } => StatusCode::NOT_FOUND,
            _ => StatusCode::BAD_REQUEST,
        };
        Self::new(status, error.to_string())
    }
}

/// A body that is not JSON of the form that is described is malformed, whether it cannot be parsed, has an unknown field or a
/// field of another type: 400. Values that a request may not have are 422.
impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Self {
        let status = match &rejection {
            JsonRejection::JsonDataError(_) => StatusCode::BAD_REQUEST,
            other => other.status(),
        };
        let words = rejection.body_text();
        // Clients know no types.
        let plain = words.strip_prefix("Failed to deserialize the JSON body into the target type: ");
        Self::new(status, plain.map(|plain| format!("the body: {}", as_expected(plain))).unwrap_or(words))
    }
}

/// `expected a string, not an array` for what the JSON parser says of a value of another type.
fn as_expected(words: &str) -> String {
    let parts = words.split_once("invalid type: ").and_then(|(field, rest)| {
        let (found, rest) = rest.split_once(", expected ")?;
        let (expected, place) = rest.rsplit_once(" at line ")?;
        Some((field, found, expected, place))
    });
    let Some((field, found, expected, place)) = parts else { return words.to_owned() };
    let found = match found {
        "sequence" => "an array",
        "map" => "an object",
        other => other,
    };
    format!("{field}expected {expected}, not {found} at line {place}")
}

impl From<PathRejection> for Problem {
    fn from(rejection: PathRejection) -> Self {
        let value = match &rejection {
            PathRejection::FailedToDeserializePathParams(failed) => match failed.kind() {
                ErrorKind::ParseError { value, .. }
                | ErrorKind::ParseErrorAtIndex { value, .. }
                | ErrorKind::ParseErrorAtKey { value, .. } => Some(value),
                _ => None,
            },
            _ => None,
        };
        let is_number = |value: &String| value.bytes().all(|byte| byte.is_ascii_digit());
        let words = match value {
            Some(value) if is_number(value) => format!("the address: the number {value} is too large"),
            Some(value) => format!("the address: expected a number, such as 7, not {value:?}"),
            None => rejection.body_text(),
        };
        Self::new(rejection.status(), words)
    }
}

/// Converts axum's rejections to problems with the same status, in the words of clients.
macro_rules! from_rejections {
    ($($rejection:ty, $of:literal, $what:literal);*) => {$(
        impl From<$rejection> for Problem {
            fn from(rejection: $rejection) -> Self {
                let words = rejection.body_text();
                let plain = words.strip_prefix(concat!("Failed to deserialize ", $of, ": "));
                let plain = plain.map(|plain| plain.replace("invalid digit found in string", "expected a number"));
                Self::new(rejection.status(), plain.map(|plain| format!("{}: {plain}", $what)).unwrap_or(words))
            }
        }
    )*};
}
from_rejections!(
    FormRejection, "form body", "the form";
    QueryRejection, "query string", "the query";
    StringRejection, "body", "the body"
);
