//! What is known of a request before its call, and its texts as words.

use serde::{Deserialize, Serialize};

use super::Fields;

/// Characters of a text that are looked at, from its beginning and from its end, so that a decision takes the same time
/// for a text of any size.
const LOOKED_AT: usize = 8_000;
/// The newest messages before the request that are looked at.
const RECENT: usize = 4;

/// A request as a router sees it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteRequest {
    /// What the user wrote.
    pub message: String,
    /// The texts of earlier messages, oldest first.
    pub history: Vec<String>,
    /// Names of the task, such as a recipe's name and category.
    pub tasks: Vec<String>,
    /// The stage of a conversation.
    pub stage: Option<String>,
    /// Form of the answer: `json`, `tagged`, `markdown`, `text`.
    pub output: Option<String>,
    /// Other values that the caller knows, such as `intensity`.
    pub fields: Fields,
    /// Attached texts.
    pub documents: Vec<RouteDocument>,
    /// Attached pictures.
    pub images: usize,
    /// Tools that the model may call.
    pub tools: usize,
    /// Tokens that the model will read, and the most that it may write.
    pub tokens: usize,
}

/// An attached text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteDocument {
    /// Its content type, such as `prose`, `code` or `log`.
    pub kind: String,
    /// Its approximate size.
    pub tokens: usize,
}

/// The texts of a request as words.
pub(super) struct Words {
    pub message: SaidWords,
    pub history: SaidWords,
}

impl Words {
    pub fn of(request: &RouteRequest) -> Self {
        let recent = request.history.iter().rev().take(RECENT).rev();
        Self {
            message: SaidWords::new(words(&request.message)),
            history: SaidWords::new(recent.flat_map(|text| words(text)).collect()),
        }
    }
}

/// Words in their order, and where each is: presets have hundreds of phrases, few of which begin with a word that was said.
pub(super) struct SaidWords {
    pub words: Vec<String>,
    /// Places, in the order of their words.
    sorted: Vec<usize>,
}

impl SaidWords {
    pub fn new(words: Vec<String>) -> Self {
        let mut sorted: Vec<usize> = (0..words.len()).collect();
        sorted.sort_by_key(|&at| &words[at]);
        Self { words, sorted }
    }

    /// The places of words that begin so.
    pub fn beginning(&self, start: &str) -> impl Iterator<Item = usize> {
        let from = self.sorted.partition_point(|&at| self.words[at].as_str() < start);
        self.sorted[from..].iter().copied().take_while(move |&at| self.words[at].starts_with(start))
    }
}

/// The words of a text in lower case and without apostrophes, so that `Don’t` and `dont` are the same. Numbers are one
/// word whatever their separators; question marks, exclamation marks and emoji are words, other punctuation is left out.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let ends: [&str; 2] = match text.char_indices().nth(2 * LOOKED_AT) {
        Some(_) => {
            let head = text.char_indices().nth(LOOKED_AT).map_or(text.len(), |(at, _)| at);
            let tail = text.char_indices().nth_back(LOOKED_AT - 1).map_or(0, |(at, _)| at);
            [&text[..head], &text[tail.max(head)..]]
        }
        None => [text, ""],
    };
    for text in ends {
        let mut chars = text.chars().peekable();
        while let Some(char) = chars.next() {
            let in_number = word.ends_with(|last: char| last.is_ascii_digit())
                && chars.peek().is_some_and(char::is_ascii_digit);
            match char {
                char if char.is_alphanumeric() => word.extend(char.to_lowercase()),
                '\'' | '’' => {}
                '.' | ',' | ':' | '/' if in_number => word.push(char),
                char => {
                    words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
                    if matches!(char, '?' | '!') || char > '\u{1F000}' {
                        words.push(char.to_string());
                    }
                }
            }
        }
        words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_compared_without_case_and_apostrophes() {
        assert_eq!(words("I DON’T know… 2x49,50?!"), ["i", "dont", "know", "2x49,50", "?", "!"]);
        assert_eq!(words("😂 Straße, 10:30."), ["😂", "straße", "10:30"]);
    }

    #[test]
    fn of_a_long_text_both_ends_are_looked_at() {
        let long = format!("first {} last", "ü ".repeat(1_000_000));
        let found = words(&long);
        assert_eq!(
            (found.first().map(String::as_str), found.last().map(String::as_str)),
            (Some("first"), Some("last"))
        );
        assert!(found.len() <= LOOKED_AT, "{}", found.len());
    }
}
