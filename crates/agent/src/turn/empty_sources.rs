//! Sources that hold nothing, such as a search without hits and a section that says that nothing is known: citing one
//! supports no answer but one that something is absent (R0-14.8).

use larder_engine::executor::ResolvedCitation;
use larder_vault::context::{CallStatus, GatheredContext, ToolLog};
use serde_json::Value;

use super::absent;
use super::documents::CONTEXT;
use super::evidence;
use super::phase::PhaseContext;

/// How a sentence begins that says that there is nothing.
const NOTHING: [&str; 9] = [
    "nothing is known",
    "nothing known",
    "nothing was found",
    "nothing found",
    "nichts ist bekannt",
    "nichts bekannt",
    "nichts gefunden",
    "es ist nichts bekannt",
    "es wurde nichts gefunden",
];
/// Sentences that say so.
const ALONE: [&str; 6] = ["none", "nothing", "nothing relevant", "not found", "not to be read", "nichts"];
/// What there is none of, after `no` or `keine`.
const KINDS: [&str; 13] = [
    "result",
    "results",
    "hit",
    "hits",
    "match",
    "matches",
    "document",
    "documents",
    "information",
    "treffer",
    "ergebnisse",
    "informationen",
    "dokumente",
];
/// What follows then, if anything does, after a verb such as `were`.
const FOUND: [&str; 16] = [
    "found",
    "known",
    "available",
    "match",
    "matches",
    "matched",
    "contain",
    "contains",
    "for",
    "about",
    "on",
    "yet",
    "gefunden",
    "bekannt",
    "vorhanden",
    "zu",
];
const VERBS: [&str; 6] = ["is", "are", "was", "were", "sind", "wurden"];

/// Whether a text is empty, JSON without content, or says in each sentence that there is nothing.
pub(super) fn says_nothing(text: &str) -> bool {
    let text = text.trim();
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        return holds_nothing(&value);
    }
    let sentences = text
        .split_terminator(['.', '!', ';', '\n'])
        .map(|sentence| sentence.trim_matches(|char: char| !char.is_alphanumeric()).to_lowercase());
    let mut sentences = sentences.filter(|sentence| !sentence.is_empty());
    sentences.all(|sentence| {
        ALONE.contains(&sentence.as_str())
            || NOTHING.iter().any(|words| sentence.starts_with(words))
            || is_none_of_a_kind(&sentence)
    })
}

/// Whether a sentence is like `no results were found`.
fn is_none_of_a_kind(sentence: &str) -> bool {
    let mut words = sentence.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty());
    let begins = matches!(words.next(), Some("no" | "keine"));
    let mut words = words.skip_while(|word| *word == "relevant");
    let is_kind = words.next().is_some_and(|kind| KINDS.contains(&kind));
    let next = words.find(|word| !VERBS.contains(word));
    begins && is_kind && next.is_none_or(|word| FOUND.contains(&word))
}

/// Whether JSON lists nothing: what is next to an empty list are counts only.
fn holds_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => says_nothing(text),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => {
            let is_list = |value: &Value| matches!(value, Value::Array(_) | Value::Object(_) | Value::Null);
            let is_zero = |value: &Value| value.as_f64() == Some(0.0);
            fields.is_empty()
                || fields.values().any(is_list)
                    && fields.values().all(|value| is_zero(value) || holds_nothing(value))
        }
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether an answer cites a source wherever it does for something that is absent.
fn says_what_is_absent(answer: &str, source: &str, asked: &str) -> bool {
    let is_source = |id: &&str| {
        let id = id.split('#').next().unwrap_or_default();
        id == source || id.strip_prefix('p') == Some(source)
    };
    let cited = absent::cited(answer);
    let mut citing = cited.iter().filter(|one| one.ids.iter().any(&is_source)).peekable();
    citing.peek().is_some() && citing.all(|one| absent::says_absent(one.sentence, asked))
}

/// The question, and what calls said that failed: what a sentence may repeat that says what is absent.
pub(super) fn asked(cx: &PhaseContext<'_>) -> String {
    let results = evidence::results(&cx.draft).into_iter();
    let failed = results.filter(|result| result.status != CallStatus::Success);
    let failed: String = failed.map(|result| format!("{}\n{}\n", result.call, result.content)).collect();
    let typed = cx.document.asked().unwrap_or_default();
    format!("{typed}\n{}\n{}\n{failed}", cx.query(), cx.clock.last())
}

/// What an answer cites although it holds nothing, as the answer writes it, but for what it says is absent. `documents`
/// are the texts of what it may cite, by name.
pub(super) fn cited(
    cx: &PhaseContext<'_>,
    answer: &str,
    citations: &[ResolvedCitation],
    documents: &[(String, std::sync::Arc<str>)],
) -> Vec<String> {
    let is_empty = |citation: &&ResolvedCitation| match citation.part.strip_prefix(CONTEXT) {
        Some("§2") => is_gathering_empty(cx),
        Some("§4") => are_calls_empty(cx),
        Some(_) => false,
        None if citation.source == cx.draft.place.tool_results().as_str() => are_calls_empty(cx),
        None => documents.iter().any(|(name, text)| *name == citation.source && says_nothing(text)),
    };
    let written = |part: &str| {
        let number = part.strip_prefix('p').filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        number.unwrap_or(part).to_owned()
    };
    let empty = citations.iter().filter(is_empty).map(|citation| written(&citation.part));
    let asked = asked(cx);
    empty.filter(|source| !says_what_is_absent(answer, source, &asked)).collect()
}

fn is_gathering_empty(cx: &PhaseContext<'_>) -> bool {
    cx.document.newest::<GatheredContext>().is_none_or(|gathered| {
        let GatheredContext { preferences, prior_turns, research, memory, references, .. } = &gathered;
        preferences.is_empty()
            && prior_turns.is_empty()
            && research.is_empty()
            && memory.is_empty()
            && references.is_empty()
            && says_nothing(&gathered.information)
    })
}

fn are_calls_empty(cx: &PhaseContext<'_>) -> bool {
    let has_claims = cx.document.newest::<ToolLog>().is_some_and(|log| !log.claims.is_empty());
    let mut results = evidence::results(&cx.draft).into_iter();
    !has_claims
        && !results.any(|result| result.status == CallStatus::Success && !says_nothing(&result.content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_nothing_is_evidence_for_what_is_absent() {
        for answer in ["I cannot do it: there is no contract. [1] Please send it.", "It isn't there [p1, 2]."]
        {
            assert!(says_what_is_absent(answer, "1", "Is there an oar? Send me the contract."), "{answer}");
        }
        for answer in [
            "It is red. [1]",
            "There is no oar. [1] The boat is red. [1]",
            "There is no oar. [2]",
            "It is not red. [1]",
        ] {
            assert!(!says_what_is_absent(answer, "1", "Is there an oar? Send me the contract."), "{answer}");
        }
    }

    #[test]
    fn what_says_that_there_is_nothing_holds_nothing() {
        for text in [
            "",
            " \n",
            "[]",
            "{}",
            "null",
            "\"\"",
            "{\"results\": [], \"total\": 0}",
            "Nothing is known.",
            "Nothing is known yet about Acme Server.",
            "(nothing)",
            "No results found for \"boat\".",
            "- None.\n",
            "Keine Treffer.",
            "Nothing was found. No document contains these words.",
        ] {
            assert!(says_nothing(text), "{text}");
        }
        for text in [
            "Nothing is known of Jupiter's moons. Turn 1 answered the same question for Saturn.",
            "None of the boats is for sale.",
            "Nothing in the box fits.",
            "No returns are accepted.",
            "No documents are required for entry.",
            "{\"in_stock\": false, \"price\": 0}",
            "{\"query\": \"boat\", \"results\": [1]}",
            "0",
            "[0]",
        ] {
            assert!(!says_nothing(text), "{text}");
        }
    }
}
