//! Authentication: maps the headers of a request to a user, and enforces the budget of the caller's key. Knows
//! neither routes nor wire formats.
//!
//! A key is sent as `authorization: Bearer lk-…`, as `x-api-key: lk-…`, or through the cookie of the sign-in page. As
//! long as no key is required, callers on this machine are the user [`LOCAL_USER`]; everyone else needs a key.

mod budget;
mod key;
mod origin;
mod slow;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use larder_store::{
    KeyId, KeyLimits, KeyRecord, LOCAL_USER, NewKey, Shortage, Store, StoreError, Timestamp, UserStore,
};
use larder_text::hash::ContentHash;

use crate::status;
use slow::Slow;

pub use budget::BudgetReservation;
pub use key::ApiKey;

/// How long a sign-in lasts.
pub const SIGN_IN_LIFETIME: Duration = Duration::from_hours(12);
/// The cookie of a sign-in.
const COOKIE_NAME: &str = "larder_session";

/// The user behind a request.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The store as this user sees it.
    pub store: UserStore,
    /// The key that authenticated them; `None` for callers on this machine while no key is required.
    pub key: Option<KeyId>,
    /// The limits of the key.
    pub limits: KeyLimits,
    /// Whether they may access what belongs to all users: with an operator's key, or without a key where none is
    /// required.
    pub operator: bool,
}

/// Why a caller is rejected or may not spend. No message contains a key or a cookie.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// Neither one of Larder's keys nor a valid sign-in.
    #[error(
        "a key of Larder is needed: send `authorization: Bearer lk-…` or `x-api-key: lk-…`, or sign in; \
         `larder keys create --user NAME` makes one"
    )]
    Missing,
    /// The text is not a key of this store.
    #[error(
        "this is not a key of this Larder; `larder keys` lists the existing ones, `larder keys create` creates one"
    )]
    Unknown,
    /// The key has been revoked.
    #[error("key {id} was revoked; `larder keys create` creates a new one")]
    Revoked {
        /// Its id.
        id: KeyId,
    },
    /// There are no keys, so only callers on this machine are accepted.
    #[error(
        "this Larder has no keys, so only programs on its own machine may call it, by the name localhost; \
         `larder keys create --user NAME` makes a key for everyone else"
    )]
    NotLocal,
    /// A page of another site is behind the request.
    #[error("a web page of another site may not call with this sign-in; programs send a key instead")]
    Foreign,
    /// A budget in dollars cannot be enforced for models without prices.
    #[error(
        "the key has a budget in money, and the model `{model}` has no price here: give it `prices` under \
         [{table}] in larder.toml, or use a key with a budget in tokens"
    )]
    Unpriced {
        /// Its name in the model table; of a model that the table does not have, its id.
        model: String,
        /// The table of larder.toml that takes its prices.
        table: String,
    },
    /// The budget of the key does not cover the request.
    #[error("{}", budget::describe(.0))]
    OverLimit(Box<Shortage>),
    /// Too many keys that have not been seen before, or too many wrong secrets for this one.
    #[error(
        "too many keys are being checked just now, or too many wrong secrets came for this one; \
         retry in a moment, within a minute at the latest"
    )]
    Busy,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The key could not be hashed.
    #[error("the key cannot be hashed: {0}")]
    Hashing(String),
}

impl AuthError {
    /// The refusal of a model without prices: of one in the model table by its name there, of another by its id.
    pub fn unpriced(model: &str, in_table: bool) -> Self {
        let parent = if in_table { "models" } else { "models.catalogue" };
        Self::Unpriced { model: model.to_owned(), table: format!("{parent}.\"{model}\"") }
    }

    /// The corresponding HTTP status.
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::Missing | Self::Unknown | Self::Revoked { .. } => StatusCode::UNAUTHORIZED,
            Self::NotLocal | Self::Foreign | Self::Unpriced { .. } => StatusCode::FORBIDDEN,
            Self::OverLimit(_) | Self::Busy => StatusCode::TOO_MANY_REQUESTS,
            Self::Store(error) => status::of_store(error),
            Self::Hashing(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Whole seconds from `now` until the budget resets or a slot may be free, for `retry-after`; `None` if waiting
    /// does not help.
    pub fn retry_after(&self, now: Timestamp) -> Option<u64> {
        match self {
            // Calls in progress reserve more than most of them use.
            Self::OverLimit(shortage) if shortage.exceeds_a_day() => None,
            Self::OverLimit(shortage) if shortage.passes() => Some(1),
            Self::OverLimit(shortage) => {
                Some(shortage.resets.as_millis().saturating_sub(now.as_millis()).div_ceil(1_000))
            }
            Self::Busy => Some(1),
            _ => None,
        }
    }
}

/// Creates a key for `user`. Its text is stored nowhere: the caller must show it now.
pub fn create_key(
    store: &Store,
    user: &str,
    label: &str,
    limits: KeyLimits,
) -> Result<(ApiKey, KeyRecord), AuthError> {
    add_key(store, user, label, limits, false)
}

/// As above, for a key that also grants access to what belongs to all users.
pub fn create_operator_key(
    store: &Store,
    user: &str,
    label: &str,
    limits: KeyLimits,
) -> Result<(ApiKey, KeyRecord), AuthError> {
    add_key(store, user, label, limits, true)
}

fn add_key(
    store: &Store,
    user: &str,
    label: &str,
    limits: KeyLimits,
    operator: bool,
) -> Result<(ApiKey, KeyRecord), AuthError> {
    let key = ApiKey::new(KeyId::new(store.random()?), store.random()?);
    let hash = key.hash(store.random()?)?;
    let record =
        store.keys().add(&NewKey { id: key.id().clone(), user, label, hash: &hash, limits, operator })?;
    Ok((key, record))
}

/// The door: one per process.
pub struct Auth {
    store: Store,
    /// That of callers without a key.
    local: UserStore,
    /// The key under which key texts are hashed in memory; generated anew by each process.
    fast: [u8; 32],
    /// Keys that passed the slow hash, with that hash and the fast one of their text.
    passed: Mutex<BTreeMap<KeyId, (String, blake3::Hash)>>,
    /// Where keys are checked that have not passed.
    slow: Slow,
    /// The reservations of calls in progress.
    open: Arc<budget::OpenReservations>,
}

impl Auth {
    /// Creates the authentication of a store. Fails only if the system returns no random bytes.
    pub fn new(store: Store) -> Result<Self, StoreError> {
        let fast = store.random()?;
        let local = store.user(LOCAL_USER)?;
        Ok(Self { store, local, fast, passed: Mutex::default(), slow: Slow::default(), open: Arc::default() })
    }

    /// The sender of this request. `required` says whether a key is needed; `None`: as soon as one was ever created.
    /// Blocks: about 20 ms of computation the first time a key is seen, and one look-up in the store every time, so
    /// that a key revoked by another process stops working immediately. That another process made the first key may be
    /// seen a moment late.
    pub fn caller(
        &self,
        method: &Method,
        headers: &HeaderMap,
        peer: SocketAddr,
        required: Option<bool>,
    ) -> Result<Caller, AuthError> {
        // Before the key is looked up, which goes with its user.
        let since = self.store.early_erasures()?;
        let offered = credentials(headers).find(|text| ApiKey::is_meant(text));
        if let Some(key) = offered.and_then(ApiKey::parse)
            && let Some(record) = self.check(&key)?
        {
            return self.admit(record, since);
        }
        if offered.is_none()
            && let Some(token) = cookie(headers)
            && let Some(record) = self.store.keys().sign_in(token)?
        {
            if !method.is_safe() && !origin::is_own(headers) {
                return Err(AuthError::Foreign);
            }
            return self.admit(record, since);
        }
        let (created, is_local) = (self.store.keys().any_created()?, origin::is_local(headers, peer));
        // Where keys exist, a wrong one is a mistake even on this machine, and other callers need theirs.
        if required.unwrap_or(created) || (created && (offered.is_some() || !is_local)) {
            return Err(if offered.is_some() { AuthError::Unknown } else { AuthError::Missing });
        }
        if !is_local {
            return Err(AuthError::NotLocal);
        }
        if !method.is_safe() && origin::is_foreign(headers) {
            return Err(AuthError::Foreign);
        }
        let store = self.local.clone().since(since);
        Ok(Caller { store, key: None, limits: KeyLimits::default(), operator: true })
    }

    /// Whether [`Auth::caller`] would answer at once, as far as can be foreseen: it looks nothing up, or no read of the
    /// index is in progress and no key needs the slow hash.
    pub fn answers_at_once(&self, headers: &HeaderMap) -> bool {
        let has_passed = |text: &str| {
            let key = ApiKey::parse(text);
            key.is_none_or(|key| {
                let passed = lock(&self.passed);
                passed.get(key.id()).is_some_and(|passed| passed.1 == key.fast_hash(&self.fast))
            })
        };
        let mut keys = credentials(headers).filter(|text| ApiKey::is_meant(text)).peekable();
        let looks_nothing_up = keys.peek().is_none()
            && cookie(headers).is_none()
            && self.store.keys().knows_any_created()
            && self.store.knows_erasures();
        looks_nothing_up || (self.store.reads_at_once() && keys.all(has_passed))
    }

    fn admit(&self, record: KeyRecord, since: u64) -> Result<Caller, AuthError> {
        let store = self.store.user(&record.user)?.since(since);
        Ok(Caller { store, key: Some(record.id), limits: record.limits, operator: record.operator })
    }

    /// The record of a key with the right text; `None` if there is no such key.
    fn check(&self, key: &ApiKey) -> Result<Option<KeyRecord>, AuthError> {
        let Some(stored) = self.store.keys().get(key.id())? else { return Ok(None) };
        let fast = key.fast_hash(&self.fast);
        // Hashes of BLAKE3 are compared in constant time.
        let passed = || lock(&self.passed).get(key.id()).is_some_and(|p| p.0 == stored.hash && p.1 == fast);
        if !passed() {
            self.slow.admits(key.id(), self.store.now())?;
            let _place = self.slow.place()?;
            let mut memory = lock(&self.slow.memory);
            if !passed() {
                // Those that were here before may all have been wrong.
                self.slow.admits(key.id(), self.store.now())?;
                if !key.matches(&stored.hash, &mut memory) {
                    self.slow.was_wrong(key.id(), self.store.now());
                    return Ok(None);
                }
                lock(&self.passed).insert(key.id().clone(), (stored.hash, fast));
            }
        }
        match stored.record.revoked {
            Some(_) => Err(AuthError::Revoked { id: stored.record.id }),
            None => Ok(Some(stored.record)),
        }
    }

    /// Signs a browser in with a key; returns the value of `set-cookie`. Blocks like [`Auth::caller`].
    pub fn sign_in(&self, headers: &HeaderMap, key: &ApiKey) -> Result<HeaderValue, AuthError> {
        if origin::is_foreign(headers) {
            return Err(AuthError::Foreign);
        }
        let record = self.check(key)?.ok_or(AuthError::Unknown)?;
        let token = ContentHash::from_bytes(self.store.random()?).to_hex();
        let lifetime = SIGN_IN_LIFETIME.as_millis().try_into().unwrap_or(u64::MAX);
        let expires = Timestamp::from_millis(self.store.now().as_millis().saturating_add(lifetime));
        self.store.keys().add_sign_in(ContentHash::new(token.as_bytes()), &record.id, expires)?;
        Ok(set_cookie(headers, &token, SIGN_IN_LIFETIME))
    }

    /// Ends a sign-in; returns the value of `set-cookie` that deletes the cookie.
    pub fn sign_out(&self, headers: &HeaderMap) -> Result<HeaderValue, AuthError> {
        if origin::is_foreign(headers) {
            return Err(AuthError::Foreign);
        }
        if let Some(token) = cookie(headers) {
            self.store.keys().remove_sign_in(token)?;
        }
        Ok(set_cookie(headers, "", Duration::ZERO))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panicked while holding one of these leaves nothing half-done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The credentials in a request, in order of precedence.
fn credentials(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let bearer = headers.get_all(AUTHORIZATION).iter().filter_map(|value| {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token)
    });
    bearer.chain(headers.get_all("x-api-key").iter().filter_map(|value| value.to_str().ok()))
}

/// The digest of the token in the cookie of a sign-in, by which the store knows it.
fn cookie(headers: &HeaderMap) -> Option<ContentHash> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE_NAME).map(|(_, token)| ContentHash::new(token.as_bytes()))
}

/// A cookie that is inaccessible to scripts and not sent by other sites; restricted to HTTPS if the page was loaded
/// over HTTPS.
fn set_cookie(headers: &HeaderMap, token: &str, lifetime: Duration) -> HeaderValue {
    let secure = if origin::is_https(headers) { "; Secure" } else { "" };
    let age = lifetime.as_secs();
    let text = format!("{COOKIE_NAME}={token}; Path=/; HttpOnly; SameSite=Strict; Max-Age={age}{secure}");
    let value = HeaderValue::from_str(&text);
    // The token is alphanumeric, so this never fails; the fallback would sign no one in.
    let mut value = value.unwrap_or_else(|_| HeaderValue::from_static("larder_session=; Path=/; Max-Age=0"));
    value.set_sensitive(true);
    value
}

#[cfg(test)]
#[path = "auth/tests.rs"]
mod tests;
