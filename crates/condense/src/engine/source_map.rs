//! The source map of a rewritten text: the position in the original of each of its words.
//!
//! Knows words and places; does not know why the form is another. From the words that are shown follows which bytes
//! of the original are rewritten and which are left out, so rewritten bytes and gaps tile the original by construction.

use std::ops::Range;

/// A word that the original has too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceWord {
    /// Bytes of the rewritten text.
    pub(crate) at: Range<usize>,
    /// Bytes of the original. Words are in the original's order and do not overlap.
    pub(crate) source: Range<usize>,
    /// Where in the rewritten text a mark goes if something before this word is left out.
    pub(crate) mark_at: usize,
    /// Between the word before (or the beginning) and this one appears more than markup.
    pub(crate) after_gap: bool,
}

/// The words of a rewritten text, by place.
#[derive(Debug, Default)]
pub(crate) struct SourceMap {
    pub(crate) words: Vec<SourceWord>,
    /// After the last word appears more than markup.
    pub(crate) ends_in_gap: bool,
}

/// A stretch of a condensed text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Bytes of the rewritten text.
    Shown(Range<usize>),
    /// Bytes of the original that are left out, and the place in the rewritten text before which they appeared.
    Gap(Range<usize>, usize),
}

impl SourceMap {
    /// What a text that shows `shown` of the rewritten text consists of; `len` is the original's length.
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
                    // Where a range begins within a word, the mark goes before what is shown of it.
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
