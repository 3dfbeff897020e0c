//! Running one recipe for a phase: offered what the turn has, given what it reads, charged, measured, recorded. The only
//! place of a turn that asks a model.

use std::sync::Arc;

use larder_core::recipe::{Layer, Recipe};
use larder_vault::{RunMetrics, turn_name};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::error::Stop;
use super::machine::{CONTEXT, Machine};
use super::state::Step;
use larder_engine::answer::{self, UnusableAnswer};
use larder_engine::executor::{RunKind, RunOutcome, Spending};
use larder_engine::inputs::{InputDocument, RunInput};

/// Picodollars of a millionth of a dollar.
const PICOS_PER_MICRO: u64 = 1_000_000;

/// What a phase offers to a recipe. Each recipe takes of it what it reads.
#[derive(Debug, Clone, Default)]
pub(super) struct Offer {
    pub(super) documents: Vec<InputDocument>,
    pub(super) values: Vec<(&'static str, Value)>,
    /// What is to be done otherwise, one a line.
    pub(super) hints: Vec<String>,
    /// Asks this layer in place of the recipe's own.
    pub(super) layer: Option<Layer>,
}

impl Machine<'_> {
    /// Runs a recipe and makes of its answer what the phase needs. An answer that keeps to its schema and cannot be
    /// used is asked for once more, with what is wrong among the hints.
    pub(super) async fn decide<A: DeserializeOwned, T>(
        &mut self,
        name: &str,
        mut offer: Offer,
        make: impl Fn(&A) -> Result<T, UnusableAnswer>,
    ) -> Result<(A, T), Stop> {
        let used = |output: &Value| {
            let answer: A = answer::read(output)?;
            let made = make(&answer)?;
            Ok::<_, UnusableAnswer>((answer, made))
        };
        let outcome = self.ask(name, offer.clone()).await?;
        match used(&outcome.output) {
            Ok(used) => return Ok(used),
            Err(unusable) => offer.hints.push(unusable.to_string()),
        }
        let outcome = self.ask(name, offer).await?;
        used(&outcome.output).map_err(|unusable| Stop::Fail(format!("{name}: {unusable}")))
    }

    /// Runs a recipe of `pipeline/`; where modes have their own, `name` is followed by `_chat` or `_code` (R0-17.4).
    pub(super) async fn ask(&mut self, name: &str, offer: Offer) -> Result<RunOutcome, Stop> {
        self.may_spend()?;
        let turns = self.turns;
        let name = format!("pipeline/{name}");
        let mode = self.draft.mode;
        let found = turns.engine.find(&name, Some(mode));
        let recipe = found.map_err(|source| turns.engine.missing(&name, source))?;
        // How sure an answer has to be, and what follows if it is not, is the turn's own rule (C67).
        let mut recipe = recipe.clone();
        recipe.gates.confidence_threshold = None;
        recipe.layer = offer.layer.unwrap_or(recipe.layer);
        let input = self.input(&recipe, offer);
        let began = self.clock.now();
        let meter = Arc::clone(&self.meter);
        let run = turns.engine.run_recipe(&recipe, &input, &*meter, RunKind::Answer);
        let ended = match self.until {
            None => Ok(run.await),
            Some(until) => tokio::time::timeout_at(until, run).await,
        };
        // Whatever came of it, what it took counts.
        let taken = self.settle_meter();
        let outcome = ended.map_err(|_| Stop::Exhausted(self.out_of_time()))??;
        self.note(&outcome, taken, began);
        Ok(outcome)
    }

    /// The recipe of that name, which a project may have made its own.
    pub(super) fn recipe(&self, name: &str) -> Option<&'_ Recipe> {
        let mode = self.draft.mode;
        self.turns.engine.find(&format!("pipeline/{name}"), Some(mode)).ok()
    }

    /// The recipe by which a phase works in the turn's mode.
    pub(super) fn by_mode(&self, name: &str) -> String {
        format!("{name}_{}", self.draft.mode)
    }

    fn input(&mut self, recipe: &Recipe, offer: Offer) -> RunInput {
        let reads = |name: &str| {
            recipe.input_docs.iter().any(|doc| doc.name == name)
                || name == CONTEXT && !recipe.input_sections.is_empty()
        };
        let context = InputDocument::whole(CONTEXT, self.at().as_str(), Arc::from(self.context.as_str()));
        let documents = offer.documents.into_iter().chain([context]);
        let now = ("now", json!(self.clock.now()));
        let hints = ("hints", json!(offer.hints.join("\n")));
        let values = offer.values.into_iter().chain([now, hints]);
        RunInput {
            documents: documents.filter(|document| reads(&document.input)).collect(),
            query: Some(self.draft.query.clone()),
            values: values
                .filter(|(name, _)| recipe.inputs.contains(*name))
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            mode: Some(self.draft.mode),
            session_id: self.draft.session.clone(),
            turn_id: Some(turn_name(self.draft.number)),
            ..RunInput::default()
        }
    }

    fn note(&mut self, outcome: &RunOutcome, taken: Spending, began: larder_vault::Timestamp) {
        let metrics = metrics(self.state.step, outcome, taken, self.clock.millis_since(began));
        self.state.receipts.push(receipt(&metrics, outcome));
        self.state.runs.push(metrics);
    }
}

/// What a run took, with what condensed for it.
fn metrics(step: Step, outcome: &RunOutcome, taken: Spending, duration_ms: u64) -> RunMetrics {
    RunMetrics {
        phase: step.phase(),
        recipe: outcome.receipt.recipe.clone(),
        run: outcome.run_id.to_string(),
        model: outcome.receipt.model.clone(),
        duration_ms,
        tokens_in: taken.usage.input,
        tokens_out: taken.usage.output,
        cost_microdollars: taken.cost.map_or(0, |cost| cost.picos() / PICOS_PER_MICRO),
    }
}

/// What a run read, in which form, and why: the short form of the run's own receipt, which is stored with the run.
fn receipt(metrics: &RunMetrics, outcome: &RunOutcome) -> Value {
    let parts = outcome.receipt.receipt.parts.iter();
    let read: Vec<Value> = parts
        .filter(|part| !matches!(&*part.slot, "system" | "output_schema" | "note"))
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
