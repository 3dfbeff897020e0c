//! Vectors in a turn: that of its query before it gathers, and those of what turns say once it has ended. Without them
//! a turn goes by words alone, so a model that fails costs nothing else.

use std::sync::Arc;

use larder_models::chat::ModelError;
use larder_store::TextVector;

use super::Turns;
use super::machine::Machine;
use larder_engine::embedding::{Embedder, EmbeddingError};
use larder_engine::executor::Observer;
use larder_retrieval::{TraceEntry, has_search_terms};

/// Newest turns whose missing vectors are made after a turn: enough for those whose model was out for a while.
const NEWEST: u32 = 64;

impl Machine<'_> {
    /// The query as a vector, where the settings name a model for it. That the model failed is told, and stands in the
    /// receipts.
    pub(super) async fn query_vector(&mut self) -> Option<TextVector> {
        let turns = self.turns;
        let name = turns.embedding.as_deref()?;
        // Where a limit is reached, the next run says so.
        if self.ceiling().is_some() || !has_search_terms(self.resolved()) {
            return None;
        }
        let (query, meter) = (self.resolved().to_owned(), Arc::clone(&self.meter));
        let asked = async {
            let embedder = Embedder::open(&turns.engine.models, name)?;
            embedder.query(&query, &*meter).await
        };
        let made = match self.until {
            None => Ok(asked.await),
            Some(until) => tokio::time::timeout_at(until, asked).await,
        };
        self.settle_meter();
        // Where the turn is out of time, the next call says so.
        match made.ok()? {
            Ok(vector) => Some(vector),
            Err(error) => {
                self.tell_without_vector(name, &error);
                None
            }
        }
    }

    fn tell_without_vector(&mut self, name: &str, error: &ModelError) {
        let why = format!("only words were searched, since {name} made no vector of the query: {error}");
        self.warn(why.clone());
        let considered = TraceEntry {
            document: String::new(),
            kind: "vector".to_owned(),
            score: 0.0,
            used: false,
            tokens: 0,
            why,
        };
        self.state.considered.extend(serde_json::to_value(considered));
    }
}

impl Turns {
    /// Makes the vectors that the newest turns up to this one lack, where the settings name a model for it; gives how
    /// many. `observer` is told what that takes.
    ///
    /// # Errors
    /// The model cannot be had or fails, or the index fails. The turns are as they were, and are found by their words.
    pub async fn embed(&self, number: u32, observer: &dyn Observer) -> Result<u64, EmbeddingError> {
        let Some(name) = self.embedding.as_deref() else { return Ok(0) };
        let embedder = Embedder::open(&self.engine.models, name)?;
        embedder.fill(&self.documents, number.saturating_sub(NEWEST - 1)..=number, observer).await
    }
}
