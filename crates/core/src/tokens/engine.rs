//! The vocabularies that count, and what can be proven of each. Knows no cache, label or model name.

use std::cell::OnceCell;
use std::sync::OnceLock;

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

    /// The bytes of every token.
    fn tokens(self) -> impl Iterator<Item = Vec<u8>> {
        let vocabulary = self.vocabulary();
        (0..u32::try_from(vocabulary.vocab_size()).unwrap_or(u32::MAX)).map(|id| vocabulary.decode(&[id]))
    }

    fn reach(self) -> &'static Reach {
        static REACHES: [OnceLock<Reach>; 2] = [OnceLock::new(), OnceLock::new()];
        REACHES[self as usize].get_or_init(|| Reach::new(self.tokens()))
    }

    fn bridges(self) -> &'static Bridges {
        static BRIDGES: [OnceLock<Bridges>; 2] = [OnceLock::new(), OnceLock::new()];
        BRIDGES[self as usize].get_or_init(|| Bridges::new(self.tokens()))
    }
}

impl Engine for OpenAi {
    fn count(&self, text: &str) -> usize {
        let vocabulary = self.vocabulary();
        if let Some(tokens) = runs::count_shortened(text, |part| token_lengths(vocabulary, part)) {
            return tokens;
        }
        // The bridges take a while to build, which a few characters in a text of another script are not worth.
        let spaceless = OnceCell::new();
        let bridges = || spaceless.get_or_init(|| !is_mostly_ascii(text)).then(|| self.bridges());
        words::count(text, *self as usize, bridges, |word| vocabulary.count(word))
    }

    fn shape(&self) -> Shape {
        Shape { per_byte: Some(1), longest: Some(LONGEST_OPENAI_TOKEN), cuts: true }
    }

    fn surely_exceeds(&self, text: &str, limit: usize) -> bool {
        self.reach().surely_exceeds(text.as_bytes(), limit)
    }
}

fn is_mostly_ascii(text: &str) -> bool {
    text.bytes().filter(u8::is_ascii).count() > text.len() / 2
}

fn token_lengths(vocabulary: &tiktoken::CoreBpe, text: &str) -> Vec<usize> {
    vocabulary.encode(text).iter().map(|&id| vocabulary.decode(&[id]).len()).collect()
}
