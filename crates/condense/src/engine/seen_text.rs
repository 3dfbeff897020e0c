//! Finds the parts of a text that its reader has seen before, so that they need not be repeated.
//!
//! Knows segments between line breaks and commas, by their hashes; does not know prompts, messages or targets.

use std::ops::Range;

use hashbrown::HashMap;
use xxhash_rust::xxh3::xxh3_128;

/// A shorter repeated range, in bytes, is shown again: its marker would save next to nothing.
const SHORTEST_REPEAT: usize = 96;

/// The texts that a reader has seen, in order.
#[derive(Debug, Default)]
pub struct SeenText {
    /// The hashes of each text's segments.
    texts: Vec<Vec<u128>>,
    /// The last occurrence of each segment: text and position in it.
    places: HashMap<u128, (usize, usize)>,
}

impl SeenText {
    /// Adds the next text that the reader sees.
    pub fn add(&mut self, text: &str) {
        let stretches: Vec<u128> = stretches(text).map(|stretch| hash(text, &stretch)).collect();
        let of = self.texts.len();
        self.places.extend(stretches.iter().enumerate().map(|(at, &hash)| (hash, (of, at))));
        self.texts.push(stretches);
    }

    /// The disjoint parts of `text` that appear in an earlier text, in order; whole lines if the text has lines.
    pub fn repeats(&self, text: &str) -> Vec<Range<usize>> {
        if self.places.is_empty() {
            return Vec::new();
        }
        let stretches: Vec<Range<usize>> = stretches(text).collect();
        let hashes: Vec<u128> = stretches.iter().map(|stretch| hash(text, stretch)).collect();
        let mut repeats: Vec<Range<usize>> = Vec::new();
        let (mut at, mut free) = (0, 0);
        while let Some(hash) = hashes.get(at) {
            let Some(&(of, place)) = self.places.get(hash) else {
                at += 1;
                continue;
            };
            let other = &self.texts[of];
            let alike = |pair: &(&u128, &u128)| pair.0 == pair.1;
            let after = hashes[at..].iter().zip(&other[place..]).take_while(alike).count();
            let before =
                hashes[free..at].iter().rev().zip(other[..place].iter().rev()).take_while(alike).count();
            let range = stretches[at - before].start..stretches[at + after - 1].end;
            let lines = whole_lines(text, &range);
            let range = if lines.len() >= SHORTEST_REPEAT { lines } else { range };
            if range.len() >= SHORTEST_REPEAT {
                free = at + after;
                match repeats.last_mut() {
                    Some(last) if last.end == range.start => last.end = range.end,
                    _ => repeats.push(range),
                }
            }
            at += after;
        }
        repeats
    }
}

/// Segments that end after a line break or a comma; they tile the text.
fn stretches(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut start = 0;
    let ends = memchr::memchr2_iter(b'\n', b',', text.as_bytes()).map(|at| at + 1);
    ends.chain(std::iter::once(text.len())).filter_map(move |end| {
        let range = std::mem::replace(&mut start, end)..end;
        (!range.is_empty()).then_some(range)
    })
}

fn hash(text: &str, stretch: &Range<usize>) -> u128 {
    xxh3_128(&text.as_bytes()[stretch.clone()])
}

/// The whole lines in `range`; an unterminated last line counts as one.
fn whole_lines(text: &str, range: &Range<usize>) -> Range<usize> {
    let starts_line = range.start == 0 || text.as_bytes()[range.start - 1] == b'\n';
    let inside = &text[range.clone()];
    let start = if starts_line { Some(0) } else { inside.find('\n').map(|at| at + 1) };
    let end = if range.end == text.len() { Some(inside.len()) } else { inside.rfind('\n').map(|at| at + 1) };
    match (start, end) {
        (Some(start), Some(end)) if start < end => range.start + start..range.start + end,
        _ => range.start..range.start,
    }
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
        let repeats: Vec<&str> = seen.repeats(&text).into_iter().map(|range| &text[range]).collect();
        assert_eq!(repeats, [lines(5..20), lines(50..60)]);
        assert!(seen.repeats(&lines(100..110)).is_empty());
        assert!(SeenText::default().repeats(&text).is_empty());
    }

    #[test]
    fn values_on_one_line_are_found_between_commas() {
        let passengers = r#""passengers": [{"first": "Noa", "last": "Lee", "dob": "1967-12-12"}, {"first": "Ada", "last": "Moe"}], "#;
        let mut seen = SeenText::default();
        seen.add(&format!(r#"{{"id": "A", {passengers}"status": "open"}}"#));
        let text = format!(r#"{{"id": "A", "total": 4, {passengers}"status": "cancelled"}}"#);
        let repeats: Vec<&str> = seen.repeats(&text).into_iter().map(|range| text[range].trim()).collect();
        assert_eq!(repeats, [passengers.trim()]);
    }

    #[test]
    fn short_repeats_are_shown_again() {
        let mut seen = SeenText::default();
        seen.add("total 4\nok\n");
        assert!(seen.repeats("total 4\nok\n").is_empty());
    }
}
