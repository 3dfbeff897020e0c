//! Limits the use of the slow hash: how many requests may wait for it, and how often one key may be guessed. A hash
//! takes 19 MiB and about 20 ms, and anyone who knows the id of a key can request one, so neither memory nor threads
//! may grow with the number of guesses. Knows no store.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use argon2::Block;
use larder_store::{KeyId, Timestamp};

use super::{AuthError, lock};

/// Requests that may wait while one is being hashed. Each occupies a thread.
pub(super) const MAX_WAITING: usize = 8;
/// Wrong secrets for one key within [`MINUTE`] after which it is not hashed again until the minute has passed.
pub(super) const MAX_WRONG: u32 = 5;
/// How long wrong secrets are counted together.
pub(super) const MINUTE: Duration = Duration::from_mins(1);
/// Keys whose wrong secrets are counted. Beyond that, only the queue bounds the work.
const MAX_KEYS: usize = 1024;

/// The slow way in: one per door.
#[derive(Default)]
pub(super) struct Slow {
    /// Memory for hashing, used by one request at a time. It is reused, since allocators keep freed memory for its
    /// thread, so fresh memory for each hash would end up as memory for each thread.
    pub(super) memory: Mutex<Vec<Block>>,
    /// Requests that hash or wait to.
    inside: AtomicUsize,
    /// When the wrong secrets of a key were first counted, and how many there were.
    wrong: Mutex<BTreeMap<KeyId, (Timestamp, u32)>>,
}

/// A slot for the slow hash, released when it is dropped.
pub(super) struct HashPermit<'a>(&'a AtomicUsize);

impl Drop for HashPermit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Slow {
    /// A place on the way.
    pub(super) fn place(&self) -> Result<HashPermit<'_>, AuthError> {
        let before = self.inside.fetch_add(1, Ordering::Relaxed);
        let place = HashPermit(&self.inside);
        // One is hashing, the others wait.
        if before > MAX_WAITING { Err(AuthError::Busy) } else { Ok(place) }
    }

    /// Rejects a key that was guessed too often.
    pub(super) fn admits(&self, id: &KeyId, now: Timestamp) -> Result<(), AuthError> {
        let wrong = lock(&self.wrong);
        let barred =
            wrong.get(id).is_some_and(|(since, count)| *count >= MAX_WRONG && is_recent(*since, now));
        if barred { Err(AuthError::Busy) } else { Ok(()) }
    }

    /// Counts a wrong secret.
    pub(super) fn was_wrong(&self, id: &KeyId, now: Timestamp) {
        let mut wrong = lock(&self.wrong);
        if let Some((since, count)) = wrong.get_mut(id)
            && is_recent(*since, now)
        {
            *count = count.saturating_add(1);
            return;
        }
        wrong.retain(|_, (since, _)| is_recent(*since, now));
        if wrong.len() < MAX_KEYS {
            wrong.insert(id.clone(), (now, 1));
        }
    }
}

/// Whether the minute that started at `since` is not over. One that starts in the future comes from a clock that was
/// set back.
fn is_recent(since: Timestamp, now: Timestamp) -> bool {
    let age = now.as_millis().checked_sub(since.as_millis());
    age.is_some_and(|age| u128::from(age) < MINUTE.as_millis())
}
