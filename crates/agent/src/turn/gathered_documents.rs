//! The candidates of retrieval as documents for the recipes of phase 2 (R1-10.6, R1-10.9).

use std::sync::Arc;

use larder_core::pack::Slice;
use larder_engine::inputs::InputDocument;
use larder_retrieval::render::{block, line};
use larder_retrieval::{
    Candidates, FactCandidate, LinkExpansion, LinkedDocument, PassageCandidate, PreferenceCandidate,
    ResearchCandidate, TurnCandidate,
};
use larder_text::hash::ContentHash;
use larder_vault::layout::UserPlace;

/// The inputs of the RETRIEVAL recipe by their names (R1-10.6): `page`, `turn_index`, `cached_intel`,
/// `research_hits`, `strategy_patterns`, `preferences` (with facts), `passages`. Empty ones are left out.
pub fn candidates(found: &Candidates, place: &UserPlace) -> Vec<InputDocument> {
    let mut documents = Vec::new();
    documents.extend(page(found));
    let turns = found.turn_index.iter().map(TurnCandidate::line);
    documents.extend(list("turn_index", turns.collect()));
    documents.extend(research("cached_intel", &found.cached_intel));
    documents.extend(research("research_hits", &found.research_hits));
    let strategies = found.strategy_patterns.iter().map(|pattern| format!("- {}", line(pattern)));
    documents.extend(list("strategy_patterns", strategies.collect()));
    documents.extend(preferences(found, place));
    documents.extend(found.passages.iter().filter(|passage| !is_on_page(found, passage)).map(passage));
    documents
}

/// Whether the captured page shows a passage already.
fn is_on_page(found: &Candidates, passage: &PassageCandidate) -> bool {
    let Some(page) = &found.page else { return false };
    let whole = page.small_page.as_ref().map(|small| (&small.document, &small.text));
    whole
        .into_iter()
        .chain([(&page.document, &page.text)])
        .any(|(document, text)| *document == passage.document && text.contains(passage.text.trim()))
}

/// The captured page that the query refers to, if one was found.
fn page(found: &Candidates) -> Option<InputDocument> {
    found.page.as_ref().map(|page| InputDocument::whole("page", page.document.as_str(), page.to_text()))
}

/// The input `preferences` of the SYNTHESIS recipe (R1-10.9); `None` if nothing is known.
///
/// Each list begins with the path of its records, and each fact ends with its block (R1-1.14).
pub fn preferences(found: &Candidates, place: &UserPlace) -> Option<InputDocument> {
    let of_kind = |title: &str, kind: &str, lines: Vec<String>| {
        let heading = (!lines.is_empty()).then(|| format!("{title} (path: {}):", place.memory(kind)));
        heading.into_iter().chain(lines).collect::<Vec<_>>()
    };
    let preferences = found.preferences.iter().map(PreferenceCandidate::line).collect();
    let (published, own): (Vec<_>, Vec<_>) = found.facts.iter().partition(|fact| fact.published.is_some());
    let facts = own.into_iter().map(FactCandidate::line).collect();
    let mut lines = of_kind("Preferences", "preferences", preferences);
    lines.extend(of_kind("Notable facts", "facts", facts));
    if !published.is_empty() {
        lines.push("Facts that other users published:".to_owned());
        lines.extend(published.into_iter().map(FactCandidate::line));
    }
    list("preferences", lines)
}

/// The linked documents, as the input `linked_content`. Those that were named are more relevant than those they link to.
pub fn linked(followed: &LinkExpansion) -> Vec<InputDocument> {
    let document = |followed: &LinkedDocument| {
        let whole = InputDocument::whole("linked_content", followed.path.as_str(), block(&followed.text));
        InputDocument { relevance: 1.0 / f64::from(followed.depth.max(1)), ..whole }
    };
    followed.documents.iter().map(document).collect()
}

/// One document of lines, or `None` without lines.
fn list(input: &str, lines: Vec<String>) -> Option<InputDocument> {
    (!lines.is_empty()).then(|| InputDocument::whole(input, input, block(&(lines.join("\n") + "\n"))))
}

/// One document for each, so that the packer can omit the weakest.
fn research(input: &str, candidates: &[ResearchCandidate]) -> impl Iterator<Item = InputDocument> {
    let best = candidates.first().map_or(1.0, |best| best.score.max(f64::MIN_POSITIVE));
    candidates.iter().map(move |candidate| {
        let document = InputDocument::whole(input, candidate.document.as_str(), block(&candidate.text()));
        InputDocument { relevance: candidate.score / best, ..document }
    })
}

/// The passage as a slice of its document, so that omitted text can be read, unless it had to be escaped as data and
/// therefore differs from the document's bytes.
fn passage(passage: &PassageCandidate) -> InputDocument {
    let text = block(&passage.text);
    let own = text == passage.text;
    let slice = own.then(|| Slice {
        document: ContentHash::new(passage.whole.as_bytes()),
        text: Arc::clone(&passage.whole),
        bytes: passage.bytes.clone(),
        lines: passage.lines,
    });
    InputDocument {
        input: "passages".to_owned(),
        name: passage.document.to_string(),
        text: text.into(),
        slice,
        relevance: passage.score,
        picture: None,
    }
}
