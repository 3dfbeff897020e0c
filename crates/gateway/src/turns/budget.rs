//! What a turn reserves from its key's budget, and its charge at the end. Knows no phase.

use larder_agent::turn::{TurnError, TurnOutcome};
use larder_engine::executor::RunError;
use larder_engine::settings::TurnLimits;
use larder_models::chat::{ModelError, Usage};
use larder_models::price::Usd;
use larder_store::{TurnDraft, UserDocuments};

use crate::auth::{Auth, AuthError, BudgetReservation, Caller};
use crate::request::total;

/// Tokens that are reserved for a turn of a key with a budget where no setting limits turns …
const RESERVED_TOKENS: u64 = 200_000;
/// … and US dollars, where the key is limited in money.
const RESERVED_COST: Usd = Usd::from_picos(1_000_000_000_000);

/// What a turn has used so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    usage: Usage,
    cost: Usd,
}

impl Spent {
    /// The usage recorded in a draft's state.
    pub fn from_draft(draft: &TurnDraft) -> Self {
        let usage = draft.state.get("usage").cloned().and_then(|usage| serde_json::from_value(usage).ok());
        let cost = draft.state.get("cost").cloned().and_then(|cost| serde_json::from_value(cost).ok());
        Self { usage: usage.unwrap_or_default(), cost: cost.unwrap_or_default() }
    }

    /// Tokens and money used since `before`.
    fn since(&self, before: &Self) -> (u64, Usd) {
        let tokens = total(&self.usage).saturating_sub(total(&before.usage));
        (tokens, Usd::from_picos(self.cost.picos().saturating_sub(before.cost.picos())))
    }
}

/// The reservation of one run of a turn.
pub struct TurnReservation {
    reservation: BudgetReservation,
    before: Spent,
}

impl TurnReservation {
    /// Reserves the maximum usage of the turn: as much as is left today, but no more than the limit of a turn. A turn
    /// whose key has a budget is then limited to that. `before` is the usage of earlier runs of the turn. Blocks.
    ///
    /// # Errors
    /// If nothing is left, or the store fails.
    pub fn reserve(
        auth: &Auth,
        caller: &Caller,
        limits: &mut TurnLimits,
        before: Spent,
    ) -> Result<Self, AuthError> {
        let (mut tokens, mut cost) = (0, Usd::default());
        let key = caller.limits;
        if let Some(day) = auth.spent(caller)?.filter(|_| !key.is_unlimited()) {
            let left = |limit: u64, used: u64, held: u64| limit.saturating_sub(used.saturating_add(held));
            let tokens_left =
                key.tokens_per_day.map_or(u64::MAX, |limit| left(limit, day.used.tokens, day.held.tokens));
            let used = total(&before.usage);
            tokens = share(limits.tokens.unwrap_or(RESERVED_TOKENS), used, tokens_left);
            limits.tokens = Some(used.saturating_add(tokens));
            if let Some(limit) = key.picos_per_day {
                let max = limits.cost.unwrap_or(RESERVED_COST).picos();
                let picos_left = left(limit, day.used.picos, day.held.picos);
                cost = Usd::from_picos(share(max, before.cost.picos(), picos_left));
                limits.cost = Some(before.cost + cost);
            }
        }
        Ok(Self { reservation: auth.reserve(caller, tokens, cost)?, before })
    }

    /// Charges the usage of this run of the turn. If that is unknown, the full reservation counts.
    pub fn settle(self, ended: &Result<TurnOutcome, TurnError>, documents: &UserDocuments) {
        let Self { reservation, before } = self;
        let after = match ended {
            Ok(outcome) => Spent { usage: outcome.usage, cost: outcome.cost.unwrap_or_default() },
            Err(
                TurnError::EmptyQuery
                | TurnError::NulInQuery
                | TurnError::NoDraft(_)
                | TurnError::Running(_)
                | TurnError::State { .. },
            ) => return reservation.release_or_log(),
            // Every call but the last was answered and is in the draft; the last one was refused or never arrived.
            Err(TurnError::Stopped { turn, source, .. }) if !may_be_billed(source) => {
                match documents.drafts().get(*turn) {
                    Ok(Some(draft)) => Spent::from_draft(&draft),
                    _ => return drop(reservation),
                }
            }
            Err(_) => return drop(reservation),
        };
        let (tokens, cost) = after.since(&before);
        reservation.settle_or_log(tokens, cost);
    }
}

/// How much to reserve of a limit of `max`, of which `used` is spent, if `left` is left today: at least 1, so that
/// the reservation itself is refused, with a message, if nothing is left.
const fn share(max: u64, used: u64, left: u64) -> u64 {
    let rest = max.saturating_sub(used);
    let share = if rest < left { rest } else { left };
    if share == 0 { 1 } else { share }
}

/// Whether the failed call may have been processed nevertheless.
fn may_be_billed(error: &RunError) -> bool {
    matches!(error, RunError::Model { source: ModelError::Timeout { .. }, .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_reserves_the_smaller_of_its_limit_and_the_days_rest() {
        assert_eq!((share(100, 30, 1_000), share(100, 30, 50)), (70, 50));
        assert_eq!((share(100, 0, 0), share(100, 200, 50)), (1, 1), "refused in words, not granted");
    }

    #[test]
    fn a_resumed_turn_is_charged_for_this_run_alone() {
        let spent = |input, picos| Spent {
            usage: Usage { input, output: 5, ..Usage::default() },
            cost: Usd::from_picos(picos),
        };
        assert_eq!(spent(95, 70).since(&spent(35, 30)), (60, Usd::from_picos(40)));
        assert_eq!(spent(5, 0).since(&spent(35, 30)), (0, Usd::default()), "a draft that was rolled back");
    }
}
