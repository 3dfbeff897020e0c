//! The words of a query, for rules that match phrases. Knows none of these rules.

use larder_text::words::{Profile, is_stop_word};

/// Maximum characters of a query: rules examine a person's question, not text pasted after it.
const MAX_CHARS: usize = 2_000;
/// Words that say nothing about a subject, in addition to the stop words. Almost every document contains them, so
/// searching for them takes time and finds nothing.
const ASKING: [&str; 17] = [
    "again", "any", "but", "many", "more", "much", "ok", "one", "ones", "our", "please", "so", "some",
    "then", "these", "those", "whats",
];
/// Words that do not name a page, though titles and queries share them.
const OF_PAGES: [&str; 4] = ["say", "said", "page", "pages"];

/// A query in lower-case words with one space around each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PaddedQuery(String);

/// Share of the words of a statement that a text must contain to state it.
const STATED: f64 = 0.6;

/// Whether a text states something: whether it contains most of its words.
pub fn states(text: &str, statement: &str) -> bool {
    PaddedQuery::new(text).shared(&PaddedQuery::new(statement)) >= STATED
}

impl PaddedQuery {
    /// Letters and digits make words, apostrophes vanish: `What's` is `whats`.
    pub(super) fn new(text: &str) -> Self {
        let end = text.char_indices().nth(MAX_CHARS).map_or(text.len(), |(end, _)| end);
        let mut words = String::from(" ");
        Profile::PHRASES.for_each_word(&text[..end], |_, word| {
            words.push_str(word);
            words.push(' ');
        });
        Self(words)
    }

    /// Whether these words occur in this order.
    pub(super) fn say(&self, phrase: &str) -> bool {
        self.0
            .match_indices(phrase)
            .any(|(at, _)| self.0[..at].ends_with(' ') && self.0[at + phrase.len()..].starts_with(' '))
    }

    /// Whether every word of a name such as `screen_size` occurs, in singular or plural.
    pub(super) fn name(&self, name: &str) -> bool {
        let name = Self::new(name);
        let mut words = name.subjects().peekable();
        words.peek().is_some() && words.all(|word| self.holds(word))
    }

    /// The words worth looking for, separated by spaces.
    pub(super) fn searched(&self) -> String {
        let words = self.0.split_whitespace().filter(|word| !is_empty(word));
        words.collect::<Vec<_>>().join(" ")
    }

    /// The words with a meaning of their own, other than those about pages.
    pub(super) fn subjects(&self) -> impl Iterator<Item = &str> {
        self.0.split_whitespace().filter(|word| !is_empty(word) && !OF_PAGES.contains(word))
    }

    /// The share of the words of `other` with a meaning of their own that occur here too, from 0 to 1.
    pub(super) fn shared(&self, other: &Self) -> f64 {
        let (mut shared, mut all) = (0_u32, 0_u32);
        for word in other.subjects() {
            all += 1;
            shared += u32::from(self.holds(word));
        }
        if all == 0 { 0.0 } else { f64::from(shared) / f64::from(all) }
    }

    /// Whether the word occurs, in singular or plural.
    pub(super) fn holds(&self, word: &str) -> bool {
        let stem = |word: &str| word.strip_suffix('s').unwrap_or(word).to_owned();
        self.say(word) || self.0.split_whitespace().any(|own| stem(own) == stem(word))
    }
}

fn is_empty(word: &str) -> bool {
    is_stop_word(word) || ASKING.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_whole_words_in_order() {
        let words = PaddedQuery::new("What's the top-comment, NOW?");
        assert!(words.say("top comment") && words.say("whats") && words.say("now"));
        assert!(!words.say("comment top") && !words.say("no") && !words.say("hats"));
        assert_eq!(PaddedQuery::new(""), PaddedQuery(" ".to_owned()));
        assert_eq!(PaddedQuery::new("And what of those?").searched(), "");
        assert_eq!(PaddedQuery::new("What is the warranty of my Kettle?").searched(), "warranty kettle");
    }

    #[test]
    fn names_are_found_in_both_numbers() {
        let words = PaddedQuery::new("which screen sizes are there");
        assert!(words.name("screen_size") && !words.name("gpu") && !words.name("the"));
        assert!(
            (PaddedQuery::new("gaming laptop thread").shared(&PaddedQuery::new("the laptop")) - 1.0).abs()
                < 1e-9
        );
    }
}
