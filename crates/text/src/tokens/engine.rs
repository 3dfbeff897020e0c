//! The counting engines, and what can be proven about their counts. Knows no cache, label or model name.

use std::sync::LazyLock;

use super::bridges::{self, Bridges};
use super::merges::{Column, Merges};
use super::pieces::{Classes, Pattern};
use super::reach::{self, Reach};
use super::runs;
use super::sparse;
use super::word_counts::WordCounts;

/// Proven properties of a vocabulary's counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CountShape {
    /// A text of n bytes has at most this many times n tokens.
    pub(super) per_byte: Option<usize>,
    /// No token covers more bytes than this.
    pub(super) longest: Option<usize>,
    /// Counts add up over the safe cuts of [`cuts`](super::cuts).
    pub(super) cuts: bool,
}

/// Counts by one vocabulary.
pub(super) trait TokenEngine: Send + Sync {
    /// The number of tokens in `text`. Names of special tokens count as ordinary text.
    fn count(&self, text: &str) -> usize;

    /// The proven properties of the counts.
    fn shape(&self) -> CountShape;

    /// Whether `text` is proven to exceed `limit` tokens; takes about a nanosecond per byte read.
    fn surely_exceeds(&self, _text: &str, _limit: usize) -> bool {
        false
    }
}

/// One token per UTF-8 byte: no byte-level vocabulary needs more.
pub(super) struct Bytes;

impl TokenEngine for Bytes {
    fn count(&self, text: &str) -> usize {
        text.len()
    }

    fn shape(&self) -> CountShape {
        CountShape { per_byte: Some(1), longest: Some(1), cuts: true }
    }
}

/// The longest token of cl100k_base and o200k_base: 128 spaces.
const LONGEST_OPENAI_TOKEN: usize = 128;

/// A built-in OpenAI vocabulary.
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

    /// The vocabulary's tables, built on first use in a process, which takes a few milliseconds.
    pub(super) fn vocabulary(self) -> Option<Vocabulary<'static>> {
        let (column, pattern) = match self {
            Self::Cl100k => (Column::Cl100k, Pattern::Cl100k),
            Self::O200k => (Column::O200k, Pattern::O200k),
        };
        let merges = Merges::read(include_bytes!(concat!(env!("OUT_DIR"), "/merges")), column)?;
        let classes = Classes::read(include_bytes!(concat!(env!("OUT_DIR"), "/classes")))?;
        Some(Vocabulary { merges, classes, pattern })
    }

    fn reach(self) -> Reach<'static> {
        static CL100K: LazyLock<Vec<u8>> =
            LazyLock::new(|| reach_table(include_bytes!(concat!(env!("OUT_DIR"), "/cl100k_base.reach"))));
        static O200K: LazyLock<Vec<u8>> =
            LazyLock::new(|| reach_table(include_bytes!(concat!(env!("OUT_DIR"), "/o200k_base.reach"))));
        Reach(match self {
            Self::Cl100k => &CL100K,
            Self::O200k => &O200K,
        })
    }

    /// Optional: without them, long words are only counted more slowly.
    fn bridges(self) -> Option<Bridges<'static>> {
        static CL100K: LazyLock<Vec<u8>> =
            LazyLock::new(|| bridges_table(include_bytes!(concat!(env!("OUT_DIR"), "/cl100k_base.bridges"))));
        static O200K: LazyLock<Vec<u8>> =
            LazyLock::new(|| bridges_table(include_bytes!(concat!(env!("OUT_DIR"), "/o200k_base.bridges"))));
        Bridges::read(match self {
            Self::Cl100k => &CL100K,
            Self::O200k => &O200K,
        })
    }
}

fn reach_table(list: &[u8]) -> Vec<u8> {
    sparse::read(list, reach::SLOTS, reach::SHORTEST_REACH)
}

fn bridges_table(list: &[u8]) -> Vec<u8> {
    sparse::read(list, bridges::PAIRS + bridges::SUSPECTS, 0)
}

/// Counts with an OpenAI vocabulary and caches the counts of words.
pub(super) struct OpenAiEngine {
    vocabulary: OpenAi,
    words: WordCounts,
}

impl OpenAiEngine {
    pub(super) fn new(vocabulary: OpenAi) -> Self {
        Self { vocabulary, words: WordCounts::default() }
    }
}

impl TokenEngine for OpenAiEngine {
    fn count(&self, text: &str) -> usize {
        // The build script writes complete tables; if they were missing, one token per byte would still be a proven
        // bound.
        let Some(vocabulary) = self.vocabulary.vocabulary() else { return text.len() };
        if let Some(tokens) = runs::count_shortened(text, |part| vocabulary.lengths(part)) {
            return tokens;
        }
        self.words.count(text, self.vocabulary.bridges(), |word| vocabulary.count(word))
    }

    fn shape(&self) -> CountShape {
        CountShape { per_byte: Some(1), longest: Some(LONGEST_OPENAI_TOKEN), cuts: true }
    }

    fn surely_exceeds(&self, text: &str, limit: usize) -> bool {
        self.vocabulary.reach().surely_exceeds(text.as_bytes(), limit)
    }
}

/// o200k_base, except that every digit is a token: the vocabularies of Qwen, Mistral and others have none for longer
/// numbers, and little else makes their counts differ from o200k_base as much.
pub(super) struct SingleDigits(OpenAiEngine);

impl SingleDigits {
    pub(super) fn new() -> Self {
        Self(OpenAiEngine::new(OpenAi::O200k))
    }
}

impl TokenEngine for SingleDigits {
    fn count(&self, text: &str) -> usize {
        let numbers = text.as_bytes().split(|byte| !byte.is_ascii_digit());
        self.0.count(text) + numbers.map(|digits| digits.len() - digits.len().div_ceil(3)).sum::<usize>()
    }

    fn shape(&self) -> CountShape {
        self.0.shape()
    }

    fn surely_exceeds(&self, text: &str, limit: usize) -> bool {
        self.0.surely_exceeds(text, limit)
    }
}

/// The tables of a vocabulary.
#[derive(Clone, Copy)]
pub(super) struct Vocabulary<'a> {
    pub(super) merges: Merges<'a>,
    classes: Classes<'a>,
    pattern: Pattern,
}

impl Vocabulary<'_> {
    /// Splits a text into pieces, each of which is encoded alone.
    pub(super) fn pieces(self, text: &str) -> impl Iterator<Item = &str> {
        let mut rest = text;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let (piece, after) = rest.split_at(self.classes.first_piece(rest, self.pattern));
            rest = after;
            Some(piece)
        })
    }

    pub(super) fn count(self, text: &str) -> usize {
        self.pieces(text).map(|piece| self.merges.count(piece.as_bytes())).sum()
    }

    /// The length in bytes of each token of a text.
    pub(super) fn lengths(self, text: &str) -> Vec<usize> {
        self.pieces(text).flat_map(|piece| self.merges.lengths(piece.as_bytes())).collect()
    }
}
