//! Words of texts as terms that can be compared: one splitter, one stemmer, one stop list. What differs between uses is
//! data: a [`Profile`].
//!
//! Knows texts of any script; does not know documents, queries or scores.

mod hashed;
mod stem;
mod stop;

use std::borrow::Cow;

pub use hashed::{ascii_term, for_each_term};
pub use stem::Stemming;
pub use stop::{STOP_WORDS, is_stop_word};

/// What follows an apostrophe and is not a word: `it's`, `didn't`, `we'll`.
const CLITICS: [&str; 7] = ["d", "ll", "m", "re", "s", "t", "ve"];

/// What divides values in a line: a semicolon where a comma could be mistaken for one of theirs, as in `3,5`.
pub fn separator<'t>(mut values: impl Iterator<Item = &'t str>) -> &'static str {
    if values.any(|value| value.contains(',')) { "; " } else { ", " }
}

/// Values in a line, divided by their [`separator`].
pub fn joined(values: &[String]) -> String {
    values.join(separator(values.iter().map(String::as_str)))
}

/// A count with its noun, which gets an s unless it is one.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", plural(count))
}

/// What a noun gets after this count.
pub const fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Whether a text shows nothing: it has only white space, control characters and characters without a width of their own.
pub fn is_blank(text: &str) -> bool {
    let is_unseen = |char: char| {
        char.is_whitespace()
            || char.is_control()
            || matches!(char, '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}')
    };
    text.chars().all(is_unseen)
}

/// How texts are divided into words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// Which apostrophes are inside of words.
    pub apostrophes: Apostrophes,
    /// How scripts without spaces between words are divided.
    pub unspaced: Unspaced,
    /// Whether combining marks are part of words; otherwise they end them.
    pub marks: bool,
    /// Which forms of a word [`Profile::term`] makes equal.
    pub stemming: Stemming,
}

/// Which apostrophes are inside of words, where they are skipped. Any other ends a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Apostrophes {
    /// Both `'` and `’`: `what's` is `whats`.
    Inside,
    /// Only `’`, and soft hyphens.
    CurlyInside,
    /// None, and what follows one is dropped if it is an English clitic: `what's` is `what`.
    DropClitics,
    /// No apostrophe is inside of a word.
    Separate,
}

/// How scripts without spaces between words are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unspaced {
    /// Every pair of neighbouring characters is a word.
    Pairs,
    /// The same, and a character without neighbours is a word.
    PairsAndSingles,
    /// As other letters: a run of them is a word.
    Letters,
}

impl Profile {
    /// For choosing what a condensed text shows; [`for_each_term`] gives the terms of this profile.
    pub const CONDENSE: Self = Self {
        apostrophes: Apostrophes::CurlyInside,
        unspaced: Unspaced::Pairs,
        marks: false,
        stemming: Stemming::Endings,
    };
    /// For ranking records and passages by a question.
    pub const RECALL: Self = Self {
        apostrophes: Apostrophes::DropClitics,
        unspaced: Unspaced::PairsAndSingles,
        marks: false,
        stemming: Stemming::English,
    };
    /// For rules that look for phrases in a question.
    pub const PHRASES: Self = Self {
        apostrophes: Apostrophes::Inside,
        unspaced: Unspaced::Letters,
        marks: false,
        stemming: Stemming::None,
    };
    /// For the index of documents, which drops the marks itself.
    pub const INDEX: Self = Self {
        apostrophes: Apostrophes::Separate,
        unspaced: Unspaced::Letters,
        marks: true,
        stemming: Stemming::None,
    };

    /// Calls `give` with the position and the lower-case form of every word of `text`, in order.
    pub fn for_each_word(&self, text: &str, give: impl FnMut(usize, &str)) {
        let clitics = self.apostrophes == Apostrophes::DropClitics;
        let singles = self.unspaced == Unspaced::PairsAndSingles;
        let mut words = WordSink {
            give,
            clitics,
            singles,
            word: String::new(),
            start: 0,
            after_apostrophe: false,
            wide: None,
        };
        split(text, self, &mut words);
    }

    /// What a lower-case word is compared by.
    pub fn term<'w>(&self, word: &'w str) -> Cow<'w, str> {
        self.stemming.stem(word)
    }

    /// The distinct terms of a text, in order of their first words.
    pub fn terms(&self, text: &str) -> Vec<String> {
        let mut terms: Vec<String> = Vec::new();
        self.for_each_word(text, |_, word| {
            let term = self.term(word);
            if terms.iter().all(|known| *known != term) {
                terms.push(term.into_owned());
            }
        });
        terms
    }
}

/// Whether a character is of a script written without spaces between words.
pub fn is_wide(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Receives the characters of words as they are read.
trait Sink {
    /// The next character of a word, in lower case, which appears at a byte position.
    fn letter(&mut self, at: usize, letter: char);
    /// The word read so far, if any, has ended before `by`.
    fn end(&mut self, by: char);
    /// A character of a script without spaces; the word before it has been ended.
    fn wide(&mut self, at: usize, letter: char);
    /// Something else follows a character of a script without spaces.
    fn end_wide(&mut self);
}

/// Divides a text; inlined so that a constant profile costs nothing.
#[inline(always)]
fn split(text: &str, profile: &Profile, sink: &mut impl Sink) {
    let mut after_wide = false;
    for (at, c) in text.char_indices() {
        let wide = !c.is_ascii() && profile.unspaced != Unspaced::Letters && is_wide(c);
        if after_wide && !wide {
            sink.end_wide();
        }
        after_wide = wide;
        if c.is_ascii_alphanumeric() {
            sink.letter(at, c.to_ascii_lowercase());
        } else if c.is_ascii() {
            if c != '\'' || profile.apostrophes != Apostrophes::Inside {
                sink.end(c);
            }
        } else if wide {
            sink.end(c);
            sink.wide(at, c);
        } else if c.is_alphanumeric() || profile.marks && matches!(c, '\u{300}'..='\u{36f}') {
            c.to_lowercase().for_each(|c| sink.letter(at, c));
        } else {
            let inside = match profile.apostrophes {
                Apostrophes::Inside => c == '’',
                Apostrophes::CurlyInside => matches!(c, '’' | '\u{ad}'),
                Apostrophes::DropClitics | Apostrophes::Separate => false,
            };
            if !inside {
                sink.end(c);
            }
        }
    }
    if after_wide {
        sink.end_wide();
    }
    sink.end(' ');
}

/// Collects the letters of each word.
struct WordSink<F> {
    give: F,
    clitics: bool,
    singles: bool,
    word: String,
    /// Where the word begins.
    start: usize,
    after_apostrophe: bool,
    /// The last character of a script without spaces, where it appears, and whether it was given in a pair.
    wide: Option<(char, usize, bool)>,
}

impl<F: FnMut(usize, &str)> Sink for WordSink<F> {
    fn letter(&mut self, at: usize, letter: char) {
        if self.word.is_empty() {
            self.start = at;
        }
        self.word.push(letter);
    }

    fn end(&mut self, by: char) {
        let clitic = self.clitics && self.after_apostrophe && CLITICS.contains(&self.word.as_str());
        if !self.word.is_empty() && !clitic {
            (self.give)(self.start, &self.word);
        }
        self.after_apostrophe = !self.word.is_empty() && matches!(by, '\'' | '’');
        self.word.clear();
    }

    fn wide(&mut self, at: usize, letter: char) {
        let before = self.wide.replace((letter, at, self.wide.is_some()));
        if let Some((before, start, _)) = before {
            (self.give)(start, &String::from_iter([before, letter]));
        }
    }

    fn end_wide(&mut self) {
        if let Some((letter, at, false)) = self.wide.take().filter(|_| self.singles) {
            (self.give)(at, letter.encode_utf8(&mut [0; 4]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(profile: &Profile, text: &str) -> Vec<String> {
        let mut words = Vec::new();
        profile.for_each_word(text, |_, word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn recall_drops_clitics_and_keeps_single_characters() {
        let recall = |text| words(&Profile::RECALL, text);
        assert_eq!(recall("Mel's kids didn’t see veh-0772!"), ["mel", "kids", "didn", "see", "veh", "0772"]);
        assert_eq!(recall("ÜBER’S straße О'Нил"), ["über", "straße", "о", "нил"]);
        assert_eq!(recall("猫の名前 is 猫"), ["猫の", "の名", "名前", "is", "猫"]);
        assert_eq!(recall("a猫b"), ["a", "猫", "b"]);
        assert!(recall(" …!").is_empty());
    }

    #[test]
    fn phrases_join_words_over_apostrophes() {
        assert_eq!(
            words(&Profile::PHRASES, "What's the top-comment, NOW’s?"),
            ["whats", "the", "top", "comment", "nows"]
        );
        assert_eq!(words(&Profile::PHRASES, "猫の名前"), ["猫の名前"]);
    }

    #[test]
    fn the_index_keeps_marks_and_positions() {
        let mut found = Vec::new();
        Profile::INDEX.for_each_word("l'E\u{301}te\u{301} 42", |at, word| found.push((at, word.to_owned())));
        assert_eq!(found, [(0, "l".into()), (2, "e\u{301}te\u{301}".into()), (10, "42".into())]);
    }

    #[test]
    fn terms_are_distinct_stems_in_order() {
        assert_eq!(Profile::RECALL.terms("He runs, she ran; running dogs"), ["he", "run", "she", "dog"]);
    }
}
