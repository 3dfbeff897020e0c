//! What a message says about memory itself, found by phrases before anything else (R4-7.1). Pure; knows no store.

use crate::kind::{Depth, Intent, IntentRules};

/// The most words of a message that ` … ` in a phrase stands for.
const GAP_WORDS: usize = 5;

/// What a message asks of memory (R4-3.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryIntent {
    /// The past shall not be brought up.
    AvoidRecall,
    /// Great distress: nothing is retrieved.
    HighDistress,
    /// Stay with the stage, or leave it.
    StageEnforcement,
    /// What was agreed.
    CommitmentReference,
}

impl MemoryIntent {
    /// Whether no fact, no summary and nothing retrieved is sent.
    pub const fn withholds(self) -> bool {
        matches!(self, Self::AvoidRecall | Self::StageEnforcement)
    }
}

/// Everything that rules find in a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Found {
    /// What it asks of memory; the first in the order of [`MemoryIntent`].
    pub memory: Option<MemoryIntent>,
    /// The messages of the history that are sent, if the intent says how many; none where the past shall not be brought up.
    pub messages: Option<usize>,
    /// How far retrieval goes, in place of the stage's depth.
    pub depth: Option<Depth>,
    /// Whether other sessions are searched, in place of the stage's rule. Only with consent (C97).
    pub across_sessions: Option<bool>,
    /// The intensity that the message has at least.
    pub intensity: Option<u8>,
    /// Whether it refers to something in the past.
    pub refers_to_past: bool,
    /// Whether it asks about the process.
    pub asks_about_process: bool,
    /// Whether it asks to remember or to forget.
    pub asks_to_remember: bool,
}

/// What rules find in a message.
pub fn find(rules: &IntentRules, message: &str) -> Found {
    let words = words(message);
    let intents = [
        (MemoryIntent::AvoidRecall, &rules.avoid_recall),
        (MemoryIntent::HighDistress, &rules.high_distress),
        (MemoryIntent::StageEnforcement, &rules.stage_enforcement),
        (MemoryIntent::CommitmentReference, &rules.commitment_reference),
    ];
    let memory = intents.into_iter().find(|(_, intent)| says(intent, &words));
    let rule = memory.map(|(_, rule)| rule);
    // Distress counts, whatever else the message asks.
    let distress = Some(&rules.high_distress).filter(|intent| says(intent, &words));
    Found {
        memory: memory.map(|(intent, _)| intent),
        messages: memory
            .and_then(|(intent, rule)| rule.messages.or((intent == MemoryIntent::AvoidRecall).then_some(0))),
        depth: distress.and_then(|rule| rule.depth).or(rule.and_then(|rule| rule.depth)),
        across_sessions: rule.and_then(|rule| rule.across_sessions),
        intensity: distress.or(rule).and_then(|rule| rule.intensity),
        refers_to_past: says(&rules.past_reference, &words) || says(&rules.commitment_reference, &words),
        asks_about_process: says(&rules.process_question, &words),
        asks_to_remember: says(&rules.memory_request, &words),
    }
}

/// Those of some phrases that a text says, in their order.
pub(crate) fn phrases_in<'p>(phrases: &'p [String], text: &str) -> Vec<&'p str> {
    let said = words(text);
    phrases.iter().filter(|phrase| is_said(phrase, &[], &said)).map(String::as_str).collect()
}

fn says(intent: &Intent, said: &[String]) -> bool {
    let not_after: Vec<String> = intent.not_after.iter().flat_map(|word| words(word)).collect();
    intent.phrases.iter().any(|phrase| is_said(phrase, &not_after, said))
}

fn is_said(phrase: &str, not_after: &[String], said: &[String]) -> bool {
    let pieces: Vec<Vec<String>> = phrase.split('…').map(words).filter(|piece| !piece.is_empty()).collect();
    let Some((first, rest)) = pieces.split_first() else { return false };
    let mut starts = (0..said.len()).filter(|at| said[*at..].starts_with(first));
    starts.any(|at| {
        let is_denied = at > 0 && not_after.contains(&said[at - 1]);
        !is_denied && follows(rest, &said[at + first.len()..])
    })
}

/// Whether the pieces come in this order, each at most [`GAP_WORDS`] behind the one before.
fn follows(pieces: &[Vec<String>], said: &[String]) -> bool {
    let Some((first, rest)) = pieces.split_first() else { return true };
    (0..=GAP_WORDS.min(said.len())).any(|skipped| {
        said[skipped..].strip_prefix(first.as_slice()).is_some_and(|after| follows(rest, after))
    })
}

/// Words in lower case, with one spelling of the apostrophe and without other punctuation.
fn words(text: &str) -> Vec<String> {
    let text = text.replace('’', "'").to_lowercase();
    text.split(|c: char| !c.is_alphanumeric() && c != '\'')
        .map(|word| word.trim_matches('\'').to_owned())
        .filter(|word| !word.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intent(phrases: &[&str]) -> Intent {
        Intent { phrases: phrases.iter().map(|&text| text.into()).collect(), ..Intent::default() }
    }

    fn rules() -> IntentRules {
        IntentRules {
            avoid_recall: Intent {
                messages: Some(0),
                ..intent(&["don't bring up … past", "stop remembering"])
            },
            stage_enforcement: Intent { messages: Some(4), ..intent(&["skip this step"]) },
            high_distress: Intent {
                depth: Some(Depth::None),
                intensity: Some(9),
                ..intent(&["can't take it anymore"])
            },
            commitment_reference: Intent {
                depth: Some(Depth::Full),
                across_sessions: Some(true),
                ..intent(&["we agreed"])
            },
            past_reference: intent(&["last time"]),
            process_question: intent(&["how does this work"]),
            memory_request: Intent { not_after: vec!["i".into(), "can't".into()], ..intent(&["remember"]) },
        }
    }

    #[test]
    fn phrases_are_found_in_any_case_with_words_between() {
        let found = find(&rules(), "Please DON’T bring up anything from the past!");
        assert_eq!((found.memory, found.messages), (Some(MemoryIntent::AvoidRecall), Some(0)));
        assert_eq!(find(&rules(), "don't bring up all of these many old things of the past").memory, None);
        assert_eq!(find(&rules(), "can we skip this step").messages, Some(4));
        let agreed = find(&rules(), "As we agreed: Sunday");
        assert_eq!(agreed.memory, Some(MemoryIntent::CommitmentReference));
        assert_eq!((agreed.depth, agreed.across_sessions), (Some(Depth::Full), Some(true)));
        assert!(agreed.refers_to_past && find(&rules(), "Like last time.").refers_to_past);
        assert!(find(&rules(), "how does this work?").asks_about_process);
        assert_eq!(find(&rules(), ""), Found::default());
    }

    #[test]
    fn a_phrase_does_not_count_behind_a_word_that_turns_it_around() {
        assert!(find(&rules(), "Please remember that I am allergic.").asks_to_remember);
        assert!(!find(&rules(), "I remember that day.").asks_to_remember);
        assert!(find(&rules(), "I remember that day; remember it for me").asks_to_remember, "another counts");
    }

    #[test]
    fn the_first_intent_decides_and_distress_counts_in_any_case() {
        let found = find(&rules(), "we agreed, but don't bring up the past, I can't take it anymore");
        assert_eq!((found.memory, found.messages), (Some(MemoryIntent::AvoidRecall), Some(0)));
        assert_eq!((found.depth, found.intensity), (Some(Depth::None), Some(9)));
    }
}
