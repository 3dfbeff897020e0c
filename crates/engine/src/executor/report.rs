//! The log events of a run and its calls, and its metrics report. Contains sizes, Larder's own names and outcomes,
//! never any text (C104).

use std::time::Duration;

use larder_core::pack::{PackRefusal, PartReason, PartReceipt, Receipt, RefusalLimit, Rendition};
use larder_core::policy::BudgetStatus;
use larder_core::recipe::{Recipe, SlotSource};
use larder_models::chat::{ChatReply, ModelError};
use tokio::time::Instant;

use super::{ModelCandidate, RecipeRun, ReducedText, RunReceipt, RunReport};
use crate::run::class_of_model;

/// The metrics of a run with this receipt; `original` counts originals that packing did not.
pub(super) fn report(
    packing: Duration,
    receipt: Option<&Receipt>,
    original: &dyn Fn(&PartReceipt) -> Option<usize>,
) -> RunReport {
    let Some(receipt) = receipt else { return RunReport::default() };
    let smaller = receipt.own_parts().filter(|part| part.rendition != Rendition::Whole);
    let shrunk: Vec<ReducedText> = smaller
        .filter(|_| receipt.refused.is_none())
        .filter_map(|part| {
            Some(ReducedText { to: part.rendition, before: original(part)?, after: part.tokens })
        })
        .collect();
    RunReport {
        status: Some(status(receipt)),
        violates: receipt.refused.is_none() && receipt.total > receipt.budget.available,
        shrunk,
        packing,
    }
}

fn status(receipt: &Receipt) -> BudgetStatus {
    let is_whole = |part: &PartReceipt| part.rendition == Rendition::Whole;
    match &receipt.refused {
        Some(_) => BudgetStatus::Reject,
        None if receipt.parts.iter().all(is_whole) => BudgetStatus::Ok,
        None => BudgetStatus::NeedsSummary,
    }
}

/// Logs every check of a run's budget (R3-4.11). The reason names no part, since callers choose document names.
pub(super) fn log_decision(run: &RecipeRun<'_>, receipt: &RunReceipt) {
    let pack = &receipt.receipt;
    let status = status(pack);
    let reason = match status {
        BudgetStatus::Ok => "everything fits unchanged",
        BudgetStatus::NeedsSummary => "it fits after condensing",
        BudgetStatus::Reject => "it does not fit even after condensing",
    };
    // A refused prompt is as much larger than its budget as the refusal says; one over the cap of a slot was not composed.
    let prompt_tokens = match &pack.refused {
        Some(PackRefusal { limit: RefusalLimit::Slot { .. }, .. }) | None => pack.total,
        Some(refused) => pack.budget.available.saturating_add(refused.deficit),
    };
    tracing::info!(
        run_id = %run.run_id,
        recipe = run.recipe.id(),
        model = receipt.model,
        status = status.as_str(),
        reason,
        deficit = pack.refused.as_ref().map_or(0, |refused| refused.deficit),
        prompt_tokens,
        prompt_budget = pack.budget.available,
        response_reserve = pack.budget.limits.output,
        dry_run = false,
        "context_budget_decision"
    );
}

/// The tokens of a prompt by purpose (R4-8.7).
#[derive(Debug, Default, PartialEq, Eq)]
struct Sizes {
    pinned: usize,
    summary: usize,
    recent: usize,
    rag: usize,
}

impl Sizes {
    fn of(recipe: &Recipe, receipt: &Receipt) -> Self {
        let source =
            |slot: &str| recipe.slots.iter().find(|spec| &*spec.slot.name == slot).map(|spec| spec.source);
        let mut sizes = Self::default();
        for part in &receipt.parts {
            let sum = match source(&part.slot) {
                _ if &*part.slot == "summary" => &mut sizes.summary,
                Some(SlotSource::Messages) if part.rendition == Rendition::Condensed => &mut sizes.summary,
                Some(SlotSource::Messages) => &mut sizes.recent,
                _ if part.reason == PartReason::Critical => &mut sizes.pinned,
                _ => &mut sizes.rag,
            };
            *sum = sum.saturating_add(part.tokens);
        }
        sizes
    }
}

/// Logs the composition of a prompt (R4-8.7): fixed parts, summaries, the conversation, retrieved text.
pub(super) fn log_sizes(run: &RecipeRun<'_>, receipt: &Receipt) {
    let Sizes { pinned, summary, recent, rag } = Sizes::of(run.recipe, receipt);
    tracing::info!(
        run_id = %run.run_id,
        recipe = run.recipe.id(),
        pinned,
        summary,
        recent,
        rag,
        "context_sizes"
    );
}

/// Logs a call of a model: its start and its end (R4-8.3 to R4-8.5).
pub(super) struct CallLog<'a> {
    run: &'a RecipeRun<'a>,
    candidate: &'a ModelCandidate,
    began: Instant,
    has_ended: bool,
}

impl Drop for CallLog<'_> {
    /// The caller stopped waiting.
    fn drop(&mut self) {
        if !self.has_ended {
            self.fail("cancelled");
        }
    }
}

impl<'a> CallLog<'a> {
    pub(super) fn start(run: &'a RecipeRun<'a>, candidate: &'a ModelCandidate, tokens: usize) -> Self {
        tracing::info!(
            run_id = %run.run_id,
            operation = run.recipe.id(),
            model = candidate.name,
            input_tokens = tokens,
            "call_started"
        );
        Self { run, candidate, began: Instant::now(), has_ended: false }
    }

    pub(super) fn end(mut self, ended: &Result<ChatReply, ModelError>) {
        self.has_ended = true;
        self.compare_with_target();
        let ChatReply { usage, .. } = match ended {
            Ok(reply) => reply,
            Err(error) => return self.fail(class_of_model(error)),
        };
        let prices = self.candidate.spec.prices.as_ref();
        tracing::info!(
            run_id = %self.run.run_id,
            operation = self.run.recipe.id(),
            model = self.candidate.name,
            input_tokens = usage.input,
            output_tokens = usage.output,
            duration_ms = self.duration_ms(),
            cost_usd = prices.map(|prices| prices.cost(usage).total.to_string()),
            "call_completed"
        );
    }

    /// Warns of a call that took longer than its layer should (`target_ms`).
    fn compare_with_target(&self) {
        let Some(target) = self.candidate.target.filter(|target| self.began.elapsed() > *target) else {
            return;
        };
        tracing::warn!(
            run_id = %self.run.run_id,
            operation = self.run.recipe.id(),
            layer = self.candidate.layer.as_str(),
            model = self.candidate.name,
            duration_ms = self.duration_ms(),
            target_ms = u64::try_from(target.as_millis()).unwrap_or(u64::MAX),
            "target_missed"
        );
    }

    fn fail(&self, error: &str) {
        tracing::info!(
            run_id = %self.run.run_id,
            operation = self.run.recipe.id(),
            model = self.candidate.name,
            duration_ms = self.duration_ms(),
            error,
            "call_failed"
        );
    }

    fn duration_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use larder_text::tokens::Counter;
    use serde_json::json;

    use super::*;
    use crate::project::Project;

    #[test]
    fn sizes_cover_every_part_of_a_prompt() {
        let project = Project::builtin(&Counter::cl100k());
        let recipe = project.recipe("card/agent").unwrap();
        let part = |slot: &str, tokens: usize, reason: &str| {
            json!({"id": slot, "slot": slot, "source": slot, "rendition": "whole", "tokens": tokens,
                   "original_tokens": tokens, "reason": reason})
        };
        let receipt: Receipt = serde_json::from_value(json!({
            "budget": {
                "limits": {"total": 900, "window": 1000, "output": 100, "response_reserve": 50, "emergency_floor": 0},
                "available": 750, "framing": 0, "used": 31, "slots": [], "tokenizer": "bytes", "label": "exact",
            },
            "total": 31, "refused": null,
            "parts": [
                part("system", 1, "critical"), part("summary", 2, "fits"), part("history", 4, "critical"),
                part("context", 8, "fits"), part("query", 16, "critical"),
            ],
        }))
        .unwrap();
        let expected = Sizes { pinned: 17, summary: 2, recent: 4, rag: 8 };
        assert_eq!(Sizes::of(recipe, &receipt), expected);
    }
}
