//! What a call takes from the budget of its caller's key: reserved before, settled after. Knows no wire format.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use larder_engine::executor::ModelSet;
use larder_models::price::Usd;
use larder_store::{DaySpend, KeyId, Reservation, ReserveOutcome, Shortage, Spend, Store, StoreError};

use super::{Auth, AuthError, Caller, lock};

/// How long a reservation waits for calls that have ended to be settled. That takes some 50 ms, unless the store is stuck.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// The reservation of a call. If it is dropped, all of it counts as used, which requires a write to the store: the
/// owner does not know what the upstream bills.
#[derive(Debug)]
#[must_use = "if it is dropped, all of it counts as used"]
pub struct BudgetReservation {
    store: Store,
    /// None for callers without limits.
    reservation: Option<Reservation>,
    /// The list that it is on until it is settled.
    open: Arc<OpenReservations>,
}

/// Reservations that are not settled.
#[derive(Debug, Default)]
pub(super) struct OpenReservations {
    held: Mutex<BTreeMap<i64, HeldFor>>,
    settled: Condvar,
}

/// What a reservation is held for.
#[derive(Debug)]
struct HeldFor {
    key: KeyId,
    /// Whether the call has ended, so that what it used is about to be charged.
    has_ended: bool,
}

impl OpenReservations {
    fn insert(&self, id: i64, key: KeyId) {
        lock(&self.held).insert(id, HeldFor { key, has_ended: false });
    }

    fn remove(&self, id: i64) {
        lock(&self.held).remove(&id);
        self.settled.notify_all();
    }

    fn mark_ended(&self, id: i64) {
        if let Some(held) = lock(&self.held).get_mut(&id) {
            held.has_ended = true;
        }
    }

    fn ids(&self) -> Vec<i64> {
        lock(&self.held).keys().copied().collect()
    }

    /// Waits until the calls of this key that have ended are settled, for as long as [`LONGEST_WAIT`].
    fn wait_for_ended(&self, key: &KeyId) {
        let held = lock(&self.held);
        let ended = held.iter().filter(|(_, held)| held.has_ended && held.key == *key);
        let ended: Vec<i64> = ended.map(|(id, _)| *id).collect();
        let is_open = |held: &mut BTreeMap<i64, HeldFor>| {
            // The store gives ids out again.
            ended.iter().any(|id| held.get(id).is_some_and(|held| held.has_ended))
        };
        drop(self.settled.wait_timeout_while(held, LONGEST_WAIT, is_open));
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        lock(&self.held).is_empty()
    }
}

impl Auth {
    /// Reserves the maximum that a call may use, prompt and reply tokens together, or reports what is left and when
    /// the budget resets. Free for callers without limits; otherwise blocks for a write to the store.
    ///
    /// What a call used is charged a moment after its client has the reply. A client that asks one request after the
    /// other is not refused for that: only a call that is still in progress can make the next one be refused.
    pub fn reserve(&self, caller: &Caller, tokens: u64, cost: Usd) -> Result<BudgetReservation, AuthError> {
        let Some(key) = caller.key.as_ref().filter(|_| !caller.limits.is_unlimited()) else {
            let (store, open) = (self.store.clone(), Arc::clone(&self.open));
            return Ok(BudgetReservation { store, reservation: None, open });
        };
        let asked = Spend { tokens, picos: cost.picos() };
        match self.try_reserve(key, asked) {
            Err(AuthError::OverLimit(shortage)) if shortage.passes() => {
                self.open.wait_for_ended(key);
                self.try_reserve(key, asked)
            }
            reserved => reserved,
        }
    }

    fn try_reserve(&self, key: &KeyId, asked: Spend) -> Result<BudgetReservation, AuthError> {
        let (store, open) = (self.store.clone(), Arc::clone(&self.open));
        match store.keys().reserve(key, asked) {
            Ok(ReserveOutcome::Held(reservation)) => {
                open.insert(reservation.id(), key.clone());
                Ok(BudgetReservation { store, reservation: Some(reservation), open })
            }
            Ok(ReserveOutcome::Refused(shortage)) => Err(AuthError::OverLimit(shortage)),
            Err(StoreError::KeyRevoked { .. }) => Err(AuthError::Revoked { id: key.clone() }),
            Err(StoreError::UnknownKey { .. }) => Err(AuthError::Unknown),
            Err(error) => Err(error.into()),
        }
    }
}

impl Caller {
    /// Fails where the key is limited in money and one of these models has no price.
    pub fn may_ask(&self, reach: &ModelSet) -> Result<(), AuthError> {
        match reach.unpriced().filter(|_| self.limits.picos_per_day.is_some()) {
            Some(model) => Err(AuthError::unpriced(model, true)),
            None => Ok(()),
        }
    }
}

impl Auth {
    /// Reserves `tokens` tokens and their maximum cost at any of these models. Blocks as [`Auth::reserve`] does.
    pub fn reserve_for(
        &self,
        caller: &Caller,
        tokens: u64,
        reach: &ModelSet,
    ) -> Result<BudgetReservation, AuthError> {
        caller.may_ask(reach)?;
        self.reserve(caller, tokens, reach.max_cost(tokens))
    }

    /// Extends the reservations of calls in progress, however long they take; must be called more often than
    /// reservations expire. Blocks.
    pub fn renew(&self) -> Result<(), StoreError> {
        let open = self.open.ids();
        if open.is_empty() { Ok(()) } else { self.store.keys().renew(&open) }
    }

    /// What the caller's key has spent today and has reserved; `None` for callers without a key. Blocks.
    ///
    /// # Errors
    /// When the store fails.
    pub fn spent(&self, caller: &Caller) -> Result<Option<DaySpend>, StoreError> {
        caller.key.as_ref().map(|key| self.store.keys().day_spend(key)).transpose()
    }
}

impl BudgetReservation {
    /// The call has ended, and what it used will be charged soon.
    pub fn mark_ended(&self) {
        if let Some(reservation) = &self.reservation {
            self.open.mark_ended(reservation.id());
        }
    }

    /// Charges what the call used, more or less than was reserved. If that cannot be written, the full reservation
    /// counts.
    pub fn settle(mut self, tokens: u64, cost: Usd) -> Result<(), StoreError> {
        self.count(Spend { tokens, picos: cost.picos() })
    }

    /// Releases everything, if nothing was sent.
    pub fn release(mut self) -> Result<(), StoreError> {
        self.count(Spend::default())
    }

    /// As [`BudgetReservation::settle`] if no one is left to receive an error: it is logged.
    pub fn settle_or_log(self, tokens: u64, cost: Usd) {
        log_unsettled(self.settle(tokens, cost));
    }

    /// As [`BudgetReservation::release`] if no one is left to receive an error: it is logged.
    pub fn release_or_log(self) {
        log_unsettled(self.release());
    }

    fn count(&mut self, used: Spend) -> Result<(), StoreError> {
        if let Some(reservation) = &self.reservation {
            self.store.keys().settle(reservation, used)?;
            self.open.remove(reservation.id());
        }
        self.reservation = None;
        Ok(())
    }
}

fn log_unsettled(settled: Result<(), StoreError>) {
    if let Err(error) = settled {
        tracing::error!(%error, "a budget could not be settled; all that was reserved counts as used");
    }
}

impl Drop for BudgetReservation {
    fn drop(&mut self) {
        let Some((id, asked)) = self.reservation.as_ref().map(|held| (held.id(), held.asked)) else { return };
        if let Err(error) = self.count(asked) {
            tracing::warn!(%error, "the usage of a call was not counted");
            self.open.remove(id);
        }
    }
}

/// The remaining budget and its reset time, as text.
pub(super) fn describe(shortage: &Shortage) -> String {
    let tokens = shortage.left_tokens().map(|left| format!("{left} tokens"));
    let money = shortage.left_picos().map(|left| format!("{} US dollars", Usd::from_picos(left)));
    let left: Vec<String> = tokens.into_iter().chain(money).collect();
    let when = if shortage.exceeds_a_day() {
        "; that is more than its budget of a whole day: limit the reply (max_tokens), or shorten the prompt"
            .to_owned()
    } else if shortage.passes() {
        let resets = shortage.resets;
        format!(
            "; calls in progress have reserved the rest, so retry in a moment; the budget is whole again at {resets}"
        )
    } else {
        format!("; the budget is whole again at {}", shortage.resets)
    };
    format!(
        "the budget of key {} does not cover this request, which may take {} tokens and {} US dollars: left today are {}{when}",
        shortage.key,
        shortage.asked.tokens,
        Usd::from_picos(shortage.asked.picos),
        left.join(" and "),
    )
}
