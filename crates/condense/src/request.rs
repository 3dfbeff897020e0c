//! What is to be condensed, and what its reader knows. Data only.

use std::ops::Range;

use crate::content_type::ContentType;
use larder_text::hash::ContentHash;
use larder_text::pointer::PointerKey;
use larder_text::tokens::Counter;

/// One request to make a text smaller.
#[derive(Debug, Clone, Copy)]
pub struct CondenseRequest<'a> {
    /// The original, unchanged.
    pub text: &'a str,
    /// Decides how the text is divided and rewritten.
    pub content_type: ContentType,
    /// The result may have at most this many tokens, header and gap markers included.
    pub target: usize,
    /// The question in view; units that answer it are kept first.
    pub query: Option<&'a str>,
    /// Spans that must be in the result byte for byte, or the request is refused.
    pub pins: &'a [String],
    /// Counts by the vocabulary of the model that reads the result.
    pub counter: &'a Counter,
    /// Mints the pointer that leads back to the original.
    pub key: &'a PointerKey,
}

/// What the reader of a condensed text sees before it, and what the caller knows of the text.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReaderView<'a> {
    /// Ranges of the text that the reader has seen already, sorted and not touching. They are not shown again, and their
    /// gap marker says so.
    pub seen: &'a [Range<usize>],
    /// The reader knows what gap markers mean and how to follow them, so the header only gives the pointer.
    pub markers_known: bool,
    /// Computed by the caller already, so that it is not computed again.
    pub known: Option<KnownText>,
    /// The caller does not read [`Condensed::probes`](crate::Condensed::probes), which then stay empty.
    pub skip_probes: bool,
}

/// What a caller has computed of a text already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownText {
    /// The hash of its bytes.
    pub hash: ContentHash,
    /// Its token count; may be an estimate where it is many times the target.
    pub tokens: usize,
}

impl KnownText {
    /// Hashes and counts the text of a request.
    pub(crate) fn from_request(request: &CondenseRequest<'_>) -> Self {
        let hash = ContentHash::new(request.text.as_bytes());
        Self { hash, tokens: request.counter.count(request.text) }
    }
}
