//! What a call receives: the turn it belongs to, its budget, and who confirms it. Knows no tool.

use std::collections::BTreeMap;
use std::path::Path;

use futures::future::{BoxFuture, FutureExt};
use larder_retrieval::{Grant, Retrieval};
use larder_store::{StoreError, UserDocuments};
use larder_text::tokens::Counter;
use larder_vault::layout::TurnPlace;
use larder_vault::{DocumentTime, Intent, Mode, VaultPath};

use larder_engine::Engine;
use larder_engine::executor::{ProgressObserver, RemainingBudget};

/// The number in [`ToolContext::turn`] of a call that belongs to no turn.
pub const NO_TURN: u32 = 0;

/// What one call receives.
#[derive(Clone, Copy)]
pub struct ToolContext<'a> {
    /// Runs recipes, for tools that are runs themselves.
    pub engine: &'a Engine,
    /// The documents of the turn's user only.
    pub documents: &'a UserDocuments,
    /// Counts the tokens of what retrieval considers.
    pub counter: &'a Counter,
    /// Where the turn's files will be stored; its number is [`NO_TURN`] where a recipe calls outside turns.
    pub turn: &'a TurnPlace,
    /// The files that the turn has so far, by their path in its folder.
    pub draft_files: &'a BTreeMap<String, Vec<u8>>,
    /// The user's query, byte for byte (R1-3.61).
    pub original_query: &'a str,
    /// What the turn is for, as its plan says; decides how long findings may be believed (R1-3.68).
    pub intent: Option<Intent>,
    /// The planned topic of the turn.
    pub topic: Option<&'a str>,
    /// Chat or code.
    pub mode: Mode,
    /// The moment of the call.
    pub now: DocumentTime,
    /// The folder that code mode works in.
    pub workspace: Option<&'a Path>,
    /// Confirms calls that need it.
    pub confirm: &'a dyn Confirm,
    /// Notified of the progress and spending of sub-runs as it happens: an abandoned call is paid for too.
    pub observer: &'a dyn ProgressObserver,
    /// Called before a permitted call with side effects; if it fails, the call is not made. After a crash, a resumed
    /// turn uses this to avoid repeating calls.
    pub begun: &'a (dyn Fn() -> Result<(), StoreError> + Sync),
    /// What may still be spent.
    pub budget: RemainingBudget,
}

impl ToolContext<'_> {
    /// The retrieval service, with the grant of tools (R1-1.3).
    pub(crate) fn retrieval(&self) -> Retrieval<'_> {
        Retrieval::new(self.documents, self.counter, self.now, Grant::Tools)
    }

    /// The document of the turn that the call belongs to, if it belongs to one.
    pub(crate) fn source(&self) -> Option<VaultPath> {
        (self.turn.number() != NO_TURN).then(|| self.turn.context())
    }
}

/// Asks the user, or another responsible person, for confirmation.
pub trait Confirm: Send + Sync {
    /// Whether `tool` may do `what`, a readable description of the call.
    fn confirm<'a>(&'a self, tool: &'a str, what: &'a str) -> BoxFuture<'a, bool>;
}

/// Denies everything, since there is no one to ask.
#[derive(Debug, Clone, Copy, Default)]
pub struct DenyAll;

impl Confirm for DenyAll {
    fn confirm<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, bool> {
        async { false }.boxed()
    }
}
