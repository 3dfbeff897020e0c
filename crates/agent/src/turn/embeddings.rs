//! Vectors in a turn: that of its query before gathering, and those of finished turns. Without them a turn is
//! gathered by words alone, so a failing model costs nothing else.

use std::sync::Arc;

use larder_engine::embedding::{Embedder, EmbeddingError};
use larder_engine::executor::ProgressObserver;
use larder_retrieval::{TraceEntry, has_search_terms};
use larder_store::TextVector;

use super::background::Background;
use super::phase::PhaseContext;

/// How many of the newest turns are checked for missing vectors after a turn: enough to cover a temporary outage of
/// the model.
const NEWEST: u32 = 64;

/// The query as a vector, where the settings name a model for it. A failure of the model is reported, and recorded in the
/// receipts.
pub(super) async fn query_vector(cx: &mut PhaseContext<'_>) -> Option<TextVector> {
    let turns = cx.turns;
    let name = turns.embedding.as_deref()?;
    // A limit that is reached is reported by the next run.
    if cx.budget.reached(&cx.state).is_some() || !has_search_terms(cx.query()) {
        return None;
    }
    let (query, meter) = (cx.query().to_owned(), Arc::clone(&cx.budget.meter));
    let asked = async {
        let embedder = Embedder::open(&turns.engine.models, name)?;
        embedder.query(&query, &*meter).await
    };
    let vector = cx.budget.within(asked).await;
    cx.budget.settle(&mut cx.state);
    match vector? {
        Ok(vector) => Some(vector),
        Err(error) => {
            let why =
                format!("searched by words only, since {name} returned no vector for the query: {error}");
            cx.events.warn(why.clone());
            let considered = TraceEntry {
                document: String::new(),
                kind: "vector".to_owned(),
                score: 0.0,
                used: false,
                tokens: 0,
                why,
            };
            cx.state.considered.extend(serde_json::to_value(considered));
            None
        }
    }
}

impl Background {
    /// Creates missing vectors for the newest turns up to this one, if an embedding model is configured, and returns
    /// their number. `observer` is notified of the cost.
    ///
    /// # Errors
    /// If the model is unavailable or fails, or the index fails. The turns are unchanged and can still be found by
    /// words.
    pub async fn embed(&self, number: u32, observer: &dyn ProgressObserver) -> Result<u64, EmbeddingError> {
        let Some(name) = self.embedding.as_deref() else { return Ok(0) };
        let embedder = Embedder::open(&self.engine.models, name)?;
        embedder.fill(&self.documents, number.saturating_sub(NEWEST - 1)..=number, observer).await
    }
}
