//! A run from the outside: why it is started, what it returns, how it fails, who observes it and what it spends.
//!
//! Data and traits only. Everything that prepares, condenses or executes builds on this, so nothing here may name it.

mod error;
mod meter;
mod observer;
mod outcome;

use futures::future::BoxFuture;
use larder_core::recipe::Recipe;

pub use self::error::{AroundFailure, RunError, WithheldFallback};
pub use self::error::{class, class_of_model};
pub(crate) use self::error::{is_open, used_nothing};
pub use self::meter::{Meter, ModelSpending, RemainingBudget, Spending, SpendingByModel};
pub use self::observer::{NoopObserver, ProgressObserver, SpendingOnly};
pub(crate) use self::outcome::signals;
pub use self::outcome::{
    CallReceipt, CondensingTally, FailedCall, PromptSection, QuotedAnswer, ResolvedCitation, RunOutcome,
    RunReceipt, ToolReceipt,
};
use crate::inputs::RunInput;

/// Why a recipe is run, which determines what happens if its model fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunKind {
    /// A caller is waiting for the answer.
    Answer,
    /// The answer is quoted from the documents; no model is called.
    Quoting,
    /// The answer decides what another run reads.
    Planning {
        /// When the waiting run goes on without it; `None` waits as long as the recipe says.
        until: Option<tokio::time::Instant>,
    },
    /// The answer condenses a chunk for another run. Nothing in it is condensed itself (C39).
    Condensing {
        /// When the waiting run falls back to condensing by rule; `None` waits without limit.
        until: Option<tokio::time::Instant>,
    },
}

impl RunKind {
    /// Whether rules can do the same job. Such a run is abandoned at its timeout, tries no other layer and raises no
    /// intervention.
    pub(crate) const fn has_substitute(self) -> bool {
        matches!(self, Self::Planning { .. } | Self::Condensing { .. })
    }

    /// When the waiting run goes on without the answer.
    pub(crate) const fn until(self) -> Option<tokio::time::Instant> {
        match self {
            Self::Planning { until } | Self::Condensing { until } => until,
            Self::Answer | Self::Quoting => None,
        }
    }
}

/// Runs recipes. Condensing by a model goes through this trait, because a run may condense and condensing runs.
pub(crate) trait RunRecipe: Sync {
    /// Runs a recipe and records the run.
    fn run_recipe<'a>(
        &'a self,
        recipe: &'a Recipe,
        input: &'a RunInput,
        observer: &'a dyn ProgressObserver,
        kind: RunKind,
    ) -> BoxFuture<'a, Result<RunOutcome, RunError>>;
}
