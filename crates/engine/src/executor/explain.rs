//! Packing without calling a model: what a run would send, and why.

use larder_core::pack::{Cap, Pack};

use super::{RunError, RunKind, RunReceipt, store_originals};
use crate::engine::Engine;
use crate::history;
use crate::inputs::RunInput;
use crate::opening;
use crate::prepare::levels;
use crate::prompt::prepare_for;

impl Engine {
    /// Packs what a run would send, without sending it. The originals behind every pointer are stored, so a caller may
    /// send the messages.
    ///
    /// # Errors
    /// If the recipe is missing, its inputs do not match it, or the originals cannot be stored. A prompt that cannot fit is
    /// not an error: the receipt reports it.
    pub fn explain(&self, name: &str, input: &RunInput) -> Result<RunReceipt, RunError> {
        let (receipt, pack) = packed(self, name, input, 0)?;
        if let Some(pack) = pack {
            store_originals(&self.store, &pack, &input.history_originals)?;
        }
        Ok(receipt)
    }

    /// Packs with `extra` tokens on top of the recipe's budget and of every slot's cap, to show what they would admit.
    ///
    /// # Errors
    /// As [`Self::explain`].
    pub fn explain_with(&self, name: &str, input: &RunInput, extra: usize) -> Result<RunReceipt, RunError> {
        packed(self, name, input, extra).map(|(receipt, _)| receipt)
    }
}

/// The receipt, and the pack unless it was refused.
fn packed(
    engine: &Engine,
    name: &str,
    input: &RunInput,
    extra: usize,
) -> Result<(RunReceipt, Option<Box<Pack>>), RunError> {
    let recipe = engine.find(name, input.mode).map_err(|source| RunError::Unknown { source })?;
    let route = engine.route(recipe, input);
    let layer = route.as_ref().map_or(recipe.layer, |route| route.layer);
    let candidate = engine.candidate(layer, input.mode.or(recipe.mode))?;
    let counter = engine.counter(&candidate.spec);
    let prepared = prepare_for(engine, recipe, input, &candidate, &counter, None, RunKind::Answer)?;
    let mut prepared = prepared.opening(engine, &candidate);
    prepared.request.budget.total += extra;
    prepared.request.budget.window += extra;
    for slot in &mut prepared.request.slots {
        if let Cap::Tokens(cap) = &mut slot.cap {
            *cap += extra;
        }
    }
    if extra > 0 && prepared.request.trigger.is_some() {
        levels::limit(&mut prepared.request, &counter);
    }
    // With more tokens the prompt must never contain less than before.
    let (prepared, packed) = opening::pack(engine, prepared, &counter, extra == 0)?;
    let packed_ref = packed.as_deref().map_err(|receipt| &**receipt);
    let mut receipt = RunReceipt::new(recipe, candidate.layer, &candidate.name, counter.name(), packed_ref);
    receipt.route = route;
    receipt.tools = prepared.offered(&counter);
    receipt.not_offered.clone_from(&prepared.not_offered);
    receipt.history = history::as_given(&input.history_originals, engine.store.key());
    Ok((receipt, packed.ok()))
}
