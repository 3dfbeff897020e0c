//! Caches shared between requests: counts, renditions, stored originals, the texts and forms of a conversation's last window.
//! Bounded; losing any of it costs time and never changes a decision.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use larder_core::policy::Memo;
use larder_proxy::window::LastRenditions;
use larder_proxy::wire::{HashedTexts, Request};
use larder_store::{STORED_FOR, StoreError, Timestamp, USE_STEP, UserStore};
use larder_text::cache::BoundedCache;
use larder_text::hash::ContentHash;
use larder_text::tokens::Counter;

use crate::revisions;

/// Counters whose counts are cached.
const COUNTERS: usize = 16;
/// Counts cached for each.
const COUNTS: usize = 1 << 16;
/// Originals known to be stored.
const STORED: usize = 1 << 15;
/// Conversations whose last window is cached.
const SESSIONS: usize = 1 << 10;
/// Bytes of the texts of last requests, which are compared with those of the next one: some 80 conversations of 200 kB.
const TEXTS: usize = 16 << 20;
/// Bodies of these sizes are kept: below, hashing takes no time, and above, one would take the place of many.
const TEXTS_OF: RangeInclusive<usize> = 16 << 10..=1 << 20;

/// The token counts of one counter, by the hash of the text.
type TokenCounts = Arc<BoundedCache<ContentHash, usize>>;

/// What is cached about a conversation.
#[derive(Debug, Clone, Default)]
pub struct SessionMemory {
    /// The renditions in its last window.
    pub renditions: Arc<LastRenditions>,
    /// Tokens of its last request as received.
    pub before: u64,
}

/// The caches that requests share.
pub struct RequestCaches {
    /// Renditions made earlier.
    pub memo: Memo,
    counts: BoundedCache<String, TokenCounts>,
    /// With the time when they were stored, or seen stored, and the number of early erasures before.
    stored: BoundedCache<(String, ContentHash), (Timestamp, u64)>,
    /// When originals were last noted as used, by user and the name of the pointer.
    used: BoundedCache<(String, String), Timestamp>,
    sessions: BoundedCache<(String, String), SessionMemory>,
    revisions: BoundedCache<(String, String), u64>,
    texts: BoundedCache<(String, String), Arc<HashedTexts>>,
    /// The early erasures at which texts are kept.
    texts_at: AtomicU64,
}

impl Default for RequestCaches {
    fn default() -> Self {
        Self {
            memo: Memo::default(),
            counts: BoundedCache::new(COUNTERS),
            stored: BoundedCache::new(STORED),
            used: BoundedCache::new(STORED),
            sessions: BoundedCache::new(SESSIONS),
            revisions: BoundedCache::new(SESSIONS),
            texts: BoundedCache::with_weights(TEXTS, |texts| texts.size()),
            texts_at: AtomicU64::default(),
        }
    }
}

impl RequestCaches {
    /// The counts of a counter.
    pub fn counts(&self, counter: &Counter) -> TokenCounts {
        self.counts.get(counter.name()).unwrap_or_else(|| {
            let counts = TokenCounts::new(BoundedCache::new(COUNTS));
            self.counts.insert(counter.name().to_owned(), Arc::clone(&counts));
            counts
        })
    }

    /// Whether a user's content is known to be stored: what was stored too long ago may have expired, and what was stored
    /// before the last of the store's early `erasures` may be gone.
    pub fn is_stored(&self, user: &str, content: ContentHash, now: Timestamp, erasures: u64) -> bool {
        let known = self.stored.get(&(user.to_owned(), content));
        known.is_some_and(|(stored, before)| before == erasures && passed(stored, now) < STORED_FOR)
    }

    /// Notes that it is. `erasures` were counted before it was stored.
    pub fn stored(&self, user: &str, content: ContentHash, now: Timestamp, erasures: u64) {
        self.stored.insert((user.to_owned(), content), (now, erasures));
    }

    /// Whether it is time to note that an original is used; if so, the answer is no from then on.
    pub fn use_is_due(&self, user: &str, name: &str, now: Timestamp) -> bool {
        let key = (user.to_owned(), name.to_owned());
        let due = self.used.get(&key).is_none_or(|noted| passed(noted, now) >= USE_STEP);
        if due {
            self.used.insert(key, now);
        }
        due
    }

    /// What is cached about a conversation; `None` if nothing is.
    pub fn session(&self, user: &str, session: &str) -> Option<SessionMemory> {
        self.sessions.get(&(user.to_owned(), session.to_owned()))
    }

    /// Updates what is cached about a conversation.
    pub fn remember(&self, user: &str, session: &str, known: SessionMemory) {
        self.sessions.insert((user.to_owned(), session.to_owned()), known);
    }

    /// The texts of a conversation's last request, if they are worth comparing with a body of so many bytes. `erasures` are
    /// counted so far.
    pub fn texts(&self, user: &str, session: &str, bytes: usize, erasures: u64) -> Option<Arc<HashedTexts>> {
        self.forget_texts_before(erasures);
        let is_worth = TEXTS_OF.contains(&bytes);
        is_worth.then(|| self.texts.get(&(user.to_owned(), session.to_owned()))).flatten()
    }

    /// Keeps the texts of a request with a body of so many bytes for the conversation's next one.
    pub fn keep_texts(&self, user: &str, session: &str, request: &Request<'_>, bytes: usize) {
        if TEXTS_OF.contains(&bytes) {
            self.texts.insert((user.to_owned(), session.to_owned()), Arc::new(HashedTexts::of(request)));
        }
    }

    /// Forgets all texts if some were kept at another number of early erasures: they may be those of a user who was deleted.
    pub fn forget_texts_before(&self, erasures: u64) {
        if self.texts_at.swap(erasures, Ordering::Relaxed) != erasures {
            self.texts.clear();
        }
    }

    /// The revision of learned values that a conversation uses, fixed by its first request in any process. `newest` is the
    /// newest one.
    ///
    /// # Errors
    /// When the store fails.
    pub fn revision(&self, store: &UserStore, session: &str, newest: u64) -> Result<u64, StoreError> {
        if newest == 0 {
            return Ok(0);
        }
        let key = (store.user().to_owned(), session.to_owned());
        // Another process may have moved it on, but not beyond the newest one, which is known 2 ms later.
        if self.revisions.get(&key) == Some(newest) {
            return Ok(newest);
        }
        let kept = store.session_revisions();
        let begin = |number| match kept.begin(session, number) {
            // It is fixed once the store can write again.
            Err(error) if error.is_unwritable() => Ok(number),
            begun => begun,
        };
        let number = match kept.get(session)? {
            Some(number) => number,
            // Known here, but without a revision: it began before there was any. Its record may not be written yet.
            None if self.session(store.user(), session).is_some() => begin(0)?,
            None => begin(revisions::first(store, session, newest)?)?,
        };
        self.revisions.insert(key, number);
        Ok(number)
    }
}

fn passed(from: Timestamp, to: Timestamp) -> Duration {
    Duration::from_millis(to.as_millis().saturating_sub(from.as_millis()))
}

#[cfg(test)]
mod tests {
    use larder_proxy::wire::{ApiDialect, read};

    use super::*;

    #[test]
    fn texts_are_those_of_their_user_and_go_with_the_next_erasure() {
        let body =
            serde_json::json!({"model": "m", "messages": [{"role": "user", "content": "x".repeat(20_000)}]});
        let body = body.to_string();
        let (caches, request) = (RequestCaches::default(), read(ApiDialect::Chat, &body).unwrap());
        caches.keep_texts("ann", "s", &request, body.len());
        caches.keep_texts("ann", "small", &request, 100);
        let has = |user, session, erasures| caches.texts(user, session, body.len(), erasures).is_some();
        assert!(has("ann", "s", 0));
        assert!(!has("bob", "s", 0) && !has("ann", "small", 0));
        assert!(!has("ann", "s", 1));
        caches.keep_texts("ann", "s", &request, body.len());
        assert!(has("ann", "s", 1));
        caches.forget_texts_before(2);
        assert!(!has("ann", "s", 2));
    }
}
