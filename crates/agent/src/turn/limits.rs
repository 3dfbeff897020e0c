//! What a whole turn may spend: checked before every model or tool call. A call of a model that may exceed a limit, with its
//! prompt and all that it may answer, is not made.

use std::sync::Arc;
use std::time::Duration;

use larder_engine::executor::{Meter, NoopObserver, RemainingBudget, Spending};
use larder_engine::settings::TurnLimits;
use larder_models::price::Usd;
use tokio::time::Instant;

use super::error::Stop;
use super::state::TurnState;

/// The limits of a turn and the meter that counts against them.
pub(super) struct TurnBudget {
    limits: TurnLimits,
    /// When time runs out.
    pub(super) until: Option<Instant>,
    /// Counts model usage since the turn was started or resumed.
    pub(super) meter: Arc<Meter<'static>>,
    /// The part of the meter's count that the state includes already.
    charged: Spending,
}

impl TurnBudget {
    /// The budget of a turn that has already spent what its state records.
    pub(super) fn new(limits: TurnLimits, state: &TurnState) -> Self {
        let spent = Duration::from_millis(state.spent_ms);
        let until = limits.time.and_then(|time| Instant::now().checked_add(time.saturating_sub(spent)));
        let mut budget = Self {
            limits,
            until,
            meter: Arc::new(Meter::new(&NoopObserver, None, None)),
            charged: Spending::default(),
        };
        let left = budget.remaining(state);
        budget.meter = Arc::new(Meter::new(&NoopObserver, left.tokens, left.cost).strict());
        budget
    }

    /// What may still be spent, for a tool that calls models itself.
    pub(super) fn remaining(&self, state: &TurnState) -> RemainingBudget {
        let spent = state.cost.unwrap_or_default().picos();
        RemainingBudget {
            tokens: self.limits.tokens.map(|limit| limit.saturating_sub(state.tokens())),
            cost: self.limits.cost.map(|limit| Usd::from_picos(limit.picos().saturating_sub(spent))),
            deadline: self.until,
        }
    }

    /// The limit that is reached, in words.
    pub(super) fn reached(&self, state: &TurnState) -> Option<String> {
        if let Some(limit) = self.limits.tokens.filter(|limit| state.tokens() >= *limit) {
            return Some(format!("the turn has spent its {limit} tokens"));
        }
        if let Some(limit) = self.limits.cost.filter(|limit| state.cost.unwrap_or_default() >= *limit) {
            return Some(format!("the turn has spent its {limit} US dollars"));
        }
        self.until.filter(|until| Instant::now() >= *until).map(|_| self.out_of_time())
    }

    /// # Errors
    /// [`Stop::Exhausted`] if a limit is reached.
    pub(super) fn check(&self, state: &TurnState) -> Result<(), Stop> {
        self.reached(state).map_or(Ok(()), |reason| Err(Stop::Exhausted(reason)))
    }

    /// Why a call that may take more than is left was not made: the limit and what is spent of it, in words.
    pub(super) fn unaffordable(&self, state: &TurnState, why: &str) -> String {
        let tokens = self
            .limits
            .tokens
            .map(|limit| format!("{} of its {limit} tokens (turn.max_tokens)", state.tokens()));
        let cost = self.limits.cost.map(|limit| {
            format!("{} of its {limit} US dollars (turn.max_cost)", state.cost.unwrap_or_default())
        });
        let spent: Vec<String> = tokens.into_iter().chain(cost).collect();
        format!("the turn has spent {}: {why}", spent.join(" and "))
    }

    /// The reason when time runs out.
    pub(super) fn out_of_time(&self) -> String {
        let time = self.limits.time.unwrap_or_default();
        format!("the turn has taken its {} seconds", time.as_secs_f64())
    }

    /// Awaits a call; `None` when the turn's time runs out first.
    pub(super) async fn within<F: Future>(&self, call: F) -> Option<F::Output> {
        match self.until {
            None => Some(call.await),
            Some(until) => tokio::time::timeout_at(until, call).await.ok(),
        }
    }

    /// Charges to the state what the meter has counted since the last call, and returns it.
    pub(super) fn settle(&mut self, state: &mut TurnState) -> Spending {
        let now = self.meter.total();
        let spent = now.since(&self.charged);
        self.charged = now;
        state.charge(spent);
        spent
    }
}
