//! Levels 2 and 3: how large `context.md`, and a call that reads it, may be before they are reduced (R0-25.2, R0-25.3).
//!
//! The sizes are shares of the call, so that a recipe or model of another size has the same headroom (C20). Level 1, the
//! limit of each section, is the cap of its slot.

use std::cmp::Reverse;

use larder_core::pack::{Cap, PackRequest, Part, PartKind, Protection, SlotForm};
use larder_text::sections::{call_trigger, document_target, document_trigger};
use larder_text::tokens::Counter;

use super::NEWEST_SECTION_PRIORITY;

/// The fewest tokens that level 2 leaves a section, in addition to the lines that it must keep.
const LEAST: usize = 160;

/// Limits the parts of `context.md` and the call that has them. What a recipe without it reads has no such limits, nor
/// has a conversation, whose earlier decisions must not change.
pub(crate) fn limit(request: &mut PackRequest, counter: &Counter) {
    let is_context = |part: &Part| part.kind == PartKind::Context;
    let is_conversation = request.slots.iter().any(|slot| slot.form == SlotForm::Messages);
    if is_conversation || !request.parts.iter().any(is_context) {
        return;
    }
    request.parts.iter_mut().for_each(|part| part.max_tokens = None);
    let total = request.budget.total.min(request.budget.window);
    request.trigger = Some(call_trigger(total));
    limit_document(request, counter, total);
}

/// Level 2: shrinks the parts of `context.md`, those of lower priority and the largest first, never the newest
/// section (C27).
fn limit_document(request: &mut PackRequest, counter: &Counter, total: usize) {
    let trigger = document_trigger(total);
    let slots = &request.slots;
    let size = |part: &Part| {
        let tokens =
            counter.count_up_to(&part.text, total).unwrap_or_else(|| (part.text.len() / 4).max(total + 1));
        // Level 1 acts first.
        match slots.iter().find(|slot| slot.name == part.slot).map(|slot| slot.cap) {
            Some(Cap::Tokens(cap)) => tokens.min(cap),
            _ => tokens,
        }
    };
    let sizes: Vec<usize> = request
        .parts
        .iter()
        .map(|part| if part.kind == PartKind::Context { size(part) } else { 0 })
        .collect();
    let sum = sizes.iter().fold(0, |sum: usize, size| sum.saturating_add(*size));
    if sum <= trigger {
        return;
    }
    let mut excess = sum - document_target(total);
    let is_condensed = |part: &Part| {
        let slot = slots.iter().find(|slot| slot.name == part.slot);
        part.summarizable && slot.is_some_and(|slot| slot.overflow.condense || slot.overflow.truncate)
    };
    let may_shrink = |part: &Part| {
        part.protection == Protection::None && part.priority != NEWEST_SECTION_PRIORITY && is_condensed(part)
    };
    let mut open: Vec<usize> =
        (0..sizes.len()).filter(|&at| sizes[at] > 0 && may_shrink(&request.parts[at])).collect();
    open.sort_by_key(|&at| (request.parts[at].priority, Reverse(sizes[at])));
    let priorities: Vec<u8> = request.parts.iter().map(|part| part.priority).collect();
    let tiers = open.chunk_by(|&a, &b| priorities[a] == priorities[b]);
    for tier in tiers {
        let level = level(tier.iter().map(|&at| sizes[at]), excess);
        for &at in tier {
            let part = &mut request.parts[at];
            let least = LEAST + part.pins.iter().map(|pin| counter.count(pin)).sum::<usize>();
            let most = level.max(least);
            if most < sizes[at] {
                part.max_tokens = Some(most);
                excess = excess.saturating_sub(sizes[at] - most);
            }
        }
    }
}

/// The size to which the largest of `sizes`, in descending order, must shrink so that all lose `excess` together.
fn level(sizes: impl Iterator<Item = usize>, excess: usize) -> usize {
    let mut sizes = sizes.peekable();
    let (mut sum, mut count) = (0_usize, 0);
    while let Some(size) = sizes.next() {
        sum = sum.saturating_add(size);
        count += 1;
        let level = sum.saturating_sub(excess) / count;
        if sizes.peek().is_none_or(|next| level >= *next) {
            return level;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_lose_first_and_no_more_than_needed() {
        assert_eq!(level([3_000, 1_000, 500].into_iter(), 1_500), 1_500);
        assert_eq!(level([3_000, 2_000, 500].into_iter(), 2_000), 1_500);
        assert_eq!(level([300, 200].into_iter(), 900), 0);
        assert_eq!(level(std::iter::empty(), 10), 0);
    }
}
