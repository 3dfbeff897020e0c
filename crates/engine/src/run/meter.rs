//! Sums what runs spend, call by call, so that failed and cancelled runs are charged too. Knows no run.

use std::sync::{Mutex, PoisonError};

use larder_models::chat::Usage;
use larder_models::price::Usd;

use super::observer::ProgressObserver;
use super::outcome::RunReceipt;

/// Tokens and their price.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spending {
    /// Tokens of all answered calls, plus the maximum that calls with an unknown outcome may have used.
    pub usage: Usage,
    /// Their price, as far as prices are known.
    pub cost: Option<Usd>,
}

impl Spending {
    /// Input and output tokens.
    pub const fn tokens(&self) -> u64 {
        self.usage.input.saturating_add(self.usage.output)
    }

    /// What was spent since `earlier`, a previous value of the same sum.
    pub fn since(&self, earlier: &Self) -> Self {
        let (now, then) = (self.usage, earlier.usage);
        let usage = Usage {
            input: now.input.saturating_sub(then.input),
            cached_input: now.cached_input.saturating_sub(then.cached_input),
            cache_write: now.cache_write.saturating_sub(then.cache_write),
            cache_write_1h: now.cache_write_1h.saturating_sub(then.cache_write_1h),
            output: now.output.saturating_sub(then.output),
            reasoning: now.reasoning.saturating_sub(then.reasoning),
            service: now.service,
        };
        let before = earlier.cost.unwrap_or_default().picos();
        let cost = self.cost.map(|cost| Usd::from_picos(cost.picos().saturating_sub(before)));
        Self { usage, cost }
    }

    pub(crate) fn add(&mut self, usage: Usage, cost: Option<Usd>) {
        self.usage += usage;
        if let Some(cost) = cost {
            self.cost = Some(self.cost.map_or(cost, |sum| sum + cost));
        }
    }
}

/// Sums what runs spend, enforces a limit, and forwards everything to an observer.
pub struct Meter<'a> {
    observer: &'a dyn ProgressObserver,
    tokens: Option<u64>,
    cost: Option<Usd>,
    total: Mutex<Spending>,
}

impl<'a> Meter<'a> {
    /// Starts at zero. `tokens` and `cost` limit the sum in addition to what `observer` permits.
    pub fn new(observer: &'a dyn ProgressObserver, tokens: Option<u64>, cost: Option<Usd>) -> Self {
        Self { observer, tokens, cost, total: Mutex::default() }
    }

    /// The sum so far.
    pub fn total(&self) -> Spending {
        *self.total.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProgressObserver for Meter<'_> {
    fn stage(&self, text: &str) {
        self.observer.stage(text);
    }

    fn progress(&self, done: u64, total: u64) {
        self.observer.progress(done, total);
    }

    fn packed(&self, receipt: &RunReceipt) {
        self.observer.packed(receipt);
    }

    fn is_wanted(&self) -> bool {
        self.observer.is_wanted()
    }

    fn spent(&self, usage: Usage, cost: Option<Usd>) {
        self.total.lock().unwrap_or_else(PoisonError::into_inner).add(usage, cost);
        self.observer.spent(usage, cost);
    }

    fn unanswered(&self, max: Usage, cost: Option<Usd>) {
        self.total.lock().unwrap_or_else(PoisonError::into_inner).add(max, cost);
        self.observer.unanswered(max, cost);
    }

    fn may_spend(&self) -> bool {
        let total = self.total();
        let is_left = self.tokens.is_none_or(|limit| total.tokens() < limit)
            && self.cost.is_none_or(|limit| total.cost.unwrap_or_default() < limit);
        is_left && self.observer.may_spend()
    }
}
