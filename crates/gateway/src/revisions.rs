//! Which revision of learned values a request uses: the newest one for a new conversation, the one it began with for
//! any other. Knows neither what is learned nor why.

use larder_core::policy::PolicySettings;
use larder_engine::config::Config;
use larder_store::{ExchangeFilter, Store, StoreError, UserStore};

/// The settings as a revision makes them.
#[derive(Debug)]
pub struct RevisedSettings {
    /// The revision; 0 if nothing is learned.
    pub number: u64,
    /// How conversations are fitted.
    pub policy: PolicySettings,
}

impl RevisedSettings {
    /// These settings as revision `number` makes them.
    ///
    /// # Errors
    /// When the store fails.
    pub fn read(config: &Config, store: &Store, number: u64) -> Result<Self, StoreError> {
        let (revised, values) = config.revised(number, &store.revisions().settings(number)?);
        for value in values {
            if let larder_engine::config::Standing::Unusable { reason } = value.standing {
                tracing::warn!(revision = number, key = value.key, reason, "a learned value cannot be used");
            }
        }
        Ok(Self { number, policy: revised.context_policy() })
    }
}

/// The revision that a conversation would use if it sent a request now. Fixes nothing.
///
/// # Errors
/// When the store fails.
pub fn peek(store: &UserStore, session: &str) -> Result<u64, StoreError> {
    let newest = store.store().revisions().newest()?;
    if newest == 0 {
        return Ok(0);
    }
    match store.session_revisions().get(session)? {
        Some(kept) => Ok(kept),
        None => first(store, session, newest),
    }
}

/// The revision of a conversation that has been given none: one that was there before any revision was keeps what it
/// began with.
///
/// # Errors
/// When the store fails.
pub fn first(store: &UserStore, session: &str, newest: u64) -> Result<u64, StoreError> {
    let filter =
        ExchangeFilter { session: Some(session.to_owned()), limit: Some(1), ..ExchangeFilter::default() };
    Ok(if store.exchanges().list(&filter)?.is_empty() { newest } else { 0 })
}
