//! Phrases: a small pattern language over words, which needs no backtracking over the text.

use super::text::{SaidWords, words};

/// The most words that may stand where a phrase has `…`.
const GAP: usize = 5;

/// A phrase of words. `pay*` is any word that begins so, `*ung` one that ends so, `#` a number, `…` up to five words,
/// and `^` at the beginning of a phrase the beginning of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phrase {
    /// As written.
    pub text: String,
    at_start: bool,
    /// Groups of words with a gap between two of them.
    groups: Vec<Vec<Pattern>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Word(String),
    Prefix(String),
    Suffix(String),
    Number,
}

impl Pattern {
    fn new(word: &str) -> Option<Self> {
        if word == "#" {
            return Some(Self::Number);
        }
        let plain = |text: &str| words(text).into_iter().next().filter(|_| words(text).len() == 1);
        match (word.strip_prefix('*'), word.strip_suffix('*')) {
            (Some(end), None) => plain(end).map(Self::Suffix),
            (None, Some(start)) => plain(start).map(Self::Prefix),
            (None, None) => plain(word).map(Self::Word),
            _ => None,
        }
    }

    fn matches(&self, word: &str) -> bool {
        match self {
            Self::Word(own) => own == word,
            Self::Prefix(start) => word.starts_with(start.as_str()),
            Self::Suffix(end) => word.ends_with(end.as_str()),
            Self::Number => word.starts_with(|first: char| first.is_ascii_digit()),
        }
    }
}

impl Phrase {
    /// A phrase as written; `None` if it has no word, or a word that is not one.
    pub fn new(text: &str) -> Option<Self> {
        let (at_start, rest) = match text.trim().strip_prefix('^') {
            Some(rest) => (true, rest),
            None => (false, text.trim()),
        };
        let group = |group: &str| -> Option<Vec<Pattern>> {
            group
                .split_whitespace()
                .map(Pattern::new)
                .collect::<Option<Vec<_>>>()
                .filter(|all| !all.is_empty())
        };
        let groups = rest.split('…').map(group).collect::<Option<Vec<_>>>()?;
        Some(Self { text: text.to_owned(), at_start, groups })
    }

    /// Whether the words of a text contain it.
    pub(super) fn is_in(&self, said: &SaidWords) -> bool {
        let stands_at = |at: usize| follows(&self.groups, &said.words[at..]);
        match self.groups.first().and_then(|group| group.first()) {
            _ if self.at_start => !said.words.is_empty() && stands_at(0),
            Some(Pattern::Word(start) | Pattern::Prefix(start)) => said.beginning(start).any(stands_at),
            _ => (0..said.words.len()).any(stands_at),
        }
    }
}

/// Whether the groups stand in this order, the first at the beginning, each other at most [`GAP`] words behind the one
/// before.
fn follows(groups: &[Vec<Pattern>], said: &[String]) -> bool {
    let Some((first, rest)) = groups.split_first() else { return true };
    let Some((here, after)) = said.split_at_checked(first.len()) else { return false };
    if !first.iter().zip(here).all(|(pattern, word)| pattern.matches(word)) {
        return false;
    }
    match rest {
        [] => true,
        rest => (0..=GAP.min(after.len())).any(|skipped| follows(rest, &after[skipped..])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_in(phrase: &str, text: &str) -> bool {
        Phrase::new(phrase).unwrap().is_in(&SaidWords::new(words(text)))
    }

    #[test]
    fn phrases_match_words_beginnings_ends_numbers_and_gaps() {
        assert!(is_in("don't know", "I dont KNOW."));
        assert!(is_in("contradict*", "they are contradicting each other"));
        assert!(is_in("*ung", "Die Rechnung kam"));
        assert!(is_in("# … to #", "from 5 apples to 7"));
        assert!(!is_in("either … or", "either a b c d e f or"));
        assert!(is_in("^yes", "Yes, go on") && !is_in("^yes", "oh yes"));
        assert!(is_in("why ?", "why?") && !is_in("know", "unknown"));
    }

    #[test]
    fn what_is_no_phrase_is_refused() {
        for text in ["", "^", "… a", "a …", "*", "a-b", "*a*"] {
            assert_eq!(Phrase::new(text), None, "{text:?}");
        }
    }
}
