//! Token counts: which tokenizer counts for which model, how far a count can be trusted, and counting that stops
//! early at a limit. Knows messages, to count their framing; knows no recipe, document or pack.
//!
//! Strings that name special tokens (`<|endoftext|>`) count as the ordinary text they are to the author: that is
//! never less than a provider charges for text that it does not interpret as control tokens.

mod bridges;
mod cuts;
mod engine;
mod estimate;
mod framing;
mod gguf;
mod hashed;
mod hub;
mod merges;
mod pictures;
mod pieces;
mod reach;
#[cfg(test)]
mod reference;
mod registry;
mod reports;
mod runs;
mod sparse;
mod trim;
mod word_counts;

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

pub use estimate::ClaudeGeneration;
pub use framing::Framing;
pub use pictures::Pictures;
pub use registry::{DEFAULT_TOKENIZER, Registry};
pub use reports::EstimateReports;

use crate::cache::BoundedCache;
use crate::family::Family;
use crate::parallel::Workers;
use engine::{OpenAi, OpenAiEngine, SingleDigits, TokenEngine};
use estimate::Margin;
use trim::Side;

/// Approximate bytes per token of English text.
const BYTES_PER_TOKEN: usize = 4;
/// The number of samples that represent a text, and the bytes of each.
const SAMPLES: usize = 16;
const SAMPLE: usize = 1 << 10;
/// A part without safe cuts that is at least this large may be slow to count, so a proof that it exceeds the limit is
/// tried first.
const LARGE_PART: usize = 4 * 1024;

/// Texts from this size on are counted by several threads, each taking a share of this size at a time.
const LARGE: usize = 1 << 18;
const SHARE: usize = 1 << 16;

/// Counts per cache; at 24 bytes each they stay below 8 MB per vocabulary.
const MAX_CACHED: usize = 1 << 18;

/// How a count relates to what the provider bills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Label {
    /// Counted with the model's own vocabulary.
    Exact,
    /// A proven upper bound.
    Bounded,
    /// An estimate; its stated margin is charged on top.
    Estimated,
}

/// Why a tokenizer is not available.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// There is no tokenizer with that name.
    #[error("there is no tokenizer {name:?}; {}available: {known}", suggestion(.nearest))]
    Unknown {
        /// The requested name.
        name: String,
        /// The nearest available name, if one is similar.
        nearest: Option<String>,
        /// All known names, separated by commas.
        known: String,
    },
    /// A `tokenizer.json` that cannot be used.
    #[error("the tokenizer.json {name:?} cannot be used: {reason}")]
    TokenizerJson {
        /// The name of the file.
        name: String,
        /// What is invalid or unsupported.
        reason: String,
    },
    /// A GGUF file whose vocabulary cannot be used.
    #[error("the vocabulary in the GGUF file {name:?} cannot be used: {reason}")]
    Gguf {
        /// The name of the file.
        name: String,
        /// What is invalid or unsupported.
        reason: String,
    },
}

fn suggestion(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!("did you mean {name:?}? ")).unwrap_or_default()
}

/// Token counts of a document, in total and by section.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenBreakdown {
    /// The sum over all sections.
    pub total: usize,
    /// Section name → tokens; sections with the same name are summed.
    pub by_section: BTreeMap<String, usize>,
}

/// Counts tokens with one vocabulary. Cheap to clone; clones share caches and threads. Counters created independently
/// share nothing.
#[derive(Clone)]
pub struct Counter {
    settings: Arc<CounterSettings>,
    vocabulary: Arc<CachedEngine>,
}

/// How a raw count becomes a charge.
#[derive(Clone)]
struct CounterSettings {
    name: String,
    /// As [`Counter::estimate_name`] gives it.
    estimate: String,
    label: Label,
    framing: Framing,
    margin: Margin,
}

/// Counts by the 128-bit hash of the text.
type CountCache = BoundedCache<u128, usize>;

/// A vocabulary and its cached counts, shared by all counters that use it. Counts are raw, without the margin of an
/// estimate.
struct CachedEngine {
    engine: Box<dyn TokenEngine>,
    cache: CountCache,
    workers: Arc<Workers>,
}

impl std::fmt::Debug for Counter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Counter({}, {:?})", self.name(), self.label())
    }
}

impl Default for Counter {
    /// cl100k_base.
    fn default() -> Self {
        Self::cl100k()
    }
}

impl Counter {
    fn new(name: &str, label: Label, framing: Framing, engine: impl TokenEngine + 'static) -> Self {
        Self::with_workers(name, label, framing, engine, Arc::default())
    }

    fn with_workers(
        name: &str,
        label: Label,
        framing: Framing,
        engine: impl TokenEngine + 'static,
        workers: Arc<Workers>,
    ) -> Self {
        let vocabulary =
            CachedEngine { engine: Box::new(engine), cache: CountCache::new(MAX_CACHED), workers };
        let (name, estimate) = (name.to_owned(), name.to_owned());
        let settings = CounterSettings { name, estimate, label, framing, margin: Margin::NONE };
        Self { settings: Arc::new(settings), vocabulary: Arc::new(vocabulary) }
    }

    /// cl100k_base, exact for GPT-4, GPT-3.5 and OpenAI's embedding models; the default.
    pub fn cl100k() -> Self {
        Self::openai(OpenAi::Cl100k, Arc::default())
    }

    /// o200k_base, exact for OpenAI's models from GPT-4o on.
    pub fn o200k() -> Self {
        Self::openai(OpenAi::O200k, Arc::default())
    }

    fn openai(vocabulary: OpenAi, workers: Arc<Workers>) -> Self {
        let engine = OpenAiEngine::new(vocabulary);
        Self::with_workers(vocabulary.name(), Label::Exact, Framing::OPENAI, engine, workers)
    }

    /// The rank of a text of three or more bytes that is one token of o200k_base: the lower, the more frequent was the text
    /// when the vocabulary was made.
    pub fn o200k_rank(text: &str) -> Option<u32> {
        OpenAi::O200k.vocabulary()?.merges.token_rank(text.as_bytes())
    }

    /// An estimate for Claude, whose tokenizer is not public: o200k_base times the measured factors of the
    /// generation. [`count`](Self::count) charges the upper end, [`estimate`](Self::estimate) returns the middle.
    pub fn claude(generation: ClaudeGeneration) -> Self {
        let o200k = Self::o200k();
        let is_wanted = |family: &&Family| family.tokenizer == generation.tokenizer();
        Family::all().iter().find(is_wanted).map_or_else(Self::bytes, |family| o200k.as_family(family))
    }

    /// An estimate for unknown models: o200k_base times the most that other vocabularies add. Also for models whose
    /// window is a guess; [`bytes`](Self::bytes) is the bound that always holds.
    pub fn unknown() -> Self {
        Self::o200k().as_unknown()
    }

    /// [`unknown`](Self::unknown) with this counter's vocabulary.
    fn as_unknown(&self) -> Self {
        self.as_estimate("estimate", Framing::OPENAI, Margin::UNKNOWN)
    }

    /// The estimate for a family with this counter's vocabulary; the counter itself if the family has none.
    fn as_family(&self, family: &Family) -> Self {
        let Some(estimate) = family.estimate else { return self.clone() };
        let framing = match family.tokenizer.starts_with("claude") {
            true => Framing::ANTHROPIC,
            false => Framing::CHATML,
        };
        self.as_estimate(family.tokenizer, framing, estimate.into())
    }

    /// o200k_base with every digit a token; only estimates rest on it.
    fn single_digits(workers: Arc<Workers>) -> Self {
        let engine = SingleDigits::new();
        Self::with_workers("single digits", Label::Estimated, Framing::CHATML, engine, workers)
    }

    fn as_estimate(&self, name: &str, framing: Framing, margin: Margin) -> Self {
        self.with_settings(CounterSettings {
            name: name.to_owned(),
            estimate: format!("{name} {} {margin}", self.name()),
            label: Label::Estimated,
            framing,
            margin,
        })
    }

    /// The same vocabulary with different settings.
    fn with_settings(&self, settings: CounterSettings) -> Self {
        Self { settings: Arc::new(settings), vocabulary: Arc::clone(&self.vocabulary) }
    }

    /// The same counter with a different charge for pictures.
    #[must_use]
    fn with_pictures(&self, pictures: Pictures) -> Self {
        let framing = Framing { pictures, ..self.settings.framing };
        self.with_settings(CounterSettings { framing, ..CounterSettings::clone(&self.settings) })
    }

    /// The threads that count large texts; also available for other work on them.
    pub fn workers(&self) -> &Workers {
        &self.vocabulary.workers
    }

    /// The approximate charge for text that has `tokens` tokens to the model: higher if the count is an estimate or a
    /// bound. For target sizes, not for limits that must hold.
    pub fn charge_of(&self, tokens: usize) -> usize {
        match self.settings.label {
            Label::Exact => tokens,
            Label::Estimated => self.settings.margin.charge_of(tokens),
            Label::Bounded => tokens.saturating_mul(BYTES_PER_TOKEN),
        }
    }

    /// Corrects an estimate by what the provider reported: `factor_ppm` is reported tokens per million that
    /// [`count`](Self::count) charged. From now on the charge is one twentieth above the reported average, and never
    /// above the original estimate. Exact and bounded counters, and a factor of 1, change nothing.
    #[must_use]
    pub fn corrected(&self, factor_ppm: u64) -> Self {
        let settings = &self.settings;
        let margin = settings.margin.corrected(factor_ppm);
        if settings.label != Label::Estimated || margin == settings.margin {
            return self.clone();
        }
        let name = format!("{}*{factor_ppm}ppm", settings.name);
        self.with_settings(CounterSettings { name, margin, ..CounterSettings::clone(settings) })
    }

    /// The factor for [`corrected`](Self::corrected) that follows from `reported_ppm`, what a provider reported per million
    /// charged tokens. It has a lower limit: prompts of one user, such as JSON, must not let those of another, such as code,
    /// exceed the window. With it, every kind of text is charged at least its mean in the family; for models of no family,
    /// its mean in any. A factor that would change nothing is 1.
    pub fn correction(&self, reported_ppm: u64) -> u64 {
        self.settings.margin.correction(reported_ppm)
    }

    /// The approximate charge without the correction by `factor_ppm`.
    pub fn uncorrected(charged: u64, factor_ppm: u64) -> u64 {
        Margin::uncorrected(charged, factor_ppm)
    }

    /// What [`corrected`](Self::corrected) corrects: the tokenizer's name, the vocabulary that is counted with, and the margin.
    /// A correction of one estimate says nothing about another.
    pub fn estimate_name(&self) -> &str {
        &self.settings.estimate
    }

    /// One token per UTF-8 byte: a proven bound for every byte-level vocabulary, for unknown models.
    pub fn bytes() -> Self {
        Self::new("bytes", Label::Bounded, Framing::BYTES, engine::Bytes)
    }

    /// Loads the tokenizer in a `tokenizer.json`, exact for its model.
    ///
    /// # Errors
    /// [`TokenError::TokenizerJson`] if the file does not parse or uses an unsupported component.
    pub fn from_tokenizer_json(json: &[u8], name: &str) -> Result<Self, TokenError> {
        Ok(Self::new(name, Label::Exact, Framing::CHATML, hub::Hub::read(json, name)?))
    }

    /// Loads the tokenizer in a GGUF model file, exact for its model; reads only the metadata at the start.
    ///
    /// # Errors
    /// [`TokenError::Gguf`] if the file is not GGUF or its kind of vocabulary is not supported.
    pub fn from_gguf(file: impl Read, name: &str) -> Result<Self, TokenError> {
        let hub = gguf::read(file).map_err(|reason| TokenError::Gguf { name: name.to_owned(), reason })?;
        Ok(Self::new(name, Label::Exact, Framing::CHATML, hub))
    }

    /// The tokenizer's name, as printed in receipts.
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// How far the count can be trusted.
    pub fn label(&self) -> Label {
        self.settings.label
    }

    /// Tokens to charge for `text`: the exact count, the proven bound, or the upper end of the estimate. Linear in
    /// the length of the text, and almost free for a text counted before.
    pub fn count(&self, text: &str) -> usize {
        self.settings.margin.charge(self.vocabulary.raw(text))
    }

    /// The most likely number of tokens: the same as [`count`](Self::count) unless the label is estimated.
    pub fn estimate(&self, text: &str) -> usize {
        self.settings.margin.middle(self.vocabulary.raw(text), text)
    }

    /// Approximates [`count`](Self::count) from evenly spaced samples, for texts so large that only the order of
    /// magnitude matters. Deterministic.
    pub fn sampled(&self, text: &str) -> usize {
        if text.len() <= 2 * SAMPLES * SAMPLE {
            return self.count(text);
        }
        let step = (text.len() - SAMPLE) / (SAMPLES - 1);
        let stretch = |at: usize| {
            let start = text.floor_char_boundary(at * step);
            &text[start..text.floor_char_boundary(start + SAMPLE)]
        };
        let counted = |stretch: &str| (self.vocabulary.engine.count(stretch), stretch.len());
        let sum = |a: (usize, usize), b: (usize, usize)| (a.0 + b.0, a.1 + b.1);
        let (tokens, bytes) = (0..SAMPLES).map(stretch).map(counted).fold((0, 0), sum);
        let raw = tokens as u128 * text.len() as u128 / bytes.max(1) as u128;
        self.settings.margin.charge(usize::try_from(raw).unwrap_or(usize::MAX))
    }

    /// Tokens to charge, or `None` if they exceed `limit`; reads about `limit` tokens' worth of text, not all of it.
    pub fn count_up_to(&self, text: &str, limit: usize) -> Option<usize> {
        let margin = self.settings.margin;
        self.vocabulary.raw_up_to(text, margin.uncharged(limit)).map(|tokens| margin.charge(tokens))
    }

    /// The longest prefix of `text` with at most `max` tokens, to within a token or two, ending at a character
    /// boundary.
    pub fn prefix<'t>(&self, text: &'t str, max: usize) -> &'t str {
        trim::fit(&self.vocabulary, text, self.settings.margin.uncharged(max), Side::Start)
    }

    /// The longest suffix of `text` with at most `max` tokens, to within a token or two, starting at a character
    /// boundary.
    pub fn suffix<'t>(&self, text: &'t str, max: usize) -> &'t str {
        trim::fit(&self.vocabulary, text, self.settings.margin.uncharged(max), Side::End)
    }

    /// Tokens to charge for a document, in total and by section.
    pub fn count_document(&self, sections: &[(&str, &str)]) -> TokenBreakdown {
        let mut breakdown = TokenBreakdown::default();
        for (name, text) in sections {
            let tokens = self.count(text);
            breakdown.total += tokens;
            *breakdown.by_section.entry((*name).to_owned()).or_default() += tokens;
        }
        breakdown
    }
}

impl CachedEngine {
    fn raw(&self, text: &str) -> usize {
        if !self.engine.shape().cuts {
            return self.part(text);
        }
        let count = |text: &str| cuts::segments(text).map(|segment| self.part(segment)).sum();
        if text.len() < LARGE {
            return count(text);
        }
        self.workers.sum(&cuts::shares(text, SHARE), |share| count(share))
    }

    /// The cached count of a part between safe cuts.
    fn part(&self, text: &str) -> usize {
        self.cache.get_or_insert_with(xxh3_128(text.as_bytes()), || self.engine.count(text))
    }

    fn raw_up_to(&self, text: &str, limit: usize) -> Option<usize> {
        let shape = self.engine.shape();
        if shape.per_byte.is_some_and(|most| text.len().saturating_mul(most) <= limit) {
            return Some(self.raw(text));
        }
        if shape.longest.is_some_and(|longest| text.len() > limit.saturating_mul(longest)) {
            return None;
        }
        if !shape.cuts {
            let tokens = if self.engine.surely_exceeds(text, limit) { None } else { Some(self.part(text)) };
            return tokens.filter(|&tokens| tokens <= limit);
        }
        let (mut total, mut rest, mut proof_tried) = (0, text, false);
        for segment in cuts::segments(text) {
            // Text without words and gaps is slow to split or merge, so check first whether it can fit at all.
            if !proof_tried && (segment.len() > LARGE_PART && is_unusual(segment)) {
                proof_tried = true;
                if self.engine.surely_exceeds(rest, limit - total) {
                    return None;
                }
            }
            total += self.part(segment);
            if total > limit {
                return None;
            }
            rest = &rest[segment.len()..];
        }
        Some(total)
    }

    /// As [`raw_up_to`](Self::raw_up_to) for a part that is read once, without caching its count.
    fn fresh_up_to(&self, part: &str, limit: usize) -> Option<usize> {
        if part.len() > LARGE_PART && self.engine.surely_exceeds(part, limit) {
            return None;
        }
        Some(self.engine.count(part)).filter(|&tokens| tokens <= limit)
    }
}

/// Whether a segment is larger than any with safe cuts, or hardly contains ASCII.
fn is_unusual(segment: &str) -> bool {
    segment.len() > cuts::SEGMENT_MAX + 256
        || segment.bytes().filter(u8::is_ascii).count() < segment.len() / 8
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
