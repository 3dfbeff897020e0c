//! A condensed text with its gaps, and why a text could not be condensed. Data only.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::content_type::ContentType;
use larder_text::pointer::Pointer;

/// The unit in which a gap is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GapUnit {
    /// Lines, the first of which is 1.
    Line,
    /// Bytes, the first of which is 0.
    Byte,
}

/// A stretch of the original that the condensed text does not show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Lines where the gap consists of whole lines, bytes otherwise.
    pub unit: GapUnit,
    /// For lines the first and the last one, both included; for bytes start and end, the end excluded.
    pub range: (usize, usize),
    /// How many lines or bytes are left out.
    pub count: usize,
    /// Resolves to exactly the bytes of this gap.
    pub pointer: Pointer,
    /// The same stretch in bytes of the original. Gaps and shown bytes tile the original.
    pub bytes: Range<usize>,
}

/// How many of the distinct numbers, paths, URLs, hashes, ids and error lines of the original survive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probes {
    /// In the condensed text.
    pub kept: usize,
    /// Not in the text, but in bytes that the pointer of a gap, or the text's own, resolves to.
    pub recoverable: usize,
    /// In neither. Always 0: shown, rewritten and left-out ranges tile the original, or the condensation is refused.
    pub lost: usize,
}

/// A condensed text, with pointers to everything that it leaves out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condensed {
    /// What the model reads: the header, the text that is kept, and gap markers.
    pub text: String,
    /// What [`Counter::count`](larder_text::tokens::Counter::count) charges for `text`.
    pub tokens: usize,
    /// What it charges for the original.
    pub original_tokens: usize,
    /// The type of the request.
    #[serde(rename = "type")]
    pub content_type: ContentType,
    /// Leads to the whole original.
    pub pointer: Pointer,
    /// The ranges that `text` leaves out, in order.
    pub gaps: Vec<Gap>,
    /// How many salient details survive.
    pub probes: Probes,
    /// The model that wrote `text`; `None` if rules did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub author: Option<Author>,
}

/// The model that wrote a condensed text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    /// Its name in the model table.
    pub model: String,
    /// The recipe it followed: `category/name`.
    pub recipe: String,
    /// The version of that recipe, as `1.2.0`.
    pub version: String,
}

/// Why a text could not be condensed to its target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CondenseError {
    /// What must be kept byte for byte is itself larger than the target.
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
        /// The pin as the request gives it.
        pin: String,
    },
}
