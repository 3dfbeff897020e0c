//! One attempt of a run: packs for a candidate, calls it or its fallbacks, and judges the reply.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use larder_core::output::{GateFailure, Parsed};
use larder_core::pack::{Pack, Packing};
use larder_core::recipe::Risk;
use larder_models::chat::{ModelError, Usage};
use larder_models::price::Billable;
use larder_store::NewIntervention;

use super::rounds::Conversation;
use super::{
    FailedCall, ModelCandidate, Originals, RecipeRun, RunError, RunKind, RunReceipt, store_originals,
};
use crate::history;
use crate::opening;
use crate::prepare::PreparedPrompt;
use crate::prompt::prepare_for;
use crate::run::{AroundFailure, WithheldFallback, is_open, used_nothing};

/// Maximum tokens of a note about a rejected answer.
const NOTE_TOKENS: usize = 160;
/// Maximum tokens of a rejected answer quoted in its repair note.
const QUOTED_ANSWER: usize = 120;

/// The outcome of an attempt whose model replied.
pub(super) enum AttemptResult {
    Answered(Parsed),
    Failed(Vec<GateFailure>),
}

impl RecipeRun<'_> {
    /// Gets one answer from a candidate or, if its provider fails, from its fallbacks, each with a prompt packed for
    /// its own window. After a call with an unknown outcome, a fallback is an additional call, which the budget must
    /// allow.
    pub(super) async fn attempt(
        &mut self,
        candidate: &mut ModelCandidate,
        note: Option<&str>,
    ) -> Result<AttemptResult, RunError> {
        let mut tried = BTreeSet::from([candidate.name.clone()]);
        loop {
            self.layer = candidate.layer;
            let (prepared, pack) = self.pack(candidate, note).await?;
            if let Some(receipt) = &self.receipt {
                self.observer.packed(receipt);
            }
            self.observer.stage(&format!("asking {}", candidate.name));
            let rounds = self.rounds;
            match self.converse(candidate, &prepared, &pack).await? {
                Conversation::Replied { reply, unanswered } => {
                    return self.judge(&prepared, &pack, reply, unanswered);
                }
                // Some servers take no tools next to a schema.
                Conversation::Failed { error: error @ ModelError::BadRequest { .. }, .. }
                    if !prepared.tools.is_empty() && !self.without_tools && self.rounds == rounds =>
                {
                    self.observer.stage(&format!("{error}; asking again without tools"));
                    self.without_tools = true;
                }
                Conversation::Failed { error, tokens } => {
                    tracing::warn!(model = candidate.name, "{error}");
                    let model = candidate.name.clone();
                    self.failed.push(FailedCall { model, error: error.to_string() });
                    self.may_have_used |= !used_nothing(&error);
                    let is_open = is_open(&error);
                    let used = self.used(candidate, tokens, prepared.max_output);
                    if is_open {
                        let prices = candidate.spec.prices.as_ref();
                        self.observer
                            .unanswered(used, prices.map(|prices| prices.most(&used, Billable::USUAL)));
                    } else if !self.came().is_empty() {
                        self.charge(candidate, used);
                    }
                    let next = self.fallback(candidate, &tried);
                    if let Some(next) = next.as_ref().filter(|_| self.asks_a_human_first()) {
                        return Err(self.stop_before(candidate, &next.name, error)?);
                    }
                    let Some(next) = next.filter(|_| !is_open || self.observer.may_spend()) else {
                        return Err(self.no_answer(candidate, error, None));
                    };
                    self.observer.stage(&format!("{error}; falling back to {}", next.name));
                    tried.insert(next.name.clone());
                    *candidate = next;
                }
            }
        }
    }

    /// The most that a failed call used: the tokens of its prompt, and what came of its answer, or all that it might have
    /// been where nothing came.
    fn used(&self, candidate: &ModelCandidate, prompt: usize, max_output: usize) -> Usage {
        let came = self.came();
        let output =
            if came.is_empty() { max_output } else { self.engine.counter(&candidate.spec).count(&came) };
        let number = |tokens: usize| u64::try_from(tokens).unwrap_or(u64::MAX);
        Usage { input: number(prompt), output: number(output), ..Usage::default() }
    }

    /// Whether no other model may take over without a human: a wrong answer can do lasting harm, and no rule replaces it.
    fn asks_a_human_first(&self) -> bool {
        self.recipe.risk == Risk::High && !self.kind.has_substitute()
    }

    /// Raises the intervention that a fallback of a recipe of high risk needs, unless a queue does, and returns the error
    /// of the run.
    fn stop_before(
        &self,
        failed: &ModelCandidate,
        fallback: &str,
        error: ModelError,
    ) -> Result<RunError, RunError> {
        if self.engine.is_background {
            return Ok(self.no_answer(failed, error, None));
        }
        let recipe = self.recipe.id();
        let intervention = self.engine.store.interventions().raise(&NewIntervention {
            kind: "model_failure".to_owned(),
            message: format!(
                "{error}. {recipe} has risk_level high, so its fallback {fallback} was not asked; run it again, or bind \
                 {fallback} to the layer"
            ),
            recipe: Some(recipe),
            run_id: Some(self.run_id.clone()),
        })?;
        let user = self.engine.store.user().to_owned();
        let fallback = fallback.to_owned();
        let withheld = WithheldFallback { fallback, intervention: intervention.id, user };
        Ok(self.no_answer(failed, error, Some(withheld)))
    }

    /// The error of a run whose last model failed; of one that took too long, with what sets its time.
    fn no_answer(
        &self,
        failed: &ModelCandidate,
        source: ModelError,
        withheld: Option<WithheldFallback>,
    ) -> RunError {
        let stated = self.recipe.gates.timeout_ms.map(Duration::from_millis);
        let fix = match &source {
            ModelError::Timeout { after, .. } if Some(*after) == stated => {
                format!("; quality_gates.timeout_ms of {} sets this time", self.recipe.id())
            }
            ModelError::Timeout { after, .. } if *after == failed.spec.timeout => {
                format!("; timeout_ms under [models.{}] sets this time", failed.name)
            }
            _ => String::new(),
        };
        let earlier = self.failed.split_last().map(|(_, earlier)| earlier.to_vec()).unwrap_or_default();
        let around = Box::new(AroundFailure { earlier, fix, withheld });
        RunError::Model { source, around, run_id: self.run_id.clone() }
    }

    fn fallback(&self, failed: &ModelCandidate, tried: &BTreeSet<String>) -> Option<ModelCandidate> {
        let name = failed.spec.fallback.clone().filter(|name| !tried.contains(name))?;
        let spec = self.engine.models.table().model(&name)?.clone();
        let (layer, target, thinking_budget) = (failed.layer, failed.target, failed.thinking_budget);
        Some(ModelCandidate { temperature: spec.temperature, thinking_budget, layer, target, name, spec })
    }

    /// Packs for a candidate and stores everything that the prompt does not show whole, before anything is sent.
    async fn pack(
        &mut self,
        candidate: &ModelCandidate,
        note: Option<&str>,
    ) -> Result<(PreparedPrompt, Pack), RunError> {
        let (engine, recipe) = (self.engine, self.recipe);
        let counter = engine.counter(&candidate.spec);
        let mut prepared = prepare_for(engine, recipe, self.input, candidate, &counter, note, self.kind)?;
        prepared = match self.may_call() && !self.without_tools {
            true => prepared.opening(engine, candidate),
            false => prepared.without_tools(&counter),
        };
        let began = Instant::now();
        let (mut prepared, mut packed) = opening::pack(engine, prepared, &counter, true)?;
        let by_model = engine.policy.use_llm_summarizer
            && engine.policy.condenses()
            && recipe.compression.enabled
            && self.kind == RunKind::Answer;
        if by_model && !packed.as_ref().is_ok_and(|pack| opening::is_by_rule(&pack.receipt)) {
            prepared.request.by_model = true;
            packed = self.summarizer.pack(recipe, &prepared.request, &counter).await?;
            if let Ok(pack) = &mut packed {
                prepared.settle(&mut pack.receipt);
            }
        }
        self.packing += began.elapsed();
        let packed_ref = packed.as_deref().map_err(|receipt| &**receipt);
        let mut receipt =
            RunReceipt::new(recipe, candidate.layer, &candidate.name, counter.name(), packed_ref);
        receipt.condensing = self.summarizer.tally();
        receipt.route.clone_from(&self.route);
        receipt.tools = prepared.offered(&counter);
        receipt.not_offered.clone_from(&prepared.not_offered);
        receipt.history = history::as_given(&self.input.history_originals, engine.store.key());
        // What was called for an earlier attempt was called.
        receipt.calls = self.receipt.take().map(|before| before.calls).unwrap_or_default();
        self.receipt = Some(receipt.clone());
        match packed {
            Ok(pack) => {
                store_originals(&engine.store, &pack, &self.input.history_originals)?;
                let is_soon = pack.receipt.budget.slots.iter().any(|slot| slot.soft_trigger);
                if by_model && is_soon && !self.is_ahead {
                    self.is_ahead = true;
                    prepared.request.by_model = true;
                    // The prompt is whole: nothing that fails here concerns it.
                    let ahead = Packing::new(&prepared.request, &counter, engine.store.key())
                        .map_err(RunError::from)
                        .and_then(|packing| {
                            let ahead = packing.ahead();
                            engine.condense_later(recipe, self.input, (candidate, &counter), &ahead)
                        });
                    if let Err(error) = ahead {
                        tracing::warn!(%error, "no summary is made ahead of time");
                    }
                }
                self.originals = Originals::of(&prepared.request, &pack.receipt, counter);
                Ok((prepared, *pack))
            }
            Err(_) => Err(RunError::Refused { receipt: Box::new(receipt), run_id: self.run_id.clone() }),
        }
    }

    /// Adds an answered call to what the run has spent.
    pub(super) fn charge(&mut self, candidate: &ModelCandidate, usage: Usage) {
        let cost = candidate.spec.prices.as_ref().map(|prices| prices.cost(&usage).total);
        self.calls += 1;
        self.spent.add(usage, cost);
        self.spent_by.add(&candidate.name, usage, cost);
        self.observer.spent(&candidate.name, usage, cost);
    }

    /// The note shown to the model after its answer was rejected: why, and how that answer began.
    pub(super) fn repair_note(&self, candidate: &ModelCandidate, repair: &str) -> String {
        let answer = self.answer.as_deref().unwrap_or_default();
        let counter = self.engine.counter(&candidate.spec);
        let quoted = counter.prefix(answer, QUOTED_ANSWER);
        let note = if quoted.is_empty() {
            repair.to_owned()
        } else {
            format!("{repair}\nYour last answer began:\n{quoted}")
        };
        counter.prefix(&note, NOTE_TOKENS).to_owned()
    }
}
