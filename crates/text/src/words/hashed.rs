//! Terms as hashes, computed while a text is read: no word is copied, so that every word of a large text can be looked at.

use super::stem::ending;
use super::{Profile, Sink, split};

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Calls `give` with the hash of the term of every word of `text`, divided and stemmed by [`Profile::CONDENSE`].
pub fn for_each_term(text: &str, give: impl FnMut(u64)) {
    split(text, &Profile::CONDENSE, &mut Terms { give, word: HashedWord::default(), wide: None });
}

/// The hash of the term of one word, which consists of ASCII letters and digits: the same as [`for_each_term`] gives.
pub fn ascii_term(word: &[u8]) -> u64 {
    let mut hashes = [SEED; 4];
    for (at, letter) in word.iter().enumerate() {
        hashes[(at + 1) % 4] = mix(hashes[at % 4], letter.to_ascii_lowercase().into());
    }
    let tail =
        word.last_chunk().map_or(['\0'; 3], |tail| tail.map(|letter| letter.to_ascii_lowercase().into()));
    hashes[(word.len() - ending(tail, word.len())) % 4]
}

fn mix(hash: u64, value: u32) -> u64 {
    (hash ^ u64::from(value)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29)
}

struct Terms<F> {
    give: F,
    word: HashedWord,
    /// The last character of a script without spaces.
    wide: Option<char>,
}

impl<F: FnMut(u64)> Sink for Terms<F> {
    #[inline(always)]
    fn letter(&mut self, _at: usize, letter: char) {
        self.word.push(letter as u32);
    }

    #[inline(always)]
    fn end(&mut self, _by: char) {
        if self.word.letters > 0 {
            (self.give)(self.word.stem());
            self.word.letters = 0;
        }
    }

    fn wide(&mut self, _at: usize, letter: char) {
        if let Some(before) = self.wide.replace(letter) {
            (self.give)(mix(mix(SEED, before as u32), letter as u32));
        }
    }

    #[inline(always)]
    fn end_wide(&mut self) {
        self.wide = None;
    }
}

/// A word being read, hashed as it grows; remembers the hashes before its last letters so that an ending can be cut off.
#[derive(Default)]
struct HashedWord {
    letters: usize,
    tail: [u32; 3],
    hashes: [u64; 4],
}

impl HashedWord {
    #[inline(always)]
    fn push(&mut self, letter: u32) {
        if self.letters == 0 {
            self.hashes = [SEED; 4];
        }
        let next = mix(self.hashes[3], letter);
        self.hashes = [self.hashes[1], self.hashes[2], self.hashes[3], next];
        self.tail = [self.tail[1], self.tail[2], letter];
        self.letters += 1;
    }

    fn stem(&self) -> u64 {
        let tail = self.tail.map(|letter| char::from_u32(letter).unwrap_or('\0'));
        self.hashes[3 - ending(tail, self.letters)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<u64> {
        let mut terms = Vec::new();
        for_each_term(text, |term| terms.push(term));
        terms
    }

    /// The hash of a term that is known.
    fn hash(term: &str) -> u64 {
        term.chars().fold(SEED, |hash, c| mix(hash, c as u32))
    }

    #[test]
    fn hashes_are_those_of_the_words_of_the_profile() {
        for text in ["The Cats’ loading, gates: Größere 12ed x", "猫の名前 is 猫", "a猫b co\u{ad}op's", ""]
        {
            let mut expected = Vec::new();
            Profile::CONDENSE
                .for_each_word(text, |_, word| expected.push(hash(&Profile::CONDENSE.term(word))));
            assert_eq!(terms(text), expected, "{text:?}");
        }
    }

    #[test]
    fn ascii_words_have_the_same_hash_either_way() {
        for word in ["a", "is", "ING", "Loading", "glass", "gates", "x9", "loaded"] {
            assert_eq!(terms(word), [ascii_term(word.as_bytes())], "{word}");
        }
    }
}
