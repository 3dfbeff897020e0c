//! The executor: the only code that talks to a model. Load, prepare, pack, store originals, ask, validate, record.
//!
//! Failures follow one table (C66): an answer that fails its gates is repaired, then asked of the next layer, then
//! becomes an intervention; a provider that fails is replaced by its fallback model, for which the prompt is packed
//! anew; a recipe that is missing is an intervention at once. Whatever happens, one record is written.

use std::collections::BTreeSet;

use std::time::{Duration, Instant};

use larder_core::message::Message;
use larder_core::output::{self, Citation, GateFailure, GateResult, Parsed};
use larder_core::pack::{Pack, PackError, PartReceipt, Receipt, Rendition};
use larder_core::recipe::{Layer, Mode, Recipe, RecipeError};
use larder_core::tokens::Counter;
use larder_models::chat::{ChatReply, ChatRequest, ModelError, Usage};
use larder_models::price::Usd;
use larder_models::table::{Capability, ModelSpec};
use larder_store::{
    Intervention, NewIntervention, NewPointer, NewRun, RunFacts, RunId, RunStatus, RunTokens, StoreError,
};
use serde::Serialize;

use crate::engine::Engine;
use crate::inputs::RunInput;
use crate::packer;
use crate::prepare::{ModelLimits, PrepareError, Prepared, prepare};

/// Tokens of a refused answer that its repair may show.
const SHOWN_ANSWER: usize = 120;

/// A run that gave no answer. Its record, where there is one, is in the store.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no such recipe, or it has errors; an intervention was raised (R0-18.2).
    #[error("{source}{}", hint(source))]
    Recipe {
        /// What is wrong.
        source: RecipeError,
        /// The request for a human.
        intervention: u64,
    },
    /// The inputs do not fit the recipe.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// The parts contradict each other.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// The prompt cannot fit; nothing was sent.
    #[error("nothing was sent: {}", refused(receipt))]
    Refused {
        /// What was tried.
        receipt: Box<RunReceipt>,
        /// The run's record.
        run_id: RunId,
    },
    /// No model could be reached, its fallbacks included.
    #[error("{source}")]
    Model {
        /// The last failure.
        source: ModelError,
        /// The run's record.
        run_id: RunId,
    },
    /// The layer is bound to no model.
    #[error("layer {layer} is bound to no model; bind it under [models.layers] in larder.toml")]
    Unbound {
        /// The layer.
        layer: &'static str,
    },
    /// Every answer failed its gates; an intervention was raised (R0-13.6).
    #[error("no answer passed the checks of recipe {recipe}: {failures}; see `larder interventions show {intervention}`")]
    Gates {
        /// The recipe.
        recipe: String,
        /// What was wrong with the last answer.
        failures: String,
        /// The request for a human.
        intervention: u64,
        /// The run's record.
        run_id: RunId,
    },
    /// The recipe's schema cannot be compiled.
    #[error("recipe {recipe}: {source}")]
    Schema {
        /// The recipe.
        recipe: String,
        /// What is wrong.
        source: output::SchemaError,
    },
    /// What has to persist could not.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn hint(error: &RecipeError) -> String {
    if error.help().is_empty() { String::new() } else { format!("; {}", error.help()) }
}

fn refused(receipt: &RunReceipt) -> String {
    receipt.receipt.refused.as_ref().map(ToString::to_string).unwrap_or_default()
}

/// The receipt of a pack, with what it was packed for.
#[derive(Debug, Clone, PartialEq, Serialize, serde::Deserialize)]
pub struct RunReceipt {
    /// `category/name`.
    pub recipe: String,
    /// The recipe's version.
    pub version: String,
    /// The model's name in the table.
    pub model: String,
    /// Who counted.
    pub tokenizer: String,
    /// The pack's own receipt.
    #[serde(flatten)]
    pub receipt: Receipt,
    /// The prompt itself.
    pub messages: Vec<Message>,
}

/// A citation resolved to the stretch of the document it stands on (R0-14.8).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResolvedCitation {
    /// The part.
    pub part: String,
    /// The document.
    pub source: String,
    /// The document's version: its content address, when it is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// Bytes of the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<(usize, usize)>,
    /// Lines of the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<(usize, usize)>,
}

/// What a run gives.
#[derive(Debug, Clone, Serialize)]
pub struct RunOutcome {
    /// The run's record.
    pub run_id: RunId,
    /// The checked answer: a value, or text.
    pub output: serde_json::Value,
    /// What of it a user may read.
    #[serde(skip)]
    pub reply: String,
    /// What it stands on.
    pub citations: Vec<ResolvedCitation>,
    /// How the prompt was packed.
    pub receipt: RunReceipt,
    /// Tokens of all calls of the run.
    pub usage: Usage,
    /// Price of all calls, in US dollars.
    pub cost: Option<Usd>,
    /// From start to end.
    pub latency_ms: u64,
}

/// Told what a run is doing, for progress on a terminal.
pub trait Observer: Send + Sync {
    /// A stage begins.
    fn stage(&self, text: &str);
    /// A prompt is packed and about to leave.
    fn packed(&self, receipt: &RunReceipt);
}

/// Says nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn stage(&self, _: &str) {}
    fn packed(&self, _: &RunReceipt) {}
}

/// One model that may answer.
struct Candidate {
    name: String,
    layer: Layer,
    spec: ModelSpec,
    temperature: Option<f32>,
}

/// What a run has come to so far.
struct Progress<'a> {
    recipe: &'a Recipe,
    run_id: RunId,
    started: Instant,
    usage: Usage,
    cost: Option<Usd>,
    calls: u32,
    receipt: Option<RunReceipt>,
    answer: Option<String>,
    gates: GateResult,
    layer: Layer,
}

enum Attempt {
    Answered(Parsed),
    Failed(Vec<GateFailure>),
}

impl Engine {
    /// Runs a recipe: the only way to call a model (R0-8.2, R0-21.10).
    pub async fn run(&self, name: &str, input: &RunInput, observer: &dyn Observer) -> Result<RunOutcome, RunError> {
        let recipe = self.find(name, input.mode)?;
        let mut progress = Progress {
            recipe,
            run_id: self.store.store().new_run_id()?,
            started: Instant::now(),
            usage: Usage::default(),
            cost: None,
            calls: 0,
            receipt: None,
            answer: None,
            gates: GateResult::default(),
            layer: recipe.layer,
        };
        let outcome = self.attempts(&mut progress, input, observer).await;
        self.finish(progress, input, outcome)
    }

    /// Packs what a run would send, without sending it.
    pub fn explain(&self, name: &str, input: &RunInput) -> Result<RunReceipt, RunError> {
        let recipe = self.find(name, input.mode)?;
        let candidate = self.candidate(recipe.layer, input.mode.or(recipe.mode))?;
        let counter = self.counter(&candidate.spec);
        let prepared = prepare(recipe, input, limits(&candidate.spec), &counter, None)?;
        let packed = packer::pack(&prepared.request, &counter, self.store.key())?;
        Ok(self.receipt(recipe, &candidate, &counter, packed.as_ref()))
    }

    /// Packs with more tokens than the recipe allows, to show what they would let in.
    pub fn explain_with(&self, name: &str, input: &RunInput, extra: usize) -> Result<RunReceipt, RunError> {
        let recipe = self.find(name, input.mode)?;
        let candidate = self.candidate(recipe.layer, input.mode.or(recipe.mode))?;
        let counter = self.counter(&candidate.spec);
        let mut prepared = prepare(recipe, input, limits(&candidate.spec), &counter, None)?;
        prepared.request.budget.total += extra;
        prepared.request.budget.window += extra;
        let packed = packer::pack(&prepared.request, &counter, self.store.key())?;
        Ok(self.receipt(recipe, &candidate, &counter, packed.as_ref()))
    }

    fn find(&self, name: &str, mode: Option<Mode>) -> Result<&Recipe, RunError> {
        let found = self.project.recipe(name).or_else(|error| match mode {
            Some(mode) => self.project.recipe_for_mode(name, mode).map_err(|_| error),
            None => Err(error),
        });
        found.map_err(|source| {
            tracing::error!("{source}");
            let new = NewIntervention::missing_recipe(name);
            match self.store.raise(&new) {
                Ok(intervention) => RunError::Recipe { source, intervention: intervention.id },
                Err(error) => error.into(),
            }
        })
    }

    fn candidate(&self, layer: Layer, mode: Option<Mode>) -> Result<Candidate, RunError> {
        let found = self.models.table().resolve(layer, mode).ok_or(RunError::Unbound { layer: layer.as_str() })?;
        Ok(Candidate {
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
        observer: &dyn Observer,
    ) -> Result<Parsed, RunError> {
        let recipe = progress.recipe;
        let mode = input.mode.or(recipe.mode);
        let mut candidate = self.candidate(recipe.layer, mode)?;
        let mut note: Option<String> = None;
        let mut failures = Vec::new();
        for attempt in 0..=recipe.gates.max_retries {
            if attempt > 0 {
                observer.stage("the answer did not pass its checks; asking again");
            }
            match self.attempt(progress, &mut candidate, input, note.as_deref(), observer).await? {
                Attempt::Answered(parsed) => return Ok(parsed),
                Attempt::Failed(found) => failures = found,
            }
            let repair = output::repair_message(&failures);
            if repair.is_empty() {
                break;
            }
            note = Some(self.repair_note(progress, &candidate, &repair));
        }
        let next = next_layer(recipe.layer).map(|layer| self.candidate(layer, mode)).transpose();
        if let Ok(Some(mut next)) = next
            && next.name != candidate.name
        {
            observer.stage(&format!("asking layer {} instead", next.layer.as_str()));
            match self.attempt(progress, &mut next, input, note.as_deref(), observer).await? {
                Attempt::Answered(parsed) => return Ok(parsed),
                Attempt::Failed(found) => failures = found,
            }
        }
        let list: Vec<String> = failures.iter().map(ToString::to_string).collect();
        let message = format!("No answer passed the checks of {}: {}", recipe.id(), list.join("; "));
        let intervention = self.raise("gate_failure", &message, progress)?;
        Err(RunError::Gates {
            recipe: recipe.id(),
            failures: list.join("; "),
            intervention: intervention.id,
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

    fn repair_note(&self, progress: &Progress<'_>, candidate: &Candidate, repair: &str) -> String {
        let answer = progress.answer.as_deref().unwrap_or_default();
        let counter = self.counter(&candidate.spec);
        let shown = counter.prefix(answer, SHOWN_ANSWER);
        if shown.is_empty() { repair.to_owned() } else { format!("Your last answer began:\n{shown}\n\n{repair}") }
    }

    /// One answer from a candidate or, when its provider fails, from its fallbacks, each with a prompt packed for its
    /// own window.
    async fn attempt(
        &self,
        progress: &mut Progress<'_>,
        candidate: &mut Candidate,
        input: &RunInput,
        note: Option<&str>,
        observer: &dyn Observer,
    ) -> Result<Attempt, RunError> {
        let recipe = progress.recipe;
        let mut tried = BTreeSet::from([candidate.name.clone()]);
        loop {
            progress.layer = candidate.layer;
            let (prepared, pack) = self.pack(progress, candidate, input, note)?;
            if let Some(receipt) = &progress.receipt {
                observer.packed(receipt);
            }
            observer.stage(&format!("asking {}", candidate.name));
            match self.ask(recipe, candidate, &prepared, &pack).await {
                Ok(reply) => return self.judge(progress, candidate, &prepared, &pack, reply),
                Err(error) => {
                    tracing::warn!(model = candidate.name, "{error}");
                    let Some(next) = self.fallback(candidate, &tried) else {
                        return Err(RunError::Model { source: error, run_id: progress.run_id.clone() });
                    };
                    observer.stage(&format!("{error}; falling back to {}", next.name));
                    tried.insert(next.name.clone());
                    *candidate = next;
                }
            }
        }
    }

    fn fallback(&self, failed: &Candidate, tried: &BTreeSet<String>) -> Option<Candidate> {
        let name = failed.spec.fallback.clone().filter(|name| !tried.contains(name))?;
        let spec = self.models.table().model(&name)?.clone();
        Some(Candidate { temperature: spec.temperature, layer: failed.layer, name, spec })
    }

    /// Packs for a candidate and stores what the prompt does not show whole, before anything leaves.
    fn pack(
        &self,
        progress: &mut Progress<'_>,
        candidate: &Candidate,
        input: &RunInput,
        note: Option<&str>,
    ) -> Result<(Prepared, Pack), RunError> {
        let counter = self.counter(&candidate.spec);
        let prepared = prepare(progress.recipe, input, limits(&candidate.spec), &counter, note)?;
        let packed = packer::pack(&prepared.request, &counter, self.store.key())?;
        let receipt = self.receipt(progress.recipe, candidate, &counter, packed.as_ref());
        progress.receipt = Some(receipt.clone());
        match packed {
            Ok(pack) => {
                self.keep(&pack)?;
                Ok((prepared, *pack))
            }
            Err(_) => Err(RunError::Refused { receipt: Box::new(receipt), run_id: progress.run_id.clone() }),
        }
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

    async fn ask(
        &self,
        recipe: &Recipe,
        candidate: &Candidate,
        prepared: &Prepared,
        pack: &Pack,
    ) -> Result<ChatReply, ModelError> {
        let model = self.models.chat(&candidate.name)?;
        let enforced = candidate.spec.can(Capability::JsonSchema);
        let request = ChatRequest {
            model: candidate.spec.id.clone(),
            messages: pack.messages.clone(),
            tools: Vec::new(),
            schema: recipe.output.schema.clone().filter(|_| enforced),
            max_output: u32::try_from(prepared.max_output).unwrap_or(u32::MAX),
            temperature: candidate.temperature,
            timeout: Duration::from_millis(recipe.gates.timeout_ms).max(candidate.spec.timeout),
            stable_messages: pack.stable_messages,
            thinking_budget: None,
        };
        model.chat(&request).await
    }

    fn judge(
        &self,
        progress: &mut Progress<'_>,
        candidate: &Candidate,
        prepared: &Prepared,
        pack: &Pack,
        reply: ChatReply,
    ) -> Result<Attempt, RunError> {
        let recipe = progress.recipe;
        progress.calls += 1;
        add(&mut progress.usage, &reply.usage);
        if let Some(prices) = &candidate.spec.prices {
            let cost = prices.cost(&reply.usage).total;
            progress.cost = Some(progress.cost.map_or(cost, |sum| sum + cost));
        }
        let parsed = output::parse(&recipe.output, &reply.text);
        progress.answer = Some(reply.text);
        let citable = shown(pack, &prepared.citable);
        progress.gates = output::evaluate(parsed.as_ref(), &recipe.output, &recipe.gates, &self.schemas, &citable)
            .map_err(|source| RunError::Schema { recipe: recipe.id(), source })?;
        match parsed {
            Ok(parsed) if progress.gates.passed() => Ok(Attempt::Answered(parsed)),
            _ => Ok(Attempt::Failed(progress.gates.failures.clone())),
        }
    }

    fn receipt(
        &self,
        recipe: &Recipe,
        candidate: &Candidate,
        counter: &Counter,
        packed: Result<&Box<Pack>, &Box<Receipt>>,
    ) -> RunReceipt {
        let (receipt, messages) = match packed {
            Ok(pack) => (pack.receipt.clone(), pack.messages.clone()),
            Err(receipt) => ((**receipt).clone(), Vec::new()),
        };
        RunReceipt {
            recipe: recipe.id(),
            version: recipe.version.to_hex(),
            model: candidate.name.clone(),
            tokenizer: counter.name().to_owned(),
            receipt,
            messages,
        }
    }

    /// Writes the one record of a run, whatever came of it.
    fn finish(
        &self,
        progress: Progress<'_>,
        input: &RunInput,
        outcome: Result<Parsed, RunError>,
    ) -> Result<RunOutcome, RunError> {
        let latency_ms = u64::try_from(progress.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let Some(receipt) = progress.receipt.clone() else {
            return outcome.and(Err(RunError::Unbound { layer: progress.layer.as_str() }));
        };
        let facts = facts(&progress, input, &receipt, &outcome, latency_ms);
        let json = serde_json::to_vec(&receipt).unwrap_or_default();
        let pointers: Vec<_> = receipt
            .receipt
            .parts
            .iter()
            .filter(|part| receipt.receipt.refused.is_none() && part.rendition != Rendition::Whole)
            .filter_map(|part| part.pointer.clone())
            .collect();
        self.store.record_run(NewRun {
            run_id: progress.run_id.clone(),
            facts,
            receipt: &json,
            output: progress.answer.as_deref().map(str::as_bytes),
            pointers: &pointers,
        })?;
        let parsed = outcome?;
        let citations = resolve(&progress.gates.citations, &receipt.receipt.parts, self);
        Ok(RunOutcome {
            run_id: progress.run_id,
            output: parsed.value,
            reply: parsed.reply,
            citations,
            receipt,
            usage: progress.usage,
            cost: progress.cost,
            latency_ms,
        })
    }
}

fn limits(spec: &ModelSpec) -> ModelLimits {
    ModelLimits {
        window: spec.window,
        max_output: usize::try_from(spec.max_output).unwrap_or(usize::MAX),
        enforces_schema: spec.can(Capability::JsonSchema),
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

fn add(sum: &mut Usage, usage: &Usage) {
    sum.input += usage.input;
    sum.cached_input += usage.cached_input;
    sum.cache_write += usage.cache_write;
    sum.output += usage.output;
    sum.reasoning += usage.reasoning;
}

/// Parts that an answer may cite: those the model could read at least in part.
fn shown(pack: &Pack, citable: &BTreeSet<String>) -> BTreeSet<String> {
    let readable = |part: &&PartReceipt| matches!(part.rendition, Rendition::Whole | Rendition::Condensed);
    pack.receipt
        .parts
        .iter()
        .filter(readable)
        .map(|part| part.id.clone())
        .filter(|id| citable.contains(id))
        .collect()
}

fn resolve(citations: &[Citation], parts: &[PartReceipt], engine: &Engine) -> Vec<ResolvedCitation> {
    let mut seen = BTreeSet::new();
    citations
        .iter()
        .filter(|citation| seen.insert(citation.part.clone()))
        .filter_map(|citation| {
            let part = parts.iter().find(|part| part.id == citation.part)?;
            let _ = engine;
            Some(ResolvedCitation {
                part: part.id.clone(),
                source: part.source.clone(),
                pointer: part.pointer.as_ref().map(ToString::to_string),
                bytes: part.bytes,
                lines: part.lines,
            })
        })
        .collect()
}

fn facts(
    progress: &Progress<'_>,
    input: &RunInput,
    receipt: &RunReceipt,
    outcome: &Result<Parsed, RunError>,
    latency_ms: u64,
) -> RunFacts {
    let pack = &receipt.receipt;
    let tokens = |slot: &dyn Fn(&str) -> bool| {
        pack.parts.iter().filter(|part| slot(&part.slot)).map(|part| part.tokens as u64).sum::<u64>()
    };
    let is_prompt = |slot: &str| matches!(slot, "system" | "agent" | "output_schema");
    let saved: u64 = pack
        .parts
        .iter()
        .filter_map(|part| Some((part.original_tokens?).saturating_sub(part.tokens) as u64))
        .sum();
    let compressed = pack.parts.iter().any(|part| part.rendition != Rendition::Whole);
    let prompt = tokens(&is_prompt);
    RunFacts {
        recipe: progress.recipe.name.clone(),
        recipe_version: receipt.version.clone(),
        model_layer: progress.layer.as_str().to_owned(),
        model: receipt.model.clone(),
        session_id: input.session_id.clone(),
        turn_id: input.turn_id.clone(),
        tokens: RunTokens {
            prompt,
            input: (pack.total as u64).saturating_sub(prompt),
            output: progress.usage.output,
        },
        latency_ms,
        success: outcome.is_ok(),
        schema_valid: progress.gates.schema_valid,
        confidence: progress.gates.confidence,
        retries: progress.calls.saturating_sub(1),
        compression_applied: compressed,
        compression_savings: if compressed { saved } else { 0 },
        cost_usd: progress.cost.map(|cost| cost.to_string().parse().unwrap_or_default()),
        status: match outcome {
            Ok(_) => RunStatus::Completed,
            Err(RunError::Refused { .. }) => RunStatus::Refused,
            Err(RunError::Gates { .. }) => RunStatus::Intervention,
            Err(_) => RunStatus::Failed,
        },
        error: outcome.as_ref().err().map(|error| class(error).to_owned()),
    }
}

/// The class of an error, as records print it; never its payload (C104).
fn class(error: &RunError) -> &'static str {
    match error {
        RunError::Recipe { .. } => "recipe",
        RunError::Prepare(_) | RunError::Pack(_) => "input",
        RunError::Refused { .. } => "refused",
        RunError::Unbound { .. } => "unbound_layer",
        RunError::Gates { .. } => "gates",
        RunError::Schema { .. } => "schema",
        RunError::Store(_) => "store",
        RunError::Model { source, .. } => match source {
            ModelError::Timeout { .. } => "timeout",
            ModelError::RateLimited { .. } => "rate_limited",
            ModelError::Server { .. } => "server",
            ModelError::Unreachable { .. } => "unreachable",
            ModelError::WindowExceeded { .. } => "window_exceeded",
            _ => "model",
        },
    }
}

