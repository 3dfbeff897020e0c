//! Writes the receipt of a prompt, and collects what must be stored before the prompt is sent.

use std::sync::Arc;

use super::choose::Ladder;
use super::compose::{Bundle, ComposedPrompt, Planned, Standing};
use super::part::Part;
use super::receipt::{
    BudgetLedger, NextRung, OriginalText, Pack, PackOriginal, PartReason, PartReceipt, Receipt, Rendition,
};
use super::render::{PartRenderer, Rendered};
use super::request::PackRequest;
use super::run::PlannedRun;
use larder_text::message::Role;
use larder_text::pointer::Pointer;

/// The finished pack.
pub(super) fn assemble(
    request: &PackRequest,
    renderer: &PartRenderer<'_>,
    ladders: &[Ladder],
    slot_parts: &[Vec<usize>],
    planned: Planned,
    prompt: ComposedPrompt,
) -> Pack {
    let Planned { standings, mut made, runs, mut slots, epoch, .. } = planned;
    let mut receipts = Vec::with_capacity(request.parts.len());
    let hidden = |(ladder, standing): (&Ladder, &Standing)| match (standing.rendition, standing.reason) {
        (Rendition::Whole, _) | (_, PartReason::Summarized) => 0,
        _ => ladder.full.0.saturating_sub(standing.tokens),
    };
    let mut hidden: usize = ladders.iter().zip(&standings).map(hidden).sum();
    let mut originals = Vec::new();
    for (number, (members, bundle)) in slot_parts.iter().zip(prompt.left_out).enumerate() {
        let run = runs.get(&number);
        // Hashes the whole text, so not once for each message in it.
        let run_id = run.map(|run| renderer.pointer_to(&run.run.part).id);
        let mut bodies = run.map(|run| run.run.bodies.iter()).into_iter().flatten();
        let mut ranges = bundle.as_ref().map(|bundle| bundle.ranges.iter()).into_iter().flatten();
        for &index in members {
            let (part, standing) = (&request.parts[index], standings[index]);
            let made = made.remove(&index);
            if let Some(id) = run_id.as_ref().filter(|_| standing.reason == PartReason::Summarized) {
                receipts.extend(bodies.next().map(|body| {
                    let pointer = Pointer::bytes(id.clone(), body.clone());
                    part_receipt(part, &ladders[index], standing, None, Some(pointer))
                }));
                continue;
            }
            originals.extend(part_original(part, standing.rendition));
            let pointer = match (&bundle, standing.rendition, &part.source.slice) {
                (Some(_), Rendition::Absent, Some(_)) => Some(renderer.pointer_to(part)),
                (Some(Bundle { pointer, .. }), Rendition::Absent, None) => {
                    ranges.next().map(|range| Pointer::bytes(pointer.id.clone(), range.clone()))
                }
                _ => made.as_ref().and_then(|made| made.pointer.clone()),
            };
            receipts.push(part_receipt(part, &ladders[index], standing, made, pointer));
        }
        if let Some(run) = run {
            let summary = run_receipt(run, renderer);
            hidden += summary.original_tokens.unwrap_or_default().saturating_sub(summary.tokens);
            receipts.push(summary);
            originals.push(PartRenderer::original(&run.run.part));
        }
        originals.extend(bundle.map(Bundle::into_original));
    }
    let whole = prompt.total.saturating_add(hidden);
    if whole <= request.budget.available() {
        let over = receipts.iter_mut().filter(|part| part.reason == PartReason::CallOverBudget);
        over.for_each(|part| part.reason = PartReason::CallNearLimit);
    }
    dedup(&mut originals);
    for ((slot, used), spans) in slots.iter_mut().zip(prompt.used).zip(prompt.spans) {
        slot.tokens = used;
        slot.spans = spans;
        // This slot may have received tokens that others left unused.
        slot.allowed = slot.allowed.max(used);
    }
    let messages = prompt.messages;
    let budget = BudgetLedger {
        limits: request.budget,
        available: request.budget.available(),
        kept_free: 0,
        framing: request.framing.per_call + request.framing.per_message * messages.len(),
        used: prompt.total,
        slots,
        tokenizer: renderer.counter.name().into(),
        label: renderer.counter.label(),
    };
    let stable_messages = messages.iter().take_while(|message| message.role == Role::System).count();
    Pack {
        messages,
        receipt: Receipt {
            budget,
            total: prompt.total,
            whole,
            whole_is_estimate: ladders.iter().any(|ladder| !ladder.full.1),
            refused: None,
            parts: receipts,
            epoch,
        },
        layer: request.layer,
        originals,
        stable_messages,
    }
}

/// What a part's pointers refer to: those in condensed text refer to the part's own bytes, the others to its
/// document. A dropped part that is not a slice is in its slot's bundle.
fn part_original(part: &Part, rendition: Rendition) -> Option<PackOriginal> {
    match rendition {
        Rendition::Whole => None,
        Rendition::Absent => part.source.slice.is_some().then(|| PartRenderer::original(part)),
        Rendition::Pointer => Some(PartRenderer::original(part)),
        Rendition::Condensed => Some(PackOriginal {
            text: OriginalText::Given(Arc::clone(&part.text)),
            kind: part.content_type.as_str(),
            display: PartRenderer::original(part).display,
        }),
    }
}

fn dedup(originals: &mut Vec<PackOriginal>) {
    let mut seen = hashbrown::HashSet::new();
    originals.retain(|original| seen.insert((original.text.as_ptr() as usize, original.text.len())));
}

/// The receipt of the text that represents older messages; those messages have receipts of their own.
fn run_receipt(run: &PlannedRun, renderer: &PartRenderer<'_>) -> PartReceipt {
    let (part, rendered) = (&run.run.part, &run.rendered);
    PartReceipt {
        id: Arc::clone(&part.id),
        kind: Some(part.kind),
        slot: Arc::clone(&part.slot),
        source: Arc::clone(&part.source.name),
        bytes: None,
        lines: None,
        rendition: rendered.rendition,
        tokens: rendered.tokens,
        original_tokens: Some(renderer.counter.count(&part.text)),
        reason: run.reason,
        pointer: rendered.pointer.clone(),
        gaps: rendered.gaps.clone(),
        author: rendered.author.clone(),
        next: None,
    }
}

fn part_receipt(
    part: &Part,
    ladder: &Ladder,
    standing: Standing,
    made: Option<Rendered>,
    pointer: Option<Pointer>,
) -> PartReceipt {
    let next = match standing.rendition {
        Rendition::Whole => None,
        Rendition::Absent if ladder.pointer < ladder.size / 2 => {
            Some(NextRung { rendition: Rendition::Pointer, tokens: ladder.pointer })
        }
        _ => ladder.whole.map(|tokens| NextRung { rendition: Rendition::Whole, tokens }),
    };
    let slice = part.source.slice.as_ref();
    let (gaps, author) = made.map(|made| (made.gaps, made.author)).unwrap_or_default();
    PartReceipt {
        id: Arc::clone(&part.id),
        kind: Some(part.kind),
        slot: Arc::clone(&part.slot),
        source: Arc::clone(&part.source.name),
        bytes: slice.map(|slice| (slice.bytes.start, slice.bytes.end)),
        lines: slice.map(|slice| slice.lines),
        rendition: standing.rendition,
        tokens: standing.tokens,
        original_tokens: ladder.full.1.then_some(ladder.full.0),
        reason: standing.reason,
        pointer,
        gaps,
        author,
        next,
    }
}
