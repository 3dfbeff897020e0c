//! The words of a query, and how to find them in a text too large to examine every word of it.
//!
//! Knows how words begin; [`words`](crate::words) decides which are equivalent.

use std::ops::Range;

use crate::words::{STOP_WORDS, ascii_term, for_each_term, is_wide};

/// Maximum number of distinct query words; the rest are ignored.
const MAX_QUERY_TERMS: usize = 48;

/// The words of a query, searchable without examining every word of a text.
#[derive(Debug)]
pub struct QueryWords {
    terms: Vec<u64>,
    /// An open-addressing table: each term's index, from 1, at or after the slot given by its highest bits.
    places: Vec<u8>,
    /// The beginnings of each term's words.
    beginnings: Vec<(usize, Beginning)>,
}

/// Characters that may appear inside words.
const JOINS: [char; 2] = ['’', '\u{ad}'];
/// Slots for terms, far more than are needed.
const PLACES: usize = 256;
/// Slots in the table of beginnings; colliding beginnings are checked in detail.
const BEGINNINGS: u32 = 1 << 14;
/// Bytes processed together: one bit each in a machine word.
const BLOCK: usize = u64::BITS as usize;

impl QueryWords {
    /// The words of `query`.
    pub fn of(query: &str) -> Self {
        let terms = query_terms(query);
        let mut places = vec![0; PLACES];
        for (term, place) in terms.iter().zip(1_u8..) {
            let free = (first_place(*term)..PLACES).chain(0..PLACES).find(|&at| places[at] == 0);
            free.into_iter().for_each(|at| places[at] = place);
        }
        let mut words = Self { terms, places, beginnings: Vec::new() };
        let ends = |c: char| is_wide(c) || !(c.is_alphanumeric() || JOINS.contains(&c));
        for word in query.split(ends) {
            let letters = word.chars().filter(|c| !JOINS.contains(c));
            let lower: String = letters.flat_map(char::to_lowercase).collect();
            for_each_term(word, |hash| {
                if let Some(term) = words.term(hash) {
                    let letters = lower.bytes().take_while(|&byte| is_of_word(byte)).count();
                    words.beginnings.push((term, beginning(lower.as_bytes(), letters)));
                }
            });
        }
        words
    }

    /// The number of terms.
    pub fn count(&self) -> usize {
        self.terms.len()
    }

    /// One bit for each way a word may begin, for the `wanted` terms.
    fn table(&self, wanted: impl Fn(usize) -> bool) -> Vec<u64> {
        let mut table = vec![0; BEGINNINGS as usize / BLOCK];
        let beginnings = self.beginnings.iter().filter(|(term, _)| wanted(*term));
        beginnings.for_each(|&(_, (at, bit))| table[at] |= bit);
        table
    }

    /// The indices of the terms in `text`.
    pub fn within(&self, text: &str) -> Vec<usize> {
        let mut found = Vec::new();
        for_each_term(text, |hash| found.extend(self.term(hash)));
        found
    }

    /// The term with this hash.
    fn term(&self, hash: u64) -> Option<usize> {
        let mut at = first_place(hash);
        loop {
            let term = usize::from(self.places[at]).checked_sub(1)?;
            if self.terms[term] == hash {
                return Some(term);
            }
            at = (at + 1) % PLACES;
        }
    }

    /// Calls `found` with the start of each run of letters and digits that contains a word of the query, and the
    /// term's index; `found` returns whether to stop searching for that word.
    ///
    /// Stemming applies only to words of more than three letters and leaves at least three: equivalent words share
    /// their first three letters, or are shorter and identical.
    pub fn find(&self, text: &str, mut found: impl FnMut(usize, usize) -> bool) {
        if self.terms.is_empty() {
            return;
        }
        let mut beginnings = self.table(|_| true);
        let mut given_up = vec![false; self.terms.len()];
        let bytes = text.as_bytes();
        let run_from = |at: usize| bytes[at..].iter().take_while(|&&byte| is_of_word(byte)).count();
        let mut look = |run: Range<usize>, beginnings: &mut Vec<u64>| {
            let mut note = |hash| {
                if let Some(term) = self.term(hash).filter(|&term| !given_up[term])
                    && found(run.start, term)
                {
                    given_up[term] = true;
                    *beginnings = self.table(|term| !given_up[term]);
                }
            };
            match &bytes[run.clone()] {
                letters if letters.is_ascii() => note(ascii_term(letters)),
                _ => for_each_term(&text[run.clone()], note),
            }
            run.end
        };
        let (mut done, mut inside) = (0, false);
        for (index, block) in bytes.chunks(BLOCK).enumerate() {
            let from = index * BLOCK;
            let words = bits_of_words(block);
            let mut starts = words & !(words << 1 | u64::from(inside));
            // Beyond ASCII a run may contain several words, so all of it is examined from its start.
            let all = !block.is_ascii();
            if all && inside && done <= from {
                let before = bytes[done..from].iter().rev().take_while(|&&byte| is_of_word(byte)).count();
                done = look(from - before..from + run_from(from), &mut beginnings);
            }
            while starts != 0 {
                let first = starts.trailing_zeros();
                let at = from + first as usize;
                starts &= starts - 1;
                let run = (words >> first).trailing_ones();
                let beyond = || if first + run == u64::BITS { run_from(from + BLOCK) } else { 0 };
                let letters = if run < 3 { run as usize + beyond() } else { 3 };
                let (place, bit) = beginning(&bytes[at..], letters);
                if at >= done && (all || beginnings[place] & bit != 0) {
                    done = look(at..at + run as usize + beyond(), &mut beginnings);
                }
            }
            inside = words >> (BLOCK - 1) == 1;
        }
    }
}

/// Where the words of a query are in a text.
#[derive(Debug)]
pub struct QueryHits {
    /// Offset and index of the word of each, in the order of the text.
    pub hits: Vec<(usize, usize)>,
    /// The number of words that were searched for.
    pub words: usize,
}

impl QueryHits {
    /// Searches a text.
    pub fn of(text: &str, query: &str) -> Self {
        let (words, mut hits) = (QueryWords::of(query), Vec::new());
        words.find(text, |at, word| {
            hits.push((at, word));
            false
        });
        Self { hits, words: words.count() }
    }
}

/// The hashed words of a query, sorted: those that are no stop words, unless it has no others.
pub fn query_terms(query: &str) -> Vec<u64> {
    let mut stop = Vec::with_capacity(STOP_WORDS.len());
    STOP_WORDS.iter().for_each(|word| for_each_term(word, |hash| stop.push(hash)));
    let mut all = Vec::new();
    for_each_term(query, |hash| {
        if all.len() < MAX_QUERY_TERMS && !all.contains(&hash) {
            all.push(hash);
        }
    });
    let mut subject: Vec<u64> = all.iter().copied().filter(|hash| !stop.contains(hash)).collect();
    if subject.is_empty() {
        subject = all;
    }
    subject.sort_unstable();
    subject
}

fn first_place(hash: u64) -> usize {
    (hash >> (u64::BITS - PLACES.ilog2())) as usize
}

/// Letters and digits, and everything beyond ASCII.
const fn is_of_word(byte: u8) -> bool {
    // Branch-free, so that many bytes are classified at once.
    ((byte | 0x20).wrapping_sub(b'a') < 26) | (byte.wrapping_sub(b'0') < 10) | (byte >= 0x80)
}

/// One bit for every byte of `block` that belongs to a word, lowest bit first.
fn bits_of_words(block: &[u8]) -> u64 {
    let mut flags = [0_u8; BLOCK];
    for (flag, &byte) in flags.iter_mut().zip(block) {
        *flag = u8::from(is_of_word(byte));
    }
    // Each product gathers the lowest bits of eight bytes in its highest byte.
    let gathered = flags
        .as_chunks::<8>()
        .0
        .iter()
        .map(|&eight| u64::from_le_bytes(eight).wrapping_mul(0x0102_0408_1020_4080) >> (u64::BITS - 8));
    gathered.enumerate().fold(0, |bits, (at, eight)| bits | eight << (8 * at))
}

/// A slot in the table of beginnings and a bit in it, for up to three letters.
type Beginning = (usize, u64);

/// The beginning, in lower case, of a run of `len` bytes.
fn beginning(run: &[u8], len: usize) -> Beginning {
    let four = run.first_chunk().copied().unwrap_or_else(|| {
        let mut padded = [0; 4];
        padded[..run.len()].copy_from_slice(run);
        padded
    });
    // Lower-cases letters; digits are unaffected.
    let key = (u32::from_le_bytes(four) | 0x2020_2020) & [0, 0xff, 0xffff, 0xff_ffff][len.min(3)];
    let bit = key.wrapping_mul(0x9e37_79b1) >> (u32::BITS - BEGINNINGS.ilog2());
    (bit as usize / BLOCK, 1 << (bit as usize % BLOCK))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(text: &str, query: &str) -> Vec<usize> {
        let words = QueryWords::of(query);
        let mut counts = vec![0; words.count()];
        words.find(text, |place, term| {
            assert!(text[place..].starts_with(|c: char| !c.is_ascii() || c.is_ascii_alphanumeric()));
            counts[term] += 1;
            false
        });
        counts
    }

    fn looked_for(text: &str, query: &str) -> Vec<usize> {
        let terms = query_terms(query);
        let mut counts = vec![0; terms.len()];
        for_each_term(text, |hash| {
            if let Ok(term) = terms.binary_search(&hash) {
                counts[term] += 1;
            }
        });
        counts
    }

    proptest! {
        #[test]
        fn no_word_is_missed(
            text in "([a-cA-C]{1,3}(ing|ed|es|s|e|'s)?[ ,\":’—é界k\u{212a}\u{ad}-]{0,2}){0,60}",
            query in "([a-cA-C]{1,3}(ing|ed|es|s|e)?[ ,’—é界k\u{212a}\u{ad}-]{1,2}){0,12}",
            shift in 0..70_usize,
        ) {
            let text = format!("{}{text}", "-".repeat(shift));
            prop_assert_eq!(found(&text, &query), looked_for(&text, &query));
        }
    }

    #[test]
    fn joiners_inside_words_do_not_affect_their_beginning() {
        for query in ["b\u{ad}", "\u{ad}b’", "b"] {
            assert_eq!(found("a b c", query), [1], "{query:?}");
        }
        assert_eq!(found("co-op coop", "co\u{ad}op"), [1]);
    }

    #[test]
    fn a_dropped_word_is_not_reported_again() {
        let words = QueryWords::of("crane gate");
        let mut told = 0;
        words.find(&"the crane at gate 4, ".repeat(50), |_, _| {
            told += 1;
            told >= 3
        });
        // The third hit drops its word, and the next hit of the other word drops that one.
        assert_eq!(told, 4);
    }
}
