//! Vectors of queries, turns and research from the configured embedding model. The only place that calls such a
//! model; the index compares vectors.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use larder_models::chat::{EmbeddingModel, ModelError};
use larder_models::connect::Models;
use larder_models::price::Prices;
use larder_store::{EmbeddingText, StoreError, TextVector, UserDocuments};

use crate::run::ProgressObserver;

/// Texts per call. Few, because the cost of a call is known only once it is answered, and some providers accept only
/// one text per request.
const BATCH: usize = 16;
/// How long a turn waits for the vector of its query; most things are found by words alone.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many turns are checked for missing vectors at once.
const WINDOW: u64 = 256;
/// Maximum bytes of a query, and of a turn's text, that are embedded.
const LONGEST: usize = 1_500;

/// Why there are no vectors.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddingError {
    /// The model is not available, or failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The index failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl EmbeddingError {
    /// Whether the model is not there at all: not in the table, or without its key or weights.
    pub const fn is_missing(&self) -> bool {
        matches!(self, Self::Model(ModelError::NotConfigured { .. }))
    }
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
    /// Opens the embedding model called `name` in the model table.
    ///
    /// # Errors
    /// [`ModelError::NotConfigured`] if it does not exist, or its key or weights are missing.
    pub fn open(models: &Models, name: &str) -> Result<Self, ModelError> {
        let model = models.embedding(name)?;
        let spec = models.table().model(name).ok_or_else(|| ModelError::NotConfigured {
            provider: name.to_owned(),
            detail: "larder.toml does not define this model".to_owned(),
        })?;
        // Identify the model by what produces the vectors, since its local name may be reassigned.
        let mut identity = format!("{}/{}/{}", spec.provider.as_str(), spec.id, model.dimensions());
        // Private servers accept any id.
        if let Some(server) = &spec.base_url {
            identity = format!("{identity} at {server}");
        }
        let (limit, prices) = (spec.timeout, spec.prices.clone());
        Ok(Self { model, name: name.to_owned(), identity, limit, prices })
    }

    /// The key under which its vectors are stored: provider, id, vector length, and the server if the table names
    /// one.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The vector of a query, of which the first 1,500 bytes count. The cost is reported to `observer`.
    ///
    /// # Errors
    /// If the model fails, or takes longer than five seconds or its configured timeout.
    pub fn query<'a>(
        &'a self,
        query: &'a str,
        observer: &'a dyn ProgressObserver,
    ) -> BoxFuture<'a, Result<TextVector, ModelError>> {
        async move {
            let text = query[..query.floor_char_boundary(LONGEST)].to_owned();
            let limit = self.limit.min(PATIENCE);
            let late = |_| ModelError::Timeout { provider: self.name.clone(), after: limit };
            let made = tokio::time::timeout(limit, self.embed(&[text], observer)).await.map_err(late)?;
            let numbers = made?.pop().unwrap_or_default();
            Ok(TextVector { model: self.identity.clone(), numbers })
        }
        .boxed()
    }

    /// The vectors of some texts, of each of which the first 1,500 bytes count, as far as `observer` permits spending;
    /// `None` for a text that the model rejects.
    ///
    /// # Errors
    /// If the model fails.
    pub fn texts<'a>(
        &'a self,
        texts: &'a [String],
        observer: &'a dyn ProgressObserver,
    ) -> BoxFuture<'a, Result<Vec<Option<Vec<f32>>>, ModelError>> {
        async move {
            let texts: Vec<String> =
                texts.iter().map(|text| text[..text.floor_char_boundary(LONGEST)].to_owned()).collect();
            let mut made = Vec::new();
            for batch in texts.chunks(BATCH) {
                if !observer.may_spend() {
                    break;
                }
                match self.embed(batch, observer).await {
                    Err(error) if is_refusal(&error) => {
                        for text in batch {
                            match self.embed(std::slice::from_ref(text), observer).await {
                                Err(error) if is_refusal(&error) => made.push(None),
                                one => made.extend(one?.into_iter().map(Some)),
                            }
                        }
                    }
                    vectors => made.extend(vectors?.into_iter().map(Some)),
                }
            }
            Ok(made)
        }
        .boxed()
    }

    /// Creates missing vectors for these turns and their research, newest first, as long as `observer` permits
    /// spending; returns how many were created. Vectors created before an error are kept.
    /// # Errors
    /// If the model or the index fails.
    pub fn fill<'a>(
        &'a self,
        documents: &'a UserDocuments,
        turns: RangeInclusive<u32>,
        observer: &'a dyn ProgressObserver,
    ) -> BoxFuture<'a, Result<u64, EmbeddingError>> {
        async move {
            let mut made = 0;
            for gists in documents.vectors().missing(&self.identity, turns)?.chunks(BATCH) {
                if !observer.may_spend() {
                    break;
                }
                made += match self.make(documents, gists, observer).await {
                    Err(EmbeddingError::Model(error)) if is_refusal(&error) => {
                        self.make_singly(documents, gists, observer, error).await?
                    }
                    made => made?,
                };
            }
            Ok(made)
        }
        .boxed()
    }

    async fn make(
        &self,
        documents: &UserDocuments,
        gists: &[EmbeddingText],
        observer: &dyn ProgressObserver,
    ) -> Result<u64, EmbeddingError> {
        let texts: Vec<String> = gists.iter().map(|gist| gist.text.clone()).collect();
        let vectors = self.embed(&texts, observer).await?;
        let vectors: Vec<_> = gists.iter().cloned().zip(vectors).collect();
        documents.vectors().insert(&self.identity, &vectors)?;
        Ok(vectors.len() as u64)
    }

    /// Embeds texts one at a time, so that a text the model rejects does not block the others.
    async fn make_singly(
        &self,
        documents: &UserDocuments,
        gists: &[EmbeddingText],
        observer: &dyn ProgressObserver,
        refusal: ModelError,
    ) -> Result<u64, EmbeddingError> {
        if gists.len() == 1 {
            tracing::warn!(error = %refusal, model = self.name, "a text gets no vector");
            return Ok(0);
        }
        let mut made = 0;
        for gist in gists {
            if !observer.may_spend() {
                break;
            }
            match self.make(documents, std::slice::from_ref(gist), observer).await {
                Err(EmbeddingError::Model(error)) if is_refusal(&error) => {
                    tracing::warn!(%error, model = self.name, "a text gets no vector");
                }
                one => made += one?,
            }
        }
        if made == 0 { Err(refusal.into()) } else { Ok(made) }
    }

    /// Creates all missing vectors, newest turns first, and drops those of other models; `progress` receives the
    /// number so far. Returns the total.
    ///
    /// # Errors
    /// As [`fill`](Self::fill).
    pub fn fill_all<'a>(
        &'a self,
        documents: &'a UserDocuments,
        observer: &'a dyn ProgressObserver,
        progress: &'a (dyn Fn(u64) + Sync),
    ) -> BoxFuture<'a, Result<u64, EmbeddingError>> {
        async move {
            let (mut before, mut made) = (None, 0);
            loop {
                let turns = documents.catalog().recent_turns(WINDOW, before, None)?;
                let Some(first) = turns.last().map(|turn| turn.number) else { break };
                let last = before.map_or(u32::MAX, |before: u32| before.saturating_sub(1));
                made += self.fill(documents, first..=last, observer).await?;
                progress(made);
                before = Some(first);
            }
            // Done last, so that an unreachable model does not cost the vectors of its predecessor.
            documents.vectors().retain_model(&self.identity)?;
            Ok(made)
        }
        .boxed()
    }

    async fn embed(
        &self,
        texts: &[String],
        observer: &dyn ProgressObserver,
    ) -> Result<Vec<Vec<f32>>, ModelError> {
        // Each provider limits the time of its own requests.
        let made = self.model.embed(texts).await?;
        let cost = self.prices.as_ref().map(|prices| prices.cost(&made.usage).total);
        observer.spent(&self.name, made.usage, cost);
        let length = self.model.dimensions();
        if made.vectors.len() != texts.len() || made.vectors.iter().any(|vector| vector.len() != length) {
            let detail = format!("expected one vector of {length} numbers for each of {} texts", texts.len());
            return Err(ModelError::Protocol { provider: self.name.clone(), detail });
        }
        Ok(made.vectors)
    }
}

/// Whether the model would reject the same text again.
fn is_refusal(error: &ModelError) -> bool {
    matches!(error, ModelError::BadRequest { .. } | ModelError::WindowExceeded { .. })
}
