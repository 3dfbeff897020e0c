//! State shared by the turns of all users, opened once from the settings: documents, tools, limits. Used by both the
//! command line and the server.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use larder_core::recipe::Mode;
use larder_store::{Documents, Store, StoreError};

use super::Turns;
use larder_engine::Engine;
use larder_engine::config::Config;
use larder_engine::executor::ModelSet;
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
    pub fn open<'a>(
        store: &'a Store,
        config: &'a Config,
    ) -> BoxFuture<'a, Result<(Self, Vec<String>), HostError>> {
        async move {
            let documents = Self::documents(store, config)?;
            let mut tools = ToolBox::new(&config.tools())?;
            let problems = tools.connect().await;
            let embedding = config.embedding().map(str::to_owned);
            let host = Self { documents, tools: Arc::new(tools), limits: config.turn_limits(), embedding };
            Ok((host, problems))
        }
        .boxed()
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
        let mut reach = ModelSet::default();
        if let Some(name) = &self.embedding {
            reach.add(table, name);
        }
        for (layer, _) in table.layers() {
            for mode in [None, Some(Mode::Code)] {
                reach.add_layer(table, layer, mode);
            }
        }
        reach
    }
}
