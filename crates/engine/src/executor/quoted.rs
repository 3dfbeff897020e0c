//! Runs whose answer is quoted from their documents: packed and recorded as any other run, without asking a model.

use std::time::Duration;

use larder_core::output::{Citation, CitationPlace, Parsed};
use larder_core::pack::Receipt;
use larder_core::recipe::Recipe;
use larder_text::tokens::Counter;
use serde_json::Value;

use super::{Originals, RunError, RunKind, RunOutcome, RunReceipt};
use crate::engine::Engine;
use crate::inputs::RunInput;
use crate::packer;
use crate::prepare::{ModelLimits, prepare};

/// An answer that was quoted.
pub struct QuotedAnswer {
    /// In the recipe's shape.
    pub value: Value,
    /// For people.
    pub reply: String,
    /// Ids of the parts that it is quoted from.
    pub parts: Vec<String>,
}

impl Engine {
    /// Records a run that is answered without a model, in `answer`'s words. Its receipt shows the prompt that a model
    /// would have read, counted by `counter`; its record names no model and no tokens.
    ///
    /// # Errors
    /// When the inputs do not fit the recipe, or the run cannot be recorded.
    pub fn record_quotation(
        &self,
        recipe: &Recipe,
        input: &RunInput,
        counter: Counter,
        took: Duration,
        answer: impl FnOnce(&Receipt) -> QuotedAnswer,
    ) -> Result<RunOutcome, RunError> {
        let mut progress = self.progress(recipe, input, &super::NoopObserver, RunKind::Quoting)?;
        progress.started -= took;
        let packed = self.pack_quotation(recipe, input, &counter);
        let outcome = packed.and_then(|(request, packed)| {
            let receipt = match &packed {
                Ok(pack) => pack.receipt.clone(),
                Err(receipt) => (**receipt).clone(),
            };
            let QuotedAnswer { value, reply, parts } = answer(&receipt);
            progress.originals = Originals::of(&request, &receipt, counter.clone());
            progress.receipt = Some(RunReceipt {
                recipe: recipe.id(),
                version: recipe.version.to_hex(),
                model: String::new(),
                tokenizer: counter.name().to_owned(),
                messages: packed.as_ref().map(|pack| pack.messages.clone()).unwrap_or_default(),
                receipt,
                condensing: None,
            });
            if let Ok(pack) = packed {
                self.keep(&pack)?;
            }
            let citation = |(at, part): (usize, String)| Citation {
                part,
                fragment: None,
                place: CitationPlace::Pointer(format!("/citations/{at}")),
            };
            progress.gates.citations = parts.into_iter().enumerate().map(citation).collect();
            progress.answer = Some(value.to_string());
            Ok(Parsed { value, reply })
        });
        self.finish(progress, input, outcome)
    }

    fn pack_quotation(
        &self,
        recipe: &Recipe,
        input: &RunInput,
        counter: &Counter,
    ) -> Result<(larder_core::pack::PackRequest, packer::Packed), RunError> {
        let limits = ModelLimits {
            window: recipe.budget.total,
            max_output: recipe.budget.output,
            enforces_schema: true,
            schema_in_prompt: false,
        };
        let request = prepare(recipe, input, limits, counter, None)?.request;
        let packed = packer::pack(&request, counter, self.store.key())?;
        Ok((request, packed))
    }
}
