//! What a call is given: whose turn it is, what it may spend, whom it must ask. Knows no tool.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use larder_models::price::Usd;
use larder_store::{StoreError, UserDocuments};
use larder_vault::layout::TurnPlace;
use larder_vault::{Mode, Timestamp};
use tokio::time::Instant;

use larder_engine::Engine;
use larder_engine::executor::Observer;

/// What one call is given.
#[derive(Clone, Copy)]
pub struct ToolContext<'a> {
    /// Runs recipes, for tools that are runs of their own.
    pub engine: &'a Engine,
    /// The documents of the user whose turn it is, and of nobody else.
    pub documents: &'a UserDocuments,
    /// Where the turn's files will stand.
    pub turn: &'a TurnPlace,
    /// The files that the turn has so far, by their path in its folder.
    pub draft_files: &'a BTreeMap<String, Vec<u8>>,
    /// What the user asked, byte for byte (R1-3.61).
    pub original_query: &'a str,
    /// Chat or code.
    pub mode: Mode,
    /// The moment of the call.
    pub now: Timestamp,
    /// The folder that code mode works in.
    pub workspace: Option<&'a Path>,
    /// Whom to ask.
    pub confirm: &'a dyn Confirm,
    /// Told what sub-runs do, and what they take as they take it: a call that is given up was paid for all the same.
    pub observer: &'a dyn Observer,
    /// Told that a call which may change something was let through and is now made; if it fails, the call is not made.
    /// After a crash, whoever goes on with the turn knows by that which calls not to make again.
    pub begun: &'a (dyn Fn() -> Result<(), StoreError> + Sync),
    /// What may still be spent.
    pub budget: RemainingBudget,
}

/// What the turn may still spend; nothing stated is no limit.
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
    /// Time that is left, at most `most`.
    pub fn time(&self, most: Duration) -> Duration {
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        left.map_or(most, |left| left.min(most))
    }
}

/// Asks whoever is responsible.
pub trait Confirm: Send + Sync {
    /// Whether `tool` may do `what`, which is the call as people read it.
    fn confirm<'a>(&'a self, tool: &'a str, what: &'a str) -> BoxFuture<'a, bool>;
}

/// There is nobody to ask, so nothing that must be asked for is done.
#[derive(Debug, Clone, Copy, Default)]
pub struct DenyAll;

impl Confirm for DenyAll {
    fn confirm<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, bool> {
        async { false }.boxed()
    }
}
