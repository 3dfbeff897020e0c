//! Planning: divides a call's tokens among its slots, and chooses and renders the parts of each.

use std::collections::BTreeSet;

use super::allot::{Demand, allot};
use super::choose::{Choice, Competitor, Ladder, choose, is_crowded};
use super::choose_messages::{Presence, choose_messages};
use super::compose::{Planned, Standing};
use super::links::Linker;
use super::packing::Packing;
use super::part::Protection;
use super::receipt::{Epoch, PartReason, Rendition, SlotLedger};
use super::render::{Rendered, left_out_mark};
use super::slot::{Cap, Slot, SlotForm};
use super::watermark::{self, CallGroups, SlotMessages, Watermarks};
use larder_condense::CondenseError;
use larder_text::hash::ContentHash;
use larder_text::message::Role;
use larder_text::pointer::Pointer;

/// Protected parts come before every priority.
const PROTECTED_TIER: u8 = 255;

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
            .map(|(slot, members)| if slot.form == SlotForm::Messages { members.len() + 1 } else { 1 })
            .sum();
        let net = available.saturating_sub(self.framing(messages));
        let allowed = allot(&self.request.slots, &demands, net);
        let mut planned = Planned::new(self.request.parts.len(), net);
        for (slot, &tokens) in allowed.iter().enumerate() {
            let soft = self.request.slots[slot].soft.is_some_and(|soft| {
                let cap = if let Cap::Tokens(cap) = self.request.slots[slot].cap { cap } else { tokens };
                demands[slot].whole as f64 > cap as f64 * soft
            });
            planned.slots.push(SlotLedger {
                name: self.request.slots[slot].name.to_string(),
                allowed: tokens,
                tokens: 0,
                soft_trigger: soft,
            });
            self.fill_slot(slot, tokens, demands[slot], &mut planned, wanted.as_deref_mut());
        }
        planned
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
        let members = self.slot_parts[slot_index].clone();
        let cap = if let Cap::Tokens(cap) = slot.cap { cap } else { usize::MAX };
        let over = if demand.whole > cap && allowed >= cap {
            PartReason::SlotOverCap
        } else {
            PartReason::CallOverBudget
        };
        let (choices, epoch) = match slot.form {
            SlotForm::Messages => self.choose_in_messages(slot, &members, allowed, demand),
            SlotForm::Joined => (self.choose_joined(slot, &members, allowed), None),
        };
        planned.epoch = planned.epoch.or(epoch);
        let mark = if choices.contains(&Choice::Absent) { self.mark_cost(slot) } else { 0 };
        let mut spare = allowed.saturating_sub(self.cost(&members, &choices).saturating_add(mark));
        for (&part, &choice) in members.iter().zip(&choices) {
            self.stand(part, choice, &mut spare, (slot, over), planned, wanted.as_deref_mut());
        }
        let stable = slot.form == SlotForm::Messages && slot.shrink_to.is_some();
        if !stable && wanted.is_none() {
            self.top_up(slot_index, spare, planned);
        }
    }

    /// Renders a part as chosen.
    fn stand(
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
            let reason = self.reason(part, choice, rendition, slot, over);
            planned.standings[part] = Standing { rendition, tokens, reason };
            return;
        }
        let rendered = self.render(part, choice, spare, slot, wanted);
        let reason = self.reason(part, choice, rendered.rendition, slot, over);
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
            .map(|&part| Competitor { ladder: &self.ladders[part], tier: self.tier(part) })
            .collect();
        let budget = allowed.saturating_sub(fixed);
        let with_mark = || choose(&free, slot.overflow, budget.saturating_sub(self.mark_cost(slot)));
        let chosen = if is_crowded(&free, slot.overflow, budget) {
            with_mark()
        } else {
            let chosen = choose(&free, slot.overflow, budget);
            if chosen.contains(&Choice::Absent) { with_mark() } else { chosen }
        };
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

    fn choose_in_messages(
        &self,
        slot: &Slot,
        members: &[usize],
        allowed: usize,
        demand: Demand,
    ) -> (Vec<Choice>, Option<Epoch>) {
        let ladders: Vec<Ladder> = members.iter().map(|&part| self.ladders[part].clone()).collect();
        let (groups, settled) = self.call_groups(members);
        let tail = members.len().saturating_sub(slot.protect_last);
        let presence: Vec<Presence> = members
            .iter()
            .enumerate()
            .map(|(at, &part)| match self.request.parts[part].protection {
                _ if self.is_critical(part) => Presence::Whole,
                Protection::Protected => Presence::Required,
                _ if slot.shrink_to.is_none() && at >= tail => Presence::Required,
                _ => Presence::Optional,
            })
            .collect();
        let mark = self.mark_cost(slot);
        if slot.shrink_to.is_some() {
            let cap = if let Cap::Tokens(cap) = slot.cap { cap } else { allowed };
            let hard = if allowed < demand.whole.min(cap) { allowed } else { cap }.saturating_sub(mark);
            let low = (hard as f64 * slot.shrink_to.unwrap_or(1.0)) as usize;
            // The cap of a slot never refuses.
            let marks = Watermarks {
                refused_above: usize::MAX,
                soft: None,
                hard,
                low,
                drop_above: None,
                overflow: slot.overflow,
            };
            let call_groups = CallGroups {
                group_of: &groups,
                settled: &settled,
                presence: &presence,
                protect_last: slot.protect_last,
            };
            let mut parts = SlotMessages { slot, ladders: &ladders, presence: &presence };
            let decided = watermark::decide(&call_groups, &marks, &mut parts);
            return (decided.choices, Some(decided.epoch));
        }
        let mut choices = choose_messages(&ladders, &groups, &presence, slot.overflow, allowed);
        if choices.contains(&Choice::Absent) {
            choices =
                choose_messages(&ladders, &groups, &presence, slot.overflow, allowed.saturating_sub(mark));
        }
        (choices, None)
    }

    /// The group of each message, and whether no call is waiting for a result after it.
    fn call_groups(&self, members: &[usize]) -> (Vec<usize>, Vec<bool>) {
        let mut linker = Linker::default();
        let link = |(at, &part): (usize, &usize)| {
            let part = &self.request.parts[part];
            let calls = part.shell.tool_calls.iter().map(|call| (call.id.as_str(), ()));
            let link = linker.link(at, part.role, calls, part.shell.tool_call_id.as_deref());
            (link.group, link.settled)
        };
        members.iter().enumerate().map(link).unzip()
    }

    fn mark_cost(&self, slot: &Slot) -> usize {
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
                // A message's decision must come out the same whenever the history is replayed.
                if let Some(wanted) = wanted.filter(|_| slot.shrink_to.is_none() && slot.overflow.condense)
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
        let made = match self.renderer.condensed(index, part, target, query) {
            Err(CondenseError::PinsExceedTarget { needed, .. }) if needed + frame <= target + spare => {
                self.renderer.condensed(index, part, needed + frame, query)
            }
            made => made,
        };
        // The frame and the text may take a token or two more together than each alone.
        let most = target + spare;
        let made = match made {
            Ok(long) if long.tokens > most => {
                self.renderer.condensed(index, part, target.saturating_sub(long.tokens - most), query)
            }
            made => made,
        };
        match made {
            Ok(rendered) if rendered.tokens <= most => rendered,
            _ => {
                let pointer = self.renderer.pointer(part);
                if slot.overflow.point && pointer.tokens <= target {
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
        if slot.form != SlotForm::Messages || slot.shrink_to.is_none() {
            return self.request.query.as_deref();
        }
        let before = self.request.parts[..index].iter().rev();
        let mut asked = before.filter(|part| part.slot == slot.name && part.role == Role::User);
        asked.next().map(|part| &*part.text)
    }

    fn reason(
        &self,
        part: usize,
        choice: Choice,
        rendition: Rendition,
        slot: &Slot,
        over: PartReason,
    ) -> PartReason {
        if rendition == Rendition::Whole {
            return match self.request.parts[part].protection {
                _ if self.is_critical(part) => PartReason::Critical,
                Protection::Protected => PartReason::Protected,
                _ => PartReason::Fits,
            };
        }
        if matches!(choice, Choice::Condensed(_)) && rendition != Rendition::Condensed {
            return PartReason::PinsTooLarge;
        }
        if slot.entry_cap.is_some_and(|cap| choice == Choice::Condensed(cap)) {
            PartReason::OverEntryCap
        } else {
            over
        }
    }
}
