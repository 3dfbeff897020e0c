//! What a request reserves from its caller's budget, and its final charge. Knows prices and keys; knows neither wire
//! formats nor what the tokens were spent on.

use std::sync::Arc;

use larder_engine::blocking;
use larder_models::chat::Usage;
use larder_models::price::Usd;

use crate::app::App;
use crate::auth::{AuthError, BudgetReservation, Caller};
use crate::error::RequestError;
use crate::recorder::Settlement;
use crate::request::bill::Pricing;

/// The reservations of one request: one for its first round, and one for each further round or call.
#[derive(Default)]
pub struct RequestBudget {
    /// The price of the model's tokens, if known.
    pub pricing: Option<Pricing>,
    reservations: Vec<BudgetReservation>,
    /// What is charged already, of rounds that have ended.
    charged: (u64, Usd),
}

impl RequestBudget {
    /// Reserves an amount of tokens and money. Blocks if the key has limits.
    ///
    /// # Errors
    /// If the key's budget is too small.
    pub fn reserve(
        &mut self,
        app: &App,
        caller: &Caller,
        tokens: u64,
        cost: Usd,
    ) -> Result<(), RequestError> {
        let reservation = app.auth.reserve(caller, tokens, cost);
        self.reservations
            .push(reservation.map_err(|error| RequestError::from_auth(&error, app.store.now()))?);
        Ok(())
    }

    /// Takes over a reservation.
    pub fn hold(&mut self, reservation: BudgetReservation) {
        self.reservations.push(reservation);
    }

    /// Reserves the maximum usage of one round of a model, in the model table or not. Blocks if the key has limits.
    ///
    /// # Errors
    /// If the key's budget is too small, or is in dollars and the model has no price.
    pub fn reserve_round(
        &mut self,
        app: &App,
        caller: &Caller,
        (model, in_table): (&str, bool),
        max: &Usage,
    ) -> Result<(), RequestError> {
        if caller.limits.picos_per_day.is_some() && self.pricing.is_none() {
            let error = AuthError::unpriced(model, in_table);
            return Err(RequestError::from_auth(&error, app.store.now()));
        }
        self.reserve(app, caller, total(max), self.most(max))
    }

    /// Charges what the rounds so far have `used`, if that is known, and reserves the maximum usage of a further one,
    /// without blocking.
    ///
    /// # Errors
    /// With the limit that was reached, as text.
    pub async fn reserve_further_round(
        &mut self,
        app: &Arc<App>,
        caller: &Caller,
        used: Option<(u64, Usd)>,
        max: &Usage,
    ) -> Result<(), &'static str> {
        if caller.limits.is_unlimited() {
            return Ok(());
        }
        let (tokens, cost) = (total(max), self.most(max));
        let (app, caller) = (Arc::clone(app), caller.clone());
        let ended = used.and_then(|used| self.end(used));
        let reserving = blocking::run(move || {
            if let Some(ended) = ended {
                ended.settle();
            }
            app.auth.reserve(&caller, tokens, cost)
        });
        match reserving.await {
            Ok(Ok(reservation)) => {
                self.reservations.push(reservation);
                Ok(())
            }
            Ok(Err(AuthError::Store(error))) => {
                tracing::warn!(%error, "nothing can be reserved for a further round");
                Err("the budget of the API key cannot be checked now")
            }
            Ok(Err(_)) => Err("what is left of the API key's budget does not cover a further call"),
            Err(_) => Err("the budget of the API key cannot be checked now"),
        }
    }

    /// The most that a round can cost which uses at most this; zero if the model has no price.
    fn most(&self, max: &Usage) -> Usd {
        self.pricing.as_ref().map_or_else(Usd::default, |pricing| pricing.most(max))
    }

    /// Ends the reservations of the rounds so far, which used this together.
    fn end(&mut self, used: (u64, Usd)) -> Option<Settlement> {
        let reservations = std::mem::take(&mut self.reservations);
        if reservations.is_empty() {
            return None;
        }
        let more = self.beyond(used);
        self.charged = used;
        Some(Settlement { reservations, used: Some(more) })
    }

    /// What is used beyond what is charged already.
    fn beyond(&self, (tokens, cost): (u64, Usd)) -> (u64, Usd) {
        let picos = cost.picos().saturating_sub(self.charged.1.picos());
        (tokens.saturating_sub(self.charged.0), Usd::from_picos(picos))
    }

    /// The client has its reply, so that it may send the next request before this one is settled.
    pub fn mark_ended(&self) {
        self.reservations.iter().for_each(BudgetReservation::mark_ended);
    }

    /// Ends the reservations: `used` is the charge in tokens and money, `None` if nothing was sent. They are settled
    /// when the record is written.
    pub fn settlement(self, used: Option<(u64, Usd)>) -> Option<Settlement> {
        let used = used.map(|used| self.beyond(used));
        let reservations = self.reservations;
        (!reservations.is_empty()).then_some(Settlement { reservations, used })
    }
}

/// Tokens in and out.
pub const fn total(usage: &Usage) -> u64 {
    usage.input.saturating_add(usage.output)
}
