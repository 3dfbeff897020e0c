//! Condensing by a model: what a text becomes when the layer NERVES retells it, chunk by chunk, until the target holds.
//!
//! Every call is a run of a recipe of category `compress` through the one executor, with condensing off. What must
//! stand byte for byte is copied by code. Nothing that a model wrote is taken unchecked, and whatever fails, the
//! condensers of the core stand ready; so this can cost time and money, never content.

mod recipes;
mod rounds;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use larder_condense::{Author, CONDENSER_VERSION, CondenseRequest, Condensed, rewrite};
use larder_core::pack::{Pack, PackError, PackRequest, PackStep, Packing, Receipt, RenditionRequest};
use larder_core::recipe::{Recipe, RecipeError};
use larder_store::{CompactionKey, StoreError};
use larder_text::hash::ContentHash;
use larder_text::tokens::Counter;
use tokio::sync::Semaphore;
use tokio::time::Instant;

pub use self::recipes::MissingRecipe;
pub(crate) use self::recipes::check;
pub(crate) use self::recipes::compression_recipe;
use crate::engine::Engine;
use crate::executor::{CondensingTally, ProgressObserver, RunError, RunOutcome};
use crate::inputs::RunInput;
use crate::packer;

/// Calls that all condensing of one run may make: 100,000 tokens in chunks of 500 (R0-11.11). A longer text is left to
/// the deterministic condensers.
const MAX_CALLS: usize = 200;
/// Calls under way at once (R0-20.3).
const PARALLEL: usize = 4;

/// What one run may spend on condensing, and what it has spent.
pub(crate) struct SummarizerBudget<'a> {
    /// None when it lies beyond what a clock can say.
    deadline: Option<Instant>,
    slots: Semaphore,
    calls_left: AtomicUsize,
    tally: Mutex<CondensingTally>,
    observer: &'a dyn ProgressObserver,
    session_id: Option<String>,
    turn_id: Option<String>,
    request_id: Option<String>,
}

/// Why a model's rendition was not to be had. Named in the tally; the deterministic one stands instead.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("it would take {calls} more calls, and a run may make {MAX_CALLS} in all")]
    TooLong { calls: usize },
    #[error("what must stay leaves no room for a summary within {target} tokens")]
    NoRoom { target: usize },
    #[error("recipe {recipe} leaves no room for text in the prompt of {model}")]
    NoInput { recipe: String, model: String },
    #[error("another call of its round failed")]
    Stopped,
    #[error("it took longer than policy.summarizer_timeout_s allows")]
    Late,
    #[error("all that may be spent is")]
    Spent,
    #[error("the model's reply was empty")]
    Empty,
    #[error("the model wrote {0:?}, which the text does not say")]
    Invented(String),
    #[error("the model did not make it smaller")]
    NotSmaller,
    #[error("what the model wrote was refused: {0}")]
    Refused(#[from] rewrite::RewriteError),
    #[error("the prompt of recipe {0} cannot be packed")]
    Pack(String),
}

impl<'a> SummarizerBudget<'a> {
    pub(crate) fn new(engine: &Engine, input: &RunInput, observer: &'a dyn ProgressObserver) -> Self {
        Self {
            deadline: Instant::now().checked_add(engine.policy.summarizer_timeout),
            slots: Semaphore::new(PARALLEL),
            calls_left: AtomicUsize::new(MAX_CALLS),
            tally: Mutex::default(),
            observer,
            session_id: input.session_id.clone(),
            turn_id: input.turn_id.clone(),
            request_id: input.request_id.clone(),
        }
    }

    /// What has been spent, if anything was asked for.
    pub(crate) fn tally(&self) -> Option<CondensingTally> {
        let tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (tally != CondensingTally::default()).then_some(tally)
    }

    fn note(&self, note: impl FnOnce(&mut CondensingTally)) {
        note(&mut self.tally.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Takes `calls` from what the run may make, or nothing if there are not so many left.
    fn take(&self, calls: usize) -> Result<(), Failure> {
        let left = |left: usize| left.checked_sub(calls);
        let taken = self.calls_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left);
        taken.map(drop).map_err(|_| Failure::TooLong { calls })
    }

    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Counts a call with what came of it.
    fn called(&self, outcome: &Result<RunOutcome, RunError>) {
        self.note(|tally| {
            tally.calls += 1;
            let Ok(outcome) = outcome else { return };
            tally.usage += outcome.usage;
            if let Some(cost) = outcome.cost {
                tally.cost = Some(tally.cost.map_or(cost, |sum| sum + cost));
            }
        });
    }
}

impl Engine {
    /// Condenses a text by the model of layer NERVES, or by rule where that fails; says which, and what it cost. The
    /// original is stored first.
    ///
    /// # Errors
    /// As [`larder_condense::condense`], or when the store cannot be written.
    pub async fn condense(
        &self,
        request: &CondenseRequest<'_>,
        name: &str,
        observer: &dyn ProgressObserver,
    ) -> Result<(Condensed, CondensingTally), RunError> {
        let began = std::time::Instant::now();
        self.store.put(request.text.as_bytes(), "document", name)?;
        let allowance = SummarizerBudget::new(self, &RunInput::default(), observer);
        // By rule first: it refuses what no rendition can meet, before anything is spent.
        let by_rule = larder_condense::condense(request)?;
        let unneeded = by_rule.text == request.text;
        let written = if unneeded { None } else { self.by_model(request, &[], name, &allowance).await };
        let condensed = written.unwrap_or(by_rule);
        self.condensed(&condensed, began.elapsed());
        Ok((condensed, allowance.tally().unwrap_or_default()))
    }

    /// Packs, with renditions by a model where the request asks for them. `Err` inside is the receipt of a refusal.
    pub(crate) async fn pack_by_model(
        &self,
        recipe: &Recipe,
        request: &PackRequest,
        counter: &Counter,
        allowance: &SummarizerBudget<'_>,
    ) -> Result<Result<Box<Pack>, Box<Receipt>>, PackError> {
        let mut packing = Packing::new(request, counter, self.store.key())?;
        loop {
            match packing.step() {
                PackStep::Done(pack) => {
                    return packer::relieved(pack, request, counter, self.store.key(), &self.policy).map(Ok);
                }
                PackStep::Refused(receipt) => return Ok(Err(receipt)),
                PackStep::Need(wanted) => {
                    let made = wanted.iter().map(|rendition| {
                        self.rendition(recipe, request.query.as_deref(), rendition, counter, allowance)
                    });
                    let made = futures::future::join_all(made).await;
                    wanted.iter().zip(made).for_each(|(one, made)| packing.supply(one.key, made));
                }
            }
        }
    }

    async fn rendition(
        &self,
        recipe: &Recipe,
        query: Option<&str>,
        wanted: &RenditionRequest,
        counter: &Counter,
        allowance: &SummarizerBudget<'_>,
    ) -> Option<Condensed> {
        let request = CondenseRequest {
            text: &wanted.text,
            content_type: wanted.content_type,
            target: wanted.target,
            query,
            pins: &wanted.pins,
            counter,
            key: self.store.key(),
        };
        self.by_model(&request, &recipe.compression.preserve, &wanted.id, allowance).await
    }

    /// A model's rendition, from the cache or made anew; `None`, and the reason in the tally, where it fails.
    async fn by_model(
        &self,
        request: &CondenseRequest<'_>,
        preserve: &[String],
        name: &str,
        allowance: &SummarizerBudget<'_>,
    ) -> Option<Condensed> {
        match self.written(request, preserve, name, allowance).await {
            Ok(condensed) => {
                allowance.note(|tally| tally.renditions += 1);
                Some(condensed)
            }
            Err(failure) => {
                tracing::warn!(part = name, "condensing by a model failed: {failure}");
                allowance.note(|tally| tally.failures.push(format!("{name}: {failure}")));
                None
            }
        }
    }

    async fn written(
        &self,
        request: &CondenseRequest<'_>,
        preserve: &[String],
        name: &str,
        allowance: &SummarizerBudget<'_>,
    ) -> Result<Condensed, Failure> {
        let recipe = self.compression_recipe(request.content_type)?;
        let candidate = self.candidate(recipe.layer, recipe.mode)?;
        let author =
            Author { model: candidate.name.clone(), recipe: recipe.id(), version: recipe.version.to_hex() };
        let condenser = condenser_id(&author, request.pins, preserve);
        let key = CompactionKey {
            content: ContentHash::new(request.text.as_bytes()),
            content_type: request.content_type.as_str(),
            target_tokens: request.target as u64,
            query: ContentHash::new(request.query.unwrap_or_default().as_bytes()),
            condenser: &condenser,
            tokenizer: request.counter.name(),
        };
        let cached = self.store.cached_compaction(&key)?;
        if let Some(cached) = cached.and_then(|json| serde_json::from_str(&json).ok()) {
            allowance.note(|tally| tally.cached += 1);
            return Ok(cached);
        }
        // The way back exists before anything is asked of a model.
        self.store.put(request.text.as_bytes(), "part", name)?;
        let room = self.room(recipe, &candidate)?;
        let words = self.rounds(recipe, request, preserve, room, allowance).await?;
        let condensed = rewrite::accept(request, &words, author)?;
        if let Ok(json) = serde_json::to_string(&condensed) {
            self.store.cache_compaction(&key, &json)?;
        }
        Ok(condensed)
    }
}

/// Everything about the condenser that its output depends on.
fn condenser_id(author: &Author, pins: &[String], preserve: &[String]) -> String {
    let keeps = ContentHash::new(serde_json::json!([pins, preserve]).to_string().as_bytes());
    let Author { model, recipe, version } = author;
    format!("v{CONDENSER_VERSION} {model} {recipe} {version} {}", keeps.to_hex())
}
