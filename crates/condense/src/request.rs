//! What to condense, and what its reader knows. Data only.

use std::ops::Range;

use crate::content_type::ContentType;
use larder_text::hash::ContentHash;
use larder_text::pointer::PointerKey;
use larder_text::tokens::Counter;

/// A request to condense a text.
#[derive(Debug, Clone, Copy)]
pub struct CondenseRequest<'a> {
    /// The original, unchanged.
    pub text: &'a str,
    /// The type, which decides how the text is divided and rewritten.
    pub content_type: ContentType,
    /// Maximum tokens of the result, header and gap markers included.
    pub target: usize,
    /// The current question; units that answer it are kept first.
    pub query: Option<&'a str>,
    /// Spans that the result must contain byte for byte, or the request is refused.
    pub pins: &'a [String],
    /// Counts with the vocabulary of the model that reads the result.
    pub counter: &'a Counter,
    /// Mints the pointer to the original.
    pub key: &'a PointerKey,
}

/// What the reader of a condensed text has seen before, and what the caller knows about the text.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReaderView<'a> {
    /// Ranges that the reader has already seen, sorted and not touching. They are not shown again, and their gap
    /// marker says so.
    pub seen: &'a [Range<usize>],
    /// The reader knows gap markers and how to follow them, so the header only gives the pointer.
    pub markers_known: bool,
    /// What the caller has already computed, to avoid repeating it.
    pub known: Option<KnownText>,
    /// Whether to leave [`Condensed::probes`](crate::Condensed::probes) empty because the caller does not read it.
    pub skip_probes: bool,
    /// The bytes and lines before the text, if it is a part of the original that the pointer leads to: gaps are counted
    /// in the original.
    pub before: (usize, usize),
}

/// What a caller has already computed about a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownText {
    /// The hash of the original's bytes.
    pub hash: ContentHash,
    /// Its token count; may be an estimate if it is many times the target.
    pub tokens: usize,
}

impl KnownText {
    /// Hashes and counts the text of a request.
    pub(crate) fn from_request(request: &CondenseRequest<'_>) -> Self {
        let hash = ContentHash::new(request.text.as_bytes());
        Self { hash, tokens: request.counter.count(request.text) }
    }
}
