//! The words of a query, for rules that look for phrases. Knows no rule.

/// Longer queries are read up to here, in characters: rules look at what a person asks, not at what is pasted behind
/// it.
const MOST: usize = 2_000;
/// Words that say nothing of a subject. Almost every document holds them, so looking for them finds nothing and takes
/// time.
const FUNCTION: [&str; 75] = [
    "the", "a", "an", "is", "are", "was", "were", "be", "been", "it", "its", "of", "in", "on", "at", "to",
    "for", "and", "or", "but", "so", "then", "what", "whats", "which", "who", "how", "when", "where", "why",
    "many", "much", "did", "do", "does", "has", "have", "had", "can", "could", "would", "should", "will",
    "they", "them", "their", "that", "this", "these", "those", "there", "i", "me", "my", "you", "your", "we",
    "our", "he", "she", "his", "her", "one", "ones", "more", "about", "with", "from", "some", "any",
    "please", "again", "ok", "not", "if",
];
/// Words that name no page, though titles and queries share them.
const OF_PAGES: [&str; 4] = ["say", "said", "page", "pages"];

/// A query in lower-case words with one space around each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words(String);

impl Words {
    /// Letters and digits make words, apostrophes vanish: `What's` is `whats`.
    pub(super) fn of(text: &str) -> Self {
        let mut words = String::from(" ");
        for char in text.chars().take(MOST) {
            match char {
                '\'' | '’' => {}
                char if char.is_alphanumeric() => words.extend(char.to_lowercase()),
                _ if words.ends_with(' ') => {}
                _ => words.push(' '),
            }
        }
        if !words.ends_with(' ') {
            words.push(' ');
        }
        Self(words)
    }

    /// Whether these words stand there in this order.
    pub(super) fn say(&self, phrase: &str) -> bool {
        self.0
            .match_indices(phrase)
            .any(|(at, _)| self.0[..at].ends_with(' ') && self.0[at + phrase.len()..].starts_with(' '))
    }

    /// Whether every word of a name such as `screen_size` stands there, in one number or the other.
    pub(super) fn name(&self, name: &str) -> bool {
        let name = Self::of(name);
        let mut words = name.telling().peekable();
        words.peek().is_some() && words.all(|word| self.holds(word))
    }

    /// The words worth looking for, with spaces between them; empty if there are none.
    pub(super) fn searched(&self) -> String {
        let words = self.0.split_whitespace().filter(|word| !FUNCTION.contains(word));
        words.collect::<Vec<_>>().join(" ")
    }

    /// The words that name something.
    pub(super) fn telling(&self) -> impl Iterator<Item = &str> {
        let empty = |word: &&str| FUNCTION.contains(word) || OF_PAGES.contains(word);
        self.0.split_whitespace().filter(move |word| !empty(word))
    }

    /// How many of the words of `other` that name something stand here too, of one.
    pub(super) fn shared(&self, other: &Self) -> f64 {
        let (mut shared, mut all) = (0_u32, 0_u32);
        for word in other.telling() {
            all += 1;
            shared += u32::from(self.holds(word));
        }
        if all == 0 { 0.0 } else { f64::from(shared) / f64::from(all) }
    }

    fn holds(&self, word: &str) -> bool {
        let stem = |word: &str| word.strip_suffix('s').unwrap_or(word).to_owned();
        self.say(word) || self.0.split_whitespace().any(|own| stem(own) == stem(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_whole_words_in_order() {
        let words = Words::of("What's the top-comment, NOW?");
        assert!(words.say("top comment") && words.say("whats") && words.say("now"));
        assert!(!words.say("comment top") && !words.say("no") && !words.say("hats"));
        assert_eq!(Words::of(""), Words(" ".to_owned()));
        assert_eq!(Words::of("And what of those?").searched(), "");
        assert_eq!(Words::of("What is the warranty of my Kettle?").searched(), "warranty kettle");
    }

    #[test]
    fn names_are_found_in_both_numbers() {
        let words = Words::of("which screen sizes are there");
        assert!(words.name("screen_size") && !words.name("gpu") && !words.name("the"));
        assert!((Words::of("gaming laptop thread").shared(&Words::of("the laptop")) - 1.0).abs() < 1e-9);
    }
}
