//! What a run has come to so far, and what it may still spend. Knows no prompt.

use std::time::{Duration, Instant};

use larder_core::output::{GateFailure, GateResult};
use larder_core::recipe::{Layer, Recipe};
use larder_models::chat::Usage;
use larder_models::price::Usd;
use larder_store::RunId;

use super::record::Originals;
use super::{ModelCandidate, ProgressObserver, RunError, RunKind, RunReceipt, call_of, listed};
use crate::condensing::SummarizerBudget;

/// What a run has come to so far.
pub(super) struct Progress<'a> {
    pub(super) recipe: &'a Recipe,
    pub(super) purpose: RunKind,
    pub(super) run_id: RunId,
    pub(super) started: Instant,
    pub(super) usage: Usage,
    pub(super) cost: Option<Usd>,
    pub(super) calls: u32,
    pub(super) receipt: Option<RunReceipt>,
    /// How long packing took so far.
    pub(super) packing: Duration,
    pub(super) originals: Originals,
    pub(super) answer: Option<String>,
    pub(super) gates: GateResult,
    pub(super) layer: Layer,
    /// What the run may spend on condensing, whatever it repeats.
    pub(super) allowance: SummarizerBudget<'a>,
}

impl Progress<'_> {
    /// Counts a call that was answered.
    pub(super) fn charge(
        &mut self,
        candidate: &ModelCandidate,
        usage: Usage,
        observer: &dyn ProgressObserver,
    ) {
        let cost = candidate.spec.prices.as_ref().map(|prices| prices.cost(&usage).total);
        self.calls += 1;
        self.usage += usage;
        if let Some(cost) = cost {
            self.cost = Some(self.cost.map_or(cost, |sum| sum + cost));
        }
        observer.spent(usage, cost);
    }

    /// Counts a call whose end is not known: it may have taken all that was meant for it.
    pub(super) fn leave_open(&self, candidate: &ModelCandidate, observer: &dyn ProgressObserver) {
        let most = call_of(self.recipe);
        observer.unanswered(most, candidate.spec.prices.as_ref().map(|prices| prices.cost(&most).total));
    }

    /// Fails if no further call may be made.
    pub(super) fn require_means(
        &self,
        observer: &dyn ProgressObserver,
        failures: &[GateFailure],
    ) -> Result<(), RunError> {
        if observer.may_spend() {
            return Ok(());
        }
        let (recipe, failures) = (self.recipe.id(), listed(failures));
        Err(RunError::Spent { recipe, failures, run_id: self.run_id.clone() })
    }
}
