//! What is done behind a committed turn: its summary (C5), and vectors for it and the turns before it. The jobs are
//! committed with the turn; the worker of the store's queue does them, and each can be repeated at any time.

use futures::future::{BoxFuture, FutureExt};
use larder_core::recipe::Mode;
use larder_models::price::Usd;
use larder_store::{KeyId, NewJob, UserDocuments};
use larder_vault::TurnStatus;
use serde::{Deserialize, Serialize};

use super::{TurnError, Turns, summarize};
use larder_engine::Engine;
use larder_engine::embedding::EmbeddingError;
use larder_engine::executor::{Meter, ModelSet, ProgressObserver, RemainingBudget, Spending};
use larder_engine::settings::TurnLimits;

/// The job that summarizes a turn.
pub const SUMMARIZE: &str = "summarize_turn";
/// The job that creates missing vectors of the newest turns.
pub const EMBED: &str = "embed_turns";

/// What a job behind a turn needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AfterTurn {
    /// The turn's number.
    pub turn: u32,
    /// Tokens and money that the limits of the turn leave for it.
    pub tokens: Option<u64>,
    /// See `tokens`.
    pub cost: Option<Usd>,
    /// The key whose budget pays.
    pub key: Option<KeyId>,
    /// The beginning of the answer, which is the summary until a model writes one.
    pub interim: Option<String>,
}

impl AfterTurn {
    /// What its turn's limits leave.
    pub const fn left(&self) -> RemainingBudget {
        RemainingBudget { tokens: self.tokens, cost: self.cost, deadline: None }
    }

    /// The same after an attempt has spent this.
    #[must_use]
    pub fn less(&self, spent: &Spending) -> Self {
        let RemainingBudget { tokens, cost, .. } = self.left().less(spent);
        Self { tokens, cost, ..self.clone() }
    }
}

/// Why a job behind a turn failed.
#[derive(Debug, thiserror::Error)]
pub enum BackgroundError {
    /// The turn was not summarized.
    #[error(transparent)]
    Summary(#[from] TurnError),
    /// No vectors were created.
    #[error(transparent)]
    Vectors(#[from] EmbeddingError),
}

/// A turn that is about to be committed.
pub(super) struct EndedTurn<'a> {
    pub number: u32,
    pub session: Option<&'a str>,
    pub status: TurnStatus,
    pub spent: Spending,
    pub millis: u64,
    pub interim: &'a str,
}

impl Turns {
    /// The jobs that a turn leaves. Nothing more is spent on one that has reached a limit.
    pub(super) fn jobs_after(&self, turn: &EndedTurn<'_>) -> Vec<NewJob> {
        if are_reached(&self.limits, turn) {
            return Vec::new();
        }
        let spent = turn.spent.cost.unwrap_or_default().picos();
        let mut after = AfterTurn {
            turn: turn.number,
            tokens: self.limits.tokens.map(|limit| limit.saturating_sub(turn.spent.tokens())),
            cost: self.limits.cost.map(|limit| Usd::from_picos(limit.picos().saturating_sub(spent))),
            key: self.engine.payer.clone(),
            interim: None,
        };
        if turn.status != TurnStatus::Complete {
            return self.embedding.iter().map(|_| vectors(&after)).collect();
        }
        after.interim = Some(turn.interim.to_owned());
        vec![NewJob {
            kind: SUMMARIZE,
            key: format!("{SUMMARIZE} {}", turn.number),
            session: turn.session.map(str::to_owned),
            payload: serde_json::to_value(&after).unwrap_or_default(),
            after: 0,
        }]
    }
}

/// The job that creates vectors up to a turn. One that waits covers the newest.
fn vectors(after: &AfterTurn) -> NewJob {
    let payload = serde_json::to_value(after).unwrap_or_default();
    NewJob { kind: EMBED, key: EMBED.to_owned(), session: None, payload, after: 0 }
}

/// What jobs behind the turns of one user work with.
pub struct Background {
    /// Recipes and models.
    pub engine: Engine,
    /// The user's vault.
    pub documents: UserDocuments,
    /// The embedding model; without one, no vectors are created.
    pub embedding: Option<String>,
}

impl Background {
    /// Every model that a job of this kind may ask.
    pub fn reach(&self, kind: &str) -> ModelSet {
        let mut reach = ModelSet::default();
        if kind == SUMMARIZE {
            for mode in [Mode::Chat, Mode::Code] {
                if let Ok(recipe) = self.engine.find(summarize::RECIPE, Some(mode)) {
                    reach.join(self.engine.reachable_models(recipe, Some(mode)));
                }
            }
        }
        if let Some(name) = self.embedding.as_ref().filter(|_| kind == EMBED) {
            reach.add(self.engine.models.table(), name);
        }
        reach
    }

    /// Does a job of one of these kinds, and returns the one that follows it. `observer` is notified of all spending.
    ///
    /// # Errors
    /// The turn does not exist, or a model, its answer or the store fails. The documents are unchanged then.
    pub fn work<'a>(
        &'a self,
        kind: &'a str,
        after: &'a AfterTurn,
        observer: &'a dyn ProgressObserver,
    ) -> BoxFuture<'a, Result<Option<NewJob>, BackgroundError>> {
        async move {
            let meter = Meter::new(observer, after.tokens, after.cost);
            if kind == EMBED {
                self.embed(after.turn, &meter).await?;
                return Ok(None);
            }
            self.summarize(after.turn, after.interim.as_deref(), &meter).await?;
            let left = AfterTurn { interim: None, ..after.less(&meter.total()) };
            Ok(self.embedding.as_ref().map(|_| vectors(&left)))
        }
        .boxed()
    }
}

/// Whether a turn has reached one of its limits.
fn are_reached(limits: &TurnLimits, turn: &EndedTurn<'_>) -> bool {
    let millis = limits.time.map(|time| time.as_millis());
    limits.tokens.is_some_and(|limit| turn.spent.tokens() >= limit)
        || limits.cost.is_some_and(|limit| turn.spent.cost.unwrap_or_default() >= limit)
        || millis.is_some_and(|limit| u128::from(turn.millis) >= limit)
}
