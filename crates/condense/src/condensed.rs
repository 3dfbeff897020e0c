//! A condensed text and its gaps, and why a text could not be condensed. Data only.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::content_type::ContentType;
use larder_text::pointer::Pointer;

/// The unit in which a gap is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GapUnit {
    /// Lines, counted from 1.
    Line,
    /// Bytes, counted from 0.
    Byte,
}

/// A range of the original that the condensed text omits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Lines if the gap consists of whole lines, otherwise bytes.
    pub unit: GapUnit,
    /// For lines, the first and the last, inclusive; for bytes, start and end, the end exclusive.
    pub range: (usize, usize),
    /// The number of omitted lines or bytes.
    pub count: usize,
    /// A pointer to exactly the bytes of this gap.
    pub pointer: Pointer,
    /// The gap as a byte range of the original. Gaps and shown bytes tile the original.
    pub bytes: Range<usize>,
}

/// How many distinct numbers, paths, URLs, hashes, ids and error lines of the original survive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probes {
    /// In the condensed text.
    pub kept: usize,
    /// Not in the text, but in bytes that a gap's pointer, or the text's own, resolves to.
    pub recoverable: usize,
    /// In neither. Always 0: shown, rewritten and omitted ranges tile the original, or the draft is rejected.
    pub lost: usize,
}

/// A condensed text with pointers to everything it omits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condensed {
    /// What the model reads: the header, the kept text, and gap markers.
    pub text: String,
    /// What [`Counter::count`](larder_text::tokens::Counter::count) charges for `text`.
    pub tokens: usize,
    /// The charge for the original, in tokens.
    pub original_tokens: usize,
    /// The content type given in the request.
    #[serde(rename = "type")]
    pub content_type: ContentType,
    /// The pointer to the whole original.
    pub pointer: Pointer,
    /// The omitted ranges, in order.
    pub gaps: Vec<Gap>,
    /// How many salient details survive.
    pub probes: Probes,
    /// The model that wrote `text`; `None` if it was condensed by rule.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub author: Option<Author>,
}

/// The model that wrote a condensed text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    /// The model's name in the model table.
    pub model: String,
    /// The recipe it followed: `category/name`.
    pub recipe: String,
    /// The version of that recipe, such as `1.2.0`.
    pub version: String,
}

/// Why a text could not be condensed to its target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CondenseError {
    /// The text that must be kept byte for byte is itself larger than the target.
    #[error("pins and markers need {needed} tokens, the target is {target}; raise the target or pin less")]
    PinsExceedTarget {
        /// Tokens that pins, header and gap markers need.
        needed: usize,
        /// The target of the request.
        target: usize,
    },
    /// The original does not contain a pin.
    #[error("the text does not contain the pin {pin:?}")]
    PinAbsent {
        /// The pin as given in the request.
        pin: String,
    },
}
