//! What a whole turn may spend: looked at before every call of a model or tool. One call may go beyond it; the next
//! one does not happen.

use larder_models::price::Usd;
use tokio::time::Instant;

use super::error::Stop;
use super::machine::Machine;

impl Machine<'_> {
    /// Which ceiling is reached, if one is.
    pub(super) fn ceiling(&self) -> Option<String> {
        let limits = &self.turns.limits;
        if let Some(limit) = limits.tokens.filter(|limit| self.state.tokens() >= *limit) {
            return Some(format!("the turn has spent its {limit} tokens"));
        }
        if let Some(limit) = limits.cost.filter(|limit| self.state.cost.unwrap_or_default() >= *limit) {
            return Some(format!("the turn has spent its {limit} US dollars"));
        }
        self.until.filter(|until| Instant::now() >= *until).map(|_| self.out_of_time())
    }

    /// Fails if nothing more may be spent.
    pub(super) fn may_spend(&self) -> Result<(), Stop> {
        self.ceiling().map_or(Ok(()), |reason| Err(Stop::Exhausted(reason)))
    }

    /// What is said when time runs out.
    pub(super) fn out_of_time(&self) -> String {
        let time = self.turns.limits.time.unwrap_or_default();
        format!("the turn has taken its {} seconds", time.as_secs_f64())
    }

    /// Tokens that are left, if they are limited.
    pub(super) fn tokens_left(&self) -> Option<u64> {
        self.turns.limits.tokens.map(|limit| limit.saturating_sub(self.state.tokens()))
    }

    /// Money that is left, if it is limited.
    pub(super) fn cost_left(&self) -> Option<Usd> {
        let spent = self.state.cost.unwrap_or_default();
        self.turns.limits.cost.map(|limit| Usd::from_picos(limit.picos().saturating_sub(spent.picos())))
    }
}
