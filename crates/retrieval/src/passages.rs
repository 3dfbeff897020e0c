//! Passages of documents that hold what a query asks for, so that a model can answer from them or follow up. Reads the
//! few documents that the index finds; knows their text, not their form.

use std::collections::BTreeSet;
use std::sync::Arc;

use larder_condense::sections::Sections;
use larder_store::DocumentKind;
use larder_vault::{Timestamp, VaultPath};

use super::extract::{lines_of, stretches};
use super::ranking::{Ranked, day, order, scores};
use super::trace::Trace;
use super::{Passage, Retrieval, RetrievalError, SearchRequest, TurnCandidate};

/// Documents that are read: `context.md` of the best turns …
const TURNS: usize = 6;
/// … and others that hold words of the query.
const OTHERS: u64 = 8;
/// Passages that are offered …
const MOST: usize = 12;
/// … and their tokens.
const TOKENS: usize = 1_600;
/// A document is searched up to here, in bytes: larger ones are condensed records of tools, which links lead to.
const LARGEST: usize = 256 * 1024;

/// A document that was read.
struct Read {
    path: VaultPath,
    text: Arc<str>,
    at: Option<Timestamp>,
}

pub(super) async fn find(
    retrieval: &Retrieval<'_>,
    request: &SearchRequest<'_>,
    turns: &[TurnCandidate],
    trace: &mut Trace,
) -> Result<Vec<Passage>, RetrievalError> {
    let mut documents = Vec::new();
    for (path, at) in wanted(retrieval, request, turns)? {
        match retrieval.documents.read_text(&path).await {
            Ok(Some(text)) => documents.push(Read { path, text: text.into(), at }),
            Ok(None) => trace.unused("passage", path.as_str(), 0.0, "the index names it and it is not there"),
            Err(error) => trace.unused("passage", path.as_str(), 0.0, error.to_string()),
        }
    }
    Ok(best(retrieval, request.query, &documents, trace))
}

/// The documents to read, each once, and when they were made.
fn wanted(
    retrieval: &Retrieval<'_>,
    request: &SearchRequest<'_>,
    turns: &[TurnCandidate],
) -> Result<Vec<(VaultPath, Option<Timestamp>)>, RetrievalError> {
    let mut wanted: Vec<_> =
        turns.iter().take(TURNS).map(|turn| (turn.context.clone(), Some(turn.created_at))).collect();
    let place = retrieval.documents.place();
    // These are ranked line by line, with their own limit.
    let apart = [place.memory("facts"), place.memory("preferences"), place.facts(), place.preferences()];
    let kinds = [DocumentKind::Page, DocumentKind::Memory, DocumentKind::Other];
    for hit in retrieval.search(request.query, &kinds, OTHERS)? {
        let later = hit.turn.is_some_and(|turn| turn >= request.before);
        if !later && !apart.contains(&hit.document) {
            wanted.push((hit.document, None));
        }
    }
    let mut seen = BTreeSet::new();
    wanted.retain(|(path, _)| seen.insert(path.clone()));
    Ok(wanted)
}

fn best(retrieval: &Retrieval<'_>, query: &str, documents: &[Read], trace: &mut Trace) -> Vec<Passage> {
    let mut places = Vec::new();
    for (at, document) in documents.iter().enumerate() {
        let text = &document.text;
        let start = Sections::parse(text).frontmatter.end;
        let end = text.floor_char_boundary(LARGEST.max(start));
        let within = stretches(&text[start..end]).into_iter();
        places.extend(within.map(|range| (at, range.start + start..range.end + start)));
    }
    let ranked = places.iter().enumerate().map(|(number, (at, range))| Ranked {
        text: &documents[*at].text[range.clone()],
        day: documents[*at].at.and_then(day),
        apart: number == 0 || places[number - 1].0 != *at,
    });
    let scores = scores(query, retrieval.now, ranked);
    let order = order(&scores);
    let top = order.first().map_or(1.0, |&first| scores[first]);
    let (mut passages, mut left) = (Vec::new(), TOKENS);
    for number in order {
        let (at, bytes) = &places[number];
        let (document, score) = (&documents[*at], scores[number] / top);
        let text = &document.text[bytes.clone()];
        if passages.len() == MOST {
            trace.unused("passage", document.path.as_str(), score, "12 passages rank above it");
            continue;
        }
        let Some(tokens) = retrieval.counter.count_up_to(text, left) else {
            trace.unused("passage", document.path.as_str(), score, "the tokens for passages are used up");
            continue;
        };
        left -= tokens;
        trace.used("passage", document.path.as_str(), score, tokens, "it holds words of the query");
        passages.push(Passage {
            document: document.path.clone(),
            bytes: bytes.clone(),
            lines: lines_of(&document.text, bytes),
            text: text.to_owned(),
            score,
            tokens,
            whole: Arc::clone(&document.text),
        });
    }
    passages
}
