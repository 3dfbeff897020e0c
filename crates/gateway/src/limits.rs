//! What one client may take from the others: concurrent requests, bytes, and time to send them. Knows no wire format.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of bodies held at any time, at least …
const MIN_MEMORY: usize = 256 << 20;
/// … and at least this many of the largest bodies.
const LARGEST_BODIES: usize = 8;

/// Why a body was not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// It is larger than allowed.
    #[error(
        "the body has more than {limit} bytes; send less, or raise max_body_bytes under [gateway] in larder.toml"
    )]
    TooLarge {
        /// Bytes.
        limit: usize,
    },
    /// The client was too slow.
    #[error("the body did not arrive within {} s", .after.as_secs())]
    Slow {
        /// The time allowed for a body.
        after: Duration,
    },
    /// The bodies of other requests take all available memory.
    #[error("the bodies of other requests take all available memory; retry in a moment")]
    Full,
    /// The client broke off.
    #[error("the body broke off")]
    Broken,
}

/// Reads a body of at most `limit` bytes within `time`, as long as there is memory for it. A body that arrives in one
/// piece is not copied.
///
/// # Errors
/// Any [`BodyError`].
pub async fn read_body(
    mut body: Body,
    limit: usize,
    time: Duration,
    room: &mut BodyMemory,
) -> Result<Bytes, BodyError> {
    if usize::try_from(body.size_hint().lower()).map_or(true, |bytes| bytes > limit) {
        return Err(BodyError::TooLarge { limit });
    }
    let read = tokio::time::timeout(time, collect(&mut body, limit, room)).await;
    if matches!(read, Ok(Err(BodyError::Full))) {
        drain(body, time).await;
    }
    read.unwrap_or(Err(BodyError::Slow { after: time }))
}

/// Bytes of a body that is copied out of the buffer of its connection.
const SMALL: usize = 16 << 10;

async fn collect(body: &mut Body, limit: usize, room: &mut BodyMemory) -> Result<Bytes, BodyError> {
    let (mut first, mut whole) = (Bytes::new(), Vec::new());
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
        let bytes = first.len().max(whole.len()).saturating_add(piece.len());
        if bytes > limit {
            return Err(BodyError::TooLarge { limit });
        }
        if !room.grow(bytes) {
            return Err(BodyError::Full);
        }
        if first.is_empty() {
            first = piece;
            continue;
        }
        // Chunks are copied together as they arrive: each of them may keep far more memory alive than it contains.
        if whole.is_empty() {
            // The client only announces this size: memory is reserved only for what arrives.
            let rest = usize::try_from(body.size_hint().lower()).map_or(limit, |rest| rest.min(limit));
            whole.reserve_exact(bytes.saturating_add(rest).min(limit));
            whole.extend_from_slice(&first);
        }
        whole.extend_from_slice(&piece);
    }
    if whole.is_empty() {
        // As part of the buffer that it was read into, it would keep all of that until its record is written.
        return Ok(if first.len() <= SMALL { Bytes::copy_from_slice(&first) } else { first });
    }
    whole.shrink_to_fit();
    Ok(whole.into())
}

/// Bytes that a client may continue to send although they are discarded.
const MAX_UNREAD: usize = 1 << 20;

/// Lets a client finish sending a body that will be discarded, so that it receives the reply instead of a broken
/// connection; for a limited time.
pub async fn drain(mut body: Body, time: Duration) {
    let reading = async {
        let mut left = MAX_UNREAD;
        while let Some(Ok(frame)) = body.frame().await {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(bytes) {
                Some(less) => left = less,
                None => return,
            }
        }
    };
    let _ = tokio::time::timeout(time, reading).await;
}

/// Limits concurrent requests and the memory for their bodies.
#[derive(Debug, Clone)]
pub struct Admission {
    requests: Arc<Semaphore>,
    /// Memory for bodies, in KiB.
    memory: Arc<Semaphore>,
    max_kib: u32,
}

impl Admission {
    /// Allows this many requests, with bodies of at most this many bytes.
    pub fn new(count: usize, max_body: usize) -> Self {
        Self::with_memory(count, MIN_MEMORY.max(max_body.saturating_mul(LARGEST_BODIES)))
    }

    fn with_memory(count: usize, bytes: usize) -> Self {
        let max_kib = kib(bytes);
        Self {
            requests: Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS))),
            memory: Arc::new(Semaphore::new(usize::try_from(max_kib).unwrap_or(Semaphore::MAX_PERMITS))),
            max_kib,
        }
    }

    /// Takes a slot, held until it is dropped; `None` if all are taken.
    pub fn take(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.requests).try_acquire_owned().ok()
    }

    /// Memory accounting for the body of one request, initially empty.
    pub fn body_memory(&self) -> BodyMemory {
        BodyMemory { admission: self.clone(), held: None }
    }
}

/// Memory for the bytes of one body, held until it is dropped.
#[derive(Debug)]
pub struct BodyMemory {
    admission: Admission,
    held: Option<OwnedSemaphorePermit>,
}

impl BodyMemory {
    /// Grows the reservation to this many bytes; `false` if others use the memory. A body larger than all available
    /// memory, which a later setting may allow, needs all of it.
    #[must_use]
    pub fn grow(&mut self, bytes: usize) -> bool {
        let held = self.held.as_ref().map_or(0, |held| u32::try_from(held.num_permits()).unwrap_or(u32::MAX));
        let more = kib(bytes).min(self.admission.max_kib).saturating_sub(held);
        if more == 0 {
            return true;
        }
        let Ok(more) = Arc::clone(&self.admission.memory).try_acquire_many_owned(more) else { return false };
        match &mut self.held {
            Some(held) => held.merge(more),
            none => *none = Some(more),
        }
        true
    }

    /// Releases what this many bytes do not need.
    pub fn shrink(&mut self, bytes: usize) {
        let needed = usize::try_from(kib(bytes)).unwrap_or(usize::MAX);
        if let Some(held) = &mut self.held {
            drop(held.split(held.num_permits().saturating_sub(needed)));
        }
    }
}

/// Whole KiB, no fewer than the bytes need.
fn kib(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(1 << 10)).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
