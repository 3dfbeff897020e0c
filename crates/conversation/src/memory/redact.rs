//! Takes the words of erased texts out of a text that was written with them in view. Pure.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use larder_text::hash::ContentHash;
use serde_json::Value;

/// Words in a row that are taken for a quotation of a statement …
const OF_STATEMENT: usize = 3;
/// … and of a message, which has more words that anyone would say.
const OF_MESSAGE: usize = 5;
/// Characters of a word that tells even alone.
const TELLING: usize = 3;
/// Digits of the hash that stands for what was erased.
const DIGITS: usize = 16;

/// A text that is erased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Erased {
    /// A fact, which is to be found however short it is.
    Statement(String),
    /// What somebody said, or a summary.
    Message(String),
}

/// What is to be taken out.
pub(super) struct Redaction<'a> {
    /// Words in a row of the erased texts.
    runs: HashSet<Vec<String>>,
    /// How many words such runs have.
    lengths: BTreeSet<usize>,
    /// Names, numbers and codes of the erased texts, which tell even alone.
    telling: HashSet<String>,
    /// The day, as it is written.
    date: &'a str,
}

impl<'a> Redaction<'a> {
    /// Takes out `texts`. Names that the person said itself, in `said`, stay.
    pub(super) fn new<'t>(
        texts: impl IntoIterator<Item = &'t Erased>,
        said: impl IntoIterator<Item = &'t str>,
        date: &'a str,
    ) -> Self {
        let mut redaction =
            Self { runs: HashSet::new(), lengths: BTreeSet::new(), telling: HashSet::new(), date };
        let said: HashSet<String> = said.into_iter().flat_map(lower_words).collect();
        for erased in texts {
            let (text, least) = match erased {
                Erased::Statement(text) => (text, OF_STATEMENT),
                Erased::Message(text) => (text, OF_MESSAGE),
            };
            let words = lower_words(text);
            let run = match erased {
                Erased::Statement(_) => least.min(words.len()).max(1),
                Erased::Message(_) => least,
            };
            redaction.runs.extend(words.windows(run).map(<[String]>::to_vec));
            redaction.lengths.insert(run);
            let spans = spans(text);
            let tells = spans.iter().enumerate().filter(|(_, span)| is_telling(text, span));
            let tells = tells.map(|(at, _)| words[at].clone());
            redaction.telling.extend(tells.filter(|word| !said.contains(word)));
        }
        redaction
    }

    /// The text without them, if any of them was in it.
    pub(super) fn text(&self, text: &str) -> Option<String> {
        let (words, spans) = (lower_words(text), spans(text));
        let mut marked: Vec<bool> = words.iter().map(|word| self.telling.contains(word)).collect();
        for &length in &self.lengths {
            for (at, run) in words.windows(length).enumerate() {
                if self.runs.contains(run) {
                    marked[at..at + length].fill(true);
                }
            }
        }
        if !marked.contains(&true) {
            return None;
        }
        let (mut redacted, mut written, mut at) = (String::new(), 0, 0);
        while let Some(first) = (at..marked.len()).find(|&at| marked[at]) {
            at = (first..marked.len()).find(|&at| !marked[at]).unwrap_or(marked.len());
            let erased = spans[first].start..spans[at - 1].end;
            redacted.push_str(&text[written..erased.start]);
            redacted.push_str(&self.notice(&text[erased.clone()]));
            written = erased.end;
        }
        redacted.push_str(&text[written..]);
        Some(redacted)
    }

    /// The value with what is erased of the texts at these places, if any of it was in one.
    pub(super) fn within(&self, value: &Value, places: &[&str]) -> Option<Value> {
        let mut new = value.clone();
        for place in places {
            if let Some(field) = new.pointer_mut(place)
                && let Some(redacted) = self.value(field)
            {
                *field = redacted;
            }
        }
        (new != *value).then_some(new)
    }

    /// The value with what is erased of its texts, if any of it was in one.
    fn value(&self, value: &Value) -> Option<Value> {
        match value {
            Value::String(text) => self.text(text).map(Value::String),
            Value::Array(items) => {
                let redacted: Vec<_> = items.iter().map(|item| self.value(item)).collect();
                let is_changed = redacted.iter().any(Option::is_some);
                let new =
                    redacted.into_iter().zip(items).map(|(new, old)| new.unwrap_or_else(|| old.clone()));
                is_changed.then(|| new.collect())
            }
            Value::Object(fields) => {
                let mut new = fields.clone();
                for (name, field) in fields {
                    if let Some(redacted) = self.value(field) {
                        new.insert(name.clone(), redacted);
                    }
                }
                (new != *fields).then_some(Value::Object(new))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        }
    }

    /// What stands for an erased text.
    pub(super) fn notice(&self, erased: &str) -> String {
        format!(
            "[erased on {}, blake3 {}…]",
            self.date,
            &ContentHash::new(erased.as_bytes()).to_hex()[..DIGITS]
        )
    }
}

/// Whether a word of a text is a name, a number or a code. The first word of a sentence is in capitals in any case.
fn is_telling(text: &str, span: &Range<usize>) -> bool {
    let word = &text[span.clone()];
    let before = text[..span.start]
        .trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '“' | '(' | '*'));
    let is_first = before.is_empty() || before.ends_with(['.', '!', '?', ':', '…', '-', '–', '—']);
    let has_sign = word.contains(|c: char| c.is_numeric() || matches!(c, '_' | '-' | '@'));
    let is_name = !is_first && word.chars().next().is_some_and(char::is_uppercase);
    word.chars().count() >= TELLING && (has_sign || is_name)
}

fn lower_words(text: &str) -> Vec<String> {
    spans(text).into_iter().map(|span| text[span].to_lowercase()).collect()
}

/// Where words are. In scripts that put no spaces between words, each character is one.
fn spans(text: &str) -> Vec<Range<usize>> {
    let is_of_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '\'' | '@');
    let mut spans: Vec<Range<usize>> = Vec::new();
    let mut is_open = false;
    for (at, c) in text.char_indices().filter(|(_, c)| is_of_word(*c)) {
        let is_alone = stands_alone(c);
        match spans.last_mut() {
            Some(last) if last.end == at && is_open && !is_alone => last.end = at + c.len_utf8(),
            _ => spans.push(at..at + c.len_utf8()),
        }
        is_open = !is_alone;
    }
    spans
}

/// Whether a character is of a script that puts no spaces between words: Thai to Myanmar, Khmer, and kana and ideographs.
pub(super) const fn stands_alone(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redact(text: &str) -> Option<String> {
        let facts = ["The daughter Lily dances at school on Fridays with code QX-77", "Vegan"];
        let facts = facts.map(|fact| Erased::Statement(fact.to_owned()));
        Redaction::new(&facts, ["Lily is unhappy"], "2026-11-21").text(text)
    }

    #[test]
    fn quotations_names_and_codes_go_and_the_rest_stays() {
        assert_eq!(redact("How are you? Dancing is fine at home."), None);
        assert_eq!(redact("Lily is fine, and so is her daughter."), None, "the person said this name itself");
        let redacted = redact("I know that she dances at school on Fridays, which is late.").unwrap();
        assert!(redacted.starts_with("I know that she [erased on 2026-11-21, blake3 "), "{redacted}");
        assert!(redacted.ends_with("…], which is late."), "{redacted}");
        let redacted = redact("Your code was qx-77; are you vegan?").unwrap();
        assert!(
            !redacted.contains("77") && !redacted.contains("vegan") && redacted.contains("are you"),
            "{redacted}"
        );
    }

    #[test]
    fn what_anyone_would_say_stays() {
        let texts =
            ["It sounds like that was hard. What would you like to do next?", "practice", "Yes, please."];
        let texts = texts.map(|text| Erased::Message(text.to_owned()));
        let redaction = Redaction::new(&texts, [], "2026-11-21");
        assert_eq!(redaction.text("It sounds like you are ready. What would you say to her?"), None);
        assert_eq!(redaction.text("Yes, please practice."), None);
        assert!(redaction.text("You said it sounds like that was hard.").is_some());
    }

    #[test]
    fn scripts_without_spaces_are_quoted_by_characters() {
        let fact = Erased::Statement("用户住在上海市的梧桐路".to_owned());
        let redaction = Redaction::new([&fact], [], "2026-11-21");
        let redacted = redaction.text("我记得您住在上海市的梧桐路附近。").unwrap();
        assert!(!redacted.contains("梧桐") && redacted.starts_with("我记得您[erased"), "{redacted}");
        assert_eq!(redaction.text("您想聊什么？"), None);
    }

    #[test]
    fn values_keep_their_shape() {
        let tea = Erased::Statement("likes green tea".to_owned());
        let redaction = Redaction::new([&tea], [], "2026-11-21");
        let value =
            serde_json::json!({"n": 1, "list": ["likes green tea", "coffee"], "stage": "likes green tea"});
        let redacted = redaction.within(&value, &["/list", "/none"]).unwrap();
        assert_eq!((&redacted["n"], &redacted["list"][1]), (&value["n"], &value["list"][1]));
        assert_eq!(redacted["stage"], value["stage"]);
        assert!(redacted["list"][0].as_str().unwrap().starts_with("[erased on"));
        assert_eq!(redaction.within(&value, &["/n"]), None);
    }
}
