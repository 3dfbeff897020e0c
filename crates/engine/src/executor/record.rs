//! The one record of a run: what happened, in sizes and names. Payloads stay in blobs (C104).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use larder_condense::ContentType;
use larder_core::output::{Citation, Parsed};
use larder_core::pack::{BudgetLedger, CallBudget, PackRequest, PartReceipt, Receipt, Rendition};
use larder_core::recipe::Recipe;
use larder_models::price::Usd;
use larder_store::{ModelUsage, NewRun, RunFacts, RunStatus, RunTokens};
use larder_text::tokens::{Counter, Label};

use super::report::{log_decision, log_sizes, report};
use super::{ModelSpending, RecipeRun, ResolvedCitation, RunError, RunKind, RunOutcome, RunReceipt};
use crate::evidence::CITING;
use crate::opening::MARKS;
use crate::run::{class, signals};

/// The most tokens of originals that are counted for a record; beyond it the savings are a lower bound.
const MAX_COUNTED: usize = 1_000_000;

/// What the record needs to know of the originals beyond the receipt.
#[derive(Default)]
pub(super) struct Originals {
    types: BTreeMap<Arc<str>, ContentType>,
    /// Id and text of those too large for packing to count.
    uncounted: Vec<(Arc<str>, Arc<str>)>,
    counter: Option<Counter>,
}

impl Originals {
    pub(super) fn of(request: &PackRequest, receipt: &Receipt, counter: Counter) -> Self {
        let types = request.parts.iter().map(|part| (Arc::clone(&part.id), part.content_type)).collect();
        let texts: BTreeMap<&str, &Arc<str>> =
            request.parts.iter().map(|part| (&*part.id, &part.text)).collect();
        let uncounted = receipt.parts.iter().filter(|part| part.original_tokens.is_none());
        let uncounted =
            uncounted.filter_map(|part| Some((Arc::clone(&part.id), Arc::clone(texts.get(&*part.id)?))));
        Self { types, uncounted: uncounted.collect(), counter: Some(counter) }
    }

    /// Tokens of the originals that packing did not count, up to [`MAX_COUNTED`] in all.
    fn counted(&self) -> BTreeMap<Arc<str>, usize> {
        let Some(counter) = &self.counter else { return BTreeMap::new() };
        let mut left = MAX_COUNTED;
        let mut count = |(id, text): &(Arc<str>, Arc<str>)| {
            let tokens = counter.count_up_to(text, left).unwrap_or(left);
            left = left.saturating_sub(tokens);
            (Arc::clone(id), tokens)
        };
        self.uncounted.iter().map(&mut count).collect()
    }

    /// The name of a part's content type, as recipes write it.
    fn content_type(&self, part: &PartReceipt) -> String {
        let name = self.types.get(&part.id).and_then(|known| serde_json::to_value(known).ok());
        name.and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

impl RecipeRun<'_> {
    /// Writes the one record of the run and reports it, whatever its outcome. A run whose record finds no room is logged.
    pub(super) fn finish(self, outcome: Result<Parsed, RunError>) -> Result<RunOutcome, RunError> {
        let latency_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let counted = self.originals.counted();
        let original = |part: &PartReceipt| part.original_tokens.or_else(|| counted.get(&part.id).copied());
        let packed = self.receipt.as_ref();
        let metrics = &self.engine.metrics;
        metrics.run_ended(&report(self.packing, packed.map(|receipt| &receipt.receipt), &original));
        if let Some(receipt) = packed {
            log_decision(&self, receipt);
            log_sizes(&self, &receipt.receipt);
        }
        let mut receipt = packed.cloned().unwrap_or_else(|| unpacked(self.recipe));
        receipt.route.clone_from(&self.route);
        receipt.failed.clone_from(&self.failed);
        receipt.ignored.clone_from(&self.input.ignored);
        let saved = receipt.receipt.own_parts();
        let saved = saved.filter_map(|part| Some(original(part)?.saturating_sub(part.tokens)));
        let saved = saved.fold(0, usize::saturating_add) as u64;
        let facts = facts(&self, &receipt, &outcome, latency_ms, saved);
        let models = facts.models.clone();
        let json = serde_json::to_vec(&receipt).unwrap_or_default();
        let was_packed = packed.is_some() && receipt.receipt.refused.is_none();
        let shown = receipt.receipt.parts.iter().filter(|part| part.rendition != Rendition::Whole);
        let shown = shown.filter_map(|part| part.pointer.clone());
        let key = self.engine.store.key();
        let of_history = self.input.history_originals.iter().map(|original| original.pointer(key));
        let pointers: Vec<_> = shown.chain(of_history).filter(|_| was_packed).collect();
        let recorded = self.engine.store.runs().record(NewRun {
            run_id: self.run_id.clone(),
            facts,
            receipt: &json,
            output: self.answer.as_deref().map(str::as_bytes),
            pointers: &pointers,
        });
        log_summaries(&self, &receipt.receipt, &original);
        // Of a run that failed, its own error is what its caller has to know.
        let parsed = outcome.inspect_err(|_| {
            if let Err(error) = &recorded {
                tracing::warn!(%error, run_id = %self.run_id, "a failed run could not be recorded");
            }
        })?;
        match recorded {
            // An answer that was paid for is not thrown away because its record finds no room.
            Err(error) if error.is_unwritable() => {
                let run_id = &self.run_id;
                tracing::error!(%error, %run_id, "the answer is whole, but the run could not be recorded");
            }
            Err(error) => return Err(error.into()),
            Ok(_) => {}
        }
        let citations = resolve(&self.gates.citations, &receipt.receipt.parts);
        Ok(RunOutcome {
            run_id: self.run_id,
            signals: signals(self.recipe, &parsed.value),
            failures: if self.shown.into_inner() {
                self.gates.failures.iter().map(ToString::to_string).collect()
            } else {
                Vec::new()
            },
            output: parsed.value,
            reply: parsed.reply,
            is_cut: self.is_cut,
            exchanged: self.exchanged,
            citations,
            receipt,
            usage: self.spent.usage,
            cost: self.spent.cost,
            models,
            latency_ms,
        })
    }
}

/// The receipt of a run that ended before its prompt was packed.
fn unpacked(recipe: &Recipe) -> RunReceipt {
    let limits = CallBudget {
        total: recipe.budget.total,
        window: 0,
        output: recipe.budget.output,
        response_reserve: recipe.budget.response_reserve,
        emergency_floor: 0,
        declared: None,
    };
    let budget = BudgetLedger {
        limits,
        available: 0,
        kept_free: 0,
        framing: 0,
        used: 0,
        slots: Vec::new(),
        tokenizer: String::new(),
        label: Label::Exact,
    };
    let receipt = Receipt {
        budget,
        total: 0,
        whole: 0,
        whole_is_estimate: false,
        refused: None,
        parts: Vec::new(),
        epoch: None,
    };
    RunReceipt::new(recipe, recipe.layer, "", "", Err(&receipt))
}

/// The event of every part that a run condensed (R0-27.6): sizes and names, no text. Recipe and layer are those that
/// wrote the text; by rule, those of the run and `none`.
fn log_summaries(run: &RecipeRun<'_>, receipt: &Receipt, original: &dyn Fn(&PartReceipt) -> Option<usize>) {
    let is_summary = |part: &&PartReceipt| part.rendition == Rendition::Condensed;
    for part in receipt.own_parts().filter(is_summary).filter(|_| receipt.refused.is_none()) {
        let Some(tokens) = original(part) else { continue };
        let author = part.author.as_ref();
        let writer = author.and_then(|author| run.engine.recipe_or_builtin(&author.recipe).ok());
        tracing::info!(
            event = "compressed",
            original_tokens = tokens,
            compressed_tokens = part.tokens,
            compression_ratio = part.tokens as f64 / tokens.max(1) as f64,
            content_type = run.originals.content_type(part),
            recipe = author.map_or_else(|| run.recipe.id(), |author| author.recipe.clone()),
            model_layer = writer.map_or("none", |recipe| recipe.layer.as_str()),
            run_id = %run.run_id,
            "smart_summarization"
        );
    }
}

fn resolve(citations: &[Citation], parts: &[PartReceipt]) -> Vec<ResolvedCitation> {
    let mut seen = BTreeSet::new();
    citations
        .iter()
        .filter(|citation| seen.insert(citation.part.clone()))
        .filter_map(|citation| {
            let part = parts.iter().find(|part| *part.id == *citation.part)?;
            Some(ResolvedCitation {
                part: part.id.to_string(),
                source: part.source.to_string(),
                pointer: part.pointer.as_ref().map(ToString::to_string),
                bytes: part.bytes,
                lines: part.lines,
            })
        })
        .collect()
}

fn model_usage(ModelSpending { model, calls, spent }: &ModelSpending) -> ModelUsage {
    ModelUsage {
        model: model.clone(),
        calls: *calls,
        input_tokens: spent.usage.input,
        output_tokens: spent.usage.output,
        cost_usd: spent.cost.map(dollars),
    }
}

fn dollars(cost: Usd) -> f64 {
    cost.to_string().parse().unwrap_or_default()
}

fn facts(
    run: &RecipeRun<'_>,
    receipt: &RunReceipt,
    outcome: &Result<Parsed, RunError>,
    latency_ms: u64,
    saved: u64,
) -> RunFacts {
    let pack = &receipt.receipt;
    let tokens = |slot: &dyn Fn(&str) -> bool| {
        pack.parts.iter().filter(|part| slot(&part.slot)).map(|part| part.tokens as u64).sum::<u64>()
    };
    let is_prompt = |slot: &str| matches!(slot, "system" | "agent" | "output_schema" | CITING | MARKS);
    let compressed = pack.parts.iter().any(|part| part.rendition != Rendition::Whole);
    let prompt = tokens(&is_prompt);
    let was_refused = !run.failed.is_empty() && !run.may_have_used && run.spent_by.iter().next().is_none();
    // Covers all calls, like output and price, if the provider reports it; otherwise the count of the last prompt.
    let whole = match run.spent.usage.input {
        0 if run.kind == RunKind::Quoting || was_refused => 0,
        0 => pack.total as u64,
        input => input,
    };
    RunFacts {
        recipe: run.recipe.name.clone(),
        recipe_version: receipt.version.clone(),
        model_layer: run.layer.as_str().to_owned(),
        model: receipt.model.clone(),
        session_id: run.input.session_id.clone(),
        turn_id: run.input.turn_id.clone(),
        request_id: run.input.request_id.clone(),
        tokens: RunTokens {
            prompt: prompt.min(whole),
            input: whole.saturating_sub(prompt),
            output: run.spent.usage.output,
        },
        latency_ms,
        success: outcome.is_ok(),
        schema_valid: run.gates.schema_valid,
        confidence: run.gates.confidence,
        retries: run.calls.saturating_sub(run.rounds).saturating_sub(1),
        compression_applied: compressed,
        compression_savings: if compressed { saved } else { 0 },
        cost_usd: run.spent.cost.map(dollars),
        models: run.spent_by.iter().map(model_usage).collect(),
        status: match outcome {
            Ok(_) => RunStatus::Completed,
            Err(RunError::Refused { .. }) => RunStatus::Refused,
            Err(RunError::Gates { .. }) => RunStatus::Intervention,
            Err(_) => RunStatus::Failed,
        },
        error: outcome.as_ref().err().map(|error| class(error).to_owned()),
    }
}
