//! Spends what a plan left over, so that the budget is used up.
//!
//! The cost of markers and joins is known only once the text is composed, so a plan reserves room for them. Whatever
//! they turn out not to need is spent here: parts grow or enter, the text is measured again, and a change that made
//! it too long is undone.

use std::cmp::Reverse;

use super::allot::{Demand, allot, shares};
use super::compose::{Before, ComposedPrompt, Planned};
use super::packing::Packing;
use super::receipt::{PartReason, Rendition};
use super::slot::{Cap, SlotForm};

/// How many larger renditions are tried each time a slot is topped up.
const TOP_UPS: usize = 8;
/// How many parts enter whole each time a slot is topped up.
const ENTRIES: usize = 16;
/// How many times the composed prompt is measured again.
const ROUNDS: usize = 8;
/// Fewer spare tokens than this are not worth another rendition.
const MIN_SPARE: usize = 4;

impl Packing<'_> {
    /// Spends the `available` tokens of a call down to the last percent, as far as anything fits. Skips messages and what stands before
    /// them, since their form must persist while a conversation grows.
    pub(super) fn fill_up(
        &mut self,
        mut planned: Planned,
        mut prompt: ComposedPrompt,
        available: usize,
    ) -> (Planned, ComposedPrompt) {
        let mut spare = available - prompt.total;
        for _ in 0..ROUNDS {
            if available - prompt.total <= available / 100 || spare < MIN_SPARE {
                break;
            }
            let changes = self.top_up_call(&mut planned, &prompt, spare);
            if changes.is_empty() {
                break;
            }
            let fuller = self.composed(&planned);
            if fuller.total <= available && fuller.total > prompt.total {
                prompt = fuller;
                spare = available - prompt.total;
            } else {
                planned.restore(changes);
                spare = spare.saturating_sub(fuller.total.saturating_sub(available).max(1));
            }
        }
        (planned, prompt)
    }

    /// Spends `spare` tokens on the slots, most important first, each within its share.
    fn top_up_call(
        &mut self,
        planned: &mut Planned,
        prompt: &ComposedPrompt,
        mut spare: usize,
    ) -> Vec<Before> {
        let slots = &self.request.slots;
        let is_conversation =
            |slot: &usize| slots[*slot].form == SlotForm::Messages && !self.slot_parts[*slot].is_empty();
        let demand = |(slot, members): (usize, &Vec<usize>)| {
            let demand = self.demand(members);
            // What messages do not take is free for others.
            if is_conversation(&slot) { Demand { whole: prompt.used[slot], ..demand } } else { demand }
        };
        let demands: Vec<Demand> = self.slot_parts.iter().enumerate().map(demand).collect();
        let mut allowed = allot(slots, &demands, planned.net + spare);
        // Shares of less than all are caps; those of all pass on among themselves what they do not use.
        if shares(slots) < 1.0 {
            let capped = allot(slots, &demands, planned.net);
            for slot in (0..slots.len()).filter(|&slot| matches!(slots[slot].cap, Cap::Share(_))) {
                allowed[slot] = allowed[slot].min(capped[slot]);
            }
        }
        let first = (0..slots.len()).rev().find(is_conversation).map_or(0, |slot| slot + 1);
        let mut order: Vec<usize> = (first..slots.len()).collect();
        order.sort_by_key(|&slot| Reverse(slots[slot].priority));
        let (mut changes, mut used) = (Vec::new(), prompt.used.clone());
        // What a slot is allowed and cannot use goes to the next that needs it, up to its cap.
        let most = |slot: usize| match slots[slot].cap {
            Cap::Tokens(cap) => cap.min(demands[slot].whole),
            Cap::Share(_) if shares(slots) < 1.0 => allowed[slot],
            Cap::Share(_) | Cap::Flexible => demands[slot].whole,
        };
        for (slot, most) in order
            .iter()
            .map(|&slot| (slot, allowed[slot]))
            .chain(order.iter().map(|&slot| (slot, most(slot))))
        {
            let room = most.saturating_sub(used[slot]).min(spare);
            let (made, left) = self.top_up(slot, room, planned);
            changes.extend(made);
            used[slot] += room - left;
            spare -= room - left;
        }
        changes
    }

    /// Spends up to `room` tokens on one slot: first enlarges condensed parts, then adds absent ones. Returns the
    /// changes and the remaining room.
    pub(super) fn top_up(
        &mut self,
        slot: usize,
        mut room: usize,
        planned: &mut Planned,
    ) -> (Vec<Before>, usize) {
        let (mut changes, mut tries) = (Vec::new(), TOP_UPS);
        for at in 0..self.slot_parts[slot].len() {
            let part = self.slot_parts[slot][at];
            while room >= MIN_SPARE && tries > 0 {
                let Some(target) = self.larger(part, slot, room, planned) else { break };
                tries -= 1;
                let Some((gained, before)) = self.grow(part, target, room, planned) else { break };
                changes.push(before);
                room -= gained;
            }
        }
        for _ in 0..ENTRIES {
            let Some(part) = self.next_to_enter(slot, room, planned) else { break };
            let whole = self.renderer.whole(&self.request.parts[part]);
            room -= whole.tokens.min(room);
            changes.push(planned.put(part, whole, PartReason::Fits));
        }
        (changes, room)
    }

    /// The size to which a part could grow with the spare tokens, if that is worth trying.
    fn larger(&self, part: usize, slot: usize, room: usize, planned: &Planned) -> Option<usize> {
        let standing = planned.standings[part];
        let ladder = &self.ladders[part];
        let is_pointer = standing.rendition == Rendition::Pointer;
        if let Some(whole) = ladder.whole.filter(|&whole| is_pointer && whole <= standing.tokens + room) {
            return Some(whole);
        }
        let least = ladder.least_condensed(self.request.slots[slot].overflow)?;
        let target = (standing.tokens + room).min(ladder.size);
        let worth = match standing.rendition {
            Rendition::Whole => false,
            // A model's rendition is not replaced for a few tokens.
            Rendition::Condensed => !self.request.by_model,
            Rendition::Pointer => target >= least && standing.reason != PartReason::PinsTooLarge,
            Rendition::Absent => {
                target >= least && standing.reason != PartReason::PinsTooLarge && self.may_enter(part, room)
            }
        };
        worth.then_some(target)
    }

    /// Whether an absent part may enter its slot.
    fn may_enter(&self, part: usize, room: usize) -> bool {
        room > self.ladders[part].min_remaining
    }

    /// The most relevant absent part of the highest tier that fits whole into `room`.
    fn next_to_enter(&self, slot: usize, room: usize, planned: &Planned) -> Option<usize> {
        let fits = |part: usize| {
            planned.is_absent(part)
                && self.ladders[part].whole.is_some_and(|whole| whole <= room)
                && self.may_enter(part, room)
        };
        let members = self.slot_parts[slot].iter().rev().copied();
        members.filter(|&part| fits(part)).max_by(|&a, &b| {
            let relevance = self.ladders[a].relevance.total_cmp(&self.ladders[b].relevance);
            self.tier(a).cmp(&self.tier(b)).then(relevance)
        })
    }

    /// Makes a larger rendition; returns the tokens it took and what it replaced.
    fn grow(
        &mut self,
        part: usize,
        target: usize,
        room: usize,
        planned: &mut Planned,
    ) -> Option<(usize, Before)> {
        let before = planned.standings[part];
        // Messages are never topped up, so the query is that of the request.
        let query = self.request.query.as_deref();
        let made = match self.ladders[part].whole {
            Some(whole) if whole <= target => Ok(self.renderer.whole(&self.request.parts[part])),
            _ => self.renderer.condensed(part, &self.request.parts[part], target, query),
        };
        let fits = |tokens: usize| tokens > before.tokens && tokens <= before.tokens + room;
        let rendered = made.ok().filter(|made| fits(made.tokens))?;
        let gained = rendered.tokens - before.tokens;
        let reason = if rendered.rendition == Rendition::Whole { PartReason::Fits } else { before.reason };
        Some((gained, planned.put(part, rendered, reason)))
    }
}
