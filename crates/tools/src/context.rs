//! What a call receives: the turn it belongs to, its budget, and who confirms it. Knows no tool.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use larder_models::price::Usd;
use larder_store::{StoreError, UserDocuments};
use larder_vault::layout::TurnPlace;
use larder_vault::{DocumentTime, Mode};
use tokio::time::Instant;

use larder_engine::Engine;
use larder_engine::executor::ProgressObserver;

/// What one call receives.
#[derive(Clone, Copy)]
pub struct ToolContext<'a> {
    /// Runs recipes, for tools that are runs of their own.
    pub engine: &'a Engine,
    /// The documents of the turn's user, and of no other user.
    pub documents: &'a UserDocuments,
    /// Where the turn's files will be stored.
    pub turn: &'a TurnPlace,
    /// The files that the turn has so far, by their path in its folder.
    pub draft_files: &'a BTreeMap<String, Vec<u8>>,
    /// What the user asked, byte for byte (R1-3.61).
    pub original_query: &'a str,
    /// Chat or code.
    pub mode: Mode,
    /// The moment of the call.
    pub now: DocumentTime,
    /// The folder that code mode works in.
    pub workspace: Option<&'a Path>,
    /// Confirms calls that need it.
    pub confirm: &'a dyn Confirm,
    /// Notified of what sub-runs do and of what they spend as they spend it: an abandoned call is paid for too.
    pub observer: &'a dyn ProgressObserver,
    /// Called before a permitted call with side effects is made; if it fails, the call is not made. After a crash, a resumed
    /// turn knows by that which calls not to repeat.
    pub begun: &'a (dyn Fn() -> Result<(), StoreError> + Sync),
    /// What may still be spent.
    pub budget: RemainingBudget,
}

/// What the turn may still spend; `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RemainingBudget {
    /// Tokens of prompts and replies.
    pub tokens: Option<u64>,
    /// Money, in US dollars.
    pub cost: Option<Usd>,
    /// When the turn must be done.
    pub deadline: Option<Instant>,
}

impl RemainingBudget {
    /// The remaining time, at most `max`.
    pub fn time(&self, max: Duration) -> Duration {
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        left.map_or(max, |left| left.min(max))
    }
}

/// Asks the user, or another responsible person, for confirmation.
pub trait Confirm: Send + Sync {
    /// Whether `tool` may do `what`, which is the call as people read it.
    fn confirm<'a>(&'a self, tool: &'a str, what: &'a str) -> BoxFuture<'a, bool>;
}

/// Confirms nothing, since there is nobody to ask.
#[derive(Debug, Clone, Copy, Default)]
pub struct DenyAll;

impl Confirm for DenyAll {
    fn confirm<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, bool> {
        async { false }.boxed()
    }
}
