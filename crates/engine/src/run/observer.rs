//! Observers of a run: progress for the waiting caller, and permission to spend. Knows no run.

use larder_core::output::OutputEvent;
use larder_models::chat::Usage;
use larder_models::price::Usd;

use super::meter::RemainingBudget;
use super::outcome::{CallReceipt, RunReceipt};

/// Receives a run's progress and decides whether it may spend more.
pub trait ProgressObserver: Send + Sync {
    /// A stage begins.
    fn stage(&self, text: &str);
    /// `done` of `total` bytes of the current stage are processed.
    fn progress(&self, _done: u64, _total: u64) {}
    /// A prompt is packed and about to be sent.
    fn packed(&self, receipt: &RunReceipt);
    /// A call of a tool by the run's model was carried out, or refused. Reported even if the run fails later.
    fn called(&self, _call: &CallReceipt) {}
    /// A model call was answered: one of the run itself, or one that condensed for it. Reported even if the run fails
    /// later. `model` is its name in the table; `cost` is `None` for models without a price.
    fn spent(&self, _model: &str, _usage: Usage, _cost: Option<Usd>) {}
    /// A model call timed out. It may nevertheless have been processed and billed, for at most `max` tokens.
    fn unanswered(&self, _max: Usage, _cost: Option<Usd>) {}
    /// Whether more may be spent. Queried before every call except the first of a run, which its caller decides, and
    /// except calls that replace one that certainly cost nothing.
    fn may_spend(&self) -> bool {
        true
    }
    /// What a further call may take at most, its prompt and all that it may answer. A call that may take more is not made.
    fn room(&self) -> RemainingBudget {
        RemainingBudget::default()
    }
    /// Whether the answer is passed on by [`output`](Self::output) while the model writes it. What a user has read is not
    /// asked for again: an answer that fails its gates after that is returned with what is wrong with it (C69), unless it
    /// lacks a required tag and the caller [takes a new start](Self::takes_restarts).
    fn wants_output(&self) -> bool {
        false
    }
    /// The next piece of the answer.
    fn output(&self, _event: &OutputEvent) {}
    /// What was passed on so far is void: the answer is asked for again, or another model answers.
    fn restarted(&self) {}
    /// Whether an answer without a required tag is asked for again though it was passed on: its reader can take text back.
    fn takes_restarts(&self) -> bool {
        false
    }
    /// Whether a caller is still waiting. Reading many files stops soon after this becomes false.
    fn is_wanted(&self) -> bool {
        true
    }
}

/// Ignores progress and permits all spending.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoopObserver;

impl ProgressObserver for NoopObserver {
    fn stage(&self, _: &str) {}
    fn packed(&self, _: &RunReceipt) {}
}

/// Forwards spending and nothing else: the progress of a run behind another is not the caller's concern, but its price is.
pub struct SpendingOnly<'a>(pub &'a dyn ProgressObserver);

impl ProgressObserver for SpendingOnly<'_> {
    fn stage(&self, _: &str) {}

    fn packed(&self, _: &RunReceipt) {}

    fn spent(&self, model: &str, usage: Usage, cost: Option<Usd>) {
        self.0.spent(model, usage, cost);
    }

    fn unanswered(&self, max: Usage, cost: Option<Usd>) {
        self.0.unanswered(max, cost);
    }

    fn may_spend(&self) -> bool {
        self.0.may_spend()
    }

    fn room(&self) -> RemainingBudget {
        self.0.room()
    }
}
