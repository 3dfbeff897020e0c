//! The source map of a rewritten text: the position in the original of each word.
//!
//! Knows words and positions; does not know why the text was rewritten. The words shown determine which bytes of the
//! original are rewritten and which are omitted, so rewritten bytes and gaps tile the original by construction.

use std::ops::Range;

/// A word that also appears in the original.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceWord {
    /// The byte range in the rewritten text.
    pub(crate) at: Range<usize>,
    /// The byte range in the original. Words are in the original's order and do not overlap.
    pub(crate) source: Range<usize>,
    /// Where in the rewritten text a marker goes if something before this word is omitted.
    pub(crate) mark_at: usize,
    /// Whether more than markup lies between the previous word (or the start) and this one.
    pub(crate) after_gap: bool,
}

/// The words of a rewritten text, by position.
#[derive(Debug, Default)]
pub(crate) struct SourceMap {
    pub(crate) words: Vec<SourceWord>,
    /// Whether more than markup follows the last word.
    pub(crate) ends_in_gap: bool,
}

/// A part of a condensed text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A byte range of the rewritten text.
    Shown(Range<usize>),
    /// An omitted byte range of the original, and the position in the rewritten text before which it was.
    Gap(Range<usize>, usize),
}

impl SourceMap {
    /// The parts of a text that shows `shown` of the rewritten text; `len` is the original's length.
    pub(crate) fn parts(&self, shown: &[Range<usize>], len: usize) -> Vec<Part> {
        let mut parts = Vec::new();
        let (mut done, mut next) = (0, 0);
        for range in shown {
            let mut written = range.start;
            let first = self.words.partition_point(|word| word.at.start < range.start);
            for (index, word) in self.words.iter().enumerate().skip(first) {
                if word.at.end > range.end {
                    break;
                }
                let joins = index == next && !word.after_gap;
                if !joins && done < word.source.start {
                    // If a range starts within a word, the marker goes before the shown part of it.
                    let within = written == range.start && written > self.words[0].mark_at;
                    let at = if within { written } else { word.mark_at.max(written) };
                    push_shown(&mut parts, written..at);
                    parts.push(Part::Gap(done..word.source.start, at));
                    written = at;
                }
                (done, next) = (word.source.end, index + 1);
            }
            push_shown(&mut parts, written..range.end);
        }
        let whole = next == self.words.len() && next > 0 && !self.ends_in_gap;
        if !whole && done < len {
            parts.push(Part::Gap(done..len, usize::MAX));
        }
        parts
    }
}

fn push_shown(parts: &mut Vec<Part>, range: Range<usize>) {
    if !range.is_empty() {
        parts.push(Part::Shown(range));
    }
}
