//! The condensed text under construction, and which bytes of the original it shows, rewrites or omits.
//!
//! Knows ranges and markers; does not know why a value is shown. Every step states how far into the original it
//! extends, so the three kinds of ranges tile it by construction.

use std::ops::Range;

use crate::condensed::Gap;
use crate::engine::draft::CondensedDraft;
use crate::engine::render::Renderer;
use larder_text::json::Document;

pub(crate) struct JsonDraft<'a> {
    pub(super) renderer: &'a Renderer<'a>,
    pub(super) text: String,
    source: &'a str,
    /// How far into the original the text extends.
    pub(super) at: usize,
    shown: Vec<Range<usize>>,
    rewritten: Vec<Range<usize>>,
    gaps: Vec<Gap>,
}

impl<'a> JsonDraft<'a> {
    pub(super) fn new(renderer: &'a Renderer<'a>, source: &'a str) -> Self {
        let text = renderer.header();
        Self { renderer, text, source, at: 0, shown: Vec::new(), rewritten: Vec::new(), gaps: Vec::new() }
    }

    pub(super) fn draft(self) -> CondensedDraft {
        CondensedDraft { text: self.text, shown: self.shown, rewritten: self.rewritten, gaps: self.gaps }
    }

    /// Everything up to `end` is in the text in another form, or is white space and punctuation.
    pub(super) fn told_to(&mut self, end: usize) {
        self.at = reach(&mut self.rewritten, self.at, end);
    }

    /// Everything up to `end` has just been written verbatim.
    pub(super) fn shown_to(&mut self, end: usize) {
        self.at = reach(&mut self.shown, self.at, end);
    }

    /// All values in `node` have been written; those in the sorted `in_words` in another form.
    pub(super) fn covered(&mut self, tree: &Document<'_>, node: usize, in_words: &[usize]) {
        for leaf in tree.leaves(node).filter(|leaf| in_words.binary_search(leaf).is_err()) {
            let inner = tree.inner(leaf);
            self.told_to(inner.start);
            self.shown_to(inner.end);
        }
        self.told_to(tree.span(node).end);
    }

    /// Writes the marker for everything up to `end`.
    pub(super) fn gap_to(&mut self, end: usize) {
        if self.at >= end {
            return;
        }
        self.text.push_str(&self.renderer.mark(self.at, end));
        self.gaps.push(self.renderer.gap(self.at..end));
        self.at = end;
    }

    /// The start of the line of `at` if only blanks precede it there, so that a gap can be given in lines.
    pub(super) fn boundary(&self, at: usize) -> usize {
        let head = &self.source[self.at.min(at)..at];
        let blanks = head.bytes().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let start = at - blanks;
        if blanks < head.len() && self.source.as_bytes()[start - 1] == b'\n' { start } else { at }
    }
}

/// Appends `at..end`, merged with an adjacent range; returns the new end.
fn reach(ranges: &mut Vec<Range<usize>>, at: usize, end: usize) -> usize {
    if at < end {
        match ranges.last_mut() {
            Some(last) if last.end == at => last.end = end,
            _ => ranges.push(at..end),
        }
    }
    at.max(end)
}
