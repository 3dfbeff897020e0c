//! What a question asks for: a time, the last time of something, anything at all.
//!
//! Knows English; a text that it does not know is read as one that asks for none of these.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Questions for a time: "when did …", "how long", "which month".
#[allow(clippy::expect_used, reason = "the pattern is constant and every test run compiles it")]
static WHEN: LazyLock<Regex> = LazyLock::new(|| {
    let parts = [
        // Not "how did it feel when …".
        r"^(?:and|so)?\s*when|when\s+(?:did|do|does|was|were|is|are|will|have|has|had)",
        r"(?:remember|know|tell\s+me)\s+when",
        r"how\s+(?:long|often|recently|old)",
        r"how\s+many\s+(?:days|weeks|months|years)",
        r"(?:what|which)\s+(?:day|date|weekday|week|weekend|month|year|time|season)",
    ];
    Regex::new(&format!(r"(?i-u)(?:^|\b)(?:{})\b", parts.join("|"))).expect("a constant pattern")
});

/// Questions about the last time: "when did we last …", "the latest". What is `last` has its word behind it and those of
/// its question, by which [`asks_with`] tells it from a verb and from a time.
#[allow(clippy::expect_used, reason = "the pattern is constant and every test run compiles it")]
static LATEST: LazyLock<Regex> = LazyLock::new(|| {
    let word = r"[\w'’-]+";
    let last = format!(
        r"(?:(?P<question>when|how\s+long)\s+)?(?:did|do|does|have|has|had)(?:\s+{word}){{0,2}}?\s+(?P<subject>{word})(?P<last>\s+last)\b(?:\s+(?P<next>{word}))?"
    );
    Regex::new(&format!(r"(?i)\b(?:{last}|last\s+time\b|latest\b|newest\b|most\s+recent(?:ly)?\b)"))
        .expect("a constant pattern")
});

/// What follows `last` where it is no adverb: the unit or day that was the last …
const LAST_OF: &str = "seconds? minutes? hours? days? nights? mornings? afternoons? evenings? weeks? weekends? fortnights? months? quarters? years? terms? semesters? seasons? spring summer autumn fall winter christmas easter mon(day)? tues(day)? wednes(day)? thurs(day)? fri(day)? satur(day)? sun(day)? january february march april may june july august september october november december";
/// … or what says how long something lasts.
const LASTS: &str = "long(er)? for until till through all a an the so as than more less over under about in on at and or but if";
/// What `last` follows where it is an adjective.
const DETERMINERS: [&str; 16] = [
    "the", "a", "this", "that", "my", "your", "his", "her", "its", "our", "their", "in", "on", "at", "of",
    "to",
];

#[allow(clippy::expect_used, reason = "the pattern is constant and every test run compiles it")]
static BEHIND_LAST: LazyLock<Regex> = LazyLock::new(|| {
    let words = format!("{LAST_OF} {LASTS}").replace(' ', "|");
    Regex::new(&format!("(?i-u)^(?:{words})$")).expect("a constant pattern")
});

/// What asks: a question mark, a word of questions with its verb, or a request to look something up.
#[allow(clippy::expect_used, reason = "the pattern is constant and every test run compiles it")]
static ASKS: LazyLock<Regex> = LazyLock::new(|| {
    let verb = "(?:did|do|does|was|were|is|are|am|have|has|had|can|could|will|would|should)";
    let person = "(?:i|we|you|he|she|they)";
    let start = r"(?:^|[.!\n])\s*(?:(?:and|so|but|also|ok|okay|hey|hi|please)\b[,\s]*)*";
    let wh = "(?:what|which|where|why|how|whom|whose)";
    let parts = [
        r"\?".to_owned(),
        format!(r"{start}(?:who\b|when\s+{verb}\b|{wh}(?:\s+\w+){{0,2}}?\s+{verb}\b|{verb}\s+{person}\b)"),
        format!(r"\b(?:remember|remind\s+(?:me|us)|know|tell\s+(?:me|us))\s+(?:of|about|who|when|{wh})\b"),
        r"\b(?:tell|show|give)\s+(?:me|us)\b|\b(?:look\s+up|recall|list|summari[sz]e)\b".to_owned(),
    ];
    Regex::new(&format!("(?i-u){}", parts.join("|"))).expect("a constant pattern")
});

/// Whether a text asks for something, and does not only state it.
pub(super) fn asks_something(text: &str) -> bool {
    ASKS.is_match(text)
}

/// Whether a question asks for a time.
pub(crate) fn asks_when(question: &str) -> bool {
    WHEN.is_match(question)
}

/// Whether a question asks about the last time of something.
pub(crate) fn asks_latest(question: &str) -> bool {
    LATEST.captures_iter(question).any(|found| asks_with(&found))
}

/// A question without the words by which it asks about the last time, which say nothing of its subject.
pub(super) fn without_latest(question: &str) -> Cow<'_, str> {
    LATEST.replace_all(question, |found: &Captures<'_>| {
        let whole = found.get_match();
        match found.name("last") {
            _ if !asks_with(found) => whole.as_str().to_owned(),
            Some(last) => {
                let before = &question[whole.start()..last.start()];
                before.to_owned() + &question[last.end()..whole.end()]
            }
            None => String::new(),
        }
    })
}

/// Whether what [`LATEST`] found asks about the last time: "when did Ann last visit", not "who had lunch last week", "how
/// long did it last" or "did Ann like her last job".
fn asks_with(found: &Captures<'_>) -> bool {
    let Some(subject) = found.name("subject") else { return true };
    let asks_when = match found.name("question") {
        Some(question) if !question.as_str().eq_ignore_ascii_case("when") => return false,
        question => question.is_some(),
    };
    if DETERMINERS.iter().any(|word| subject.as_str().eq_ignore_ascii_case(word)) {
        return false;
    }
    // With nothing behind it, `last` is a verb, except after "when": "When did I call Ann last?"
    found.name("next").map_or(asks_when, |next| !BEHIND_LAST.is_match(next.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_time_is_told_from_a_last_day_and_from_what_lasts() {
        for question in [
            "When did Ann last sing?",
            "When did my sister last visit?",
            "When did my older sister last visit us?",
            "When did Zoë last write to me?",
            "What did I last say about the rent?",
            "When did I call Ann last?",
            "the latest",
            "When was the last time?",
        ] {
            assert!(asks_latest(question), "{question}");
        }
        for question in [
            "How long did it last?",
            "How long did the battery last you?",
            "Did the batteries last long?",
            "When did the snow last for weeks?",
            "Who had lunch last week?",
            "Who had lunch with Ann last Tuesday?",
            "What did we do last summer?",
            "Did she like her last job?",
            "What did Ann do last week, on her last day?",
        ] {
            assert!(!asks_latest(question), "{question}");
            assert_eq!(without_latest(question), question);
        }
        assert_eq!(without_latest("When did Ann last sing? The last time?"), "When did Ann sing? The ?");
    }

    #[test]
    fn what_asks_is_told_from_what_is_stated() {
        for question in [
            "What did we say on Friday?",
            "what did i say on friday",
            "So where were we in March",
            "Have we met in May",
            "I wonder. When did I call Ann",
            "Remind me of what we agreed on Friday.",
            "Tell me about last week.",
            "Please list what I did yesterday.",
        ] {
            assert!(asks_something(question), "{question}");
        }
        for text in [
            "I feel tired today.",
            "Have a nice weekend!",
            "When I woke up today, it rained.",
            "My sister moves next weekend and I help her.",
            "",
        ] {
            assert!(!asks_something(text), "{text}");
        }
    }
}
