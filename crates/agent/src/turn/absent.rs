//! Sentences of an answer that say that something was not found or is not known, which need no evidence, and those that
//! say no more than the question (R0-14.8). Plain functions of texts.

use larder_text::words::is_stop_word;
use larder_tools::figures;

/// Words that negate.
const NEGATIONS: [&str; 15] = [
    "no", "not", "none", "nothing", "nobody", "cannot", "neither", "t", "kein", "keine", "keinen", "keiner",
    "nicht", "nichts", "niemand",
];
/// What begins words of finding and of knowing, which follow a negation.
const KNOWING: [&str; 33] = [
    "find",
    "found",
    "known",
    "know",
    "stated",
    "mention",
    "listed",
    "documented",
    "recorded",
    "determin",
    "confirm",
    "verif",
    "open",
    "reach",
    "read",
    "load",
    "access",
    "answered",
    "gefunden",
    "bekannt",
    "genannt",
    "erwähn",
    "angegeben",
    "belegt",
    "ermittel",
    "bestätig",
    "geöffnet",
    "erreich",
    "gelesen",
    "geladen",
    "abgerufen",
    "beantwort",
    "weiß",
];
/// What begins the words for a search and its sources, on either side of a negation.
const SOURCES: [&str; 22] = [
    "information",
    "document",
    "source",
    "search",
    "result",
    "hit",
    "match",
    "evidence",
    "record",
    "note",
    "page",
    "file",
    "memory",
    "data",
    "dokument",
    "quelle",
    "suche",
    "treffer",
    "ergebnis",
    "angabe",
    "seite",
    "datei",
];
/// Words that say it by themselves.
const UNKNOWN: [&str; 5] = ["unknown", "unbekannt", "unavailable", "unreachable", "unclear"];
/// What ends a part of a sentence that says something for itself.
const BREAKS: [&str; 6] = [" but ", " aber ", " sondern ", " – ", " — ", " - "];
/// Words that say that a thing is there or not.
const EXISTENCE: [&str; 6] = ["there", "exist", "exists", "gibt", "vorhanden", "existiert"];
/// Words of sentences that are about the question and its answer.
const FRAME: [&str; 49] = [
    "answer",
    "here",
    "question",
    "asked",
    "ask",
    "said",
    "told",
    "mentioned",
    "named",
    "wanted",
    "want",
    "wants",
    "request",
    "der",
    "die",
    "das",
    "dem",
    "den",
    "des",
    "ein",
    "eine",
    "einen",
    "und",
    "ist",
    "sind",
    "war",
    "hat",
    "haben",
    "sie",
    "ihr",
    "ihre",
    "nach",
    "von",
    "mit",
    "für",
    "auf",
    "nicht",
    "gefragt",
    "frage",
    "antwort",
    "hier",
    "dass",
    "auch",
    "oder",
    "isn",
    "aren",
    "wasn",
    "don",
    "please",
];

/// A sentence of an answer with what it cites.
pub(super) struct Cited<'a> {
    pub(super) sentence: &'a str,
    /// The ids in its markers.
    pub(super) ids: Vec<&'a str>,
}

/// The sentences that cite something.
pub(super) fn cited(answer: &str) -> Vec<Cited<'_>> {
    let mut found: Vec<Cited<'_>> = Vec::new();
    let mut from = 0;
    for (at, _) in answer.match_indices('[') {
        let Some(length) = answer[at..].find(']').filter(|_| at >= from) else { continue };
        let end = at + length + 1;
        let ids: Vec<&str> =
            answer[at + 1..end - 1].split([',', ';', ' ']).filter(|id| !id.is_empty()).collect();
        if answer[end..].starts_with('(') || !ids.iter().all(|id| is_id(id)) {
            continue;
        }
        let before = answer[from..at].trim_end().trim_end_matches(['.', '!', '?']);
        let sentence = sentences(before).last().unwrap_or_default();
        match found.last_mut().filter(|_| sentence.is_empty() && from > 0) {
            Some(last) => last.ids.extend(ids),
            None => found.push(Cited { sentence, ids }),
        }
        from = end;
    }
    found
}

fn is_id(id: &str) -> bool {
    let number = id.strip_prefix('p').unwrap_or(id).split('#').next().unwrap_or_default();
    id.contains('§') || !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// The sentences of a text, and its lines.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let is_end = |(at, char): &(usize, char)| {
            let after = &rest[at + char.len_utf8()..];
            *char == '\n' || matches!(char, '.' | '!' | '?' | ';') && after.starts_with(char::is_whitespace)
        };
        let end = rest.char_indices().find(is_end).map_or(rest.len(), |(at, char)| at + char.len_utf8());
        let (sentence, after) = rest.split_at(end);
        rest = after;
        (!sentence.is_empty()).then(|| sentence.trim())
    })
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// Whether a sentence says that something was not found or is not known, and no value that `asked` does not: the question,
/// and what failed.
pub(super) fn says_absent(sentence: &str, asked: &str) -> bool {
    let mut parts = vec![sentence];
    for mark in BREAKS {
        parts = parts.into_iter().flat_map(|part| part.split(mark)).collect();
    }
    let mut parts = parts.into_iter().flat_map(|part| part.split([',', ';', ':']));
    parts.any(|part| is_absence(part, asked)) && figures::unsupported(asked, sentence).is_empty()
}

fn is_absence(part: &str, asked: &str) -> bool {
    let words = words(part);
    if words.iter().any(|word| UNKNOWN.contains(&word.as_str())) {
        return true;
    }
    let Some(negation) = words.iter().position(|word| NEGATIONS.contains(&word.as_str())) else {
        return false;
    };
    let is_one_of = |word: &String, known: &[&str]| known.iter().any(|start| word.starts_with(start));
    let is_of_question = || {
        words.iter().any(|word| EXISTENCE.contains(&word.as_str())) && says_only_what_is_asked(part, asked)
    };
    words[negation + 1..].iter().any(|word| is_one_of(word, &KNOWING))
        || words.iter().any(|word| is_one_of(word, &SOURCES))
        || is_of_question()
}

/// Whether all words of a text that say something are words of the question.
pub(super) fn says_only_what_is_asked(text: &str, asked: &str) -> bool {
    let known = words(asked);
    let is_known = |word: &String| {
        let is_same = |known: &String| {
            known.chars().count() > 2
                && (word.starts_with(known.as_str()) || known.starts_with(word.as_str()))
        };
        word.chars().count() < 3
            || !word.starts_with(char::is_alphabetic)
            || is_stop_word(word)
            || [&NEGATIONS[..], &EXISTENCE, &FRAME].concat().contains(&word.as_str())
            || known.iter().any(is_same)
    };
    words(text).iter().all(is_known)
}

/// Whether an answer says nothing but that something was not found, or asks the person for something.
pub(super) fn is_only_absence(answer: &str, asked: &str) -> bool {
    let mut plain = answer.to_owned();
    for one in cited(answer) {
        for id in one.ids {
            plain = plain.replace(&format!("[{id}]"), "");
        }
    }
    let asks = |sentence: &str| {
        let words = words(sentence);
        let is_request = words.iter().any(|word| matches!(word.as_str(), "please" | "bitte"));
        (sentence.ends_with('?') || is_request) && figures::unsupported(asked, sentence).is_empty()
    };
    let said: Vec<&str> =
        sentences(&plain).filter(|sentence| sentence.contains(char::is_alphanumeric)).collect();
    said.iter().any(|sentence| says_absent(sentence, asked))
        && said.iter().all(|sentence| says_absent(sentence, asked) || asks(sentence))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_says_that_nothing_was_found_and_not_merely_a_negation() {
        let asked = "Is there a contract or an oar, and a boat under $500 at https://example.org/boat?";
        for sentence in [
            "There is no contract",
            "It isn't there",
            "Nothing was found about it",
            "No boat under $500 was found",
            "I searched the web, but could not find any",
            "The documents do not say what it costs",
            "The price is not known",
            "The page https://example.org/boat could not be opened",
            "Dazu ist nichts bekannt",
            "Der Preis wird nicht genannt",
            "The price is unknown",
        ] {
            assert!(says_absent(sentence, asked), "{sentence}");
        }
        for sentence in [
            "It is not blue, it costs a lot",
            "It is not blue, according to the documents",
            "Nothing is better than the Dell",
            "There is no better boat than the Dell",
            "The boat is red",
            "The price was not found, it is $450",
            "Es ist nicht blau",
        ] {
            assert!(!says_absent(sentence, asked), "{sentence}");
        }
    }

    #[test]
    fn a_sentence_says_only_what_is_asked_or_more() {
        let asked = "What is the capital of France? I have 3 boats.";
        for sentence in
            ["You asked about the capital of France", "You have 3 boats", "Here is the answer", ""]
        {
            assert!(says_only_what_is_asked(sentence, asked), "{sentence}");
        }
        for sentence in ["The capital of France is Paris", "The boats are red"] {
            assert!(!says_only_what_is_asked(sentence, asked), "{sentence}");
        }
    }

    #[test]
    fn sentences_are_found_with_what_they_cite() {
        let answer =
            "It is at example.org for $1.50. [1] No oar was found [p2, context.md§0] [3]. See [a](b).";
        let found: Vec<(&str, usize)> =
            cited(answer).iter().map(|one| (one.sentence, one.ids.len())).collect();
        assert_eq!(found, [("It is at example.org for $1.50", 1), ("No oar was found", 3)]);
    }

    #[test]
    fn an_answer_that_says_only_what_was_not_found_states_nothing() {
        let asked = "Open https://example.org/boat\nweb.visit: 404 not found";
        for answer in [
            "The page could not be opened: 404. [context.md§0]",
            "The page could not be opened. [context.md§0] Please check the address.",
        ] {
            assert!(is_only_absence(answer, asked), "{answer}");
        }
        for answer in ["Here is the answer. [context.md§0]", "The boat is red. No page was found. [1]"] {
            assert!(!is_only_absence(answer, asked), "{answer}");
        }
    }
}
