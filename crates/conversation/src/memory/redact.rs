//! Takes the words of erased texts out of a text that was written with them in view. Pure.

use std::collections::HashSet;
use std::ops::Range;

use larder_text::hash::ContentHash;
use serde_json::Value;

/// Words in a row that are taken for a quotation.
const RUN: usize = 3;
/// Digits of the hash that stands for what was erased.
const DIGITS: usize = 16;

/// What is to be taken out.
pub(super) struct Redaction<'a> {
    /// Words in a row of the erased texts.
    runs: HashSet<Vec<String>>,
    /// Names, numbers and codes of the erased texts, which tell even alone.
    telling: HashSet<String>,
    /// The day, as it is written.
    date: &'a str,
}

impl<'a> Redaction<'a> {
    /// Takes out `texts`. Names that the person said itself, in `said`, stay.
    pub(super) fn new<'t>(
        texts: impl IntoIterator<Item = &'t str>,
        said: impl IntoIterator<Item = &'t str>,
        date: &'a str,
    ) -> Self {
        let mut redaction = Self { runs: HashSet::new(), telling: HashSet::new(), date };
        let said: HashSet<String> = said.into_iter().flat_map(lower_words).collect();
        for text in texts {
            let words = lower_words(text);
            let run = RUN.min(words.len()).max(1);
            redaction.runs.extend(words.windows(run).map(<[String]>::to_vec));
            let spans = spans(text);
            let tells =
                spans.iter().enumerate().filter(|(at, span)| is_telling(&text[(*span).clone()], *at == 0));
            let tells = tells.map(|(at, _)| words[at].clone());
            redaction.telling.extend(tells.filter(|word| !said.contains(word)));
        }
        redaction
    }

    /// The text without them, if any of them was in it.
    pub(super) fn text(&self, text: &str) -> Option<String> {
        let (words, spans) = (lower_words(text), spans(text));
        let mut marked: Vec<bool> = words.iter().map(|word| self.telling.contains(word)).collect();
        for length in 1..=RUN {
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

    /// The value with what is erased of its texts, if any of it was in one.
    pub(super) fn value(&self, value: &Value) -> Option<Value> {
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

/// Whether a word is a name, a number or a code. The first word of a text is in capitals in any case.
fn is_telling(word: &str, is_first: bool) -> bool {
    let has_sign = word.contains(|c: char| c.is_numeric() || matches!(c, '_' | '-' | '@'));
    let is_name = !is_first && word.chars().next().is_some_and(char::is_uppercase);
    word.chars().count() >= RUN && (has_sign || is_name)
}

fn lower_words(text: &str) -> Vec<String> {
    spans(text).into_iter().map(|span| text[span].to_lowercase()).collect()
}

/// Where words are.
fn spans(text: &str) -> Vec<Range<usize>> {
    let is_of_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '\'' | '@');
    let mut spans: Vec<Range<usize>> = Vec::new();
    for (at, c) in text.char_indices().filter(|(_, c)| is_of_word(*c)) {
        match spans.last_mut() {
            Some(last) if last.end == at => last.end = at + c.len_utf8(),
            _ => spans.push(at..at + c.len_utf8()),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redact(text: &str) -> Option<String> {
        let facts = ["The daughter Lily dances at school on Fridays with code QX-77", "Vegan"];
        Redaction::new(facts, ["Lily is unhappy"], "2026-11-21").text(text)
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
    fn values_keep_their_shape() {
        let redaction = Redaction::new(["likes green tea"], [], "2026-11-21");
        let value =
            serde_json::json!({"n": 1, "list": ["likes green tea", "coffee"], "likes green tea": null});
        let redacted = redaction.value(&value).unwrap();
        assert_eq!(
            (&redacted["n"], &redacted["list"][1]),
            (&serde_json::json!(1), &serde_json::json!("coffee"))
        );
        assert!(redacted["list"][0].as_str().unwrap().starts_with("[erased on"));
        assert_eq!(redaction.value(&serde_json::json!(["coffee"])), None);
    }
}
