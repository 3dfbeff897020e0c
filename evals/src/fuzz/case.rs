//! One case: a text and how it is asked to be condensed. Its form in bytes is what fuzzers change and what is kept.

use larder_condense::ContentType;
use larder_text::hash::ContentHash;
use larder_text::pointer::Pointer;
use larder_text::tokens::{ClaudeGeneration, Counter};

use super::target::HEAD;
use crate::measure;

/// Targets are below this.
const TARGETS: u16 = 3_000;
/// In a text it is replaced by a pointer of ours, which no generator could guess.
pub(super) const OUR_POINTER: &str = "{{our-pointer}}";
const QUERIES: [&str; 3] = ["a b", "error in the order", "猫である"];

/// A text and how it is asked to be condensed.
#[derive(Debug, Clone)]
pub struct Case {
    /// The type it is condensed as.
    pub content_type: ContentType,
    /// The text.
    pub text: String,
    /// Tokens the result may have.
    pub target: usize,
    /// The question in view.
    pub query: Option<&'static str>,
    /// Spans that must survive byte for byte.
    pub pins: Vec<String>,
    counter: u8,
}

impl Case {
    /// Reads a case; any bytes are one. The text is preceded by the target (2 bytes), counter and query (1), pins (1); fewer
    /// bytes mean an empty text.
    pub fn from_bytes(content_type: ContentType, bytes: &[u8]) -> Self {
        let (head, text) = bytes.split_at(bytes.len().min(HEAD));
        let byte = |at: usize| head.get(at).copied().unwrap_or(0);
        let pointer = Pointer::lines(measure::key().mint(ContentHash::new(b"elsewhere")), 3, 9).to_string();
        let text = String::from_utf8_lossy(text).replace(OUR_POINTER, &pointer);
        let pins = match byte(3) {
            0..=199 => Vec::new(),
            chosen => pin(&text, usize::from(chosen)).into_iter().collect(),
        };
        Self {
            content_type,
            target: usize::from(u16::from_le_bytes([byte(0), byte(1)]) % TARGETS),
            query: QUERIES.get(usize::from(byte(2) / 8)).copied(),
            pins,
            counter: byte(2) % 8,
            text,
        }
    }

    /// A counter that has counted nothing yet: mostly o200k.
    pub fn counter(&self) -> Counter {
        match self.counter {
            6 => Counter::bytes(),
            7 => Counter::claude(ClaudeGeneration::From4_7),
            _ => Counter::o200k(),
        }
    }
}

/// A short stretch of the text.
fn pin(text: &str, chosen: usize) -> Option<String> {
    let start = text.floor_char_boundary((chosen - 200).checked_mul(text.len())? / 56);
    let end = text.floor_char_boundary((start + chosen % 40).min(text.len()));
    text.get(start..end).map(str::to_owned)
}
