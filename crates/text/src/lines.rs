//! Line numbers of byte positions. Knows nothing of the lines' content.

use std::ops::Range;

/// Byte offsets of line starts; lines end at `\n` and are counted from 1.
#[derive(Debug, Clone)]
pub struct LineIndex {
    starts: Vec<usize>,
    len: usize,
}

impl LineIndex {
    /// The lines of a text.
    pub fn of(text: &str) -> Self {
        let starts = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .filter(|&start| start < text.len())
            .collect();
        Self { starts, len: text.len() }
    }

    /// The length of the original in bytes.
    pub const fn text_len(&self) -> usize {
        self.len
    }

    /// The number of the line that contains byte `at`.
    pub fn number(&self, at: usize) -> usize {
        self.starts.partition_point(|&start| start <= at)
    }

    /// The numbers of the first and last line touched by `range`.
    pub fn touched(&self, range: &Range<usize>) -> (usize, usize) {
        (self.number(range.start), self.number(range.end.saturating_sub(1).max(range.start)))
    }

    /// Whether a line starts, or the text ends, at byte `at`.
    pub fn is_boundary(&self, at: usize) -> bool {
        at == self.len || self.starts.binary_search(&at).is_ok()
    }
}
