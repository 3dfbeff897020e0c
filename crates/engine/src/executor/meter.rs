//! What runs take, counted call by call, so that a run that fails or is given up is paid for too. Knows no run.

use std::sync::{Mutex, PoisonError};

use larder_models::chat::Usage;
use larder_models::price::Usd;

use super::outcome::{ProgressObserver, RunReceipt};

/// Tokens and their price.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spending {
    /// Tokens of all calls that were answered, and all that those may have taken whose end is not known.
    pub usage: Usage,
    /// Their price in US dollars, as far as prices are known.
    pub cost: Option<Usd>,
}

impl Spending {
    /// Tokens in and out.
    pub const fn tokens(&self) -> u64 {
        self.usage.input.saturating_add(self.usage.output)
    }

    /// What was taken after `earlier`, which is an older state of the same count.
    pub fn since(&self, earlier: &Self) -> Self {
        let (now, then) = (self.usage, earlier.usage);
        let usage = Usage {
            input: now.input.saturating_sub(then.input),
            cached_input: now.cached_input.saturating_sub(then.cached_input),
            cache_write: now.cache_write.saturating_sub(then.cache_write),
            output: now.output.saturating_sub(then.output),
            reasoning: now.reasoning.saturating_sub(then.reasoning),
        };
        let before = earlier.cost.unwrap_or_default().picos();
        let cost = self.cost.map(|cost| Usd::from_picos(cost.picos().saturating_sub(before)));
        Self { usage, cost }
    }

    fn add(&mut self, usage: Usage, cost: Option<Usd>) {
        self.usage += usage;
        if let Some(cost) = cost {
            self.cost = Some(self.cost.map_or(cost, |sum| sum + cost));
        }
    }
}

/// Counts what runs take, says when no more may be spent, and passes everything on to whoever listens.
pub struct Meter<'a> {
    listener: &'a dyn ProgressObserver,
    tokens: Option<u64>,
    cost: Option<Usd>,
    taken: Mutex<Spending>,
}

impl<'a> Meter<'a> {
    /// Counts from nothing, up to so many tokens and so many US dollars; without them, up to what the listener allows.
    pub fn new(listener: &'a dyn ProgressObserver, tokens: Option<u64>, cost: Option<Usd>) -> Self {
        Self { listener, tokens, cost, taken: Mutex::default() }
    }

    /// What was taken so far.
    pub fn taken(&self) -> Spending {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProgressObserver for Meter<'_> {
    fn stage(&self, text: &str) {
        self.listener.stage(text);
    }

    fn progress(&self, done: u64, total: u64) {
        self.listener.progress(done, total);
    }

    fn packed(&self, receipt: &RunReceipt) {
        self.listener.packed(receipt);
    }

    fn is_wanted(&self) -> bool {
        self.listener.is_wanted()
    }

    fn spent(&self, usage: Usage, cost: Option<Usd>) {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).add(usage, cost);
        self.listener.spent(usage, cost);
    }

    fn unanswered(&self, most: Usage, cost: Option<Usd>) {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).add(most, cost);
        self.listener.unanswered(most, cost);
    }

    fn may_spend(&self) -> bool {
        let taken = self.taken();
        let is_left = self.tokens.is_none_or(|limit| taken.tokens() < limit)
            && self.cost.is_none_or(|limit| taken.cost.unwrap_or_default() < limit);
        is_left && self.listener.may_spend()
    }
}

/// Tells what calls take and hears whether more may be spent, and nothing else: what a run does for another run is
/// nobody's business but its price.
pub(crate) struct Paid<'a>(pub(crate) &'a dyn ProgressObserver);

impl ProgressObserver for Paid<'_> {
    fn stage(&self, _: &str) {}

    fn packed(&self, _: &RunReceipt) {}

    fn spent(&self, usage: Usage, cost: Option<Usd>) {
        self.0.spent(usage, cost);
    }

    fn unanswered(&self, most: Usage, cost: Option<Usd>) {
        self.0.unanswered(most, cost);
    }

    fn may_spend(&self) -> bool {
        self.0.may_spend()
    }
}
