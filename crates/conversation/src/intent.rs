//! What a message says about memory itself, found by phrases before anything else (R4-7.1). Pure; knows no store.

use std::ops::Range;

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

/// The parts of a text that phrases match, in the order of the phrases. A phrase with one of the words `not_with` right before
/// it or in its gap does not count.
pub(crate) fn matches_of<'t>(phrases: &[String], not_with: &[String], text: &'t str) -> Vec<&'t str> {
    let (spans, said) = (word_spans(text).collect::<Vec<_>>(), words(text));
    let not_with: Vec<String> = not_with.iter().flat_map(|word| words(word)).collect();
    let places = phrases.iter().filter_map(|phrase| place_of(phrase, (&not_with, &not_with), &said));
    places.map(|place| &text[spans[place.start].start..spans[place.end - 1].end]).collect()
}

fn says(intent: &Intent, said: &[String]) -> bool {
    let not_after: Vec<String> = intent.not_after.iter().flat_map(|word| words(word)).collect();
    intent.phrases.iter().any(|phrase| place_of(phrase, (&not_after, &[]), said).is_some())
}

/// Which words say a phrase first, without one of the words `not_after` right before it or `not_within` its gaps.
fn place_of(
    phrase: &str,
    (not_after, not_within): (&[String], &[String]),
    said: &[String],
) -> Option<Range<usize>> {
    let pieces: Vec<Vec<String>> = phrase.split('…').map(words).filter(|piece| !piece.is_empty()).collect();
    let (first, rest) = pieces.split_first()?;
    let mut starts = (0..said.len()).filter(|at| {
        let is_denied = *at > 0 && not_after.contains(&said[at - 1]);
        !is_denied && said[*at..].starts_with(first)
    });
    starts.find_map(|at| {
        let behind = at + first.len();
        Some(at..behind + following(rest, not_within, &said[behind..])?)
    })
}

/// How many words there are to the end of these pieces, each at most [`GAP_WORDS`] behind the one before.
fn following(pieces: &[Vec<String>], not_within: &[String], said: &[String]) -> Option<usize> {
    let Some((first, rest)) = pieces.split_first() else { return Some(0) };
    let gap = said.iter().take(GAP_WORDS).take_while(|word| !not_within.contains(word)).count();
    (0..=gap).find_map(|skipped| {
        let after = said[skipped..].strip_prefix(first.as_slice())?;
        Some(skipped + first.len() + following(rest, not_within, after)?)
    })
}

/// Words in lower case, with one spelling of the apostrophe and without other punctuation.
pub(crate) fn words(text: &str) -> Vec<String> {
    word_spans(text).map(|span| text[span].replace('’', "'").to_lowercase()).collect()
}

/// Where the words of a text are.
fn word_spans(text: &str) -> impl Iterator<Item = Range<usize>> {
    let is_outside = |c: char| !c.is_alphanumeric();
    let mut end = 0;
    text.split_inclusive(|c: char| !c.is_alphanumeric() && !matches!(c, '\'' | '’')).filter_map(
        move |piece| {
            let start = end + piece.len() - piece.trim_start_matches(is_outside).len();
            end += piece.len();
            let word = piece.trim_matches(is_outside);
            (!word.is_empty()).then(|| start..start + word.len())
        },
    )
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
    fn what_phrases_match_is_shown_as_it_was_written() {
        let phrases = ["you are … lazy", "you're … lazy", "i hate you"].map(str::to_owned);
        let matched = |text| matches_of(&phrases, &["not".to_owned()], text);
        assert_eq!(
            matched("Éh! You are, honestly, so LAZY. I hate you!"),
            ["You are, honestly, so LAZY", "I hate you"]
        );
        assert_eq!(matched("I know ‘you’re lazy’."), ["you’re lazy"]);
        assert_eq!(matched("You are not lazy, and not you are lazy."), [""; 0]);
        assert_eq!(matched("You are not lazy. You are lazy"), ["You are lazy"], "another counts");
        assert_eq!(matched("you are lazy, not tired"), ["you are lazy"]);
        assert_eq!(matched(""), [""; 0]);
    }

    #[test]
    fn the_first_intent_decides_and_distress_counts_in_any_case() {
        let found = find(&rules(), "we agreed, but don't bring up the past, I can't take it anymore");
        assert_eq!((found.memory, found.messages), (Some(MemoryIntent::AvoidRecall), Some(0)));
        assert_eq!((found.depth, found.intensity), (Some(Depth::None), Some(9)));
    }
}
