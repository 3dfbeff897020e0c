//! What retrieval found, as the documents that the recipes of phases 2 and 5 are given (R1-10.6, R1-10.9).

use std::sync::Arc;

use larder_core::pack::Slice;
use larder_engine::inputs::Document;
use larder_retrieval::render::{block, line};
use larder_retrieval::{
    Candidates, FactLine, LinkExpansion, LinkedDocument, Passage, PreferenceLine, ResearchCandidate,
    TurnCandidate,
};
use larder_text::hash::ContentHash;

/// The inputs of the RETRIEVAL recipe by their names (R1-10.6): `page`, `turn_index`, `cached_intel`,
/// `research_hits`, `strategy_patterns`, `preferences` (with facts), `passages`. What was not found is left out.
pub fn candidates(found: &Candidates) -> Vec<Document> {
    let mut documents = Vec::new();
    documents.extend(page(found));
    let turns = found.turn_index.iter().map(TurnCandidate::line);
    documents.extend(list("turn_index", turns.collect()));
    documents.extend(research("cached_intel", &found.cached_intel));
    documents.extend(research("research_hits", &found.research_hits));
    let strategies = found.strategy_patterns.iter().map(|pattern| format!("- {}", line(pattern)));
    documents.extend(list("strategy_patterns", strategies.collect()));
    documents.extend(preferences(found));
    documents.extend(found.passages.iter().map(passage));
    documents
}

/// The captured page that the query refers to, if one was found.
pub fn page(found: &Candidates) -> Option<Document> {
    found.page.as_ref().map(|page| Document::whole("page", page.document.as_str(), page.to_text()))
}

/// The input `preferences` of the SYNTHESIS recipe (R1-10.9); none if nothing is known.
pub fn preferences(found: &Candidates) -> Option<Document> {
    let preferences = found.preferences.iter().map(PreferenceLine::line);
    let facts = found.facts.iter().map(FactLine::line);
    let heading = (!found.facts.is_empty()).then(|| "Notable facts:".to_owned());
    list("preferences", preferences.chain(heading).chain(facts).collect())
}

/// The documents that links led to, as the input `linked_content`; those that were named count for more than those
/// that they link to.
pub fn linked(followed: &LinkExpansion) -> Vec<Document> {
    let document = |followed: &LinkedDocument| {
        let whole = Document::whole("linked_content", followed.path.as_str(), block(&followed.text));
        Document { relevance: 1.0 / f64::from(followed.depth.max(1)), ..whole }
    };
    followed.documents.iter().map(document).collect()
}

/// One document of lines, unless there are none.
fn list(input: &str, lines: Vec<String>) -> Option<Document> {
    (!lines.is_empty()).then(|| Document::whole(input, input, block(&(lines.join("\n") + "\n"))))
}

/// A document for each, so that the packer can let the weakest go.
fn research(input: &str, candidates: &[ResearchCandidate]) -> impl Iterator<Item = Document> {
    let best = candidates.first().map_or(1.0, |best| best.score.max(f64::MIN_POSITIVE));
    candidates.iter().map(move |candidate| {
        let document = Document::whole(input, candidate.document.as_str(), block(&candidate.text()));
        Document { relevance: candidate.score / best, ..document }
    })
}

/// The passage as a stretch of its document, so that what is left of it can be had again. Its text is escaped as data
/// only where it has to be: else it is the document's own bytes.
fn passage(passage: &Passage) -> Document {
    let text = block(&passage.text);
    let own = text == passage.text;
    let slice = own.then(|| Slice {
        document: ContentHash::new(passage.whole.as_bytes()),
        text: Arc::clone(&passage.whole),
        bytes: passage.bytes.clone(),
        lines: passage.lines,
    });
    Document {
        input: "passages".to_owned(),
        name: passage.document.to_string(),
        text: text.into(),
        slice,
        relevance: passage.score,
    }
}
