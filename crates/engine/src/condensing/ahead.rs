//! Summaries ahead of time: once a history has reached its soft share, a background job has the model summarize what the
//! next step will condense, so that no run waits for it (R2-8.6). The summaries go into the cache of chunks.

use futures::future::{BoxFuture, FutureExt};
use larder_condense::{CondenseRequest, ContentType};
use larder_core::pack::RenditionRequest;
use larder_core::recipe::Recipe;
use larder_store::{KeyId, NewJob, StoreError};
use larder_text::pointer::Pointer;
use larder_text::tokens::Counter;
use serde::{Deserialize, Serialize};

use super::{Summarizer, SummarizerError, condenser_id};
use crate::candidate::ModelCandidate;
use crate::compression_recipes;
use crate::engine::Engine;
use crate::inputs::RunInput;
use crate::model_set::{ModelSet, max_call_usage};
use crate::run::{ProgressObserver, RunError};

/// The job that summarizes the older messages of a history before they have to be condensed.
pub const CONDENSE_HISTORY: &str = "condense_history";

/// What the job needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CondenseHistory {
    text: Pointer,
    name: String,
    content_type: ContentType,
    target: usize,
    pins: Vec<String>,
    preserve: Vec<String>,
    /// The model in whose tokens the history is measured.
    model: String,
    session: Option<String>,
    /// The most tokens that the job may take.
    pub tokens: u64,
    /// The key whose budget pays.
    pub key: Option<KeyId>,
}

impl Engine {
    /// Adds the jobs that summarize these texts for the next run. A job that waits for the same conversation is replaced.
    pub(crate) fn condense_later(
        &self,
        recipe: &Recipe,
        input: &RunInput,
        (candidate, counter): (&ModelCandidate, &Counter),
        wanted: &[RenditionRequest],
    ) -> Result<(), RunError> {
        for one in wanted {
            let name = compression_recipes::recipe_name(one.content_type);
            let condenses = self.recipe_or_builtin(name).map_err(|source| RunError::Unknown { source })?;
            let text = self
                .store
                .pointers()
                .insert(one.text.as_bytes(), one.content_type.as_str(), &one.id)?
                .pointer_id;
            // A chunk is at least half of what a call may read.
            let calls = 2 * counter.count(&one.text) / condenses.budget.input.max(1) + 1;
            let most = max_call_usage(condenses);
            let about = input.session_id.clone().unwrap_or_else(|| text.to_string());
            let ahead = CondenseHistory {
                text,
                name: one.id.to_string(),
                content_type: one.content_type,
                target: one.target,
                pins: one.pins.clone(),
                preserve: recipe.compression.preserve.clone(),
                model: candidate.name.clone(),
                session: input.session_id.clone(),
                tokens: (calls as u64).saturating_mul(most.input.saturating_add(most.output)),
                key: self.payer.clone(),
            };
            self.store.jobs().add(&NewJob {
                kind: CONDENSE_HISTORY,
                key: format!("{CONDENSE_HISTORY} {} {about}", recipe.id()),
                session: input.session_id.clone(),
                payload: serde_json::to_value(&ahead).unwrap_or_default(),
                after: 0,
            })?;
        }
        Ok(())
    }

    /// Every model that the job may ask.
    pub fn models_of_history(&self, ahead: &CondenseHistory) -> ModelSet {
        let name = compression_recipes::recipe_name(ahead.content_type);
        self.recipe_or_builtin(name).map(|recipe| self.reachable_models(recipe, None)).unwrap_or_default()
    }

    /// Does the job. What a model writes and no run can use is not asked for again: the next run condenses by rule.
    ///
    /// # Errors
    /// No model is reached, or the store fails.
    pub fn condense_history<'a>(
        &'a self,
        ahead: &'a CondenseHistory,
        observer: &'a dyn ProgressObserver,
    ) -> BoxFuture<'a, Result<(), RunError>> {
        async move {
            let input = RunInput { session_id: ahead.session.clone(), ..RunInput::default() };
            match Summarizer::new(self, self, &input, observer).prepare_chunks(ahead).await {
                Err(SummarizerError::Run(error @ (RunError::Model { .. } | RunError::Store(_)))) => {
                    Err(error)
                }
                Err(SummarizerError::Store(error)) => Err(error.into()),
                Err(error) => {
                    tracing::warn!(part = ahead.name, "condensing ahead of time failed: {error}");
                    Ok(())
                }
                Ok(()) => Ok(()),
            }
        }
        .boxed()
    }
}

impl Summarizer<'_> {
    async fn prepare_chunks(&self, ahead: &CondenseHistory) -> Result<(), SummarizerError> {
        let Some(spec) = self.engine.models.table().model(&ahead.model) else { return Ok(()) };
        let bytes = match self.engine.store.pointers().resolve(&ahead.text) {
            Err(StoreError::UnknownPointer { .. } | StoreError::Expired { .. }) => return Ok(()),
            bytes => bytes?,
        };
        let request = CondenseRequest {
            text: &String::from_utf8_lossy(&bytes),
            content_type: ahead.content_type,
            target: ahead.target,
            query: None,
            pins: &ahead.pins,
            counter: &self.engine.counter(spec),
            key: self.engine.store.key(),
        };
        let (recipe, candidate, author) = self.author(ahead.content_type)?;
        let condenser = condenser_id(&author, &ahead.pins, &ahead.preserve);
        let room = self.room(recipe, &candidate)?;
        self.first_round(recipe, &request, &ahead.preserve, room, (&author, &condenser)).await
    }
}
