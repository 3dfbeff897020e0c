//! Runs one recipe for a phase: selects its inputs from what the phase offers, charges and records it. The only place
//! in a turn that calls a model.

use std::sync::Arc;

use larder_core::recipe::{Layer, Recipe};
use larder_engine::Engine;
use larder_engine::answer::{self, UnusableAnswer};
use larder_engine::executor::{RunError, RunKind, RunOutcome, Spending};
use larder_engine::inputs::{InputDocument, RunInput};
use larder_models::table::Provider;
use larder_store::TurnDraft;
use larder_vault::{DocumentTime, RunMetrics, turn_name};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::clock::TurnClock;
use super::documents::{CONTEXT, TurnDocument};
use super::error::Stop;
use super::event::Events;
use super::evidence;
use super::limits::TurnBudget;
use super::state::TurnState;
use super::turn_phase::TurnPhase;

/// Picodollars of a millionth of a dollar.
const PICOS_PER_MICRO: u64 = 1_000_000;

/// What a phase offers to a recipe; the recipe receives the inputs that it names.
#[derive(Debug, Clone, Default)]
pub(super) struct PhaseInputs {
    pub(super) documents: Vec<InputDocument>,
    pub(super) values: Vec<(&'static str, Value)>,
    /// What to do differently, one hint a line.
    pub(super) hints: Vec<String>,
    /// The layer to ask instead of the recipe's own.
    pub(super) layer: Option<Layer>,
    /// Whether the answer need not cite anything, whatever the recipe asks for.
    pub(super) is_free: bool,
}

/// Runs recipes of `pipeline/` with the documents, at the expense and on the record of one turn.
pub(super) struct RecipeRunner<'c> {
    pub(super) events: Events<'c>,
    pub(super) engine: &'c Engine,
    pub(super) draft: &'c TurnDraft,
    pub(super) document: &'c TurnDocument<'c>,
    pub(super) state: &'c mut TurnState,
    pub(super) clock: &'c mut TurnClock,
    pub(super) budget: &'c mut TurnBudget,
}

impl RecipeRunner<'_> {
    /// Runs a recipe and converts its answer with `convert`. An answer that satisfies its schema but is unusable is
    /// requested once more, with the problem among the hints.
    pub(super) async fn decide<A: DeserializeOwned, T>(
        &mut self,
        name: &str,
        mut inputs: PhaseInputs,
        convert: impl Fn(&A) -> Result<T, UnusableAnswer>,
    ) -> Result<(A, T), Stop> {
        let used = |output: &Value| {
            let answer: A = answer::read(output)?;
            let converted = convert(&answer)?;
            Ok::<_, UnusableAnswer>((answer, converted))
        };
        let outcome = self.run(name, inputs.clone()).await?;
        match used(&outcome.output) {
            Ok(used) => return Ok(used),
            Err(unusable) => inputs.hints.push(unusable.to_string()),
        }
        let layer = self.layer_of(name, &inputs);
        let outcome = self.run(name, inputs).await?;
        used(&outcome.output).map_err(|unusable| {
            let stop = Stop::Fail(format!("{name}: {unusable}"));
            match layer {
                Some(layer) => self.advised(stop, layer),
                None => stop,
            }
        })
    }

    fn layer_of(&self, name: &str, inputs: &PhaseInputs) -> Option<Layer> {
        let recipe = self.engine.find(&format!("pipeline/{name}"), Some(self.draft.mode)).ok()?;
        Some(inputs.layer.unwrap_or(recipe.layer))
    }

    /// How a phase ends whose model gave no usable answer, with advice if that is the embedded one.
    fn advised(&self, stop: Stop, layer: Layer) -> Stop {
        let candidate = self.engine.candidate(layer, Some(self.draft.mode));
        if !candidate.is_ok_and(|candidate| candidate.spec.provider == Provider::Embedded) {
            return stop;
        }
        let advice = |reason| {
            let layer = layer.as_str();
            format!("{reason}; the embedded model is too small for turns: bind {layer} to a better model")
        };
        match stop {
            Stop::Fail(reason) => Stop::Fail(advice(reason)),
            Stop::Unmet { run, reason, unknown_citations } => {
                Stop::Unmet { run, reason: advice(reason), unknown_citations }
            }
            stop => stop,
        }
    }

    /// Runs a recipe once.
    pub(super) async fn run(&mut self, name: &str, inputs: PhaseInputs) -> Result<RunOutcome, Stop> {
        self.budget.check(self.state)?;
        let name = format!("pipeline/{name}");
        let found = self.engine.find(&name, Some(self.draft.mode));
        let mut recipe = found.map_err(|source| self.engine.missing(&name, source))?.clone();
        // The turn has its own rule for the required confidence and what follows if it is missed (C67).
        recipe.gates.confidence_threshold = None;
        recipe.gates.evidence_required &= !inputs.is_free;
        recipe.layer = inputs.layer.unwrap_or(recipe.layer);
        let input = self.input(&recipe, inputs);
        let began = self.clock.now();
        let meter = Arc::clone(&self.budget.meter);
        let run = self.engine.run_recipe(&recipe, &input, &*meter, RunKind::Answer);
        let ended = self.budget.within(run).await;
        // Usage counts whatever the result.
        let spent = self.budget.settle(self.state);
        let outcome = ended.ok_or_else(|| Stop::Exhausted(self.budget.out_of_time()))?;
        if let Err(error @ RunError::Unaffordable { .. }) = &outcome {
            return Err(Stop::Exhausted(self.budget.unaffordable(self.state, &error.to_string())));
        }
        let outcome = outcome.map_err(|error| self.advised(error.into(), recipe.layer))?;
        self.record(&outcome, spent, began);
        if let Some(notice) =
            outcome.receipt.condensing.as_ref().and_then(|tally| tally.notice(&outcome.run_id))
        {
            self.events.warn(notice);
        }
        Ok(outcome)
    }

    fn input(&mut self, recipe: &Recipe, inputs: PhaseInputs) -> RunInput {
        let reads = |name: &str| {
            recipe.input_docs.iter().any(|doc| doc.name == name)
                || name == CONTEXT && !recipe.input_sections.is_empty()
        };
        let TurnDocument { text, at, .. } = self.document;
        let context = InputDocument::whole(CONTEXT, at.as_str(), Arc::from(text.as_str()));
        let attached = evidence::attachments(self.draft).into_iter().map(attached);
        let documents = inputs.documents.into_iter().chain(attached).chain([context]);
        let now = ("now", json!(self.clock.now()));
        let hints = ("hints", json!(inputs.hints.join("\n")));
        let values = inputs.values.into_iter().chain([now, hints]);
        RunInput {
            documents: documents.filter(|document| reads(&document.input)).collect(),
            query: Some(self.document.asked().unwrap_or_else(|| self.draft.query.clone())),
            values: values
                .filter(|(name, _)| recipe.inputs.contains(*name))
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            mode: Some(self.draft.mode),
            session_id: Some(self.session()),
            turn_id: Some(turn_name(self.draft.number)),
            ..RunInput::default()
        }
    }

    /// The session in the records: that of documents, which is the user where a turn belongs to none.
    fn session(&self) -> String {
        self.draft.session.clone().unwrap_or_else(|| self.engine.store.user().to_owned())
    }

    fn record(&mut self, outcome: &RunOutcome, spent: Spending, began: DocumentTime) {
        let metrics = metrics(self.state.next, outcome, spent, self.clock.millis_since(began));
        self.state.receipts.push(receipt(&metrics, outcome));
        self.state.runs.push(metrics);
    }
}

/// An attachment as an input of a recipe.
fn attached((name, text): (String, String)) -> InputDocument {
    InputDocument::whole("attachment", name, text)
}

/// What a run spent, the condensing for it included.
fn metrics(phase: TurnPhase, outcome: &RunOutcome, spent: Spending, duration_ms: u64) -> RunMetrics {
    RunMetrics {
        phase: phase.number(),
        recipe: outcome.receipt.recipe.clone(),
        run: outcome.run_id.to_string(),
        model: outcome.receipt.model.clone(),
        duration_ms,
        tokens_in: spent.usage.input,
        tokens_out: spent.usage.output,
        cost_microdollars: spent.cost.map_or(0, |cost| cost.picos() / PICOS_PER_MICRO),
    }
}

/// What a run read, in which rendition, and why: the short form of the receipt that is stored with the run.
fn receipt(metrics: &RunMetrics, outcome: &RunOutcome) -> Value {
    let parts = outcome.receipt.receipt.parts.iter();
    let read: Vec<Value> = parts
        .filter(|part| !matches!(&*part.slot, "system" | "output_schema" | "citing" | "marks" | "note"))
        .map(|part| {
            json!({
                "part": &*part.id, "source": &*part.source, "rendition": part.rendition, "tokens": part.tokens,
                "original_tokens": part.original_tokens, "reason": part.reason,
            })
        })
        .collect();
    json!({
        "phase": metrics.phase, "recipe": metrics.recipe, "run": metrics.run, "model": metrics.model, "read": read,
    })
}
