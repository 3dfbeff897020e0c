//! The terms of texts as numbers that can be compared, by the profile that ranks records. Knows no records.

use hashbrown::HashMap;
use larder_text::words::Profile;
use xxhash_rust::xxh3::xxh3_64;

/// Words whose stems are remembered, about: texts written by machines contain new words without end.
const MAX_STEMS: usize = 1 << 16;

/// The terms of texts that are added one after another; a word that comes again is seldom stemmed again.
#[derive(Debug, Clone, Default)]
pub(super) struct Stems(HashMap<u64, u64>);

impl Stems {
    /// Calls `give` with the term of every word of `text`, in order.
    pub(super) fn for_each(&mut self, text: &str, mut give: impl FnMut(u64)) {
        if self.0.len() > MAX_STEMS {
            self.0.clear();
        }
        Profile::RECALL.for_each_word(text, |_, word| {
            give(*self.0.entry(xxh3_64(word.as_bytes())).or_insert_with(|| term(word)));
        });
    }
}

/// The distinct terms of a text, in order of their first words.
pub(super) fn terms(text: &str) -> Vec<u64> {
    Profile::RECALL.terms(text).iter().map(|term| xxh3_64(term.as_bytes())).collect()
}

/// The term of a word in lower case.
pub(super) fn term(word: &str) -> u64 {
    xxh3_64(Profile::RECALL.term(word).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembered_stems_are_the_same() {
        let (mut stems, mut given) = (Stems::default(), Vec::new());
        for _ in 0..2 {
            stems.for_each("She wrote to us and writes again", |term| given.push(term));
        }
        let fresh: Vec<u64> =
            ["she", "wrote", "to", "us", "and", "writes", "again"].iter().map(|word| term(word)).collect();
        assert_eq!(given, [fresh.clone(), fresh].concat());
        assert_eq!(terms("writes wrote"), [term("write")]);
    }
}
