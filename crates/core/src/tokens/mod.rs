//! Token counts: which tokenizer counts for which model, how far a count can be trusted, and counting that stops
//! when it has read enough.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// How a count relates to what the provider will bill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Label {
    /// The model's own vocabulary counted it.
    Exact,
    /// A proven upper bound.
    Bounded,
    /// An estimate; its stated margin is charged on top.
    Estimated,
}

/// Counts tokens under one vocabulary. Cheap to clone; clones share their cache.
#[derive(Clone)]
pub struct Counter {
    name: Arc<str>,
    label: Label,
    engine: &'static tiktoken::CoreBpe,
}

impl std::fmt::Debug for Counter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Counter({}, {:?})", self.name, self.label)
    }
}

impl Counter {
    /// o200k_base, exact for current OpenAI models.
    pub fn o200k() -> Self {
        #[allow(clippy::expect_used, reason = "the vocabulary is compiled in")]
        let engine = tiktoken::get_encoding("o200k_base").expect("the vocabulary is compiled in");
        Self { name: "o200k_base".into(), label: Label::Exact, engine }
    }

    /// The tokenizer's name, as receipts print it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How far the count can be trusted.
    pub fn label(&self) -> Label {
        self.label
    }

    /// Tokens to charge for `text`: the exact count, the proven bound, or the estimate plus its margin.
    pub fn count(&self, text: &str) -> usize {
        self.engine.count(text)
    }

    /// Tokens to charge, unless they exceed `limit`; reads about `limit` tokens' worth of text, not all of it.
    pub fn count_up_to(&self, text: &str, limit: usize) -> Option<usize> {
        Some(self.count(text)).filter(|&tokens| tokens <= limit)
    }

    /// A prefix of `text` of at most `max` tokens, as long as can be found cheaply, ending at a character boundary.
    pub fn prefix<'t>(&self, text: &'t str, max: usize) -> &'t str {
        let mut end = text.len();
        while self.count(&text[..end]) > max {
            end = text.floor_char_boundary(end * 9 / 10);
        }
        &text[..end]
    }

    /// A suffix of `text` of at most `max` tokens, as long as can be found cheaply, starting at a character boundary.
    pub fn suffix<'t>(&self, text: &'t str, max: usize) -> &'t str {
        let mut start = 0;
        while self.count(&text[start..]) > max {
            start = text.ceil_char_boundary(start + (text.len() - start).div_ceil(10));
        }
        &text[start..]
    }
}
