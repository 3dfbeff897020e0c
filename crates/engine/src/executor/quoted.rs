//! Runs whose answer is quoted from their documents: packed and recorded like any other run, without calling a model.

use std::time::Duration;

use larder_core::output::{Citation, CitationPlace, Parsed};
use larder_core::pack::{PackRequest, Receipt};
use larder_core::recipe::Recipe;
use larder_text::tokens::Counter;

use super::{
    Meter, NoopObserver, Originals, QuotedAnswer, RecipeRun, RunError, RunKind, RunOutcome, RunReceipt,
    store_originals,
};
use crate::engine::Engine;
use crate::inputs::RunInput;
use crate::packer;
use crate::prepare::{Caller, ModelLimits, prepare};

impl Engine {
    /// Records a run that `answer` answers without a model, given the receipt of the prompt that a model would have
    /// read, counted by `counter`. The record names no model and no tokens.
    ///
    /// # Errors
    /// If the inputs do not match the recipe, or the run cannot be recorded.
    pub fn record_quotation(
        &self,
        recipe: &Recipe,
        input: &RunInput,
        counter: Counter,
        took: Duration,
        answer: impl FnOnce(&Receipt) -> QuotedAnswer,
    ) -> Result<RunOutcome, RunError> {
        let meter = Meter::new(&NoopObserver, None, None);
        let mut run = RecipeRun::start(self, recipe, input, &meter, RunKind::Quoting)?;
        run.started -= took;
        let outcome = run.quote(counter, answer);
        run.finish(outcome)
    }
}

impl RecipeRun<'_> {
    fn quote(
        &mut self,
        counter: Counter,
        answer: impl FnOnce(&Receipt) -> QuotedAnswer,
    ) -> Result<Parsed, RunError> {
        let (request, packed) = self.pack_quotation(&counter)?;
        let packed_ref = packed.as_deref().map_err(|receipt| &**receipt);
        let receipt = RunReceipt::new(self.recipe, self.recipe.layer, "", counter.name(), packed_ref);
        let QuotedAnswer { value, reply, parts } = answer(&receipt.receipt);
        self.originals = Originals::of(&request, &receipt.receipt, counter);
        self.receipt = Some(receipt);
        if let Ok(pack) = packed {
            store_originals(&self.engine.store, &pack, &self.input.history_originals)?;
        }
        let citation = |(at, part): (usize, String)| Citation {
            part,
            fragment: None,
            place: CitationPlace::Pointer(format!("/citations/{at}")),
        };
        self.gates.citations = parts.into_iter().enumerate().map(citation).collect();
        self.answer = Some(value.to_string());
        Ok(Parsed { value, reply })
    }

    fn pack_quotation(&self, counter: &Counter) -> Result<(PackRequest, packer::Packed), RunError> {
        let budget = &self.recipe.budget;
        let limits = ModelLimits {
            window: budget.total,
            input_limit: None,
            max_output: budget.output,
            enforces_schema: true,
            schema_in_prompt: false,
        };
        let caller = Caller { user: self.engine.store.user(), tools: None };
        let counters = (counter, &self.engine.sizes());
        let request = prepare(self.recipe, self.input, limits, counters, None, caller)?.request;
        let packed = packer::pack(&request, counter, self.engine.store.key())?;
        Ok((request, packed))
    }
}
