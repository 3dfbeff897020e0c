//! Planning: divides a call's tokens among its slots, and chooses and renders the parts of each.

use std::collections::BTreeSet;

use super::allot::{Demand, allot};
use super::choose::{Choice, Competitor, PROTECTED_TIER, choose, is_crowded};
use super::compose::{Planned, Standing};
use super::packing::Packing;
use super::part::Protection;
use super::receipt::{PartReason, Rendition, SlotLedger};
use super::render::{Rendered, left_out_mark};
use super::slot::{Cap, Slot, SlotForm};
use larder_condense::CondenseError;
use larder_text::hash::ContentHash;
use larder_text::message::Role;
use larder_text::pointer::Pointer;

impl<'a> Packing<'a> {
    /// Chooses and renders all parts within `available` tokens, in the order of the request.
    pub(super) fn plan(
        &mut self,
        available: usize,
        mut wanted: Option<&mut BTreeSet<(usize, usize)>>,
    ) -> Planned {
        let demands: Vec<Demand> = self.slot_parts.iter().map(|members| self.demand(members)).collect();
        let messages: usize = self
            .request
            .slots
            .iter()
            .zip(&self.slot_parts)
            .map(|(slot, members)| {
                if slot.form == SlotForm::Messages {
                    self.likely_messages(slot, members, available)
                } else {
                    1
                }
            })
            .sum();
        let net = available.saturating_sub(self.framing(messages));
        let allowed = allot(&self.request.slots, &demands, net);
        let mut planned = Planned::new(self.request.parts.len(), net);
        for (slot, &tokens) in allowed.iter().enumerate() {
            planned.slots.push(SlotLedger {
                name: self.request.slots[slot].name.to_string(),
                allowed: tokens,
                tokens: 0,
                soft_trigger: false,
                spans: Vec::new(),
            });
            self.fill_slot(slot, tokens, demands[slot], &mut planned, wanted.as_deref_mut());
        }
        planned
    }

    /// How many messages a slot becomes at most: above its cap, the older ones are one.
    fn likely_messages(&self, slot: &Slot, members: &[usize], available: usize) -> usize {
        let cap = if let Cap::Tokens(cap) = slot.cap { cap.min(available) } else { available };
        let mut left = cap;
        let fits = |&&part: &&usize| match left.checked_sub(self.ladders[part].size) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        };
        let newest = members.iter().rev().take_while(fits).count();
        let critical = members.iter().filter(|&&part| self.is_critical(part)).count();
        (newest + critical + 3).min(members.len() + 1)
    }

    pub(super) fn demand(&self, members: &[usize]) -> Demand {
        let mut demand = Demand { whole: 0, critical: 0, firm: 0 };
        for &part in members {
            let size = self.ladders[part].size;
            let critical = self.is_critical(part);
            let firm = critical || self.request.parts[part].protection == Protection::Protected;
            demand.whole = demand.whole.saturating_add(size);
            demand.critical = demand.critical.saturating_add(if critical { size } else { 0 });
            demand.firm = demand.firm.saturating_add(if firm { size } else { 0 });
        }
        demand
    }

    /// Fills one slot within `allowed` tokens.
    fn fill_slot(
        &mut self,
        slot_index: usize,
        allowed: usize,
        demand: Demand,
        planned: &mut Planned,
        mut wanted: Option<&mut BTreeSet<(usize, usize)>>,
    ) {
        let slot = &self.request.slots[slot_index];
        let cap = if let Cap::Tokens(cap) = slot.cap { cap } else { usize::MAX };
        let over = if demand.whole > cap && allowed >= cap {
            PartReason::SlotOverCap
        } else {
            PartReason::CallOverBudget
        };
        if slot.form == SlotForm::Messages {
            return self.fill_messages(slot_index, (allowed, demand.whole), over, planned, wanted);
        }
        let members = self.slot_parts[slot_index].clone();
        let choices = self.choose_joined(slot, &members, allowed);
        let mark = if choices.contains(&Choice::Absent) { self.mark_cost(slot) } else { 0 };
        let mut spare = allowed.saturating_sub(self.cost(&members, &choices).saturating_add(mark));
        for (&part, &choice) in members.iter().zip(&choices) {
            self.stand(part, choice, &mut spare, (slot, over), planned, wanted.as_deref_mut());
        }
        if wanted.is_none() {
            self.top_up(slot_index, spare, planned);
        }
        self.name_held_back(slot, &members, allowed.saturating_sub(mark), planned);
    }

    /// Gives absent parts their reason that could be here in some form, had they no `min_remaining`.
    fn name_held_back(&self, slot: &Slot, members: &[usize], room: usize, planned: &mut Planned) {
        let held_back = |&part: &usize| {
            let ladder = &self.ladders[part];
            if ladder.min_remaining == 0 || !planned.is_absent(part) {
                return false;
            }
            let comes_first = |other: usize| self.is_critical(other) || self.tier(other) >= self.tier(part);
            let earlier = members.iter().filter(|&&other| comes_first(other));
            let taken = earlier.map(|&other| planned.standings[other].tokens).fold(0, usize::saturating_add);
            let left = room.saturating_sub(taken);
            (ladder.cheapest(slot.overflow)..=ladder.min_remaining).contains(&left)
        };
        let parts: Vec<usize> = members.iter().copied().filter(held_back).collect();
        for part in parts {
            planned.standings[part].reason = PartReason::BelowMinRemaining;
        }
    }

    /// Renders a part as chosen.
    pub(super) fn stand(
        &mut self,
        part: usize,
        choice: Choice,
        spare: &mut usize,
        (slot, over): (&Slot, PartReason),
        planned: &mut Planned,
        wanted: Option<&mut BTreeSet<(usize, usize)>>,
    ) {
        let known = match choice {
            Choice::Absent => Some((Rendition::Absent, 0)),
            Choice::Whole => self.ladders[part].whole.map(|tokens| (Rendition::Whole, tokens)),
            Choice::Pointer | Choice::Condensed(_) => None,
        };
        if let Some((rendition, tokens)) = known {
            let reason = self.reason(part, choice, rendition, over);
            planned.standings[part] = Standing { rendition, tokens, reason };
            return;
        }
        let rendered = self.render(part, choice, spare, slot, wanted);
        let reason = self.reason(part, choice, rendered.rendition, over);
        planned.put(part, rendered, reason);
    }

    fn choose_joined(&self, slot: &Slot, members: &[usize], allowed: usize) -> Vec<Choice> {
        let fixed = members
            .iter()
            .filter(|&&part| self.is_critical(part))
            .map(|&part| self.ladders[part].size)
            .fold(0, usize::saturating_add);
        let free: Vec<Competitor<'_>> = members
            .iter()
            .filter(|&&part| !self.is_critical(part))
            .map(|&part| Competitor {
                ladder: &self.ladders[part],
                tier: self.tier(part),
                pinned: !self.request.parts[part].pins.is_empty(),
            })
            .collect();
        let budget = allowed.saturating_sub(fixed);
        let with_mark = || {
            let budget = budget.saturating_sub(self.mark_cost(slot));
            choose(&free, slot.overflow, budget)
        };
        let chosen = if is_crowded(&free, slot.overflow, budget) {
            with_mark()
        } else {
            let chosen = choose(&free, slot.overflow, budget);
            if chosen.contains(&Choice::Absent) { with_mark() } else { chosen }
        };
        let mut chosen = chosen;
        // A line that names what was left out must not take more than that would.
        let is_out = |(at, choice): (usize, &Choice)| (*choice == Choice::Absent).then_some(at);
        let out: Vec<usize> = chosen.iter().enumerate().filter_map(is_out).collect();
        let whole = |&at: &usize| free[at].ladder.whole.filter(|_| free[at].ladder.min_remaining == 0);
        let together = out.iter().map(whole).try_fold(0, |sum: usize, whole| sum.checked_add(whole?));
        if together.is_some_and(|together| together <= self.mark_cost(slot)) {
            out.into_iter().for_each(|at| chosen[at] = Choice::Whole);
        }
        let mut chosen = chosen.into_iter();
        let mut choice = |part| {
            if self.is_critical(part) { Choice::Whole } else { chosen.next().unwrap_or(Choice::Absent) }
        };
        members.iter().map(|&part| choice(part)).collect()
    }

    /// The tier of a part; protected parts come before every priority.
    pub(super) fn tier(&self, part: usize) -> u8 {
        let protected = self.request.parts[part].protection == Protection::Protected;
        if protected { PROTECTED_TIER } else { self.ladders[part].priority }
    }

    pub(super) fn mark_cost(&self, slot: &Slot) -> usize {
        let pointer = Pointer::whole(self.renderer.key.mint(ContentHash::new(b"")));
        // Ids tokenize differently depending on their digits; a third more covers the worst case.
        self.renderer.counter.count(&left_out_mark(&slot.name, &pointer)) * 4 / 3
            + self.request.framing.per_message
    }

    fn cost(&self, members: &[usize], choices: &[Choice]) -> usize {
        members
            .iter()
            .zip(choices)
            .map(|(&part, &choice)| self.ladders[part].cost(choice))
            .fold(0, usize::saturating_add)
    }

    fn render(
        &mut self,
        index: usize,
        choice: Choice,
        spare: &mut usize,
        slot: &Slot,
        wanted: Option<&mut BTreeSet<(usize, usize)>>,
    ) -> Rendered {
        let part = &self.request.parts[index];
        match choice {
            Choice::Whole => self.renderer.whole(part),
            Choice::Pointer => self.renderer.pointer(part),
            Choice::Absent => Rendered::nothing(Rendition::Absent),
            Choice::Condensed(target) => {
                let inner = target.saturating_sub(self.ladders[index].frame);
                if let Some(wanted) = wanted.filter(|_| slot.overflow.condense)
                    && self.renderer.written(index, inner).is_none()
                    && !self.refused_by_model.contains(&index)
                {
                    wanted.insert((index, target));
                    return Rendered::nothing(Rendition::Absent);
                }
                let rendered = self.condense(index, target, *spare, slot);
                *spare = (*spare + target).saturating_sub(rendered.tokens);
                rendered
            }
        }
    }

    /// Condenses to `target`, using spare tokens if the pins need more; otherwise a pointer, otherwise nothing.
    fn condense(&mut self, index: usize, target: usize, spare: usize, slot: &Slot) -> Rendered {
        let part = &self.request.parts[index];
        let frame = self.ladders[index].frame;
        let query = self.query(index, slot);
        let most = target + spare;
        let made = match self.renderer.condensed(index, part, target, query) {
            // The frame and the text may take a token or two more together than each alone.
            Err(CondenseError::PinsExceedTarget { needed, .. }) if needed + frame <= most => {
                self.renderer.condensed(index, part, most.min(needed + frame + 2), query)
            }
            made => made,
        };
        match made {
            Ok(rendered) if rendered.tokens <= most => rendered,
            _ => {
                let pointer = self.renderer.pointer(part);
                // A message that stays is never without text: its call or result would be missing.
                if slot.form == SlotForm::Messages || slot.overflow.point && pointer.tokens <= target {
                    pointer
                } else {
                    Rendered::nothing(Rendition::Absent)
                }
            }
        }
    }

    /// The query for condensing a part. A message's decision must not change with later questions, so there it is the
    /// last user message before it.
    fn query(&self, index: usize, slot: &Slot) -> Option<&'a str> {
        if slot.form != SlotForm::Messages {
            return self.request.query.as_deref();
        }
        let before = self.request.parts[..index].iter().rev();
        let mut asked = before.filter(|part| part.slot == slot.name && part.role == Role::User);
        asked.next().map(|part| &*part.text)
    }

    fn reason(&self, part: usize, choice: Choice, rendition: Rendition, over: PartReason) -> PartReason {
        if rendition == Rendition::Whole {
            return match self.request.parts[part].protection {
                _ if self.is_critical(part) => PartReason::Critical,
                Protection::Protected => PartReason::Protected,
                _ => PartReason::Fits,
            };
        }
        let Choice::Condensed(target) = choice else { return over };
        match rendition {
            Rendition::Condensed if self.ladders[part].is_capped() && target == self.ladders[part].size => {
                PartReason::DocumentOverLimit
            }
            Rendition::Condensed => over,
            _ => PartReason::PinsTooLarge,
        }
    }
}
