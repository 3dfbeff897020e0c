//! What one request reserves of its caller's budget, and what it is charged in the end. Knows prices and keys; knows
//! neither wire formats nor what the tokens were spent on.

use std::sync::Arc;

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
    /// What the model's tokens cost, where that is known.
    pub pricing: Option<Pricing>,
    reservations: Vec<BudgetReservation>,
}

impl RequestBudget {
    /// Reserves so many tokens and so much money. Blocks where the key has limits.
    ///
    /// # Errors
    /// When the key's budget does not reach.
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

    /// Reserves what one round may use at most. Blocks where the key has limits.
    ///
    /// # Errors
    /// When the key's budget does not reach, or is in money and the model has no price.
    pub fn reserve_round(
        &mut self,
        app: &App,
        caller: &Caller,
        model: &str,
        max: &Usage,
    ) -> Result<(), RequestError> {
        if caller.limits.picos_per_day.is_some() && self.pricing.is_none() {
            let error = AuthError::Unpriced { model: model.to_owned() };
            return Err(RequestError::from_auth(&error, app.store.now()));
        }
        self.reserve(app, caller, total(max), self.price(max))
    }

    /// Reserves what a further round may use at most, without blocking.
    ///
    /// # Errors
    /// With the limit that is reached, in words.
    pub async fn reserve_further_round(
        &mut self,
        app: &Arc<App>,
        caller: &Caller,
        max: &Usage,
    ) -> Result<(), &'static str> {
        if caller.limits.is_unlimited() {
            return Ok(());
        }
        let (tokens, cost) = (total(max), self.price(max));
        let (app, caller) = (Arc::clone(app), caller.clone());
        let reserving = tokio::task::spawn_blocking(move || app.auth.reserve(&caller, tokens, cost));
        match reserving.await {
            Ok(Ok(reservation)) => {
                self.reservations.push(reservation);
                Ok(())
            }
            Ok(Err(AuthError::Store(error))) => {
                tracing::warn!(%error, "nothing can be reserved for a further round");
                Err("the budget of the API key cannot be looked at now")
            }
            Ok(Err(_)) => Err("the budget of the API key is used up"),
            Err(_) => Err("the budget of the API key cannot be looked at now"),
        }
    }

    /// What so many tokens cost; nothing where the model has no price.
    pub fn price(&self, usage: &Usage) -> Usd {
        self.pricing.as_ref().map_or_else(Usd::default, |pricing| pricing.prices.cost(usage).total)
    }

    /// Ends the hold: `used` are the tokens and the money that are charged, `None` when nothing was sent. The reservations
    /// are settled when the record is written.
    pub fn settlement(self, used: Option<(u64, Usd)>) -> Option<Settlement> {
        let reservations = self.reservations;
        (!reservations.is_empty()).then_some(Settlement { reservations, used })
    }
}

/// Tokens in and out.
pub const fn total(usage: &Usage) -> u64 {
    usage.input.saturating_add(usage.output)
}
