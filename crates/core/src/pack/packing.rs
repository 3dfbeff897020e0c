//! The packing machine: plan, ask for renditions, take them, plan again, until the prompt fits or is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::allot::{Demand, allot};
use super::assemble::{Planned, assemble};
use super::choose::{Choice, Hold, Ladder, choose, choose_messages};
use super::part::{Part, Protection};
use super::receipt::{Epoch, Ledger, Pack, Reason, Receipt, Refusal, Rendition, SlotLedger};
use super::render::{Rendered, Renderer, left_out_mark};
use super::request::{PackError, PackRequest, RenditionRequest, Step};
use super::slot::{Cap, Form, Overflow, Slot};
use super::watermark;
use crate::content::{CondenseError, Condensed};
use crate::hash::ContentHash;
use crate::pointer::{Pointer, PointerKey};
use crate::tokens::Counter;

/// Times a plan is made again because the joined prompt counted more than its pieces.
const FIT_ROUNDS: usize = 6;
/// Times the machine asks for renditions by a model before it takes the deterministic ones.
const MODEL_ROUNDS: usize = 2;
/// Parts at or below this size are never pointed at: the pointer would cost as much.
const POINTER_WORTH: usize = 48;
/// Protected parts stand above every priority.
const PROTECTED_TIER: u8 = 255;

/// A packing in progress.
pub struct Packing<'a> {
    pub(super) request: &'a PackRequest,
    pub(super) renderer: Renderer<'a>,
    pub(super) ladders: Vec<Ladder>,
    slot_parts: Vec<Vec<usize>>,
    /// Per part.
    slot_of: Vec<usize>,
    critical: Vec<bool>,
    rounds: usize,
    /// Parts that the model could not condense.
    refused_by_model: BTreeSet<usize>,
}

impl<'a> Packing<'a> {
    /// Checks the request and measures its parts, each no further than the budget reaches.
    pub fn new(
        request: &'a PackRequest,
        counter: &'a Counter,
        key: &'a PointerKey,
    ) -> Result<Self, PackError> {
        let names: BTreeMap<&str, usize> =
            request.slots.iter().enumerate().map(|(index, slot)| (&*slot.name, index)).collect();
        let mut slot_parts = vec![Vec::new(); request.slots.len()];
        let mut slot_of = Vec::with_capacity(request.parts.len());
        let mut critical = Vec::with_capacity(request.parts.len());
        let mut ids = hashbrown::HashSet::with_capacity(request.parts.len());
        for (index, part) in request.parts.iter().enumerate() {
            let Some(&slot) = names.get(&*part.slot) else {
                return Err(PackError::UnknownSlot {
                    part: Arc::clone(&part.id),
                    slot: Arc::clone(&part.slot),
                    known: names.keys().copied().collect::<Vec<_>>().join(", "),
                });
            };
            if !ids.insert(&*part.id) {
                return Err(PackError::DuplicateId(Arc::clone(&part.id)));
            }
            slot_parts[slot].push(index);
            slot_of.push(slot);
            let refuses = request.slots[slot].overflow == Overflow::REFUSE;
            critical.push(refuses || part.protection == Protection::Critical);
        }
        let renderer = Renderer::new(counter, key, request.query.as_deref());
        let limit = request.budget.available();
        let ladders = request.parts.iter().map(|part| measure(&renderer, part, limit)).collect();
        let refused_by_model = BTreeSet::new();
        Ok(Self { request, renderer, ladders, slot_parts, slot_of, critical, rounds: 0, refused_by_model })
    }

    /// Takes a rendition that was asked for; `None` means the model failed and the deterministic one stands.
    pub fn supply(&mut self, key: (usize, usize), condensed: Option<Condensed>) {
        match condensed {
            Some(condensed) => self.renderer.supply(key.0, condensed),
            None => {
                self.refused_by_model.insert(key.0);
            }
        }
    }

    /// Plans with what is known.
    pub fn step(&mut self) -> Step {
        let available = self.request.budget.available();
        if let Some(refusal) = self.hopeless(available) {
            return Step::Refused(Box::new(self.refuse(refusal)));
        }
        let ask = self.request.by_model && self.rounds < MODEL_ROUNDS;
        let mut slack = 0;
        let mut over = 0;
        for round in 0..FIT_ROUNDS {
            let mut wanted = BTreeSet::new();
            let plan = self.plan(available.saturating_sub(slack), ask.then_some(&mut wanted));
            if !wanted.is_empty() {
                self.rounds += 1;
                return Step::Need(wanted.into_iter().map(|key| self.rendition_request(key)).collect());
            }
            let pack = self.assembled(plan);
            if pack.receipt.total <= available {
                return Step::Done(Box::new(self.filled(pack, available - slack)));
            }
            over = pack.receipt.total - available;
            // A token more or less at a join can come back in every plan; later rounds step aside further.
            slack += over + 2 * round * round;
        }
        let parts = self.largest(|_| true);
        Step::Refused(Box::new(self.refuse(Refusal { deficit: over, parts })))
    }

    fn assembled(&self, plan: Planned) -> Pack {
        assemble(self.request, &self.renderer, &self.ladders, &self.slot_of, plan)
    }

    /// Plans once more with the tokens that joins and marks turned out not to need, and takes the fuller prompt that
    /// fits. Not where decisions have to stay as a conversation grows.
    fn filled(&mut self, pack: Pack, planned_for: usize) -> Pack {
        let available = self.request.budget.available();
        let left = available - pack.receipt.total;
        let all_whole = pack.receipt.parts.iter().all(|part| part.rendition == Rendition::Whole);
        let stable = self.request.slots.iter().any(|slot| slot.shrink_to.is_some());
        if all_whole || stable || left * 100 <= available {
            return pack;
        }
        let mut fullest = pack;
        for extra in [left, left * 3 / 4, left / 2, left * 2] {
            let plan = self.plan(planned_for + extra, None);
            let fuller = self.assembled(plan);
            if fuller.receipt.total <= available && fuller.receipt.total > fullest.receipt.total {
                fullest = fuller;
            }
            if (available - fullest.receipt.total) * 100 <= available {
                break;
            }
        }
        fullest
    }

    fn rendition_request(&self, key: (usize, usize)) -> RenditionRequest {
        let part = &self.request.parts[key.0];
        RenditionRequest {
            key,
            id: Arc::clone(&part.id),
            text: Arc::clone(&part.text),
            content_type: part.content_type,
            target: key.1.saturating_sub(self.ladders[key.0].frame),
            pins: part.pins.clone(),
        }
    }

    /// Whether a part must stand whole.
    fn is_critical(&self, part: usize) -> bool {
        self.critical[part]
    }

    /// Why no plan can help: what must stand is larger than the budget, or than the cap of a slot that refuses.
    fn hopeless(&self, available: usize) -> Option<Refusal> {
        let mut needed = self.framing(self.request.slots.len());
        let mut culprits = Vec::new();
        for (slot, members) in self.request.slots.iter().zip(&self.slot_parts) {
            let refuses = slot.overflow == Overflow::REFUSE;
            let critical: Vec<usize> = members
                .iter()
                .copied()
                .filter(|&part| refuses || self.request.parts[part].protection == Protection::Critical)
                .collect();
            let size = critical.iter().map(|&part| self.ladders[part].size).fold(0, usize::saturating_add);
            if let (true, Cap::Tokens(cap)) = (refuses, slot.cap)
                && size > cap
            {
                let parts = self.largest(|part| critical.contains(&part));
                return Some(Refusal { deficit: size - cap, parts });
            }
            needed = needed.saturating_add(size);
            culprits.extend(critical);
        }
        let deficit = needed.checked_sub(available).filter(|&deficit| deficit > 0)?;
        culprits.sort_unstable();
        Some(Refusal { deficit, parts: self.largest(|part| culprits.binary_search(&part).is_ok()) })
    }

    /// The three largest parts of those asked for.
    fn largest(&self, which: impl Fn(usize) -> bool) -> Vec<(String, usize)> {
        let mut parts: Vec<usize> = (0..self.ladders.len()).filter(|&part| which(part)).collect();
        parts.sort_by_key(|&part| std::cmp::Reverse(self.ladders[part].size));
        parts
            .iter()
            .take(3)
            .map(|&part| (self.request.parts[part].id.to_string(), self.ladders[part].size))
            .collect()
    }

    fn framing(&self, messages: usize) -> usize {
        self.request.framing.per_call + self.request.framing.per_message * messages
    }

    fn refuse(&self, refusal: Refusal) -> Receipt {
        let counter = self.renderer.counter;
        Receipt {
            budget: Ledger {
                limits: self.request.budget,
                available: self.request.budget.available(),
                framing: self.framing(self.request.slots.len()),
                used: 0,
                slots: Vec::new(),
                tokenizer: counter.name().into(),
                label: counter.label(),
            },
            total: 0,
            refused: Some(refusal),
            parts: Vec::new(),
            epoch: None,
        }
    }

    /// Chooses and makes every rendition within `available`, in the order of the request's parts.
    fn plan(&mut self, available: usize, mut wanted: Option<&mut BTreeSet<(usize, usize)>>) -> Planned {
        let demands: Vec<Demand> = self.slot_parts.iter().map(|members| self.demand(members)).collect();
        let messages: usize = self
            .request
            .slots
            .iter()
            .zip(&self.slot_parts)
            .map(|(slot, members)| if slot.form == Form::Messages { members.len() + 1 } else { 1 })
            .sum();
        let net = available.saturating_sub(self.framing(messages));
        let allowed = allot(&self.request.slots, &demands, net);
        let mut planned = Planned::new(self.request.parts.len());
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

    fn demand(&self, members: &[usize]) -> Demand {
        let size = |which: &dyn Fn(&usize) -> bool| {
            members
                .iter()
                .filter(|part| which(part))
                .map(|&part| self.ladders[part].size)
                .fold(0, usize::saturating_add)
        };
        Demand {
            whole: size(&|_| true),
            critical: size(&|&part| self.is_critical(part)),
            firm: size(&|&part| {
                self.is_critical(part) || self.request.parts[part].protection == Protection::Protected
            }),
        }
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
        let over =
            if demand.whole > cap && allowed >= cap { Reason::SlotOverCap } else { Reason::CallOverBudget };
        let (choices, epoch) = match slot.form {
            Form::Messages => self.choose_in_messages(slot, &members, allowed, demand),
            Form::Joined => (self.choose_joined(slot, &members, allowed), None),
        };
        planned.epoch = planned.epoch.or(epoch);
        let mark = if choices.contains(&Choice::Absent) { self.mark_cost(slot) } else { 0 };
        let mut spare = allowed.saturating_sub(self.cost(&members, &choices) + mark);
        for (&part, &choice) in members.iter().zip(&choices) {
            let rendered = self.render(part, choice, &mut spare, slot, wanted.as_deref_mut());
            let reason = self.reason(part, choice, &rendered, slot, over);
            planned.renditions[part] = Some((rendered, reason));
        }
        let stable = slot.form == Form::Messages && slot.shrink_to.is_some();
        if !stable && wanted.is_none() {
            self.top_up(slot, &members, spare, planned);
        }
    }

    fn choose_joined(&self, slot: &Slot, members: &[usize], allowed: usize) -> Vec<Choice> {
        let critical: Vec<bool> = members.iter().map(|&part| self.is_critical(part)).collect();
        let fixed = members
            .iter()
            .zip(&critical)
            .filter(|&(_, &critical)| critical)
            .map(|(&part, _)| self.ladders[part].size)
            .fold(0, usize::saturating_add);
        let free: Vec<Ladder> = members
            .iter()
            .zip(&critical)
            .filter(|&(_, &critical)| !critical)
            .map(|(&part, _)| {
                let mut ladder = self.ladders[part].clone();
                if self.request.parts[part].protection == Protection::Protected {
                    ladder.priority = PROTECTED_TIER;
                }
                ladder
            })
            .collect();
        let budget = allowed.saturating_sub(fixed);
        let mut chosen = choose(&free, slot.overflow, budget);
        if chosen.contains(&Choice::Absent) {
            chosen = choose(&free, slot.overflow, budget.saturating_sub(self.mark_cost(slot)));
        }
        let mut chosen = chosen.into_iter();
        critical
            .iter()
            .map(|&critical| if critical { Choice::Whole } else { chosen.next().unwrap_or(Choice::Absent) })
            .collect()
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
        let hold: Vec<Hold> = members
            .iter()
            .enumerate()
            .map(|(at, &part)| match self.request.parts[part].protection {
                _ if self.is_critical(part) => Hold::Critical,
                Protection::Protected => Hold::Firm,
                _ if slot.shrink_to.is_none() && at >= tail => Hold::Firm,
                _ => Hold::Free,
            })
            .collect();
        let mark = self.mark_cost(slot);
        if slot.shrink_to.is_some() {
            let cap = if let Cap::Tokens(cap) = slot.cap { cap } else { allowed };
            let high = if allowed < demand.whole.min(cap) { allowed } else { cap }.saturating_sub(mark);
            let (choices, epoch) = watermark::decide(slot, &ladders, &groups, &settled, &hold, high);
            return (choices, Some(epoch));
        }
        let mut choices = choose_messages(&ladders, &groups, &hold, slot.overflow, allowed);
        if choices.contains(&Choice::Absent) {
            choices = choose_messages(&ladders, &groups, &hold, slot.overflow, allowed.saturating_sub(mark));
        }
        (choices, None)
    }

    /// Which messages belong together, and after which of them no call waits for its result.
    fn call_groups(&self, members: &[usize]) -> (Vec<usize>, Vec<bool>) {
        let mut groups = Vec::with_capacity(members.len());
        let mut settled = Vec::with_capacity(members.len());
        let mut waiting: BTreeMap<&str, usize> = BTreeMap::new();
        let mut owners: BTreeMap<&str, usize> = BTreeMap::new();
        for (at, &part) in members.iter().enumerate() {
            let part = &self.request.parts[part];
            let mut group = at;
            for call in &part.shell.tool_calls {
                waiting.insert(&call.id, at);
                owners.insert(&call.id, at);
            }
            if let Some(id) = part.shell.tool_call_id.as_deref() {
                waiting.remove(id);
                group = owners.get(id).copied().unwrap_or(at);
            }
            groups.push(group);
            settled.push(waiting.is_empty());
        }
        (groups, settled)
    }

    fn mark_cost(&self, slot: &Slot) -> usize {
        let pointer = Pointer::whole(self.renderer.key.mint(ContentHash::of(b"")));
        // Ids differ in how their digits tokenize; a third more covers the dearest.
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
            Choice::Absent => absent(),
            Choice::Condensed(target) => {
                let inner = target.saturating_sub(self.ladders[index].frame);
                // What has been decided for a message must come out the same whenever the history is replayed.
                if let Some(wanted) = wanted.filter(|_| slot.shrink_to.is_none())
                    && self.renderer.written(index, inner).is_none()
                    && !self.refused_by_model.contains(&index)
                {
                    wanted.insert((index, target));
                    return absent();
                }
                let rendered = self.condense(index, target, *spare, slot);
                *spare = (*spare + target).saturating_sub(rendered.tokens);
                rendered
            }
        }
    }

    /// Condensed to `target`; with what is spare when pins need more; else a pointer, else nothing.
    fn condense(&mut self, index: usize, target: usize, spare: usize, slot: &Slot) -> Rendered {
        let part = &self.request.parts[index];
        let frame = self.ladders[index].frame;
        let made = match self.renderer.condensed(index, part, target) {
            Err(CondenseError::PinsExceedTarget { needed, .. }) if needed + frame <= target + spare => {
                self.renderer.condensed(index, part, needed + frame)
            }
            made => made,
        };
        match made {
            Ok(rendered) if rendered.tokens <= target + spare => rendered,
            _ => {
                let pointer = self.renderer.pointer(part);
                if slot.overflow.point && pointer.tokens <= target { pointer } else { absent() }
            }
        }
    }

    fn reason(&self, part: usize, choice: Choice, rendered: &Rendered, slot: &Slot, over: Reason) -> Reason {
        if rendered.rendition == Rendition::Whole {
            return match self.request.parts[part].protection {
                _ if self.is_critical(part) => Reason::Critical,
                Protection::Protected => Reason::Protected,
                _ => Reason::Fits,
            };
        }
        if matches!(choice, Choice::Condensed(_)) && rendered.rendition != Rendition::Condensed {
            return Reason::PinsTooLarge;
        }
        if slot.entry_cap.is_some_and(|cap| choice == Choice::Condensed(cap)) {
            Reason::OverEntryCap
        } else {
            over
        }
    }
}

fn absent() -> Rendered {
    Rendered::nothing(Rendition::Absent)
}

fn measure(renderer: &Renderer<'_>, part: &Part, limit: usize) -> Ladder {
    let whole = renderer.whole_cost(part, limit);
    // A text over the limit is at least that large; four bytes a token is a fair guess for how much larger.
    let size = whole.unwrap_or_else(|| (part.text.len() / 4).max(limit + 1));
    let large = size > POINTER_WORTH;
    // Calls and ids stand in every rendition of their message.
    let shell = renderer.shell_cost(part);
    Ladder {
        whole: whole.map(|whole| whole + shell),
        size: size + shell,
        pointer: if large { renderer.pointer(part).tokens + shell } else { usize::MAX / 4 },
        frame: if large { renderer.frame_cost(part) + shell } else { 0 },
        priority: part.priority,
        relevance: part.relevance,
        summarizable: part.summarizable,
        min_remaining: part.min_remaining,
    }
}
