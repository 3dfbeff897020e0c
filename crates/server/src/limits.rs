//! What one client may take from the others: requests at once, bytes, and time to send them. Knows no wire format.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use bytes::Bytes;
use http_body_util::LengthLimitError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Why a body was not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyFault {
    /// It is larger than allowed.
    #[error(
        "the body has more than {limit} bytes; send less, or raise max_body_bytes under [gateway] in larder.toml"
    )]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// The client was too slow.
    #[error("the body did not arrive within {} s", .after.as_secs())]
    Slow {
        /// The limit.
        after: Duration,
    },
    /// The client broke off.
    #[error("the body broke off")]
    Broken,
}

/// Reads a body of at most `limit` bytes within `time`. A body that comes in one piece is not copied.
///
/// # Errors
/// Any [`BodyFault`].
pub async fn read_body(body: Body, limit: usize, time: Duration) -> Result<Bytes, BodyFault> {
    if usize::try_from(body.size_hint().lower()).map_or(true, |bytes| bytes > limit) {
        return Err(BodyFault::TooLarge { limit });
    }
    match tokio::time::timeout(time, axum::body::to_bytes(body, limit)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) => Err(match error.into_inner().is::<LengthLimitError>() {
            true => BodyFault::TooLarge { limit },
            false => BodyFault::Broken,
        }),
        Err(_) => Err(BodyFault::Slow { after: time }),
    }
}

/// Places for requests at once.
#[derive(Debug, Clone)]
pub struct Places(Arc<Semaphore>);

impl Places {
    /// So many.
    pub fn new(count: usize) -> Self {
        Self(Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS))))
    }

    /// A place, held until it is dropped; `None` when all are taken.
    pub fn take(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0).try_acquire_owned().ok()
    }
}
