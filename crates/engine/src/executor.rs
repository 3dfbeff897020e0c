//! The executor: the only code that calls a model. Prepare, pack, store originals, call, validate, record.
//!
//! Failures follow one table (C66): an answer that fails its gates is repaired, then requested from the next layer,
//! then becomes an intervention; a provider that fails is replaced by its fallback model, for which the prompt is
//! packed again; a missing recipe is an intervention at once. Every run writes one record.

mod attempt;
mod call;
mod condense;
mod explain;
mod judge;
mod quoted;
mod record;
mod report;
mod rounds;

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, FutureExt};
use larder_core::output::{self, GateFailure, GateResult, Parsed};
use larder_core::pack::Pack;
use larder_core::recipe::{Layer, Mode, Recipe, RecipeError, TokenBudget};
use larder_core::route::RouteDecision;
use larder_store::{NewIntervention, NewPointer, RunId, StoreError, UserStore};
use larder_text::message::Message;
use larder_text::tokens::Counter;

use self::attempt::AttemptResult;
use self::record::Originals;
pub use crate::candidate::ModelCandidate;
use crate::candidate::next_layer;
use crate::condensing::Summarizer;
use crate::engine::Engine;
use crate::history::HistoryOriginal;
use crate::inputs::RunInput;
pub use crate::metrics::{NoopSink, ReducedText, RunMetricsSink, RunReport};
pub use crate::model_set::{ModelSet, max_call_usage};
use crate::run::RunRecipe;
pub use crate::run::{
    AroundFailure, CallReceipt, CondensingTally, FailedCall, Meter, ModelSpending, NoopObserver,
    ProgressObserver, PromptSection, QuotedAnswer, RemainingBudget, ResolvedCitation, RunError, RunKind,
    RunOutcome, RunReceipt, Spending, SpendingByModel, SpendingOnly, ToolReceipt, WithheldFallback, class,
    class_of_model,
};

/// A run in progress.
struct RecipeRun<'a> {
    engine: &'a Engine,
    recipe: &'a Recipe,
    input: &'a RunInput,
    observer: &'a dyn ProgressObserver,
    /// The same observer, with the limits of a run that calls tools.
    meter: &'a Meter<'a>,
    kind: RunKind,
    run_id: RunId,
    started: Instant,
    /// Usage of all its answered calls.
    spent: Spending,
    /// The same by model.
    spent_by: SpendingByModel,
    /// Calls whose failure made another model answer, or ended the run.
    failed: Vec<FailedCall>,
    /// Whether one of them may have used tokens all the same.
    may_have_used: bool,
    calls: u32,
    /// Rounds in which its model called tools, and the calls of the recipe's tools among them.
    rounds: u32,
    tool_calls: u32,
    /// What its model called so far, with the results as it read them.
    results: Vec<(String, String)>,
    /// The same as messages: each of the model's with calls, followed by the results.
    exchanged: Vec<Message>,
    /// Why its model could not go on calling tools, if a limit ended that.
    ended_by: Option<GateFailure>,
    /// Whether a summary ahead of time was asked for.
    is_ahead: bool,
    /// Whether a server refused a request with tools, so that none are offered any more.
    without_tools: bool,
    /// What the router decided.
    route: Option<RouteDecision>,
    /// Time spent packing.
    packing: Duration,
    /// The last prompt, the originals of its parts, its reply and the result of its checks.
    receipt: Option<RunReceipt>,
    originals: Originals,
    answer: Option<String>,
    gates: GateResult,
    /// Whether the last answer is sound, but was ended by a limit.
    is_cut: bool,
    /// Whether the caller has read a piece of the last answer.
    shown: AtomicBool,
    /// Whether the model may be asked again if that answer fails.
    may_retry: bool,
    /// What came of the last answer while it was streamed.
    came: Mutex<String>,
    /// The layer asked last.
    layer: Layer,
    /// Condenses for all prompts of the run within one budget.
    summarizer: Summarizer<'a>,
}

impl Engine {
    /// Runs a recipe and returns its checked answer (R0-8.2, R0-21.10).
    ///
    /// # Errors
    /// [`RunError`] reports what stopped the run and contains the id of its record.
    pub async fn run(
        &self,
        name: &str,
        input: &RunInput,
        observer: &dyn ProgressObserver,
    ) -> Result<RunOutcome, RunError> {
        let recipe = self.find(name, input.mode).map_err(|source| self.missing(name, source))?;
        self.run_recipe(recipe, input, observer, RunKind::Answer).await
    }

    /// Runs a recipe that has already been looked up.
    pub fn run_recipe<'a>(
        &'a self,
        recipe: &'a Recipe,
        input: &'a RunInput,
        observer: &'a dyn ProgressObserver,
        kind: RunKind,
    ) -> BoxFuture<'a, Result<RunOutcome, RunError>> {
        let run = async move {
            let meter = Meter::within(observer, self.limits_of(recipe, kind));
            let route = self.route(recipe, input);
            let layer = route.as_ref().map_or(recipe.layer, |route| route.layer);
            let budget = self.budget_of(recipe, input, layer);
            let differs = layer != recipe.layer || budget != recipe.budget;
            let mut adapted = differs.then(|| Recipe { layer, budget, ..recipe.clone() });
            if let Some(read) = &input.tags_read {
                for tag in &mut adapted.get_or_insert_with(|| recipe.clone()).output.tags {
                    tag.inline = !tag.hidden && !read.contains(&tag.name);
                }
            }
            let mut run = RecipeRun::start(self, adapted.as_ref().unwrap_or(recipe), input, &meter, kind)?;
            run.route = route;
            let outcome = run.answer().await;
            run.finish(outcome)
        };
        run.boxed()
    }

    /// The budget of a run: the recipe's, within the limits of its inputs.
    fn budget_of(&self, recipe: &Recipe, input: &RunInput, layer: Layer) -> TokenBudget {
        let mut budget = recipe.budget;
        let most = [input.limits.output, input.max_output].into_iter().flatten();
        budget.output = most.fold(budget.output, usize::min);
        if let Some(context) = input.limits.context {
            let model = self.models.table().resolve(layer, input.mode.or(recipe.mode));
            let counter = model.map_or_else(Counter::bytes, |model| self.counter(model.spec));
            let query = input.query.as_deref().map_or(0, |query| counter.count(query));
            let parts = [query, budget.output, budget.response_reserve];
            budget.total = budget.total.min(parts.into_iter().fold(context, usize::saturating_add));
        }
        budget
    }

    /// What one run may spend: a run that calls tools has the limits of a turn, for all its calls of models and tools
    /// together.
    fn limits_of(&self, recipe: &Recipe, kind: RunKind) -> RemainingBudget {
        match &self.tools {
            Some(tools) if !recipe.tools.is_empty() && kind == RunKind::Answer => tools.limits().budget,
            _ => RemainingBudget::default(),
        }
    }

    /// Raises an intervention for a run that cannot start because its recipe is missing or broken (R0-18.2); in the
    /// background the queue does so after its last attempt.
    pub fn missing(&self, name: &str, source: RecipeError) -> RunError {
        if self.is_background {
            return RunError::Unknown { source };
        }
        // The name of a nonexistent recipe may be arbitrary text from a client (C104).
        let known = !matches!(source, RecipeError::NotFound { .. });
        tracing::info!(recipe = known.then_some(name), "recipe not found or broken");
        let message = source.intervention();
        let raised = NewIntervention { message, ..NewIntervention::missing_recipe(name) };
        match self.store.interventions().raise(&raised) {
            Ok(intervention) => RunError::Recipe { source, intervention: intervention.id },
            Err(error) => error.into(),
        }
    }
}

impl RunRecipe for Engine {
    fn run_recipe<'a>(
        &'a self,
        recipe: &'a Recipe,
        input: &'a RunInput,
        observer: &'a dyn ProgressObserver,
        kind: RunKind,
    ) -> BoxFuture<'a, Result<RunOutcome, RunError>> {
        self.run_recipe(recipe, input, observer, kind)
    }
}

impl<'a> RecipeRun<'a> {
    fn start(
        engine: &'a Engine,
        recipe: &'a Recipe,
        input: &'a RunInput,
        meter: &'a Meter<'a>,
        kind: RunKind,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            engine,
            recipe,
            input,
            observer: meter,
            meter,
            kind,
            run_id: engine.store.store().new_run_id()?,
            started: Instant::now(),
            spent: Spending::default(),
            spent_by: SpendingByModel::default(),
            failed: Vec::new(),
            may_have_used: false,
            calls: 0,
            rounds: 0,
            tool_calls: 0,
            results: Vec::new(),
            exchanged: Vec::new(),
            ended_by: None,
            is_ahead: false,
            without_tools: false,
            route: None,
            packing: Duration::ZERO,
            receipt: None,
            originals: Originals::default(),
            answer: None,
            gates: GateResult::default(),
            is_cut: false,
            shown: AtomicBool::new(false),
            may_retry: false,
            came: Mutex::default(),
            layer: recipe.layer,
            summarizer: Summarizer::new(engine, engine, input, meter),
        })
    }

    /// What came of the last answer while it was streamed.
    fn came(&self) -> MutexGuard<'_, String> {
        self.came.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the recipe's layer with repairs, then the next layer once (C66).
    async fn answer(&mut self) -> Result<Parsed, RunError> {
        let mode = self.input.mode.or(self.recipe.mode);
        let mut candidate = self.engine.candidate(self.recipe.layer, mode)?;
        let mut note: Option<String> = None;
        let mut failures = Vec::new();
        for attempt in 0..=self.recipe.gates.max_retries {
            if attempt > 0 {
                self.require_budget(&failures)?;
                self.observer.stage("the answer did not pass its checks; asking again");
            }
            self.may_retry = attempt < self.recipe.gates.max_retries;
            let sent = self.receipt.clone();
            match self.attempt(&mut candidate, note.as_deref()).await {
                Ok(AttemptResult::Answered(parsed)) => return Ok(parsed),
                Ok(AttemptResult::Failed(found)) => failures = found,
                // Only the note does not fit. The prompt fit without it, and the answer to it failed.
                Err(RunError::Refused { .. }) if note.take().is_some() => {
                    self.receipt = sent;
                    break;
                }
                Err(error) => return Err(error),
            }
            let repair = output::repair_message(&failures);
            if repair.is_empty() {
                break;
            }
            note = Some(self.repair_note(&candidate, &repair));
        }
        if self.kind.has_substitute() {
            return Err(RunError::Unusable {
                recipe: self.recipe.id(),
                failures: self.listed(&failures),
                run_id: self.run_id.clone(),
            });
        }
        self.ask_next_layer(&candidate, mode, note.as_deref(), failures).await
    }

    /// One attempt of the next layer if another model is bound to it; otherwise, or if that fails too, an intervention.
    async fn ask_next_layer(
        &mut self,
        tried: &ModelCandidate,
        mode: Option<Mode>,
        note: Option<&str>,
        mut failures: Vec<GateFailure>,
    ) -> Result<Parsed, RunError> {
        self.may_retry = false;
        let next = next_layer(self.recipe.layer).map(|layer| self.engine.candidate(layer, mode));
        if let Some(Ok(mut next)) = next
            && next.name != tried.name
        {
            self.require_budget(&failures)?;
            self.observer.stage(&format!("asking layer {} instead", next.layer.as_str()));
            match self.attempt(&mut next, note).await? {
                AttemptResult::Answered(parsed) => return Ok(parsed),
                AttemptResult::Failed(found) => failures = found,
            }
        }
        let unknown_citations = unknown_citations(&failures);
        let (recipe, failures, run_id) = (self.recipe.id(), self.listed(&failures), self.run_id.clone());
        // The queue raises one intervention after the last attempt of a job.
        if self.engine.is_background {
            return Err(RunError::Unusable { recipe, failures, run_id });
        }
        let intervention = self.engine.store.interventions().raise(&NewIntervention {
            kind: "gate_failure".to_owned(),
            message: format!("No answer passed the checks of {recipe}: {failures}"),
            recipe: Some(recipe.clone()),
            run_id: Some(run_id.clone()),
        })?;
        let user = self.engine.store.user().to_owned();
        let intervention = intervention.id;
        Err(RunError::Gates { recipe, failures, unknown_citations, intervention, user, run_id })
    }

    /// The problems of the last answer, and the limit that ended an earlier attempt.
    fn listed(&self, failures: &[GateFailure]) -> String {
        let earlier = self.ended_by.iter().filter(|limit| !failures.contains(limit));
        let earlier = earlier.map(|limit| format!("in the attempt before, {limit}"));
        let failures = failures.iter().map(ToString::to_string);
        failures.chain(earlier).collect::<Vec<_>>().join("; ")
    }

    /// Fails if no further call may be made.
    fn require_budget(&self, failures: &[GateFailure]) -> Result<(), RunError> {
        if self.observer.may_spend() {
            return Ok(());
        }
        let (recipe, failures) = (self.recipe.id(), self.listed(failures));
        Err(RunError::Spent { recipe, failures, run_id: self.run_id.clone() })
    }
}

/// Stores the originals behind the pointers of a pack and of the conversation that it was given.
fn store_originals(store: &UserStore, pack: &Pack, history: &[HistoryOriginal]) -> Result<(), StoreError> {
    let history = history.iter().map(|original| NewPointer {
        content: original.content.as_slice().into(),
        kind: "message",
        display_text: &original.display,
    });
    let shown = pack.originals.iter().map(|original| NewPointer {
        content: original.text.as_bytes().into(),
        kind: original.kind,
        display_text: &original.display,
    });
    let originals: Vec<NewPointer<'_>> = history.chain(shown).collect();
    store.pointers().insert_all(&originals).map(drop)
}

/// What an answer cites although it is none of its parts, each once.
fn unknown_citations(failures: &[GateFailure]) -> Box<[String]> {
    let mut unknown: Vec<String> = Vec::new();
    for failure in failures {
        if let GateFailure::UnknownCitation { cited, .. } = failure
            && !unknown.contains(cited)
        {
            unknown.push(cited.clone());
        }
    }
    unknown.into_boxed_slice()
}

#[cfg(test)]
#[path = "executor_tests.rs"]
mod tests;
