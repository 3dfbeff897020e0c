//! Drives the packing machine to its end. The machine decides; this only supplies what it asks for.

use larder_core::pack::{
    Overflow, Pack, PackError, PackRequest, PackStep, Packing, PartReason, PartReceipt, Receipt, Rendition,
    Slot, SlotForm,
};
use larder_text::pointer::PointerKey;
use larder_text::tokens::Counter;

use crate::engine::RunPolicy;
use crate::prepare::NOTE;

/// A pack, or the receipt of a refusal.
pub(crate) type Packed = Result<Box<Pack>, Box<Receipt>>;

/// Packs by rule alone: `request.by_model` is off. `Err` inside is the receipt of a refusal.
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

/// A prompt that stands whole and takes more than the threshold, condensed to it by rule, where every part then still
/// stands at least condensed and that saves enough; any other as it is (C19, C25).
///
/// The note of a repair counts on neither side: what is asked again must not look otherwise for it.
pub(crate) fn relieved(
    whole: Box<Pack>,
    request: &PackRequest,
    counter: &Counter,
    key: &PointerKey,
    policy: &RunPolicy,
) -> Result<Box<Pack>, PackError> {
    let available = request.budget.available();
    let is_note = |part: &&PartReceipt| *part.slot == *NOTE && *part.id == *NOTE;
    let note: usize = whole.receipt.parts.iter().filter(is_note).map(|part| part.tokens).sum();
    let threshold = ((available as f64 * policy.compression_threshold) as usize).saturating_add(note);
    let enough = |tokens: usize| {
        let total = whole.receipt.total;
        total > threshold && total.saturating_sub(tokens) >= policy.min_compression_savings
    };
    let stands = |pack: &Pack| pack.receipt.parts.iter().all(|part| part.rendition == Rendition::Whole);
    // What was decided for a message must not change with what stands beside the conversation.
    let decides_once = |slot: &Slot| slot.form == SlotForm::Messages && slot.shrink_to.is_some();
    let may = policy.compression_enabled && !request.slots.iter().any(decides_once);
    if !may || !enough(threshold) || !stands(&whole) {
        return Ok(whole);
    }
    let mut smaller = PackRequest { by_model: false, ..request.clone() };
    smaller.budget.response_reserve += available.saturating_sub(threshold);
    for slot in &mut smaller.slots {
        // A prompt that fits loses nothing but what condensing marks: no part becomes a line or a beginning.
        slot.overflow = Overflow { condense: slot.overflow.condense, ..Overflow::REFUSE };
    }
    let Ok(mut made) = pack(&smaller, counter, key)? else { return Ok(whole) };
    let receipt = &mut made.receipt;
    let is_kept = |part: &PartReceipt| matches!(part.rendition, Rendition::Whole | Rendition::Condensed);
    if !receipt.parts.iter().all(is_kept) || !enough(receipt.total) {
        return Ok(whole);
    }
    receipt.budget.limits = request.budget;
    receipt.budget.available = available;
    // The budget is what it was, and so is what each slot may have of it.
    for (slot, before) in receipt.budget.slots.iter_mut().zip(&whole.receipt.budget.slots) {
        (slot.allowed, slot.soft_trigger) = (before.allowed, before.soft_trigger);
    }
    let over = receipt.parts.iter_mut().filter(|part| part.reason == PartReason::CallOverBudget);
    over.for_each(|part| part.reason = PartReason::OverThreshold);
    Ok(made)
}

#[cfg(test)]
#[path = "packer_tests.rs"]
mod tests;
