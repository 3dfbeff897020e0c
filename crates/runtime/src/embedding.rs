//! Vectors of what is asked and of what turns and research say, by the embedding model that the settings name. The only
//! place that asks such a model; what is near to what is the index's business.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use larder_models::chat::{EmbeddingModel, ModelError};
use larder_models::connect::Models;
use larder_models::price::Prices;
use larder_store::{StoreError, TextVector, UserDocuments};

use crate::executor::Observer;

/// Texts of one call: what the embedding model inside this process reads in a second or two.
const BATCH: usize = 64;
/// Turns whose missing vectors are looked for together.
const WINDOW: u32 = 256;
/// Bytes of a query that are read, as of what turns say.
const LONGEST: usize = 1_500;

/// Why there are no vectors.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddingError {
    /// The model cannot be had, or failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The index failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// An embedding model of the table, connected.
pub struct Embedder {
    model: Arc<dyn EmbeddingModel>,
    name: String,
    identity: String,
    limit: Duration,
    prices: Option<Prices>,
}

impl Embedder {
    /// The embedding model called `name` in the model table.
    ///
    /// # Errors
    /// [`ModelError::NotConfigured`] when there is none, or its key or weights are missing.
    pub fn open(models: &Models, name: &str) -> Result<Self, ModelError> {
        let model = models.embedding(name)?;
        let spec = models.table().model(name).ok_or_else(|| ModelError::NotConfigured {
            provider: name.to_owned(),
            detail: "larder.toml defines no such model".to_owned(),
        })?;
        // By what makes the vectors and not by its name here, which may be given to another model.
        let identity = format!("{}/{}/{}", spec.provider.as_str(), spec.id, model.dimensions());
        let (limit, prices) = (spec.timeout, spec.prices);
        Ok(Self { model, name: name.to_owned(), identity, limit, prices })
    }

    /// What its vectors are kept under: provider, id and length of vectors.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The vector of a query, of which the first 1,500 bytes count. `observer` is told what it takes.
    ///
    /// # Errors
    /// The model fails, or takes longer than the table allows.
    pub async fn query(&self, query: &str, observer: &dyn Observer) -> Result<TextVector, ModelError> {
        let text = query[..query.floor_char_boundary(LONGEST)].to_owned();
        let numbers = self.embed(&[text], observer).await?.pop().unwrap_or_default();
        Ok(TextVector { model: self.identity.clone(), numbers })
    }

    /// Makes the vectors that turns of these numbers and their research lack, newest first, as long as `observer` lets
    /// more be spent; gives how many it made. What was made before an error is kept.
    ///
    /// # Errors
    /// The model or the index fails.
    pub async fn fill(
        &self,
        documents: &UserDocuments,
        turns: RangeInclusive<u32>,
        observer: &dyn Observer,
    ) -> Result<u64, EmbeddingError> {
        let mut made = 0;
        for gists in documents.without_vector(&self.identity, turns)?.chunks(BATCH) {
            if !observer.may_spend() {
                break;
            }
            let texts: Vec<String> = gists.iter().map(|gist| gist.text.clone()).collect();
            let vectors = self.embed(&texts, observer).await?;
            let vectors: Vec<_> = gists.iter().cloned().zip(vectors).collect();
            documents.put_vectors(&self.identity, &vectors)?;
            made += vectors.len() as u64;
        }
        Ok(made)
    }

    /// Drops the vectors of other models and makes all that are missing, those of the newest turns first; `progress` is
    /// told how many were made. Gives the same number.
    ///
    /// # Errors
    /// As [`fill`](Self::fill).
    pub async fn fill_all(
        &self,
        documents: &UserDocuments,
        observer: &dyn Observer,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<u64, EmbeddingError> {
        documents.keep_vectors_of(&self.identity)?;
        let mut last = documents.recent_turns(1, None)?.first().map_or(0, |turn| turn.number);
        let mut made = 0;
        while last > 0 {
            let first = last.saturating_sub(WINDOW - 1).max(1);
            made += self.fill(documents, first..=last, observer).await?;
            progress(made);
            last = first - 1;
        }
        Ok(made)
    }

    async fn embed(&self, texts: &[String], observer: &dyn Observer) -> Result<Vec<Vec<f32>>, ModelError> {
        let late = |_| ModelError::Timeout { provider: self.name.clone(), after: self.limit };
        let made = tokio::time::timeout(self.limit, self.model.embed(texts)).await.map_err(late)??;
        observer.spent(made.usage, self.prices.as_ref().map(|prices| prices.cost(&made.usage).total));
        let length = self.model.dimensions();
        if made.vectors.len() != texts.len() || made.vectors.iter().any(|vector| vector.len() != length) {
            let detail = format!("not one vector of {length} numbers for each of {} texts", texts.len());
            return Err(ModelError::Protocol { provider: self.name.clone(), detail });
        }
        Ok(made.vectors)
    }
}
