//! Condenses the texts of a turn, favouring the turn's query: by rule, or by a model where the policy allows it. Knows no
//! document.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use larder_condense::{CondenseRequest, Condensed, ContentType};
use larder_engine::Engine;
use larder_engine::executor::Meter;
use larder_text::pointer::Pointer;
use larder_text::tokens::Counter;
use serde_json::{Value, json};

use super::error::Stop;
use super::limits::TurnBudget;

/// A condensed text and the time it took.
pub(super) struct CondensedText {
    pub(super) result: Condensed,
    took: Duration,
}

/// Condenses for one turn.
pub(super) struct TurnCondenser<'a> {
    engine: &'a Engine,
    /// Counts with the tokenizer of the model that plans.
    pub(super) counter: Counter,
    /// The query with its references resolved, as far as phase 0 has resolved them.
    pub(super) query: String,
    /// Counts what the model uses.
    meter: Arc<Meter<'static>>,
    /// When the turn's time runs out.
    until: Option<tokio::time::Instant>,
    /// What a model was asked to condense since these were taken last, for the receipt of the turn.
    asked: Mutex<Vec<Value>>,
}

impl<'a> TurnCondenser<'a> {
    /// Condenses within the budget of a turn.
    pub(super) fn new(engine: &'a Engine, counter: Counter, query: String, budget: &TurnBudget) -> Self {
        let (meter, until) = (Arc::clone(&budget.meter), budget.until);
        Self { engine, counter, query, meter, until, asked: Mutex::default() }
    }

    /// `text` in at most `target` tokens, by the model of layer NERVES where the policy lets one condense (R1-3.15), or by
    /// rule where that fails; `None` if the policy does not, and if neither is possible.
    pub(super) async fn by_model(
        &self,
        text: &str,
        content_type: ContentType,
        target: usize,
        name: &str,
    ) -> Option<Condensed> {
        let policy = &self.engine.policy;
        if !policy.use_llm_summarizer || !policy.condenses() {
            return None;
        }
        let request = self.request(text, content_type, target);
        let writing = self.engine.condense(&request, name, &*self.meter);
        let ended = match self.until {
            None => writing.await,
            Some(until) => tokio::time::timeout_at(until, writing).await.ok()?,
        };
        let (mut condensed, tally) = ended.ok()?;
        let note = json!({
            "condensed": name, "from": condensed.original_tokens, "to": condensed.tokens,
            "author": condensed.author, "calls": tally.calls, "failures": tally.failures,
        });
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(note);
        keep_links(&mut condensed.text, text);
        Some(condensed)
    }

    /// What a model was asked to condense since the last call of this.
    pub(super) fn take_asked(&self) -> Vec<Value> {
        std::mem::take(&mut self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// `text` in at most `target` tokens, for a document: if condensing cut a link so that its target changed, the
    /// text is fenced.
    pub(super) fn for_document(
        &self,
        text: &str,
        content_type: ContentType,
        target: usize,
    ) -> Option<CondensedText> {
        let mut condensed = self.condense(text, content_type, target)?;
        keep_links(&mut condensed.result.text, text);
        Some(condensed)
    }

    /// `text` in at most `target` tokens; `None` where that is impossible.
    pub(super) fn condense(
        &self,
        text: &str,
        content_type: ContentType,
        target: usize,
    ) -> Option<CondensedText> {
        let began = Instant::now();
        let result = larder_condense::condense(&self.request(text, content_type, target)).ok()?;
        Some(CondensedText { result, took: began.elapsed() })
    }

    fn request<'r>(&'r self, text: &'r str, content_type: ContentType, target: usize) -> CondenseRequest<'r> {
        let (query, key) = (Some(self.query.as_str()), self.engine.store.key());
        CondenseRequest { text, content_type, target, query, pins: &[], counter: &self.counter, key }
    }

    /// Reports a condensed text to the engine's metrics. Called once it enters a document, since several may be tried for
    /// one place.
    pub(super) fn report(&self, CondensedText { result, took }: &CondensedText) {
        self.engine.report_condensed(result, *took);
    }

    /// Stores an original and returns its pointer.
    pub(super) fn store(&self, bytes: &[u8], kind: &str, display: &str) -> Result<Pointer, Stop> {
        Ok(self.engine.store.pointers().insert(bytes, kind, display)?.pointer_id)
    }
}

/// Fences a condensed text in which a link was cut so that its target changed.
fn keep_links(condensed: &mut String, text: &str) {
    let targets = |text: &str| -> BTreeSet<String> {
        larder_vault::links::links(text).into_iter().map(|link| link.path).collect()
    };
    if !targets(condensed).is_subset(&targets(text)) {
        *condensed = fenced(condensed);
    }
}

/// `text` inside a fence longer than any in it.
fn fenced(text: &str) -> String {
    let longest = text.split(|char: char| char != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{text}\n{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_any_in_the_text() {
        assert_eq!(fenced("plain"), "```text\nplain\n```");
        assert_eq!(fenced("a ```` b"), "`````text\na ```` b\n`````");
    }
}
