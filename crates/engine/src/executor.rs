//! The executor: the only code that talks to a model. Load, prepare, pack, store originals, ask, validate, record.
//!
//! Failures follow one table (C66): an answer that fails its gates is repaired, then asked of the next layer, then
//! becomes an intervention; a provider that fails is replaced by its fallback model, for which the prompt is packed
//! anew; a recipe that is missing is an intervention at once. Whatever happens, one record is written.

mod call;
mod error;
mod evidence;
mod explain;
mod meter;
mod model_set;
mod outcome;
mod progress;
mod quoted;
mod record;
mod report;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, FutureExt};
use larder_core::output::{self, GateFailure, GateResult, Parsed};
use larder_core::pack::{Overflow, Pack, Receipt};
use larder_core::recipe::{Layer, Mode, OutputFormat, Recipe, RecipeError};
use larder_models::chat::{ChatReply, StopReason, Usage};
use larder_models::table::{Capability, ModelSpec, Provider};
use larder_store::{Intervention, NewIntervention, NewPointer, StoreError};
use larder_text::tokens::Counter;

pub use self::error::RunError;
use self::error::is_open;
use self::evidence::{citing_cost, shown};
pub(crate) use self::meter::Paid;
pub use self::meter::{Meter, Spending};
pub use self::model_set::ModelSet;
pub use self::model_set::call_of;
pub use self::outcome::{
    CondensingTally, NoopObserver, ProgressObserver, ResolvedCitation, RunOutcome, RunReceipt,
};
use self::progress::Progress;
pub use self::quoted::QuotedAnswer;
use self::record::Originals;
pub use self::report::{NoopSink, ReducedText, RunMetricsSink, RunReport};
use crate::condensing::SummarizerBudget;
use crate::engine::Engine;
use crate::inputs::RunInput;
use crate::prepare::{ModelLimits, PreparedPrompt, prepare};

/// Tokens of a note about a refused answer.
const NOTE_TOKENS: usize = 160;
/// Tokens of a refused answer that its repair may show.
const SHOWN_ANSWER: usize = 120;

/// One model that may answer.
pub struct ModelCandidate {
    /// Its name in the model table.
    pub name: String,
    layer: Layer,
    /// What the table says of it.
    pub spec: ModelSpec,
    temperature: Option<f32>,
}

/// What a run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunKind {
    /// Somebody waits for its answer.
    Answer,
    /// Its answer is quoted from its documents; no model is asked.
    Quoting,
    /// It decides what another run reads.
    Planning,
    /// It condenses a chunk for another run, which waits no longer than until then; nothing in it is condensed itself
    /// (C39).
    Condensing {
        /// When what is not condensed yet is condensed by rule.
        until: Option<tokio::time::Instant>,
    },
}

impl RunKind {
    /// Whether rules do the same where the model fails. Such a run is given up at its timeout, asks no other layer, and
    /// troubles no human.
    const fn has_substitute(self) -> bool {
        matches!(self, Self::Planning | Self::Condensing { .. })
    }
}

enum Attempt {
    Answered(Parsed),
    Failed(Vec<GateFailure>),
}

impl Engine {
    /// Runs a recipe: the only way to call a model (R0-8.2, R0-21.10).
    pub async fn run(
        &self,
        name: &str,
        input: &RunInput,
        observer: &dyn ProgressObserver,
    ) -> Result<RunOutcome, RunError> {
        let recipe = self.find(name, input.mode).map_err(|source| self.missing(name, source))?;
        self.run_recipe(recipe, input, observer, RunKind::Answer).await
    }

    /// Runs a recipe that has been found. Boxed with its type, since a run may condense, and condensing runs.
    pub fn run_recipe<'a>(
        &'a self,
        recipe: &'a Recipe,
        input: &'a RunInput,
        observer: &'a dyn ProgressObserver,
        purpose: RunKind,
    ) -> BoxFuture<'a, Result<RunOutcome, RunError>> {
        self.recorded(recipe, input, observer, purpose).boxed()
    }

    async fn recorded(
        &self,
        recipe: &Recipe,
        input: &RunInput,
        observer: &dyn ProgressObserver,
        purpose: RunKind,
    ) -> Result<RunOutcome, RunError> {
        let mut progress = self.progress(recipe, input, observer, purpose)?;
        let outcome = self.attempts(&mut progress, input, observer).await;
        self.finish(progress, input, outcome)
    }

    /// A run that begins now.
    fn progress<'a>(
        &'a self,
        recipe: &'a Recipe,
        input: &'a RunInput,
        observer: &'a dyn ProgressObserver,
        purpose: RunKind,
    ) -> Result<Progress<'a>, StoreError> {
        Ok(Progress {
            recipe,
            purpose,
            run_id: self.store.store().new_run_id()?,
            started: Instant::now(),
            usage: Usage::default(),
            cost: None,
            calls: 0,
            receipt: None,
            packing: Duration::ZERO,
            originals: Originals::default(),
            answer: None,
            gates: GateResult::default(),
            layer: recipe.layer,
            allowance: SummarizerBudget::new(self, input, observer),
        })
    }

    /// A recipe of the project by its name or its role in a mode, else the built-in one.
    ///
    /// # Errors
    /// There is none, or it has errors.
    pub fn find(&self, name: &str, mode: Option<Mode>) -> Result<&Recipe, RecipeError> {
        let found = self.project.recipe(name).or_else(|error| match mode {
            Some(mode) => self.project.recipe_for_mode(name, mode).map_err(|_| error),
            None => Err(error),
        });
        // Commands rely on recipes that ship, whether or not the project has recipes of its own.
        found.or_else(|error| self.recipe_or_builtin(name).map_err(|_| error))
    }

    /// A run that cannot begin for want of its recipe asks for a human (R0-18.2).
    pub fn missing(&self, name: &str, source: RecipeError) -> RunError {
        // A name that no recipe has may be any text of a client's (C104).
        let known = !matches!(source, RecipeError::NotFound { .. });
        tracing::info!(recipe = known.then_some(name), "recipe not found or broken");
        match self.store.raise(&NewIntervention::missing_recipe(name)) {
            Ok(intervention) => RunError::Recipe { source, intervention: intervention.id },
            Err(error) => error.into(),
        }
    }

    /// The model that a layer is bound to.
    ///
    /// # Errors
    /// The table binds the layer to none.
    pub fn candidate(&self, layer: Layer, mode: Option<Mode>) -> Result<ModelCandidate, RunError> {
        let found =
            self.models.table().resolve(layer, mode).ok_or(RunError::Unbound { layer: layer.as_str() })?;
        Ok(ModelCandidate {
            name: found.name.to_owned(),
            layer,
            spec: found.spec.clone(),
            temperature: found.temperature,
        })
    }

    /// Asks the recipe's layer with repairs, then the next layer once (C66).
    async fn attempts(
        &self,
        progress: &mut Progress<'_>,
        input: &RunInput,
        observer: &dyn ProgressObserver,
    ) -> Result<Parsed, RunError> {
        let recipe = progress.recipe;
        let mode = input.mode.or(recipe.mode);
        let mut candidate = self.candidate(recipe.layer, mode)?;
        let mut note: Option<String> = None;
        let mut failures = Vec::new();
        for attempt in 0..=recipe.gates.max_retries {
            if attempt > 0 {
                progress.require_means(observer, &failures)?;
                observer.stage("the answer did not pass its checks; asking again");
            }
            let sent = progress.receipt.clone();
            match self.attempt(progress, &mut candidate, input, note.as_deref(), observer).await {
                Ok(Attempt::Answered(parsed)) => return Ok(parsed),
                Ok(Attempt::Failed(found)) => failures = found,
                // Only the note does not fit: what was asked did, and its answer is what failed.
                Err(RunError::Refused { .. }) if note.take().is_some() => {
                    progress.receipt = sent;
                    break;
                }
                Err(error) => return Err(error),
            }
            let repair = output::repair_message(&failures);
            if repair.is_empty() {
                break;
            }
            note = Some(self.repair_note(progress, &candidate, &repair));
        }
        if progress.purpose.has_substitute() {
            return Err(RunError::Unusable {
                recipe: recipe.id(),
                failures: listed(&failures),
                run_id: progress.run_id.clone(),
            });
        }
        let next = next_layer(recipe.layer).map(|layer| self.candidate(layer, mode)).transpose();
        if let Ok(Some(mut next)) = next
            && next.name != candidate.name
        {
            progress.require_means(observer, &failures)?;
            observer.stage(&format!("asking layer {} instead", next.layer.as_str()));
            match self.attempt(progress, &mut next, input, note.as_deref(), observer).await? {
                Attempt::Answered(parsed) => return Ok(parsed),
                Attempt::Failed(found) => failures = found,
            }
        }
        let reason = listed(&failures);
        let message = format!("No answer passed the checks of {}: {reason}", recipe.id());
        let intervention = self.raise("gate_failure", &message, progress)?;
        Err(RunError::Gates {
            recipe: recipe.id(),
            failures: reason,
            intervention: intervention.id,
            user: self.store.user().to_owned(),
            run_id: progress.run_id.clone(),
        })
    }

    fn raise(&self, kind: &str, message: &str, progress: &Progress<'_>) -> Result<Intervention, RunError> {
        Ok(self.store.raise(&NewIntervention {
            kind: kind.to_owned(),
            message: message.to_owned(),
            recipe: Some(progress.recipe.id()),
            run_id: Some(progress.run_id.clone()),
        })?)
    }

    fn repair_note(&self, progress: &Progress<'_>, candidate: &ModelCandidate, repair: &str) -> String {
        let answer = progress.answer.as_deref().unwrap_or_default();
        let counter = self.counter(&candidate.spec);
        let shown = counter.prefix(answer, SHOWN_ANSWER);
        let note = if shown.is_empty() {
            repair.to_owned()
        } else {
            format!("{repair}\nYour last answer began:\n{shown}")
        };
        counter.prefix(&note, NOTE_TOKENS).to_owned()
    }

    /// One answer from a candidate or, when its provider fails, from its fallbacks, each with a prompt packed for its
    /// own window. After a call whose end is not known a fallback is a further call, for which there have to be means.
    async fn attempt(
        &self,
        progress: &mut Progress<'_>,
        candidate: &mut ModelCandidate,
        input: &RunInput,
        note: Option<&str>,
        observer: &dyn ProgressObserver,
    ) -> Result<Attempt, RunError> {
        let mut tried = BTreeSet::from([candidate.name.clone()]);
        loop {
            progress.layer = candidate.layer;
            let (prepared, pack) = self.pack(progress, candidate, input, note).await?;
            if let Some(receipt) = &progress.receipt {
                observer.packed(receipt);
            }
            observer.stage(&format!("asking {}", candidate.name));
            match self.call(progress, candidate, &prepared, &pack).await {
                Ok(reply) => {
                    progress.charge(candidate, reply.usage, observer);
                    return self.judge(progress, &prepared, &pack, reply);
                }
                Err(error) => {
                    tracing::warn!(model = candidate.name, "{error}");
                    let is_open = is_open(&error);
                    if is_open {
                        progress.leave_open(candidate, observer);
                    }
                    let next = self.fallback(candidate, &tried);
                    let Some(next) = next.filter(|_| !is_open || observer.may_spend()) else {
                        return Err(RunError::Model { source: error, run_id: progress.run_id.clone() });
                    };
                    observer.stage(&format!("{error}; falling back to {}", next.name));
                    tried.insert(next.name.clone());
                    *candidate = next;
                }
            }
        }
    }

    fn fallback(&self, failed: &ModelCandidate, tried: &BTreeSet<String>) -> Option<ModelCandidate> {
        let name = failed.spec.fallback.clone().filter(|name| !tried.contains(name))?;
        let spec = self.models.table().model(&name)?.clone();
        Some(ModelCandidate { temperature: spec.temperature, layer: failed.layer, name, spec })
    }

    /// Packs for a candidate and stores what the prompt does not show whole, before anything leaves.
    async fn pack(
        &self,
        progress: &mut Progress<'_>,
        candidate: &ModelCandidate,
        input: &RunInput,
        note: Option<&str>,
    ) -> Result<(PreparedPrompt, Pack), RunError> {
        let recipe = progress.recipe;
        let counter = self.counter(&candidate.spec);
        let mut prepared = self.prepare(recipe, input, candidate, &counter, note, progress.purpose)?;
        prepared.request.by_model = self.policy.use_llm_summarizer
            && self.policy.compression_enabled
            && recipe.compression.enabled
            && progress.purpose == RunKind::Answer;
        let began = Instant::now();
        let packed = self.pack_by_model(recipe, &prepared.request, &counter, &progress.allowance).await?;
        progress.packing += began.elapsed();
        let packed_ref = packed.as_deref().map_err(|receipt| &**receipt);
        let mut receipt = self.receipt(recipe, candidate, &counter, packed_ref);
        receipt.condensing = progress.allowance.tally();
        progress.receipt = Some(receipt.clone());
        match packed {
            Ok(pack) => {
                progress.originals = Originals::of(&prepared.request, &pack.receipt, counter);
                self.keep(&pack)?;
                Ok((prepared, *pack))
            }
            Err(_) => Err(RunError::Refused { receipt: Box::new(receipt), run_id: progress.run_id.clone() }),
        }
    }

    /// Puts inputs into slots. With condensing switched off, what does not fit whole is refused (C50).
    pub(crate) fn prepare(
        &self,
        recipe: &Recipe,
        input: &RunInput,
        candidate: &ModelCandidate,
        counter: &Counter,
        note: Option<&str>,
        purpose: RunKind,
    ) -> Result<PreparedPrompt, RunError> {
        let limits = limits(&candidate.spec);
        let mut prepared = prepare(recipe, input, limits, counter, note)?;
        if let Some(schema) = recipe.output.schema.as_ref().filter(|_| recipe.gates.evidence_required)
            && limits.enforces_schema
            && limits.schema_in_prompt
        {
            prepared.request.framing.per_call += citing_cost(schema, &prepared.citable, counter);
        }
        if !self.policy.compression_enabled || matches!(purpose, RunKind::Condensing { .. }) {
            prepared.request.slots.iter_mut().for_each(|slot| slot.overflow = Overflow::REFUSE);
        }
        Ok(prepared)
    }

    fn keep(&self, pack: &Pack) -> Result<(), StoreError> {
        let originals: Vec<NewPointer<'_>> = pack
            .originals
            .iter()
            .map(|original| NewPointer {
                content: original.text.as_bytes(),
                kind: original.kind,
                display_text: &original.display,
            })
            .collect();
        self.store.put_all(&originals).map(drop)
    }

    fn judge(
        &self,
        progress: &mut Progress<'_>,
        prepared: &PreparedPrompt,
        pack: &Pack,
        reply: ChatReply,
    ) -> Result<Attempt, RunError> {
        let recipe = progress.recipe;
        let stop = reply.stop;
        let parsed = output::parse(&recipe.output, &reply.text);
        progress.answer = Some(reply.text);
        let citable: BTreeSet<String> = shown(pack, &prepared.citable).into_iter().collect();
        progress.gates =
            output::evaluate(parsed.as_ref(), &recipe.output, &recipe.gates, &self.schemas, &citable)
                .map_err(|source| RunError::Schema { recipe: recipe.id(), source })?;
        // Data that can be read is whole, whatever the provider says.
        let whole = recipe.output.format == OutputFormat::Json && parsed.is_ok();
        progress.gates.failures.extend(match stop {
            StopReason::Length if !whole => Some(GateFailure::Cut { limit: prepared.max_output }),
            StopReason::Refusal => Some(GateFailure::Declined),
            _ => None,
        });
        match parsed {
            Ok(parsed) if progress.gates.passed() || leaves_doubt_to_its_role(recipe, &progress.gates) => {
                Ok(Attempt::Answered(parsed))
            }
            _ => Ok(Attempt::Failed(progress.gates.failures.clone())),
        }
    }

    fn receipt(
        &self,
        recipe: &Recipe,
        candidate: &ModelCandidate,
        counter: &Counter,
        packed: Result<&Pack, &Receipt>,
    ) -> RunReceipt {
        let (receipt, messages) = match packed {
            Ok(pack) => (pack.receipt.clone(), pack.messages.clone()),
            Err(receipt) => (receipt.clone(), Vec::new()),
        };
        RunReceipt {
            recipe: recipe.id(),
            version: recipe.version.to_hex(),
            model: candidate.name.clone(),
            tokenizer: counter.name().to_owned(),
            receipt,
            messages,
            condensing: None,
        }
    }
}

/// Roles with a rule of their own for an answer that is sound and not sure enough: whoever runs them asks again, asks
/// the user, or does not approve (C67). The record says how sure it was.
const ROLES_WITH_A_RULE: [&str; 2] = ["reflection", "validation"];

/// Whether all that is wrong with an answer is its confidence, and its role says what to do then.
fn leaves_doubt_to_its_role(recipe: &Recipe, gates: &GateResult) -> bool {
    let has_rule = recipe.role.as_deref().is_some_and(|role| ROLES_WITH_A_RULE.contains(&role));
    has_rule && gates.failures.iter().all(|failure| matches!(failure, GateFailure::LowConfidence { .. }))
}

fn listed(failures: &[GateFailure]) -> String {
    failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn limits(spec: &ModelSpec) -> ModelLimits {
    ModelLimits {
        window: spec.window,
        max_output: usize::try_from(spec.max_output).unwrap_or(usize::MAX),
        enforces_schema: spec.can(Capability::JsonSchema),
        // The embedded model is bound by a grammar; its prompt does not hold the schema.
        schema_in_prompt: spec.provider != Provider::Embedded,
    }
}

/// The layer that is asked when one cannot give an answer that passes (C66, C67).
const fn next_layer(layer: Layer) -> Option<Layer> {
    match layer {
        Layer::Reflex | Layer::Nerves => Some(Layer::Mind),
        Layer::Mind => Some(Layer::Voice),
        Layer::Voice | Layer::Eyes => None,
    }
}
