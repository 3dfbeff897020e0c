//! Drives the packing machine to completion. The machine decides; this only supplies what it requests.

use larder_core::pack::{
    Overflow, Pack, PackError, PackRequest, PackStep, Packing, PartReason, PartReceipt, Receipt, Rendition,
    Slot, SlotForm,
};
use larder_text::pointer::PointerKey;
use larder_text::tokens::Counter;

use crate::prepare::NOTE;
use crate::settings::RunPolicy;

/// A pack, or the receipt of a refusal.
pub(crate) type Packed = Result<Box<Pack>, Box<Receipt>>;

/// Packs by rule alone: `request.by_model` is off. The inner `Err` is the receipt of a refusal.
pub(crate) fn pack(request: &PackRequest, counter: &Counter, key: &PointerKey) -> Result<Packed, PackError> {
    let mut packing = Packing::new(request, counter, key)?;
    loop {
        match packing.step() {
            PackStep::Done(pack) => return Ok(Ok(pack)),
            PackStep::Refused(receipt) => return Ok(Err(receipt)),
            PackStep::Need(wanted) => {
                wanted.into_iter().for_each(|rendition| packing.supply(rendition.key, None))
            }
        }
    }
}

/// Condenses by rule a prompt that fits `whole` but exceeds the threshold, if no part is then dropped and this saves
/// enough; otherwise returns `None` (C19, C25). `request` is the prompt as it would be sent instead, with what it says of
/// its omissions; it may have less room than the whole one.
///
/// A repair note counts on neither side, so that it does not change the rest of the prompt.
pub(crate) fn relieved(
    whole: &Pack,
    request: &PackRequest,
    counter: &Counter,
    key: &PointerKey,
    policy: &RunPolicy,
) -> Result<Option<Box<Pack>>, PackError> {
    let is_note = |part: &&PartReceipt| *part.slot == *NOTE && *part.id == *NOTE;
    let note: usize = whole.receipt.parts.iter().filter(is_note).map(|part| part.tokens).sum();
    let share = whole.receipt.budget.available as f64 * policy.compression_threshold;
    let threshold = (share as usize).saturating_add(note);
    let enough = |tokens: usize| {
        let total = whole.receipt.total;
        total > threshold && total.saturating_sub(tokens) >= policy.min_compression_savings
    };
    let is_whole = |pack: &Pack| pack.receipt.parts.iter().all(|part| part.rendition == Rendition::Whole);
    // A message's decision must not change with what surrounds the conversation.
    let decides_once = |slot: &Slot| slot.form == SlotForm::Messages;
    let may = policy.condenses() && !request.slots.iter().any(decides_once);
    if !may || !enough(threshold) || !is_whole(whole) {
        return Ok(None);
    }
    let available = request.budget.available();
    let mut smaller = PackRequest { by_model: false, trigger: None, ..request.clone() };
    smaller.budget.response_reserve += available.saturating_sub(threshold);
    for slot in &mut smaller.slots {
        // Parts of a prompt that fits may only be condensed, with markers; none becomes a pointer or is truncated.
        slot.overflow = Overflow { condense: slot.overflow.condense, ..Overflow::REFUSE };
    }
    let Ok(mut made) = pack(&smaller, counter, key)? else { return Ok(None) };
    let receipt = &mut made.receipt;
    let is_kept = |part: &PartReceipt| matches!(part.rendition, Rendition::Whole | Rendition::Condensed);
    if !receipt.parts.iter().all(is_kept) || !enough(receipt.total) {
        return Ok(None);
    }
    receipt.whole = whole.receipt.whole;
    receipt.budget.limits = request.budget;
    receipt.budget.available = available;
    // The receipt shows the call's budget, not the reduced one.
    for slot in &mut receipt.budget.slots {
        if let Some(before) = whole.receipt.budget.slots.iter().find(|before| before.name == slot.name) {
            (slot.allowed, slot.soft_trigger) = (before.allowed, before.soft_trigger);
        }
    }
    let over = receipt.parts.iter_mut().filter(|part| part.reason == PartReason::CallOverBudget);
    over.for_each(|part| part.reason = PartReason::OverThreshold);
    Ok(Some(made))
}

#[cfg(test)]
#[path = "packer_tests.rs"]
mod tests;
