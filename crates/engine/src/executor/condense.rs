//! Condensing a text outside a run: by a model, or by rule where that fails.

use std::time::{Duration, Instant};

use futures::future::{BoxFuture, FutureExt};
use larder_condense::{CondenseRequest, Condensed};
use larder_core::pack::Rendition;

use super::{CondensingTally, ProgressObserver, ReducedText, RunError};
use crate::condensing::Summarizer;
use crate::engine::Engine;
use crate::inputs::RunInput;

impl Engine {
    /// Condenses a text with the model of layer NERVES, or by rule if that fails, and returns what it cost. The original
    /// is stored first.
    ///
    /// # Errors
    /// As [`larder_condense::condense`], and if the store cannot be written.
    pub fn condense<'a>(
        &'a self,
        request: &'a CondenseRequest<'a>,
        name: &'a str,
        observer: &'a dyn ProgressObserver,
    ) -> BoxFuture<'a, Result<(Condensed, CondensingTally), RunError>> {
        async move {
            let began = Instant::now();
            self.store.pointers().insert(request.text.as_bytes(), "document", name)?;
            let input = RunInput::default();
            let summarizer = Summarizer::new(self, self, &input, observer);
            // By rule first: this rejects a target that no rendition can meet, before any money is spent.
            let by_rule = larder_condense::condense(request)?;
            let unneeded = by_rule.text == request.text;
            let written = if unneeded { None } else { summarizer.condense(request, &[], name).await };
            let condensed = written.unwrap_or(by_rule);
            self.report_condensed(&condensed, began.elapsed());
            Ok((condensed, summarizer.tally().unwrap_or_default()))
        }
        .boxed()
    }

    /// Reports a text that was condensed outside a run to the metrics.
    pub fn report_condensed(&self, condensed: &Condensed, took: Duration) {
        if condensed.tokens < condensed.original_tokens {
            let (before, after) = (condensed.original_tokens, condensed.tokens);
            self.metrics.text_condensed(ReducedText { to: Rendition::Condensed, before, after }, took);
        }
    }
}
