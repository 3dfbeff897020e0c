//! Condenses the texts of a turn by rule, favouring the turn's query. Knows no document.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use larder_condense::{CondenseRequest, Condensed, ContentType};
use larder_engine::Engine;
use larder_text::pointer::Pointer;
use larder_text::tokens::Counter;

use super::error::Stop;

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
}

impl<'a> TurnCondenser<'a> {
    pub(super) const fn new(engine: &'a Engine, counter: Counter, query: String) -> Self {
        Self { engine, counter, query }
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
        let targets = |text: &str| -> BTreeSet<String> {
            larder_vault::links::links(text).into_iter().map(|link| link.path).collect()
        };
        if !targets(&condensed.result.text).is_subset(&targets(text)) {
            condensed.result.text = fenced(&condensed.result.text);
        }
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
        let request = CondenseRequest {
            text,
            content_type,
            target,
            query: Some(&self.query),
            pins: &[],
            counter: &self.counter,
            key: self.engine.store.key(),
        };
        let result = larder_condense::condense(&request).ok()?;
        Some(CondensedText { result, took: began.elapsed() })
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
