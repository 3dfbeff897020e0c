//! Condensing by a model: the layer NERVES rewrites a text chunk by chunk until it meets its target.
//!
//! Every call is a run of a `compress` recipe with condensing disabled, through `RunRecipe`. Spans that must survive
//! byte for byte are copied by code, and nothing that a model wrote is used unchecked. If anything fails, the
//! condensers by rule take over: a failure costs time and money, never content.

mod ahead;
mod budget;
mod rounds;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use larder_condense::{Author, CONDENSER_VERSION, CondenseRequest, Condensed, ContentType, rewrite};
use larder_core::pack::{Pack, PackError, PackRequest, PackStep, Packing, Receipt, RenditionRequest};
use larder_core::recipe::{Recipe, RecipeError};
use larder_store::{CompactionKey, StoreError};
use larder_text::hash::ContentHash;
use larder_text::tokens::Counter;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use self::ahead::{CONDENSE_HISTORY, CondenseHistory};
use self::budget::{MAX_CALLS, SummarizerBudget};
use crate::candidate::ModelCandidate;
use crate::compression_recipes;
use crate::engine::Engine;
use crate::inputs::RunInput;
use crate::run::{CondensingTally, ProgressObserver, RunError, RunRecipe};

/// Why a model's rendition failed. Listed in the tally; the text is condensed by rule instead.
#[derive(Debug, thiserror::Error)]
enum SummarizerError {
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("it would take {calls} more calls, and a run may make {MAX_CALLS} in all")]
    TooLong { calls: usize },
    #[error("recipe {recipe} may write {most} tokens here, far below the {target} that the summary may have")]
    TooRoomy { recipe: String, most: usize, target: usize },
    #[error("the summary has {tokens} tokens, far below the {target} that it may have")]
    TooShort { tokens: usize, target: usize },
    #[error("it lacks {missing} of the details that stand out, the extract by rule {by_rule}")]
    KeepsLess { missing: usize, by_rule: usize },
    #[error("what must stay leaves no room for a summary within {target} tokens")]
    NoRoom { target: usize },
    #[error("recipe {recipe} leaves no room for text in the prompt of {model}")]
    NoInput { recipe: String, model: String },
    #[error("another call of its round failed")]
    Stopped,
    #[error("it took longer than policy.summarizer_timeout_s allows")]
    Late,
    #[error("the spending limit is reached")]
    Spent,
    #[error("the model's reply was empty")]
    Empty,
    #[error("the model wrote {0:?}, which the text does not say")]
    Invented(String),
    #[error("the model did not make it smaller")]
    NotSmaller,
    #[error("the summary was rejected: {0}")]
    Refused(#[from] rewrite::RewriteError),
    #[error("the prompt of recipe {0} cannot be packed")]
    Pack(String),
    #[error("what the model wrote before was refused: {0}")]
    RefusedBefore(String),
}

impl SummarizerError {
    /// Whether a model wrote something that cannot be used, which it would write again.
    const fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::TooShort { .. }
                | Self::KeepsLess { .. }
                | Self::Empty
                | Self::Invented(_)
                | Self::NotSmaller
                | Self::Refused(_)
                | Self::Run(RunError::Unusable { .. } | RunError::Gates { .. })
        )
    }
}

/// What the cache holds under a key: what a model wrote, or why that was refused, so that the model is not asked again.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Remembered<T> {
    Refused { refused: String },
    Written(T),
}

impl<T: Serialize + DeserializeOwned> Remembered<T> {
    /// What to remember of a result; `None` if nothing follows from it for another time.
    fn of(written: &Result<T, SummarizerError>) -> Option<String> {
        let json = match written {
            Ok(written) => serde_json::to_string(written),
            Err(error) if error.is_refusal() => {
                serde_json::to_string(&Remembered::<T>::Refused { refused: error.to_string() })
            }
            Err(_) => return None,
        };
        json.ok()
    }

    /// What was remembered, if it can be read.
    fn read(json: Option<String>) -> Result<Option<T>, SummarizerError> {
        match json.and_then(|json| serde_json::from_str(&json).ok()) {
            Some(Self::Refused { refused }) => Err(SummarizerError::RefusedBefore(refused)),
            Some(Self::Written(written)) => Ok(Some(written)),
            None => Ok(None),
        }
    }
}

/// Condenses for one run, within one budget of calls and time.
pub(crate) struct Summarizer<'a> {
    engine: &'a Engine,
    runner: &'a dyn RunRecipe,
    /// The run that it condenses for; its ids go into the records of the calls.
    input: &'a RunInput,
    observer: &'a dyn ProgressObserver,
    budget: SummarizerBudget,
}

impl<'a> Summarizer<'a> {
    /// A summarizer whose time starts now. `runner` runs the recipes.
    pub(crate) fn new(
        engine: &'a Engine,
        runner: &'a dyn RunRecipe,
        input: &'a RunInput,
        observer: &'a dyn ProgressObserver,
    ) -> Self {
        // In the background, each call has a limit of its own.
        let timeout = if engine.is_background { Duration::MAX } else { engine.policy.summarizer_timeout };
        Self { engine, runner, input, observer, budget: SummarizerBudget::new(timeout) }
    }

    /// What condensing has cost so far; `None` if it was never requested.
    pub(crate) fn tally(&self) -> Option<CondensingTally> {
        let tally = self.budget.tally();
        (tally != CondensingTally::default()).then_some(tally)
    }

    /// Packs, with renditions by a model where the request asks for them. The inner `Err` is the receipt of a refusal.
    pub(crate) async fn pack(
        &self,
        recipe: &Recipe,
        request: &PackRequest,
        counter: &Counter,
    ) -> Result<Result<Box<Pack>, Box<Receipt>>, PackError> {
        let key = self.engine.store.key();
        let mut packing = Packing::new(request, counter, key)?;
        loop {
            match packing.step() {
                PackStep::Done(pack) => return Ok(Ok(pack)),
                PackStep::Refused(receipt) => return Ok(Err(receipt)),
                PackStep::Need(wanted) => {
                    let query = request.query.as_deref();
                    let written = wanted.iter().map(|one| self.rendition(recipe, query, one, counter));
                    let written = futures::future::join_all(written).await;
                    wanted.iter().zip(written).for_each(|(one, written)| packing.supply(one.key, written));
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
    ) -> Option<Condensed> {
        let request = CondenseRequest {
            text: &wanted.text,
            content_type: wanted.content_type,
            target: wanted.target,
            query,
            pins: &wanted.pins,
            counter,
            key: self.engine.store.key(),
        };
        self.condense(&request, &recipe.compression.preserve, &wanted.id).await
    }

    /// A model's rendition, cached or new. If it fails, the reason goes into the tally and the result is `None`.
    pub(crate) async fn condense(
        &self,
        request: &CondenseRequest<'_>,
        preserve: &[String],
        name: &str,
    ) -> Option<Condensed> {
        match self.write(request, preserve, name).await {
            Ok(condensed) => {
                self.budget.note(|tally| tally.renditions += 1);
                Some(condensed)
            }
            Err(error) => {
                tracing::warn!(part = name, "condensing by a model failed: {error}");
                self.budget.note(|tally| tally.failures.push(format!("{name}: {error}")));
                None
            }
        }
    }

    async fn write(
        &self,
        request: &CondenseRequest<'_>,
        preserve: &[String],
        name: &str,
    ) -> Result<Condensed, SummarizerError> {
        let store = &self.engine.store;
        let (recipe, candidate, mut author) = self.author(request.content_type)?;
        let condenser = condenser_id(&author, request.pins, preserve);
        let key = CompactionKey {
            content: ContentHash::new(request.text.as_bytes()),
            content_type: request.content_type.as_str(),
            target_tokens: request.target as u64,
            query: ContentHash::new(request.query.unwrap_or_default().as_bytes()),
            condenser: &condenser,
            tokenizer: request.counter.name(),
        };
        if let Some(cached) = Remembered::read(store.compactions().get(&key)?)? {
            self.budget.note(|tally| tally.cached += 1);
            return Ok(cached);
        }
        // The original is stored before any model is called.
        store.pointers().insert(request.text.as_bytes(), request.content_type.as_str(), name)?;
        let room = self.room(recipe, &candidate)?;
        let fallback = Mutex::default();
        let summary = self.rounds(recipe, request, preserve, room, (&author, &condenser), &fallback).await;
        let fallback = fallback.into_inner().unwrap_or_else(PoisonError::into_inner);
        author.model = fallback.unwrap_or(author.model);
        let condensed = summary.and_then(|summary| {
            let condensed = rewrite::accept(request, &summary, author)?;
            worth_it(request, &condensed).map(|()| condensed)
        });
        if let Some(json) = Remembered::of(&condensed) {
            store.compactions().insert(&key, &json)?;
        }
        condensed
    }

    /// The recipe and the model that condense a type of content.
    fn author(&self, content: ContentType) -> Result<(&'a Recipe, ModelCandidate, Author), SummarizerError> {
        let recipe = self.engine.recipe_or_builtin(compression_recipes::recipe_name(content))?;
        let candidate = self.engine.candidate(recipe.layer, recipe.mode)?;
        let (model, version) = (candidate.name.clone(), recipe.version.to_hex());
        Ok((recipe, candidate, Author { model, recipe: recipe.id(), version }))
    }
}

/// Refuses a model's rendition that is far shorter than it may be, or that keeps less than the rule's.
fn worth_it(request: &CondenseRequest<'_>, condensed: &Condensed) -> Result<(), SummarizerError> {
    let (tokens, target) = (condensed.tokens, request.target.min(condensed.original_tokens));
    if tokens * rounds::LEAST < target {
        return Err(SummarizerError::TooShort { tokens, target });
    }
    let Ok(by_rule) = larder_condense::condense(request) else { return Ok(()) };
    let missing = |written: &str| rewrite::missing(request.text, written).len();
    let (missing, by_rule) = (missing(&condensed.text), missing(&by_rule.text));
    if missing > by_rule { Err(SummarizerError::KeepsLess { missing, by_rule }) } else { Ok(()) }
}

/// Identifies everything about the condenser that its output depends on.
fn condenser_id(author: &Author, pins: &[String], preserve: &[String]) -> String {
    let keeps = ContentHash::new(serde_json::json!([pins, preserve]).to_string().as_bytes());
    let Author { model, recipe, version } = author;
    format!("v{CONDENSER_VERSION} {model} {recipe} {version} {}", keeps.to_hex())
}
