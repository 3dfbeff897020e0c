//! What an engine reports to metrics: every finished run, and every text condensed outside a run. Contains sizes and
//! outcomes, never any text (C104). Knows no metrics library.

use std::time::Duration;

use larder_core::pack::Rendition;
use larder_core::policy::BudgetStatus;

/// A text that was sent in a smaller rendition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReducedText {
    /// The rendition that was sent.
    pub to: Rendition,
    /// Tokens of the original.
    pub before: usize,
    /// Tokens of the rendition.
    pub after: usize,
}

/// A run that ended, with or without an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunReport {
    /// The result of the budget check; `None` if the run ended before it.
    pub status: Option<BudgetStatus>,
    /// Whether a prompt was sent over budget, which must never happen.
    pub violates: bool,
    /// The texts of the last prompt that were reduced; empty if no prompt was sent.
    pub shrunk: Vec<ReducedText>,
    /// Time spent deciding and condensing, over all prompts of the run.
    pub packing: Duration,
}

/// Receives reports from an engine, for all its users.
pub trait RunMetricsSink: Send + Sync {
    /// A run has ended. Called once per run.
    fn run_ended(&self, report: &RunReport);
    /// A text was condensed outside a run.
    fn text_condensed(&self, reduced: ReducedText, took: Duration);
}

/// Discards everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoopSink;

impl RunMetricsSink for NoopSink {
    fn run_ended(&self, _: &RunReport) {}
    fn text_condensed(&self, _: ReducedText, _: Duration) {}
}
