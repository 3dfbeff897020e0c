//! Any text, by lines: the beginning, the end, new lines, failures, and what the query asks for.
//!
//! Knows lines but not their meaning; it accepts any text, so other condensers fall back on it.

use std::ops::Range;

use crate::analysis::template;
use crate::engine::condenser::Divide;
use crate::engine::job::Job;
use crate::engine::units::{TextPiece, split_long};
use crate::types::prose::sentences;

/// Longer lines are divided, at sentence ends if possible.
const LONGEST_LINE: usize = 320;
/// The number of lines at each end that weigh more, and the weight of the outermost.
const EDGE_LINES: usize = 8;
const EDGE: f32 = 3.0;
/// The weight of a line that differs from an earlier one only in digits.
pub(crate) const REPEATED: f32 = 0.1;

pub(crate) struct Plain;

impl Divide for Plain {
    fn units(&self, job: &Job<'_>) -> Vec<TextPiece> {
        let text = job.request.text;
        let lines = lines(text, 0..text.len());
        let count = lines.len();
        let mut seen = hashbrown::HashSet::with_capacity(count);
        let weigh = |(index, range): (usize, Range<usize>)| {
            let from_edge = index.min(count - 1 - index);
            let near = EDGE_LINES.saturating_sub(from_edge) as f32 / EDGE_LINES as f32;
            let novelty = if seen.insert(template(&text[range.clone()])) { 1.0 } else { REPEATED };
            TextPiece::plain(range, (1.0 + near * (EDGE - 1.0)) * novelty)
        };
        lines.into_iter().enumerate().map(weigh).collect()
    }
}

/// Lines, overlong ones divided, that tile `within`.
pub(crate) fn lines(text: &str, within: Range<usize>) -> Vec<Range<usize>> {
    let mut start = within.start;
    let mut lines = Vec::new();
    for line in text[within].split_inclusive('\n') {
        let range = start..start + line.len();
        start = range.end;
        if range.len() <= LONGEST_LINE {
            lines.push(range);
        } else {
            let sentences = sentences(text, range).into_iter();
            lines.extend(sentences.flat_map(|sentence| split_long(text, sentence, LONGEST_LINE)));
        }
    }
    lines
}
