//! Prompts whose model can read what they show condensed or by pointer: they offer the rehydrate tool, say in one
//! sentence that parts are condensed, and keep room for what is read back. Knows no model's reply.

use larder_core::pack::{Overflow, Pack, PackError, Part, PartReason, Protection, Receipt, Rendition, Slot};
use larder_core::policy::rehydrate_tool;
use larder_models::table::Capability;
use larder_text::pointer::PointerKey;
use larder_text::tokens::Counter;

use crate::candidate::ModelCandidate;
use crate::engine::Engine;
use crate::packer::{self, Packed};
use crate::prepare::{NOTE, PreparedPrompt, QUERY_SLOT};
use crate::run::ToolReceipt;

/// The slot and part that say that parts of the prompt are condensed (R3-4.41).
pub(crate) use larder_core::recipe::own_slots::MARKS;
/// What they say where the model can open pointers.
const OPENS: &str = include_str!("../cookbook/prompts/engine/condensed_open.md");
/// What they say where it cannot.
const SHOWS: &str = include_str!("../cookbook/prompts/engine/condensed.md");
/// The share of a prompt that is kept free for what the model reads back, as one part in so many.
const ROOM_TO_READ: usize = 8;
/// The same where the recipe's own tools are offered.
const ROOM_TO_CALL: usize = 4;
/// The tool may cost at most one part in so many of a prompt.
const TOOL_SHARE: usize = 4;

/// Packs by rule the prompt that a model is sent: with the tool that opens its pointers if it has any, and with room
/// for the results of its tools where there is some.
pub(crate) fn pack(
    engine: &Engine,
    prepared: PreparedPrompt,
    counter: &Counter,
    relieves: bool,
) -> Result<(PreparedPrompt, Packed), PackError> {
    let (prepared, packed) = pack_with_tools(engine, prepared, counter, relieves)?;
    let packed = packed.map_err(|mut receipt| {
        if let Some(refusal) = &mut receipt.refused {
            refusal.switched_off = prepared.switched_off.map(str::to_owned);
        }
        receipt
    });
    Ok((prepared, packed))
}

fn pack_with_tools(
    engine: &Engine,
    prepared: PreparedPrompt,
    counter: &Counter,
    relieves: bool,
) -> Result<(PreparedPrompt, Packed), PackError> {
    let key = engine.store.key();
    match packer::pack(&prepared.request, counter, key)? {
        Ok(pack) => packed_within(engine, prepared, pack, counter, relieves),
        refused if prepared.tools.is_empty() => Ok((prepared, refused)),
        // Their definitions may be what does not fit.
        refused => {
            let without = prepared.clone().without_tools(counter);
            match packer::pack(&without.request, counter, key)? {
                Ok(pack) => {
                    tracing::warn!(
                        "the definitions of the recipe's tools do not fit the prompt; none is offered"
                    );
                    packed_within(engine, without, pack, counter, relieves)
                }
                Err(_) => Ok((prepared, refused)),
            }
        }
    }
}

/// The prompt, which fits as `pack`, with what the policy and its tools ask for: reduced to the threshold if it exceeds
/// that, and with room for the results of tools, where this is possible.
fn packed_within(
    engine: &Engine,
    prepared: PreparedPrompt,
    pack: Box<Pack>,
    counter: &Counter,
    relieves: bool,
) -> Result<(PreparedPrompt, Packed), PackError> {
    let budget = &pack.receipt.budget;
    let free = budget.available.saturating_sub(pack.receipt.total);
    let lacks_room = !prepared.tools.is_empty() && free < budget.available / ROOM_TO_CALL;
    let roomy = lacks_room.then(|| prepared.clone().with_room(ROOM_TO_CALL));
    for way in roomy.iter().chain([&prepared]) {
        if relieves && let Some((way, pack)) = relieved(engine, way, &pack, counter)? {
            return Ok((way, Ok(pack)));
        }
        if way.reserved > 0
            && let Ok(less) = packer::pack(&way.request, counter, engine.store.key())?
        {
            return opened(engine, way.clone(), less, counter);
        }
    }
    opened(engine, prepared, pack, counter)
}

/// The prompt reduced to the threshold of the policy, with what it needs because of that; `None` if it does not exceed
/// the threshold, or reducing it does not save enough.
fn relieved(
    engine: &Engine,
    prepared: &PreparedPrompt,
    whole: &Pack,
    counter: &Counter,
) -> Result<Option<(PreparedPrompt, Box<Pack>)>, PackError> {
    let (key, policy) = (engine.store.key(), &engine.policy);
    let Some(made) = packer::relieved(whole, &prepared.request, counter, key, policy)? else {
        return Ok(None);
    };
    for way in ways(engine, prepared, &made, counter) {
        if let Some(mut pack) = packer::relieved(whole, &way.request, counter, key, policy)? {
            way.settle(&mut pack.receipt);
            return Ok(Some((way, pack)));
        }
    }
    Ok(None)
}

/// The prompt with the sentence and the tool that it needs because of its pointers, if they fit.
fn opened(
    engine: &Engine,
    prepared: PreparedPrompt,
    mut pack: Box<Pack>,
    counter: &Counter,
) -> Result<(PreparedPrompt, Packed), PackError> {
    let condensed = is_condensed(&pack.receipt);
    for way in ways(engine, &prepared, &pack, counter) {
        // A prompt that fits whole is not shortened for the sake of a tool.
        let fits = |pack: &Pack| condensed || !is_condensed(&pack.receipt);
        if let Ok(mut pack) = packer::pack(&way.request, counter, engine.store.key())?
            && fits(&pack)
        {
            way.settle(&mut pack.receipt);
            return Ok((way, Ok(pack)));
        }
    }
    prepared.settle(&mut pack.receipt);
    Ok((prepared, Ok(pack)))
}

/// A prompt with what it may say and offer because of what `pack` shows of it, best first: the tool that opens pointers
/// with a sentence, or the sentence alone.
fn ways(engine: &Engine, prepared: &PreparedPrompt, pack: &Pack, counter: &Counter) -> Vec<PreparedPrompt> {
    let condensed = is_condensed(&pack.receipt);
    // Results of tools may be shown by pointer, too.
    let opens = prepared.opens && (!prepared.tools.is_empty() || has_pointers(pack, engine.store.key()));
    let mut ways = Vec::new();
    if opens {
        let mut way = prepared.clone();
        way.offer_rehydration(counter);
        if way.tool_tokens(counter) <= way.request.budget.available() / TOOL_SHARE {
            if condensed && way.reserved == 0 {
                way = way.with_room(ROOM_TO_READ);
            }
            if condensed {
                way.say(OPENS.trim_end());
            }
            ways.push(way);
        }
    }
    if condensed {
        let mut way = prepared.clone();
        way.say(SHOWS.trim_end());
        ways.push(way);
    }
    ways
}

/// Whether something of the prompt is not shown whole.
pub(crate) fn is_condensed(receipt: &Receipt) -> bool {
    receipt.parts.iter().any(|part| part.rendition != Rendition::Whole)
}

/// Whether a prompt has nothing that a model could condense: it is whole, or above the threshold, where rules condense.
pub(crate) fn is_by_rule(receipt: &Receipt) -> bool {
    !is_condensed(receipt) || receipt.parts.iter().any(|part| part.reason == PartReason::OverThreshold)
}

/// Whether the prompt shows a pointer of this user.
fn has_pointers(pack: &Pack, key: &PointerKey) -> bool {
    pack.messages.iter().any(|message| !key.find_in(&message.joined_text()).is_empty())
}

impl PreparedPrompt {
    /// The prompt with the permission to offer the tool that opens pointers, where the model can call tools.
    pub(crate) fn opening(mut self, engine: &Engine, candidate: &ModelCandidate) -> Self {
        self.opens = engine.policy.rehydration.rounds > 0 && candidate.spec.can(Capability::Tools);
        self
    }

    /// The prompt without any tools.
    pub(crate) fn without_tools(mut self, counter: &Counter) -> Self {
        self.request.framing.per_call -= self.tool_tokens(counter);
        self.tools.clear();
        self
    }

    /// The prompt with a share of its budget kept free, for what calls of tools add to it.
    fn with_room(mut self, share: usize) -> Self {
        self.reserved = self.request.budget.available() / share;
        self.request.budget.response_reserve += self.reserved;
        self
    }

    /// Shows the budget of the call in a receipt rather than what was left of it for packing.
    pub(crate) fn settle(&self, receipt: &mut Receipt) {
        let budget = &mut receipt.budget;
        budget.limits = self.request.budget;
        budget.limits.response_reserve -= self.reserved;
        budget.available = budget.limits.available();
        budget.kept_free = self.reserved;
        // A call that fits may be reduced for the sake of that room.
        if receipt.whole <= budget.available {
            let over = receipt.parts.iter_mut().filter(|part| part.reason == PartReason::CallOverBudget);
            over.for_each(|part| part.reason = PartReason::CallNearLimit);
        }
    }

    fn offer_rehydration(&mut self, counter: &Counter) {
        let before = self.tool_tokens(counter);
        self.tools.push(rehydrate_tool());
        self.request.framing.per_call += self.tool_tokens(counter) - before;
    }

    /// Tokens of the definitions of its tools.
    pub(crate) fn tool_tokens(&self, counter: &Counter) -> usize {
        counter.count_messages(&[], &self.tools, None) - counter.count_messages(&[], &[], None)
    }

    /// Its tools, each with the tokens that its definition adds to those before it.
    pub(crate) fn offered(&self, counter: &Counter) -> Vec<ToolReceipt> {
        let mut before = counter.count_messages(&[], &[], None);
        let tools = self.tools.iter().enumerate().map(|(at, tool)| {
            let total = counter.count_messages(&[], &self.tools[..=at], None);
            let tokens = total.saturating_sub(std::mem::replace(&mut before, total));
            ToolReceipt { name: tool.name.clone(), tokens }
        });
        tools.collect()
    }

    /// Adds a sentence before the query.
    fn say(&mut self, text: &str) {
        let mut part = Part::new(MARKS, MARKS, text);
        part.protection = Protection::Critical;
        self.request.parts.push(part);
        let slots = &mut self.request.slots;
        let is_last = |slot: &Slot| matches!(&*slot.name, QUERY_SLOT | NOTE);
        let at = slots.iter().position(is_last).unwrap_or(slots.len());
        slots.insert(at, Slot::new(MARKS).overflow(Overflow::REFUSE));
    }
}
