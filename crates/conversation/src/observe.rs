//! Observers of the run behind a reply.

use std::sync::{Mutex, PoisonError};

use larder_core::output::OutputEvent;
use larder_engine::executor::{ProgressObserver, RemainingBudget, RunReceipt};
use larder_text::price::Usd;
use larder_text::usage::Usage;

/// Forwards everything, and notes in which pieces the text is passed on.
pub(crate) struct Pieces<'a> {
    observer: &'a dyn ProgressObserver,
    lengths: Mutex<Vec<usize>>,
}

impl<'a> Pieces<'a> {
    /// Nothing has been passed on yet.
    pub(crate) fn new(observer: &'a dyn ProgressObserver) -> Self {
        Self { observer, lengths: Mutex::default() }
    }

    /// The lengths of the pieces, in bytes.
    pub(crate) fn into_lengths(self) -> Vec<usize> {
        self.lengths.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn lengths(&self) -> std::sync::MutexGuard<'_, Vec<usize>> {
        self.lengths.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProgressObserver for Pieces<'_> {
    fn stage(&self, text: &str) {
        self.observer.stage(text);
    }
    fn packed(&self, receipt: &RunReceipt) {
        self.observer.packed(receipt);
    }
    fn spent(&self, model: &str, usage: Usage, cost: Option<Usd>) {
        self.observer.spent(model, usage, cost);
    }
    fn unanswered(&self, max: Usage, cost: Option<Usd>) {
        self.observer.unanswered(max, cost);
    }
    fn may_spend(&self) -> bool {
        self.observer.may_spend()
    }
    fn room(&self) -> RemainingBudget {
        self.observer.room()
    }
    fn is_wanted(&self) -> bool {
        self.observer.is_wanted()
    }
    fn wants_output(&self) -> bool {
        self.observer.wants_output()
    }
    fn output(&self, event: &OutputEvent) {
        if let OutputEvent::Reply(text) = event {
            self.lengths().push(text.len());
        }
        self.observer.output(event);
    }
    fn restarted(&self) {
        self.lengths().clear();
        self.observer.restarted();
    }
    fn takes_restarts(&self) -> bool {
        self.observer.takes_restarts()
    }
}
