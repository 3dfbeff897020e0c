//! The packing machine: plans and requests renditions until the prompt fits or is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::allot::{Demand, share_pool};
use super::assemble::assemble;
use super::choose::Ladder;
use super::compose::{ComposedPrompt, Planned, compose};
use super::part::{Part, Protection};
use super::receipt::{BudgetLedger, Pack, PackRefusal, Receipt, RefusalLimit, Rendition};
use super::render::PartRenderer;
use super::request::{PackError, PackRequest, PackStep, RenditionRequest};
use super::run::Run;
use super::slot::{CallBudget, Cap, Overflow, Slot, SlotForm};
use larder_condense::Condensed;
use larder_text::message::Message;
use larder_text::pointer::PointerKey;
use larder_text::tokens::Counter;

/// Maximum number of replans because the joined prompt counted more than its pieces.
const FIT_ROUNDS: usize = 6;
/// Maximum rounds of requesting model renditions before the deterministic ones are used.
const MODEL_ROUNDS: usize = 2;
/// A part of at most this size is always counted to the end.
const COUNTED_BYTES: usize = 1 << 17;
/// Parts of at most this size never become pointers: the pointer would cost as much.
const POINTER_WORTH: usize = 48;

/// A packing in progress.
pub struct Packing<'a> {
    pub(super) request: &'a PackRequest,
    pub(super) renderer: PartRenderer<'a>,
    pub(super) ladders: Vec<Ladder>,
    /// By slot.
    pub(super) slot_parts: Vec<Vec<usize>>,
    /// The runs of older messages written so far, numbered after the parts of the request.
    pub(super) runs: Vec<Arc<Run>>,
    /// By part.
    critical: Vec<bool>,
    rounds: usize,
    /// Whether slots of messages take their next step ahead of time.
    pub(super) ahead: bool,
    /// Parts that the model could not condense.
    pub(super) refused_by_model: BTreeSet<usize>,
}

impl<'a> Packing<'a> {
    /// Validates the request and measures its parts, each only as far as the budget reaches.
    pub fn new(
        request: &'a PackRequest,
        counter: &'a Counter,
        key: &'a PointerKey,
    ) -> Result<Self, PackError> {
        let names: BTreeMap<&str, usize> =
            request.slots.iter().enumerate().map(|(index, slot)| (&*slot.name, index)).collect();
        let mut slot_parts = vec![Vec::new(); request.slots.len()];
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
            let refuses = request.slots[slot].overflow == Overflow::REFUSE;
            critical.push(refuses || part.protection == Protection::Critical);
        }
        let cuts = |slot: &Slot| slot.overflow.truncate && !slot.overflow.condense;
        let cutting = request.slots.iter().zip(&slot_parts).filter(|(slot, _)| cuts(slot));
        let renderer =
            PartRenderer::new(counter, key, cutting.flat_map(|(_, parts)| parts.clone()).collect());
        let limit = request.budget.available();
        let mut framed = String::new();
        let measured = |(part, &critical)| measure(&renderer, part, critical, limit, &mut framed);
        let ladders = request.parts.iter().zip(&critical).map(measured).collect();
        let refused_by_model = BTreeSet::new();
        let runs = Vec::new();
        let (rounds, ahead) = (0, false);
        Ok(Self { request, renderer, ladders, slot_parts, runs, critical, rounds, ahead, refused_by_model })
    }

    /// Accepts a requested rendition; `None` means that the model failed, and the part is condensed by rule.
    pub fn supply(&mut self, key: (usize, usize), condensed: Option<Condensed>) {
        match condensed {
            Some(condensed) => self.renderer.supply(key.0, condensed),
            None => {
                self.refused_by_model.insert(key.0);
            }
        }
    }

    /// The renditions of older messages by a model that will be needed soon: those of slots of messages above their soft
    /// share, as if they had reached their next step (R2-8.6).
    pub fn ahead(mut self) -> Vec<RenditionRequest> {
        self.ahead = true;
        let PackStep::Need(mut wanted) = self.step() else { return Vec::new() };
        wanted.retain(|one| one.key.0 >= self.request.parts.len());
        wanted
    }

    /// Plans with the renditions available so far.
    pub fn step(&mut self) -> PackStep {
        let available = self.request.budget.available();
        if let Some(refusal) = self.hopeless(available) {
            return PackStep::Refused(Box::new(self.refuse(refusal)));
        }
        let trigger = self.request.trigger.filter(|&tokens| tokens < available);
        let reduced = trigger.filter(|&tokens| self.hopeless(tokens).is_none());
        let fitted = match reduced.map(|tokens| self.fit(tokens)) {
            Some(Ok(step)) => Ok(step),
            // A trigger refuses nothing.
            Some(Err(_)) | None => self.fit(available),
        };
        fitted.unwrap_or_else(|refusal| PackStep::Refused(Box::new(self.refuse(refusal))))
    }

    /// Plans within `available` tokens.
    fn fit(&mut self, available: usize) -> Result<PackStep, PackRefusal> {
        let ask = self.request.by_model && self.rounds < MODEL_ROUNDS;
        let mut slack = 0;
        let mut over = 0;
        for round in 0..FIT_ROUNDS {
            let mut wanted = BTreeSet::new();
            let plan = self.plan(available.saturating_sub(slack), ask.then_some(&mut wanted));
            if !wanted.is_empty() {
                self.rounds += 1;
                let wanted = wanted.into_iter().map(|key| self.rendition_request(key));
                return Ok(PackStep::Need(wanted.collect()));
            }
            let prompt = self.composed(&plan);
            if prompt.total <= available {
                let (plan, prompt) = self.fill_up(plan, prompt, available);
                if let Some(refusal) = self.lost_pins(&prompt).or_else(|| self.dropped(&plan)) {
                    return Err(refusal);
                }
                return Ok(PackStep::Done(Box::new(self.assembled(plan, prompt))));
            }
            over = prompt.total - available;
            // A token more or less at a join can recur in every plan, so later rounds leave more slack.
            slack += over + 2 * round * round;
        }
        let parts = self.largest(|_| true);
        let limit = self.call_limit(over);
        Err(PackRefusal { deficit: over, limit, parts, switched_off: None })
    }

    pub(super) fn composed(&self, plan: &Planned) -> ComposedPrompt {
        compose(self.request, &self.renderer, &self.slot_parts, plan)
    }

    fn assembled(&self, plan: Planned, prompt: ComposedPrompt) -> Pack {
        assemble(self.request, &self.renderer, &self.ladders, &self.slot_parts, plan, prompt)
    }

    fn rendition_request(&self, key: (usize, usize)) -> RenditionRequest {
        let part = self.part(key.0);
        let frame =
            self.ladders.get(key.0).map_or_else(|| self.renderer.frame_cost(part), |ladder| ladder.frame);
        RenditionRequest {
            key,
            id: Arc::clone(&part.id),
            text: Arc::clone(&part.text),
            content_type: part.content_type,
            target: key.1.saturating_sub(frame),
            pins: part.pins.clone(),
        }
    }

    /// Whether a part must be whole.
    pub(super) fn is_critical(&self, part: usize) -> bool {
        self.critical[part]
    }

    /// Why no plan can succeed: the parts that must stay whole exceed the budget, or the cap of their slot.
    fn hopeless(&self, available: usize) -> Option<PackRefusal> {
        let framing = self.framing(self.least_messages());
        let demands: Vec<Demand> = self.slot_parts.iter().map(|members| self.demand(members)).collect();
        let (mut needed, mut shared) = (framing, 0_usize);
        let mut culprits = Vec::new();
        for (slot, members) in self.request.slots.iter().zip(&self.slot_parts) {
            // A conversation's own limit is what its newest messages and its text may take.
            let binds = slot.form == SlotForm::Joined || slot.overflow == Overflow::REFUSE;
            let critical: Vec<usize> =
                members.iter().copied().filter(|&part| self.is_critical(part)).collect();
            let size = critical.iter().map(|&part| self.ladders[part].size).fold(0, usize::saturating_add);
            let cap = match slot.cap {
                Cap::Tokens(cap) => cap,
                Cap::Share(_) => share_pool(&self.request.slots, &demands, available.saturating_sub(framing)),
                Cap::Flexible => usize::MAX,
            };
            // Slots with percentages have theirs together.
            let mut held = size;
            if binds && matches!(slot.cap, Cap::Share(_)) {
                shared = shared.saturating_add(size);
                held = shared;
            }
            if binds && size > 0 && held > cap {
                let parts = self.largest(|part| critical.binary_search(&part).is_ok());
                let limit = RefusalLimit::Slot { name: slot.name.to_string(), cap };
                return Some(PackRefusal { deficit: held - cap, limit, parts, switched_off: None });
            }
            needed = needed.saturating_add(size);
            culprits.extend(critical);
        }
        let deficit = needed.checked_sub(available).filter(|&deficit| deficit > 0)?;
        culprits.sort_unstable();
        let parts = self.largest(|part| culprits.binary_search(&part).is_ok());
        Some(PackRefusal { deficit, limit: self.call_limit(deficit), parts, switched_off: None })
    }

    /// The limit that a call is over by so many tokens.
    fn call_limit(&self, deficit: usize) -> RefusalLimit {
        let CallBudget { total, window, emergency_floor, declared, .. } = self.request.budget;
        match declared {
            _ if window < total && deficit > emergency_floor => RefusalLimit::Window,
            Some(_) if total <= window => RefusalLimit::Override,
            _ if deficit <= emergency_floor => RefusalLimit::Floor,
            _ => RefusalLimit::Total,
        }
    }

    /// The limit that shortens the parts of a slot: its cap, or that of the call.
    fn limit_of(&self, slot: usize, deficit: usize) -> RefusalLimit {
        match self.request.slots[slot].cap {
            Cap::Tokens(cap) if self.demand(&self.slot_parts[slot]).whole > cap => {
                RefusalLimit::Slot { name: self.request.slots[slot].name.to_string(), cap }
            }
            _ => self.call_limit(deficit),
        }
    }

    /// The parts that are absent although they must not be: in slots that drop nothing, and those under protection. The
    /// deficit is the tokens of their smallest forms.
    fn dropped(&self, plan: &Planned) -> Option<PackRefusal> {
        let may_be_absent = |slot: &Slot, part: usize| {
            let joined = slot.form == SlotForm::Joined;
            let protected = joined && self.request.parts[part].protection == Protection::Protected;
            (slot.overflow.drop && !protected) || self.ladders[part].min_remaining > 0
        };
        for (index, slot) in self.request.slots.iter().enumerate() {
            let is_lost = |part: &usize| {
                plan.standings[*part].rendition == Rendition::Absent && !may_be_absent(slot, *part)
            };
            let lost: Vec<usize> = self.slot_parts[index].iter().copied().filter(is_lost).collect();
            if !lost.is_empty() {
                let least =
                    |&part: &usize| self.ladders[part].cheapest(slot.overflow).min(self.ladders[part].size);
                let deficit = lost.iter().map(least).fold(0, usize::saturating_add).max(1);
                let parts = self.largest(|part| lost.contains(&part));
                return Some(PackRefusal {
                    deficit,
                    limit: self.limit_of(index, deficit),
                    parts,
                    switched_off: None,
                });
            }
        }
        None
    }

    /// The parts with pins that are missing from the prompt; the deficit is the tokens of these pins.
    fn lost_pins(&self, prompt: &ComposedPrompt) -> Option<PackRefusal> {
        let pinned = || self.request.parts.iter().filter(|part| !part.pins.is_empty());
        pinned().next()?;
        let texts: Vec<String> = prompt.messages.iter().map(Message::joined_text).collect();
        let lost = |pin: &&String| !texts.iter().any(|text| text.contains(pin.as_str()));
        let cost = |part: &Part| {
            part.pins.iter().filter(lost).map(|pin| self.renderer.counter.count(pin)).sum::<usize>()
        };
        let costs = pinned().map(|part| (part, cost(part)));
        let lost: Vec<(&Part, usize)> = costs.filter(|&(_, tokens)| tokens > 0).collect();
        let (first, _) = lost.first()?;
        let slot = self.request.slots.iter().position(|slot| slot.name == first.slot);
        let deficit = lost.iter().map(|(_, tokens)| tokens).sum();
        let limit = slot.map(|slot| self.limit_of(slot, deficit)).unwrap_or_default();
        let parts = lost.iter().map(|(part, tokens)| (part.id.to_string(), *tokens)).collect();
        Some(PackRefusal { deficit, limit, parts, switched_off: None })
    }

    /// The minimum number of messages for the required parts: adjacent joined parts of one role share one.
    fn least_messages(&self) -> usize {
        let (mut messages, mut open) = (0, None);
        for (slot, members) in self.request.slots.iter().zip(&self.slot_parts) {
            for &part in members.iter().filter(|&&part| self.is_critical(part)) {
                let role = self.request.parts[part].role;
                let joined = slot.form == SlotForm::Joined;
                messages += usize::from(!joined || open != Some(role));
                open = joined.then_some(role);
            }
        }
        messages
    }

    /// The three largest of the selected parts.
    fn largest(&self, which: impl Fn(usize) -> bool) -> Vec<(String, usize)> {
        let mut parts: Vec<usize> = (0..self.ladders.len()).filter(|&part| which(part)).collect();
        parts.sort_by_key(|&part| std::cmp::Reverse(self.ladders[part].size));
        let exact = |&part: &usize| {
            let (ladder, part) = (&self.ladders[part], &self.request.parts[part]);
            let is_known = ladder.full.1 || ladder.is_capped();
            (part.id.to_string(), if is_known { ladder.size } else { self.renderer.whole(part).tokens })
        };
        parts.iter().take(3).map(exact).collect()
    }

    pub(super) fn framing(&self, messages: usize) -> usize {
        self.request.framing.per_call + self.request.framing.per_message * messages
    }

    /// Tokens of the prompt if everything were whole.
    fn whole(&self) -> usize {
        let sizes = self.ladders.iter().map(|ladder| ladder.full.0);
        sizes.fold(self.framing(self.least_messages()), usize::saturating_add)
    }

    fn refuse(&self, refusal: PackRefusal) -> Receipt {
        let counter = self.renderer.counter;
        Receipt {
            budget: BudgetLedger {
                limits: self.request.budget,
                available: self.request.budget.available(),
                kept_free: 0,
                framing: self.framing(self.least_messages()),
                used: 0,
                slots: Vec::new(),
                tokenizer: counter.name().into(),
                label: counter.label(),
            },
            total: 0,
            whole: self.whole(),
            whole_is_estimate: self.ladders.iter().any(|ladder| !ladder.full.1),
            refused: Some(refusal),
            parts: Vec::new(),
            epoch: None,
        }
    }
}

/// The possible renditions of a part and their costs. What is over `limit` is sampled if it is large; a critical part is
/// counted to the end, since a refusal states its size. `framed` is scratch space.
fn measure(
    renderer: &PartRenderer<'_>,
    part: &Part,
    critical: bool,
    limit: usize,
    framed: &mut String,
) -> Ladder {
    let is_counted = critical || part.text.len() <= COUNTED_BYTES;
    let counted = renderer.whole_cost(part, if is_counted { usize::MAX } else { limit }, framed);
    let size = counted.unwrap_or_else(|| renderer.counter.sampled(&part.text).max(limit + 1));
    let whole = counted.filter(|&size| critical || size <= limit);
    let large = size > POINTER_WORTH;
    // Calls and ids are part of every rendition of their message.
    let shell = renderer.shell_cost(part);
    let most = part.max_tokens.filter(|most| *most < size + shell);
    Ladder {
        whole: whole.map(|whole| whole + shell).filter(|_| most.is_none()),
        size: most.unwrap_or(size + shell),
        full: (size + shell, counted.is_some()),
        pointer: if large { renderer.pointer(part).tokens + shell } else { usize::MAX / 4 },
        frame: if large { renderer.frame_cost(part) + shell } else { 0 },
        priority: part.priority,
        relevance: part.relevance,
        summarizable: part.summarizable && part.protection != Protection::Protected,
        min_remaining: part.min_remaining,
    }
}
