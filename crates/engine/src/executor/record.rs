//! The one record of a run: what happened, in sizes and names. Payloads stay in blobs (C104).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use larder_condense::ContentType;
use larder_core::output::{Citation, Parsed};
use larder_core::pack::{BudgetLedger, CallBudget, PackRequest, PartReceipt, Receipt, Rendition};
use larder_store::{NewRun, RunFacts, RunStatus, RunTokens};
use larder_text::tokens::{Counter, Label};

use super::error::{RunError, class};
use super::outcome::{ResolvedCitation, RunOutcome, RunReceipt};
use super::report::{RunReport, log_decision, log_sizes};
use super::{Progress, RunKind};
use crate::engine::Engine;
use crate::inputs::RunInput;

/// Tokens of originals that a record counts out at most: past them its savings are a lower bound.
const MOST_COUNTED: usize = 1_000_000;

/// What a record says of parts and their receipts do not.
#[derive(Default)]
pub(super) struct Originals {
    types: BTreeMap<Arc<str>, ContentType>,
    /// Those so large that packing did not count them out.
    uncounted: Vec<(Arc<str>, Arc<str>)>,
    counter: Option<Counter>,
}

impl Originals {
    /// Those of a pack.
    pub(super) fn of(request: &PackRequest, receipt: &Receipt, counter: Counter) -> Self {
        let types = request.parts.iter().map(|part| (Arc::clone(&part.id), part.content_type)).collect();
        let texts: BTreeMap<&str, &Arc<str>> =
            request.parts.iter().map(|part| (&*part.id, &part.text)).collect();
        let uncounted = receipt.parts.iter().filter(|part| part.original_tokens.is_none());
        let uncounted =
            uncounted.filter_map(|part| Some((Arc::clone(&part.id), Arc::clone(texts.get(&*part.id)?))));
        Self { types, uncounted: uncounted.collect(), counter: Some(counter) }
    }

    /// Tokens of those that packing did not count out, as far as they are counted here.
    fn counted(&self) -> BTreeMap<Arc<str>, usize> {
        let Some(counter) = &self.counter else { return BTreeMap::new() };
        let mut left = MOST_COUNTED;
        let mut count = |(id, text): &(Arc<str>, Arc<str>)| {
            let tokens = counter.count_up_to(text, left).unwrap_or(left);
            left = left.saturating_sub(tokens);
            (Arc::clone(id), tokens)
        };
        self.uncounted.iter().map(&mut count).collect()
    }

    /// What a part is, in the word that recipes use.
    fn content_type(&self, part: &PartReceipt) -> String {
        let name = self.types.get(&part.id).and_then(|known| serde_json::to_value(known).ok());
        name.and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

impl Engine {
    /// Writes the one record of a run, whatever came of it.
    pub(super) fn finish(
        &self,
        progress: Progress<'_>,
        input: &RunInput,
        outcome: Result<Parsed, RunError>,
    ) -> Result<RunOutcome, RunError> {
        let latency_ms = u64::try_from(progress.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let counted = progress.originals.counted();
        let original = |part: &PartReceipt| part.original_tokens.or_else(|| counted.get(&part.id).copied());
        let packed = progress.receipt.as_ref();
        self.metrics.run_ended(&RunReport::of(&progress, packed.map(|receipt| &receipt.receipt), &original));
        if let Some(receipt) = packed {
            log_decision(&progress, receipt);
            log_sizes(&progress, &receipt.receipt);
        }
        let receipt = packed.cloned().unwrap_or_else(|| unpacked(&progress));
        let saved = receipt.receipt.parts.iter();
        let saved = saved.filter_map(|part| Some(original(part)?.saturating_sub(part.tokens)));
        let saved = saved.fold(0, usize::saturating_add) as u64;
        let facts = facts(&progress, input, &receipt, &outcome, latency_ms, saved);
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
        log_summaries(&progress, &receipt.receipt, &original);
        let parsed = outcome?;
        let citations = resolve(&progress.gates.citations, &receipt.receipt.parts);
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

/// The receipt of a run that ended before its prompt was packed.
fn unpacked(progress: &Progress<'_>) -> RunReceipt {
    let recipe = progress.recipe;
    let limits = CallBudget {
        total: recipe.budget.total,
        window: 0,
        output: recipe.budget.output,
        response_reserve: recipe.budget.response_reserve,
        emergency_floor: 0,
    };
    let budget = BudgetLedger {
        limits,
        available: 0,
        framing: 0,
        used: 0,
        slots: Vec::new(),
        tokenizer: String::new(),
        label: Label::Exact,
    };
    RunReceipt {
        recipe: recipe.id(),
        version: recipe.version.to_hex(),
        model: String::new(),
        tokenizer: String::new(),
        receipt: Receipt { budget, total: 0, refused: None, parts: Vec::new(), epoch: None },
        messages: Vec::new(),
        condensing: None,
    }
}

/// The event of every part that a run condensed (R0-27.6): sizes and names, no text.
fn log_summaries(
    progress: &Progress<'_>,
    receipt: &Receipt,
    original: &dyn Fn(&PartReceipt) -> Option<usize>,
) {
    let is_summary = |part: &&PartReceipt| part.rendition == Rendition::Condensed;
    for part in receipt.parts.iter().filter(is_summary).filter(|_| receipt.refused.is_none()) {
        let Some(tokens) = original(part) else { continue };
        tracing::info!(
            event = "compressed",
            original_tokens = tokens,
            compressed_tokens = part.tokens,
            compression_ratio = part.tokens as f64 / tokens.max(1) as f64,
            content_type = progress.originals.content_type(part),
            recipe = progress.recipe.name,
            model_layer = progress.layer.as_str(),
            run_id = %progress.run_id,
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

fn facts(
    progress: &Progress<'_>,
    input: &RunInput,
    receipt: &RunReceipt,
    outcome: &Result<Parsed, RunError>,
    latency_ms: u64,
    saved: u64,
) -> RunFacts {
    let pack = &receipt.receipt;
    let tokens = |slot: &dyn Fn(&str) -> bool| {
        pack.parts.iter().filter(|part| slot(&part.slot)).map(|part| part.tokens as u64).sum::<u64>()
    };
    let is_prompt = |slot: &str| matches!(slot, "system" | "agent" | "output_schema");
    let compressed = pack.parts.iter().any(|part| part.rendition != Rendition::Whole);
    let prompt = tokens(&is_prompt);
    // For all calls, as the output and the price are, where the provider says it; else what the last prompt counted.
    let whole = match progress.usage.input {
        0 if progress.purpose == RunKind::Quoting => 0,
        0 => pack.total as u64,
        input => input,
    };
    RunFacts {
        recipe: progress.recipe.name.clone(),
        recipe_version: receipt.version.clone(),
        model_layer: progress.layer.as_str().to_owned(),
        model: receipt.model.clone(),
        session_id: input.session_id.clone(),
        turn_id: input.turn_id.clone(),
        request_id: input.request_id.clone(),
        tokens: RunTokens {
            prompt: prompt.min(whole),
            input: whole.saturating_sub(prompt),
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
