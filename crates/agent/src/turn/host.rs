//! State shared by the turns of all users, opened once from the settings: documents, tools, limits. Used by both the
//! command line and the server.

use std::sync::Arc;

use larder_core::recipe::Mode;
use larder_models::price::Usd;
use larder_store::{Documents, Store, StoreError};
use larder_vault::TurnStatus;

use super::{TurnError, TurnOutcome, Turns, summarize};
use larder_engine::Engine;
use larder_engine::config::Config;
use larder_engine::executor::{Meter, ModelSet, ProgressObserver};
use larder_engine::settings::TurnLimits;
use larder_tools::{Confirm, ToolBox, ToolError};

/// Why turns cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The documents cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The tools cannot be used as the settings want them.
    #[error(transparent)]
    Tools(#[from] ToolError),
}

/// Documents, tools and limits of the turns of all users. Cheap to clone.
#[derive(Clone)]
pub struct TurnHost {
    /// The documents.
    pub documents: Documents,
    /// What turns may call.
    pub tools: Arc<ToolBox>,
    /// How much a turn may do.
    pub limits: TurnLimits,
    /// The embedding model by which turns gather, by its name in the table.
    pub embedding: Option<String>,
}

impl TurnHost {
    /// Opens the configured documents, and completes operations that a crash interrupted.
    ///
    /// # Errors
    /// The place cannot be used, or storage fails.
    pub fn documents(store: &Store, config: &Config) -> Result<Documents, StoreError> {
        let documents = Documents::open(store, &config.document_place())?;
        documents.recover()?;
        Ok(documents)
    }

    /// Opens documents and tools; returns with them a message for each MCP server that cannot be reached.
    ///
    /// # Errors
    /// As [`documents`](Self::documents), or a setting of the tools cannot be used.
    pub async fn open(store: &Store, config: &Config) -> Result<(Self, Vec<String>), HostError> {
        let documents = Self::documents(store, config)?;
        let mut tools = ToolBox::new(&config.tools())?;
        let problems = tools.connect().await;
        let embedding = config.embedding().map(str::to_owned);
        let host = Self { documents, tools: Arc::new(tools), limits: config.turn_limits(), embedding };
        Ok((host, problems))
    }

    /// The turns of the user whose store the engine uses.
    ///
    /// # Errors
    /// The user's documents cannot be opened.
    pub fn turns(&self, engine: Engine, confirm: Arc<dyn Confirm>) -> Result<Turns, StoreError> {
        let documents = self.documents.user(engine.store.user())?;
        let (tools, embedding) = (Arc::clone(&self.tools), self.embedding.clone());
        Ok(Turns { engine, documents, tools, limits: self.limits, embedding, confirm })
    }
}

impl Turns {
    /// Every model that a turn may call: those of all layers, and the embedding model.
    pub fn reach(&self) -> ModelSet {
        let table = self.engine.models.table();
        let mut reach = self.reach_of_vectors();
        for (layer, _) in table.layers() {
            for mode in [None, Some(Mode::Code)] {
                reach.add_layer(table, layer, mode);
            }
        }
        reach
    }

    /// Every model that [`conclude`](Self::conclude) may ask.
    pub fn reach_of_conclusion(&self) -> ModelSet {
        let mut reach = self.reach_of_vectors();
        for mode in [Mode::Chat, Mode::Code] {
            if let Ok(recipe) = self.engine.find(summarize::RECIPE, Some(mode)) {
                reach.join(self.engine.reachable_models(recipe, Some(mode)));
            }
        }
        reach
    }

    fn reach_of_vectors(&self) -> ModelSet {
        let mut reach = ModelSet::default();
        if let Some(name) = &self.embedding {
            reach.add(self.engine.models.table(), name);
        }
        reach
    }

    /// Summarizes an answered turn (C5), and creates missing vectors for it and the turns before it. Nothing more is
    /// spent on a turn that has reached a limit; the beginning of its answer remains its summary. `observer` is
    /// notified of all spending. Failed vectors are only logged: the next turn creates them.
    ///
    /// # Errors
    /// As [`summarize`](Self::summarize).
    pub async fn conclude(
        &self,
        outcome: &TurnOutcome,
        observer: &dyn ProgressObserver,
    ) -> Result<(), TurnError> {
        if are_reached(&self.limits, outcome) {
            return Ok(());
        }
        let left =
            self.limits.tokens.map(|limit| limit.saturating_sub(outcome.usage.input + outcome.usage.output));
        let spent = outcome.cost.unwrap_or_default().picos();
        let money = self.limits.cost.map(|limit| Usd::from_picos(limit.picos().saturating_sub(spent)));
        let meter = Meter::new(observer, left, money);
        let summarized = match outcome.status {
            TurnStatus::Complete => self.summarize(outcome.turn, &meter).await.map(drop),
            _ => Ok(()),
        };
        if let Err(error) = self.embed(outcome.turn, &meter).await {
            tracing::warn!(%error, turn = outcome.turn, "no vectors were created for the newest turns");
        }
        summarized
    }
}

/// Whether a turn has reached one of its limits, so that nothing more is spent on it.
fn are_reached(limits: &TurnLimits, outcome: &TurnOutcome) -> bool {
    let tokens = outcome.usage.input.saturating_add(outcome.usage.output);
    let millis = limits.time.map(|time| time.as_millis());
    limits.tokens.is_some_and(|limit| tokens >= limit)
        || limits.cost.is_some_and(|limit| outcome.cost.unwrap_or_default() >= limit)
        || millis.is_some_and(|limit| u128::from(outcome.latency_ms) >= limit)
}
