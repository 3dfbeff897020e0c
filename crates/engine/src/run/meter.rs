//! Sums what runs spend, call by call, so that failed and cancelled runs are charged too. Knows no run.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use larder_core::output::OutputEvent;
use larder_models::chat::Usage;
use larder_models::price::Usd;
use tokio::time::Instant;

use super::observer::ProgressObserver;
use super::outcome::{CallReceipt, RunReceipt};

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

/// What each model used, in the order in which they were first asked.
#[derive(Debug, Clone, Default)]
pub struct SpendingByModel(Vec<ModelSpending>);

/// What one model used.
#[derive(Debug, Clone)]
pub struct ModelSpending {
    /// The model's name in the table.
    pub model: String,
    /// Its calls.
    pub calls: u32,
    /// Tokens and price of these calls.
    pub spent: Spending,
}

impl SpendingByModel {
    pub(crate) fn add(&mut self, model: &str, usage: Usage, cost: Option<Usd>) {
        match self.0.iter_mut().find(|one| one.model == model) {
            Some(one) => {
                one.calls += 1;
                one.spent.add(usage, cost);
            }
            None => {
                let spent = Spending { usage, cost };
                self.0.push(ModelSpending { model: model.to_owned(), calls: 1, spent });
            }
        }
    }

    /// The models, in order.
    pub fn iter(&self) -> impl Iterator<Item = &ModelSpending> {
        self.0.iter()
    }
}

/// What is left of limits; `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RemainingBudget {
    /// Tokens of prompts and replies.
    pub tokens: Option<u64>,
    /// Money, in US dollars.
    pub cost: Option<Usd>,
    /// When time runs out.
    pub deadline: Option<Instant>,
}

impl RemainingBudget {
    /// The remaining time, at most `max`.
    pub fn time(&self, max: Duration) -> Duration {
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        left.map_or(max, |left| left.min(max))
    }

    /// What is left of it after `spent`.
    #[must_use]
    pub fn less(&self, spent: &Spending) -> Self {
        let cost = spent.cost.unwrap_or_default().picos();
        Self {
            tokens: self.tokens.map(|tokens| tokens.saturating_sub(spent.tokens())),
            cost: self.cost.map(|left| Usd::from_picos(left.picos().saturating_sub(cost))),
            deadline: self.deadline,
        }
    }

    /// Of each limit the smaller.
    fn least(&self, other: Self) -> Self {
        fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            one.into_iter().chain(other).min()
        }
        Self {
            tokens: least(self.tokens, other.tokens),
            cost: least(self.cost, other.cost),
            deadline: least(self.deadline, other.deadline),
        }
    }

    /// Which limit a call exceeds that takes so many tokens, or so much money, in words.
    pub fn exceeded_by(&self, tokens: u64, cost: Option<Usd>) -> Option<String> {
        if let Some(left) = self.tokens.filter(|left| tokens > *left) {
            return Some(format!("it may take {tokens} tokens, and {left} are left"));
        }
        let left = self.cost.filter(|left| cost.is_some_and(|cost| cost > *left))?;
        Some(format!("it may cost {} US dollars, and {left} are left", cost.unwrap_or_default()))
    }

    /// Why nothing is left, in words.
    pub fn exhausted(&self) -> Option<&'static str> {
        if self.tokens == Some(0) {
            Some("its tokens are used up")
        } else if self.cost == Some(Usd::default()) {
            Some("its money is used up")
        } else {
            self.deadline.filter(|deadline| Instant::now() >= *deadline).map(|_| "its time is up")
        }
    }
}

/// Sums what runs spend, enforces a limit, and forwards everything to an observer.
pub struct Meter<'a> {
    observer: &'a dyn ProgressObserver,
    limits: RemainingBudget,
    total: Mutex<Spending>,
    by_model: Mutex<SpendingByModel>,
    is_strict: bool,
}

impl<'a> Meter<'a> {
    /// Starts at zero. `tokens` and `cost` limit the sum in addition to what `observer` permits.
    pub fn new(observer: &'a dyn ProgressObserver, tokens: Option<u64>, cost: Option<Usd>) -> Self {
        Self::within(observer, RemainingBudget { tokens, cost, deadline: None })
    }

    /// The same with a deadline, too.
    pub fn within(observer: &'a dyn ProgressObserver, limits: RemainingBudget) -> Self {
        Self { observer, limits, total: Mutex::default(), by_model: Mutex::default(), is_strict: false }
    }

    /// The same where a call that may exceed what its limits leave is not made.
    #[must_use]
    pub const fn strict(mut self) -> Self {
        self.is_strict = true;
        self
    }

    /// What its limits leave.
    pub fn left(&self) -> RemainingBudget {
        self.limits.less(&self.total())
    }

    /// The sum so far.
    pub fn total(&self) -> Spending {
        *self.total.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What each model used so far, calls with an unknown outcome not counted.
    pub fn by_model(&self) -> SpendingByModel {
        self.by_model.lock().unwrap_or_else(PoisonError::into_inner).clone()
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

    fn called(&self, call: &CallReceipt) {
        self.observer.called(call);
    }

    fn is_wanted(&self) -> bool {
        self.observer.is_wanted()
    }

    fn wants_output(&self) -> bool {
        self.observer.wants_output()
    }

    fn output(&self, event: &OutputEvent) {
        self.observer.output(event);
    }

    fn restarted(&self) {
        self.observer.restarted();
    }

    fn takes_restarts(&self) -> bool {
        self.observer.takes_restarts()
    }

    fn spent(&self, model: &str, usage: Usage, cost: Option<Usd>) {
        self.total.lock().unwrap_or_else(PoisonError::into_inner).add(usage, cost);
        self.by_model.lock().unwrap_or_else(PoisonError::into_inner).add(model, usage, cost);
        self.observer.spent(model, usage, cost);
    }

    fn unanswered(&self, max: Usage, cost: Option<Usd>) {
        self.total.lock().unwrap_or_else(PoisonError::into_inner).add(max, cost);
        self.observer.unanswered(max, cost);
    }

    fn room(&self) -> RemainingBudget {
        match self.is_strict {
            true => self.left().least(self.observer.room()),
            false => self.observer.room(),
        }
    }

    fn may_spend(&self) -> bool {
        self.left().exhausted().is_none() && self.observer.may_spend()
    }
}
