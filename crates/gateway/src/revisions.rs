//! Which revision of learned values a request uses: the newest one for a new conversation, the one it began with for
//! any other. Knows neither what is learned nor why.

use std::collections::BTreeMap;

use larder_core::policy::PolicySettings;
use larder_engine::config::{Config, Standing, factor_change, factor_in, is_window, window_key};
use larder_store::{LearnedSettings, Store, StoreError, UserStore};

use crate::recorder::Observation;

/// The smallest window that is believed, in tokens.
const MIN_WINDOW: u64 = 256;
/// How many times as long as counted a refused request may have been: counts are estimates.
const MAX_ERROR: u64 = 4;
/// The most windows that are learned: clients choose the names of models.
const MAX_WINDOWS: usize = 1_000;

/// The settings as a revision makes them.
#[derive(Debug)]
pub struct RevisedSettings {
    /// The revision; 0 if nothing is learned.
    pub number: u64,
    /// How conversations are fitted.
    pub policy: PolicySettings,
    config: Config,
}

impl RevisedSettings {
    /// These settings as revision `number` makes them.
    ///
    /// # Errors
    /// When the store fails.
    pub fn read(config: &Config, store: &Store, number: u64) -> Result<Self, StoreError> {
        let (revised, values) = config.revised(number, &store.revisions().settings(number)?);
        for value in values {
            if let Standing::Unusable { reason } = value.standing {
                tracing::warn!(revision = number, key = value.key, reason, "a learned value cannot be used");
            }
        }
        Ok(Self { number, policy: revised.context_policy(), config: revised })
    }

    /// All settings as the revision makes them.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The learned window of a model that is not in the table, in tokens.
    pub fn window(&self, id: &str) -> Option<usize> {
        self.config.learned_window(id)
    }

    /// The factor, in parts per million, by which the tokens that an estimate has for a model are corrected.
    pub fn estimate_factor(&self, id: &str, estimate: &str) -> u64 {
        self.config.estimate_factor(id, estimate)
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

/// The revision of a conversation that has been given none: one that sent a prompt before there was any revision keeps
/// what it began with.
///
/// # Errors
/// When the store fails.
pub fn first(store: &UserStore, session: &str, newest: u64) -> Result<u64, StoreError> {
    Ok(if store.exchanges().has_prompts(session)? { 0 } else { newest })
}

/// Writes the limit that a provider named when it refused a prompt of this conversation as too long, as the window of a model
/// that nobody knows. The conversation moves on to the newest revision: in the form that it began with, its prompt cannot be
/// sent. `tokens` is the size of the refused request, reply included; a limit that it cannot have exceeded is not believed.
///
/// # Errors
/// When the store fails.
pub fn learn_window(
    store: &UserStore,
    session: &str,
    model: &str,
    limit: u64,
    tokens: u64,
) -> Result<(), StoreError> {
    let (revisions, key) = (store.store().revisions(), window_key(model));
    let learned = revisions.settings(revisions.newest()?)?;
    let windows = learned.keys().filter(|key| is_window(key)).count();
    let is_full = windows >= MAX_WINDOWS && !learned.contains_key(&key);
    if limit < MIN_WINDOW || limit > tokens.saturating_mul(MAX_ERROR) || is_full {
        tracing::warn!(model, limit, tokens, "the limit named in a refusal was not learned");
        return Ok(());
    }
    let cause = format!("the provider refused a prompt to {model} as longer than {limit} tokens");
    let newest = revisions.write(&cause, &BTreeMap::from([(key, Some(limit.to_string()))]))?;
    store.session_revisions().advance(session, newest)?;
    Ok(())
}

/// Learns from one prompt how far the estimates of a model are off.
///
/// # Errors
/// When the store fails.
pub fn learn_factor(store: &Store, observation: &Observation) -> Result<(), StoreError> {
    let Observation { model, counter, estimated, reported } = observation;
    let estimate = counter.estimate_name();
    let revise = |factor_ppm| {
        let (key, value) = factor_change(model, estimate, factor_ppm);
        let cause = format!(
            "after reports of its provider, the tokens that are estimated for {model} are multiplied by {value}"
        );
        (cause, BTreeMap::from([(key, Some(value))]))
    };
    let correction = |reported_ppm| counter.correction(reported_ppm);
    let used = |learned: &LearnedSettings| correction(factor_in(learned, model, estimate));
    let counts = (*estimated, *reported);
    store.calibrations().observe((model, estimate), counts, correction, used, revise).map(drop)
}
