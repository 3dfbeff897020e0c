//! Finds the lines of a text that its reader has seen before, so that they need not be repeated.
//!
//! Knows lines, by their hashes; does not know prompts, messages or targets.

use std::ops::Range;

use hashbrown::HashMap;
use xxhash_rust::xxh3::xxh3_128;

use crate::lines::spans;

/// A shorter repeated range, in bytes, is shown again: its marker would save next to nothing.
const SHORTEST_REPEAT: usize = 96;

/// The texts that a reader has seen, in order.
#[derive(Debug, Default)]
pub struct SeenText {
    /// The hashes of each text's lines.
    texts: Vec<Vec<u128>>,
    /// The last occurrence of each line: text and position in it.
    places: HashMap<u128, (usize, usize)>,
}

/// Whole lines of a text that its reader has seen in an earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeat {
    /// The lines, as a byte range of the text.
    pub bytes: Range<usize>,
    /// The number of the earlier text, counted from 0.
    pub of: usize,
    /// The first and the last of the same lines in the earlier text, counted from 1.
    pub lines: (usize, usize),
}

impl SeenText {
    /// Adds the next text that the reader sees.
    pub fn add(&mut self, text: &str) {
        let lines: Vec<u128> = spans(text).map(|line| hash(text, &line)).collect();
        let of = self.texts.len();
        self.places.extend(lines.iter().enumerate().map(|(at, &hash)| (hash, (of, at))));
        self.texts.push(lines);
    }

    /// The disjoint runs of lines in `text` that appear in an earlier text, in order. Texts before number `from` are
    /// not considered.
    pub fn repeats(&self, text: &str, from: usize) -> Vec<Repeat> {
        if from >= self.texts.len() {
            return Vec::new();
        }
        let lines: Vec<Range<usize>> = spans(text).collect();
        let hashes: Vec<u128> = lines.iter().map(|line| hash(text, line)).collect();
        let mut repeats: Vec<Repeat> = Vec::new();
        // Lines before `free` belong to an earlier run.
        let (mut at, mut free) = (0, 0);
        while let Some(hash) = hashes.get(at) {
            let Some(&(of, place)) = self.places.get(hash).filter(|&&(of, _)| of >= from) else {
                at += 1;
                continue;
            };
            let other = &self.texts[of];
            let alike = |pair: &(&u128, &u128)| pair.0 == pair.1;
            let after = hashes[at..].iter().zip(&other[place..]).take_while(alike).count();
            let before =
                hashes[free..at].iter().rev().zip(other[..place].iter().rev()).take_while(alike).count();
            let bytes = lines[at - before].start..lines[at + after - 1].end;
            if bytes.len() >= SHORTEST_REPEAT {
                repeats.push(Repeat { bytes, of, lines: (place - before + 1, place + after) });
                free = at + after;
            }
            at += after;
        }
        repeats
    }
}

/// The hash of a line without its break, which the last line of a text may lack.
fn hash(text: &str, line: &Range<usize>) -> u128 {
    let line = &text.as_bytes()[line.clone()];
    xxh3_128(line.strip_suffix(b"\n").unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(range: Range<usize>) -> String {
        range.map(|at| format!("line {at} of the file says {}\n", at * 7919)).collect()
    }

    #[test]
    fn repeated_lines_are_found_anywhere() {
        let mut seen = SeenText::default();
        seen.add(&format!("[file a]\n{}", lines(0..30)));
        seen.add(&format!("[file b]\n{}", lines(50..60)));
        let text = format!("[edited]\n{}new\n{}end", lines(5..20), lines(50..60));
        let repeats = seen.repeats(&text, 0);
        let found: Vec<&str> = repeats.iter().map(|repeat| &text[repeat.bytes.clone()]).collect();
        assert_eq!(found, [lines(5..20), lines(50..60)]);
        let places: Vec<_> = repeats.iter().map(|repeat| (repeat.of, repeat.lines)).collect();
        assert_eq!(places, [(0, (7, 21)), (1, (2, 11))], "the first line of each text is its heading");
        assert!(seen.repeats(&lines(100..110), 0).is_empty());
        assert!(SeenText::default().repeats(&text, 0).is_empty());
    }

    #[test]
    fn texts_too_far_back_are_not_considered() {
        let mut seen = SeenText::default();
        seen.add(&lines(0..30));
        seen.add(&lines(50..60));
        assert!(seen.repeats(&lines(0..30), 1).is_empty());
        assert_eq!(seen.repeats(&lines(50..60), 1).len(), 1);
        assert!(seen.repeats(&lines(50..60), 2).is_empty());
    }

    #[test]
    fn a_last_line_without_a_break_is_the_same_line() {
        let mut seen = SeenText::default();
        seen.add(lines(0..9).trim_end());
        assert_eq!(seen.repeats(&lines(0..9), 0)[0].lines, (1, 9));
    }

    #[test]
    fn short_repeats_are_shown_again() {
        let mut seen = SeenText::default();
        seen.add("total 4\nok\n");
        assert!(seen.repeats("total 4\nok\n", 0).is_empty());
    }
}
