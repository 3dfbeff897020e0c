//! Packing without asking: what a run would send, and why. Reaches no model.

use larder_core::pack::Pack;

use super::{RunError, RunKind, RunReceipt};
use crate::engine::Engine;
use crate::inputs::RunInput;
use crate::packer;

impl Engine {
    /// Packs what a run would send, without sending it.
    ///
    /// # Errors
    /// When the recipe is missing or its inputs do not fit it. A prompt that cannot fit is no error: the receipt says
    /// so.
    pub fn explain(&self, name: &str, input: &RunInput) -> Result<RunReceipt, RunError> {
        self.packed(name, input, 0).map(|(receipt, _)| receipt)
    }

    /// Packs with more tokens than the recipe allows, to show what they would let in.
    ///
    /// # Errors
    /// As [`Self::explain`].
    pub fn explain_with(&self, name: &str, input: &RunInput, extra: usize) -> Result<RunReceipt, RunError> {
        self.packed(name, input, extra).map(|(receipt, _)| receipt)
    }

    /// Packs what a run would send for somebody else to send: the originals of what does not stand whole are stored,
    /// so that every pointer in the messages holds.
    ///
    /// # Errors
    /// As [`Self::explain`], and when the originals cannot be stored.
    pub fn lay_out(&self, name: &str, input: &RunInput) -> Result<RunReceipt, RunError> {
        let (receipt, pack) = self.packed(name, input, 0)?;
        if let Some(pack) = pack {
            self.keep(&pack)?;
        }
        Ok(receipt)
    }

    /// The receipt, and the pack unless it was refused.
    fn packed(
        &self,
        name: &str,
        input: &RunInput,
        extra: usize,
    ) -> Result<(RunReceipt, Option<Box<Pack>>), RunError> {
        let recipe = self.find(name, input.mode).map_err(|source| RunError::Unknown { source })?;
        let candidate = self.candidate(recipe.layer, input.mode.or(recipe.mode))?;
        let counter = self.counter(&candidate.spec);
        let mut prepared = self.prepare(recipe, input, &candidate, &counter, None, RunKind::Answer)?;
        prepared.request.budget.total += extra;
        prepared.request.budget.window += extra;
        let packed = match packer::pack(&prepared.request, &counter, self.store.key())? {
            // More tokens are to show what they let in, never less than stood there before.
            Ok(pack) if extra == 0 => {
                let key = self.store.key();
                Ok(packer::relieved(pack, &prepared.request, &counter, key, &self.policy)?)
            }
            packed => packed,
        };
        let receipt =
            self.receipt(recipe, &candidate, &counter, packed.as_deref().map_err(|receipt| &**receipt));
        Ok((receipt, packed.ok()))
    }
}
