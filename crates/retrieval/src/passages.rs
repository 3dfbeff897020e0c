//! Passages of documents that share words with a query, or that those refer to, so that a model can answer from them
//! or follow up. Knows the text of documents, not their form or how they were found.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use larder_condense::sections::Sections;

use super::extract::lines_of;
use super::pool::{MAX_DOCUMENT, Pool, Read};
use super::ranking::day;
use super::records::{Stretch, divide};
use super::trace::Trace;
use super::{Passage, Retrieval, RetrievalError, SearchRequest, TurnCandidate};
use crate::index::{Gathered, GatheredRecord, Index, LeftOut, Query, Reached, Record, ids};

/// A stretch of one of the documents.
struct Place<'t> {
    /// The document's position.
    document: usize,
    stretch: Stretch<'t>,
    text: &'t str,
}

pub(super) fn find(
    retrieval: &Retrieval<'_>,
    request: &SearchRequest<'_>,
    turns: &[TurnCandidate],
    trace: &mut Trace,
) -> Result<Vec<Passage>, RetrievalError> {
    let mut pool = Pool::new(retrieval, request, turns, trace)?;
    let places = all_places(&pool.documents);
    let index = index(&places, &pool.documents);
    let gathered = gather(retrieval, request.query, &index, &places);
    let undefined: BTreeSet<String> = match retrieval.limits.links {
        Some(_) => {
            let seeds = gathered.seeds().flat_map(|record| ids(places[record].text));
            seeds.filter(|id| !index.defines(id)).map(str::to_owned).collect()
        }
        None => BTreeSet::new(),
    };
    if undefined.is_empty() {
        return Ok(passages(retrieval, &pool.documents, &places, &gathered, trace));
    }
    pool.add_containing(&undefined, trace)?;
    let places = all_places(&pool.documents);
    let gathered = gather(retrieval, request.query, &self::index(&places, &pool.documents), &places);
    Ok(passages(retrieval, &pool.documents, &places, &gathered, trace))
}

fn gather(retrieval: &Retrieval<'_>, query: &str, index: &Index, places: &[Place<'_>]) -> Gathered {
    let query = Query { text: query, today: day(retrieval.now) };
    let tokens = |record: usize| retrieval.counter.count(places[record].text);
    index.gather(&query, &retrieval.limits, |record| places[record].text, tokens)
}

/// What was gathered as passages, those that answer best first. Stretches that follow one another are one passage.
fn passages(
    retrieval: &Retrieval<'_>,
    documents: &[Read],
    places: &[Place<'_>],
    gathered: &Gathered,
    trace: &mut Trace,
) -> Vec<Passage> {
    record(documents, places, gathered, trace);
    let passage = |Joined { document, bytes, worth, .. }| {
        let Read { path, text, .. } = &documents[document];
        let shown = &text[bytes.clone()];
        Passage {
            document: path.clone(),
            lines: lines_of(text, &bytes),
            text: shown.to_owned(),
            score: worth,
            tokens: retrieval.counter.count(shown),
            whole: Arc::clone(text),
            bytes,
        }
    };
    joined(places, &gathered.records).into_iter().map(passage).collect()
}

/// Records what was gathered and what was not, with the reason.
fn record(documents: &[Read], places: &[Place<'_>], gathered: &Gathered, trace: &mut Trace) {
    let path = |record: usize| documents[places[record].document].path.as_str();
    for found in &gathered.records {
        let why = match found.reached {
            Reached::Hit => "it holds words of the query".to_owned(),
            Reached::ReferredToBy(from) => format!("{} refers to it", path(from)),
            Reached::RefersTo(from) => format!("it refers to {}", path(from)),
            Reached::SharesWith(from) => format!("it shares with {} what the query asks for", path(from)),
        };
        trace.used("passage", path(found.record), found.worth, found.tokens, why);
    }
    for (record, left_out) in &gathered.left_out {
        let why = match left_out {
            LeftOut::Budget => "the tokens for passages are used up",
            LeftOut::LinkBudget => "the tokens for linked passages are used up",
            LeftOut::DocumentBudget => "the tokens for linked passages of one document are used up",
        };
        trace.unused("passage", path(*record), 0.0, why);
    }
}

fn all_places(documents: &[Read]) -> Vec<Place<'_>> {
    documents.iter().enumerate().flat_map(|(at, document)| places(at, &document.text)).collect()
}

/// The stretches of a document behind its frontmatter.
fn places(document: usize, text: &str) -> impl Iterator<Item = Place<'_>> {
    let start = Sections::parse(text).frontmatter.end;
    let end = text.floor_char_boundary(MAX_DOCUMENT.max(start));
    divide(&text[start..end]).into_iter().filter_map(move |stretch| {
        let bytes = stretch.bytes.start + start..stretch.bytes.end + start;
        let own = &text[bytes.clone()];
        (!own.trim().is_empty()).then_some(Place {
            document,
            stretch: Stretch { bytes, ..stretch },
            text: own,
        })
    })
}

fn index(places: &[Place<'_>], documents: &[Read]) -> Index {
    let mut index = Index::default();
    let mut before: Option<&Place<'_>> = None;
    for place in places {
        // Entries of a list do not continue one another.
        let apart = before.is_none_or(|before| {
            before.document != place.document || before.stretch.id.is_some() || place.stretch.id.is_some()
        });
        if apart {
            index.start_section();
        }
        index.add(&Record {
            text: place.text,
            author: place.stretch.author,
            day: place.stretch.day.or_else(|| documents[place.document].at.and_then(day)),
            document: u32::try_from(place.document).unwrap_or(u32::MAX),
            id: place.stretch.id,
        });
        before = Some(place);
    }
    index
}

/// Gathered stretches of a document that follow one another.
struct Joined {
    /// The rank of the best of them.
    rank: usize,
    worth: f64,
    document: usize,
    bytes: Range<usize>,
    /// The last of them.
    last: usize,
}

/// What was gathered, joined to passages in the order of the best stretch of each.
fn joined(places: &[Place<'_>], records: &[GatheredRecord]) -> Vec<Joined> {
    let mut ranks: Vec<usize> = (0..records.len()).collect();
    ranks.sort_by_key(|&rank| records[rank].record);
    let mut joined: Vec<Joined> = Vec::new();
    for rank in ranks {
        let GatheredRecord { record, worth, .. } = records[rank];
        let Place { document, stretch, text } = &places[record];
        let (start, end) = (stretch.bytes.start, stretch.bytes.start + text.trim_end().len());
        let follows = |before: &&mut Joined| {
            before.last + 1 == record
                && before.document == *document
                && places[before.last].stretch.bytes.end == start
        };
        match joined.last_mut().filter(follows) {
            Some(before) => {
                (before.rank, before.worth) = (before.rank.min(rank), before.worth.max(worth));
                (before.bytes.end, before.last) = (end, record);
            }
            None => {
                joined.push(Joined { rank, worth, document: *document, bytes: start..end, last: record });
            }
        }
    }
    joined.sort_by_key(|passage| passage.rank);
    joined
}
