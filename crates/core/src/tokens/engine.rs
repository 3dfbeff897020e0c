//! The vocabularies that count, and what can be proven of each. Knows no cache, label or model name.

use super::bridges::Bridges;
use super::reach::Reach;
use super::{runs, words};

/// What can be proven of the counts of a vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// A text of n bytes has at most this many times n tokens.
    pub(super) per_byte: Option<usize>,
    /// No token stands for more bytes than this.
    pub(super) longest: Option<usize>,
    /// Counts add up over the safe cuts of [`cuts`](super::cuts).
    pub(super) cuts: bool,
}

/// A vocabulary.
pub(super) trait Engine: Send + Sync {
    /// Tokens of `text`. Strings that name special tokens are ordinary text.
    fn count(&self, text: &str) -> usize;

    /// What can be proven of the counts.
    fn shape(&self) -> Shape;

    /// Whether `text` is proven to have more than `limit` tokens, at about a nanosecond for each byte read.
    fn surely_exceeds(&self, _text: &str, _limit: usize) -> bool {
        false
    }
}

/// One token per UTF-8 byte: no byte-level vocabulary needs more.
pub(super) struct Bytes;

impl Engine for Bytes {
    fn count(&self, text: &str) -> usize {
        text.len()
    }

    fn shape(&self) -> Shape {
        Shape { per_byte: Some(1), longest: Some(1), cuts: true }
    }
}

/// The longest token of cl100k_base and of o200k_base: 128 spaces.
const LONGEST_OPENAI_TOKEN: usize = 128;

/// An OpenAI vocabulary, compiled in, unpacked at the first count.
#[derive(Debug, Clone, Copy)]
pub(super) enum OpenAi {
    Cl100k,
    O200k,
}

impl OpenAi {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cl100k => "cl100k_base",
            Self::O200k => "o200k_base",
        }
    }

    fn vocabulary(self) -> &'static tiktoken::CoreBpe {
        #[allow(clippy::expect_used, reason = "both vocabularies are compiled in by the crate's features")]
        tiktoken::get_encoding(self.name()).expect("the vocabulary is compiled in")
    }

    fn reach(self) -> Reach<'static> {
        Reach(match self {
            Self::Cl100k => include_bytes!(concat!(env!("OUT_DIR"), "/cl100k_base.reach")),
            Self::O200k => include_bytes!(concat!(env!("OUT_DIR"), "/o200k_base.reach")),
        })
    }

    /// Without them, long words are only counted more slowly.
    fn bridges(self) -> Option<Bridges<'static>> {
        Bridges::read(match self {
            Self::Cl100k => include_bytes!(concat!(env!("OUT_DIR"), "/cl100k_base.bridges")),
            Self::O200k => include_bytes!(concat!(env!("OUT_DIR"), "/o200k_base.bridges")),
        })
    }
}

impl Engine for OpenAi {
    fn count(&self, text: &str) -> usize {
        let vocabulary = self.vocabulary();
        if let Some(tokens) = runs::count_shortened(text, |part| token_lengths(vocabulary, part)) {
            return tokens;
        }
        words::count(text, *self as usize, self.bridges().as_ref(), |word| vocabulary.count(word))
    }

    fn shape(&self) -> Shape {
        Shape { per_byte: Some(1), longest: Some(LONGEST_OPENAI_TOKEN), cuts: true }
    }

    fn surely_exceeds(&self, text: &str, limit: usize) -> bool {
        self.reach().surely_exceeds(text.as_bytes(), limit)
    }
}

fn token_lengths(vocabulary: &tiktoken::CoreBpe, text: &str) -> Vec<usize> {
    vocabulary.encode(text).iter().map(|&id| vocabulary.decode(&[id]).len()).collect()
}
