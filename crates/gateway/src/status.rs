//! The one table from store errors to HTTP statuses. Knows no wire format, and nothing of the request: whether
//! something is merely missing is for the caller to report.

use axum::http::StatusCode;
use larder_store::StoreError;

/// The status of a request for which the store failed.
pub const fn of_store(error: &StoreError) -> StatusCode {
    match error {
        StoreError::DiskFull { .. } | StoreError::OverLimit => StatusCode::INSUFFICIENT_STORAGE,
        StoreError::ReadOnly { .. } | StoreError::Locked { .. } => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use larder_store::Timestamp;

    use super::*;
    use crate::auth::AuthError;
    use crate::error::RequestError;
    use crate::problem::Problem;

    #[test]
    fn every_store_error_has_one_status() {
        let (path, action) = (std::path::PathBuf::from("home/index"), "writing");
        for (error, status) in [
            (StoreError::DiskFull { path: path.clone(), action }, 507),
            (StoreError::OverLimit, 507),
            (StoreError::ReadOnly { path: path.clone(), action }, 503),
            (StoreError::Locked { path: path.clone() }, 503),
            (StoreError::IndexCorrupt { path, detail: String::new() }, 500),
        ] {
            let kept = RequestError::not_kept(&error).status;
            let caller = AuthError::Store(error);
            let charged = RequestError::from_auth(&caller, Timestamp::from_millis(0)).status;
            assert_eq!([kept, charged, caller.status()].map(|found| found.as_u16()), [status; 3], "{caller}");
            let AuthError::Store(error) = caller else { continue };
            assert_eq!(Problem::from(error).status, status);
        }
    }
}
