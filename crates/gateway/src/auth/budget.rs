//! What a call takes from the budget of its caller's key: reserved before, settled after. Knows no wire format.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use larder_engine::executor::ModelSet;
use larder_models::price::Usd;
use larder_store::{DaySpend, Reservation, ReserveOutcome, Shortage, Spend, Store, StoreError};

use super::{Auth, AuthError, Caller, lock};

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

/// Reservations of calls in progress, by id.
pub(super) type OpenReservations = Mutex<BTreeSet<i64>>;

impl Auth {
    /// Reserves the maximum that a call may use, prompt and reply tokens together, or reports what is left and when
    /// the budget resets. Free for callers without limits; otherwise blocks for a write to the store.
    pub fn reserve(&self, caller: &Caller, tokens: u64, cost: Usd) -> Result<BudgetReservation, AuthError> {
        let (store, open) = (self.store.clone(), Arc::clone(&self.open));
        let Some(key) = caller.key.as_ref().filter(|_| !caller.limits.is_unlimited()) else {
            return Ok(BudgetReservation { store, reservation: None, open });
        };
        match store.keys().reserve(key, Spend { tokens, picos: cost.picos() }) {
            Ok(ReserveOutcome::Held(reservation)) => {
                lock(&open).insert(reservation.id());
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
        let open: Vec<i64> = lock(&self.open).iter().copied().collect();
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
            lock(&self.open).remove(&reservation.id());
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
        let asked = self.reservation.as_ref().map(|reservation| {
            lock(&self.open).remove(&reservation.id());
            reservation.asked
        });
        if let Some(Err(error)) = asked.map(|asked| self.count(asked)) {
            tracing::warn!(%error, "the usage of a call was not counted");
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
