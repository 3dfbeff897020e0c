//! Passages of documents that share words with a query, or that those refer to, so that a model can answer from them
//! or follow up. Knows the text of documents, not their form or how they were found.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use larder_text::sections::Sections;
use larder_vault::{VaultPath, turn_number};

use super::extract::{GAP, lines_of, merged};
use super::pool::{DocumentPool, MAX_DOCUMENT, ReadDocument};
use super::ranking::day;
use super::records::{RecordStretch, divide};
use super::trace::Trace;
use super::{PassageCandidate, Retrieval, RetrievalError, SearchRequest, TurnCandidate};
use crate::index::{Gathered, GatheredRecord, Index, Limits, Omission, Query, Reached, Record, ids};

/// Bytes from which on a stretch that several documents have is shown once.
const REPEATED: usize = 64;

/// A stretch of one of the documents.
struct PlacedStretch<'t> {
    /// The document's position.
    document: usize,
    stretch: RecordStretch<'t>,
    text: &'t str,
}

pub(super) async fn find(
    retrieval: &Retrieval<'_>,
    request: &SearchRequest<'_>,
    turns: &[TurnCandidate],
    trace: &mut Trace,
) -> Result<Vec<PassageCandidate>, RetrievalError> {
    let mut pool = DocumentPool::new(retrieval, request, turns, trace)?;
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

/// `text` in at most `max` tokens: its beginning, and the stretches that bear on `query`, in the order of the text, with
/// gaps marked and a last line that says how much is shown. `None` if nothing bears on the query.
pub(super) fn bearing_on(
    retrieval: &Retrieval<'_>,
    query: &str,
    path: &VaultPath,
    text: &str,
    max: usize,
) -> Option<String> {
    let documents = [ReadDocument { path: path.clone(), text: text.into(), at: None }];
    let places = all_places(&documents);
    let limits = Limits { tokens: max * 2 / 3, links: None };
    let tokens = |record: usize| retrieval.counter.count(places[record].text);
    let query = Query { text: query, today: day(retrieval.now) };
    let gathered = index(&places, &documents).gather(&query, &limits, |record| places[record].text, tokens);
    let found: Vec<Range<usize>> =
        joined(&places, &gathered.records).into_iter().map(|joined| joined.bytes).collect();
    if found.is_empty() {
        return None;
    }
    let searched = match text.len() > MAX_DOCUMENT {
        true => format!(" in its first {} KiB", MAX_DOCUMENT >> 10),
        false => String::new(),
    };
    // The room of the beginning shrinks until all of it fits, since joined texts may count for more than their sum.
    let mut room = max.saturating_sub(gathered.tokens);
    loop {
        let prefix = retrieval.counter.prefix(text, room);
        let beginning = 0..prefix.rfind('\n').unwrap_or(0);
        let kept =
            merged(found.iter().cloned().chain([beginning]).filter(|range| !range.is_empty()).collect());
        let shown: usize = kept.iter().map(ExactSizeIterator::len).sum();
        let pieces: Vec<&str> = kept.into_iter().map(|range| &text[range]).collect();
        let text = format!(
            "{}{GAP}[parts: {shown} of {} bytes are shown, the beginning and what bears on the query{searched}; the rest is in {path}]",
            pieces.join(GAP),
            text.len(),
        );
        if retrieval.counter.count_up_to(&text, max).is_some() {
            return Some(text);
        }
        if room == 0 {
            return None;
        }
        room = room.saturating_sub(16);
    }
}

fn gather(retrieval: &Retrieval<'_>, query: &str, index: &Index, places: &[PlacedStretch<'_>]) -> Gathered {
    let query = Query { text: query, today: day(retrieval.now) };
    let tokens = |record: usize| retrieval.counter.count(places[record].text);
    index.gather(&query, &retrieval.limits, |record| places[record].text, tokens)
}

/// What was gathered as passages, those that answer best first. Stretches that follow one another are one passage.
fn passages(
    retrieval: &Retrieval<'_>,
    documents: &[ReadDocument],
    places: &[PlacedStretch<'_>],
    gathered: &Gathered,
    trace: &mut Trace,
) -> Vec<PassageCandidate> {
    let joined = joined(places, &gathered.records);
    record(documents, places, gathered, &joined, trace);
    let passage = |Joined { document, bytes, worth, .. }| {
        let ReadDocument { path, text, .. } = &documents[document];
        let shown = &text[bytes.clone()];
        PassageCandidate {
            document: path.clone(),
            lines: lines_of(text, &bytes),
            text: shown.to_owned(),
            score: worth,
            tokens: retrieval.counter.count(shown),
            whole: Arc::clone(text),
            bytes,
        }
    };
    joined.into_iter().map(passage).collect()
}

/// Records each passage, and each document of which something was left out, with the reason.
fn record(
    documents: &[ReadDocument],
    places: &[PlacedStretch<'_>],
    gathered: &Gathered,
    joined: &[Joined],
    trace: &mut Trace,
) {
    let path = |record: usize| documents[places[record].document].path.as_str();
    for passage in joined {
        let why = match gathered.records[passage.rank].reached {
            Reached::Hit => "it holds words of the query".to_owned(),
            Reached::ReferredToBy(from) => format!("{} refers to it", path(from)),
            Reached::RefersTo(from) => format!("it refers to {}", path(from)),
            Reached::SharesWith(from) => format!("it shares with {} what the query asks for", path(from)),
        };
        trace.used("passage", path(passage.last), passage.worth, passage.tokens, why);
    }
    let mut recorded = BTreeSet::new();
    for (record, left_out) in &gathered.left_out {
        if !recorded.insert((places[*record].document, *left_out)) {
            continue;
        }
        let why = match left_out {
            Omission::Budget => "the tokens for passages are used up",
            Omission::LinkBudget => "the tokens for linked passages are used up",
            Omission::DocumentBudget => "the tokens for linked passages of one document are used up",
        };
        trace.unused("passage", path(*record), 0.0, why);
    }
}

/// The stretches of all documents. What several captures and results have word for word, because a page was visited again,
/// is that of the newest; so is what several turns gathered or answered.
fn all_places(documents: &[ReadDocument]) -> Vec<PlacedStretch<'_>> {
    let mut all: Vec<PlacedStretch<'_>> =
        documents.iter().enumerate().flat_map(|(at, document)| places(at, &document.text)).collect();
    let mut newest = BTreeMap::new();
    for place in &all {
        let Some(repeated) = repeated(documents, place) else { continue };
        let holder = newest.entry(repeated).or_insert(place.document);
        if documents[place.document].at > documents[*holder].at {
            *holder = place.document;
        }
    }
    // What one folder repeats stays, since a passage without it would have gaps.
    let folder = |document: usize| documents[document].path.folder();
    all.retain(|place| {
        let holder = repeated(documents, place).and_then(|repeated| newest.get(&repeated));
        holder.is_none_or(|holder| folder(*holder) == folder(place.document))
    });
    all
}

/// What a stretch repeats if another document of its kind has it too.
fn repeated<'t>(documents: &[ReadDocument], place: &PlacedStretch<'t>) -> Option<(RepeatingKind, &'t str)> {
    let kind = RepeatingKind::of(&documents[place.document].path)?;
    (place.text.len() >= REPEATED).then(|| (kind, place.text.trim()))
}

/// The kinds of documents that repeat each other, turn by turn. What a user attached is none: an answer that repeats it is
/// no source of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RepeatingKind {
    /// What a tool returned.
    Page,
    /// What was gathered and answered.
    Turn,
}

impl RepeatingKind {
    fn of(path: &VaultPath) -> Option<Self> {
        if path.as_str().contains("/webpage_cache/") || path.name() == "toolresults.md" {
            return Some(Self::Page);
        }
        let is_of_turn = path.folder().split('/').any(|folder| turn_number(folder).is_some());
        (is_of_turn && ["context.md", "response.md"].contains(&path.name())).then_some(Self::Turn)
    }
}

/// The stretches of a document behind its frontmatter.
fn places(document: usize, text: &str) -> impl Iterator<Item = PlacedStretch<'_>> {
    let start = Sections::parse(text).frontmatter.end;
    let end = text.floor_char_boundary(MAX_DOCUMENT.max(start));
    divide(&text[start..end]).into_iter().filter_map(move |stretch| {
        let bytes = stretch.bytes.start + start..stretch.bytes.end + start;
        let own = &text[bytes.clone()];
        (!own.trim().is_empty()).then_some(PlacedStretch {
            document,
            stretch: RecordStretch { bytes, ..stretch },
            text: own,
        })
    })
}

fn index(places: &[PlacedStretch<'_>], documents: &[ReadDocument]) -> Index {
    let mut index = Index::default();
    let mut before: Option<&PlacedStretch<'_>> = None;
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
    /// The tokens of all of them.
    tokens: usize,
    document: usize,
    bytes: Range<usize>,
    /// The last of them.
    last: usize,
}

/// What was gathered, joined to passages in the order of the best stretch of each.
fn joined(places: &[PlacedStretch<'_>], records: &[GatheredRecord]) -> Vec<Joined> {
    let mut ranks: Vec<usize> = (0..records.len()).collect();
    ranks.sort_by_key(|&rank| records[rank].record);
    let mut joined: Vec<Joined> = Vec::new();
    for rank in ranks {
        let GatheredRecord { record, tokens, worth, .. } = records[rank];
        let PlacedStretch { document, stretch, text } = &places[record];
        let (start, end) = (stretch.bytes.start, stretch.bytes.start + text.trim_end().len());
        let follows = |before: &&mut Joined| {
            before.last + 1 == record
                && before.document == *document
                && places[before.last].stretch.bytes.end == start
        };
        match joined.last_mut().filter(follows) {
            Some(before) => {
                (before.rank, before.worth) = (before.rank.min(rank), before.worth.max(worth));
                (before.bytes.end, before.last, before.tokens) = (end, record, before.tokens + tokens);
            }
            None => {
                joined.push(Joined {
                    rank,
                    worth,
                    tokens,
                    document: *document,
                    bytes: start..end,
                    last: record,
                });
            }
        }
    }
    joined.sort_by_key(|passage| passage.rank);
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTE: &str = "---\na: b\n---\n# Tea\n\nGreen tea.\n\nBlack tea.\n\nCoffee.\n\nMore tea.\n";

    fn documents() -> Vec<ReadDocument> {
        let document = |name: &str, text: &str| ReadDocument {
            path: larder_vault::VaultPath::new(&format!("users/u/{name}")).unwrap(),
            text: text.into(),
            at: None,
        };
        vec![document("a.md", NOTE), document("b.md", "Tea for two.\n")]
    }

    fn found(record: usize, worth: f64) -> GatheredRecord {
        GatheredRecord { record, tokens: 5, worth, reached: Reached::Hit }
    }

    #[test]
    fn stretches_that_follow_one_another_are_one_passage() {
        let documents = documents();
        let places = all_places(&documents);
        let texts: Vec<&str> = places.iter().map(|place| place.text.trim_end()).collect();
        assert_eq!(texts, ["# Tea\n\nGreen tea.", "Black tea.", "Coffee.", "More tea.", "Tea for two."]);
        let records = [found(4, 1.0), found(1, 0.9), found(3, 0.5), found(0, 0.4)];
        let joined = joined(&places, &records);
        let shown: Vec<(&str, f64, usize)> = joined
            .iter()
            .map(|it| (&documents[it.document].text[it.bytes.clone()], it.worth, it.tokens))
            .collect();
        assert_eq!(
            shown,
            [("Tea for two.", 1.0, 5), ("# Tea\n\nGreen tea.\n\nBlack tea.", 0.9, 10), ("More tea.", 0.5, 5)]
        );
    }

    #[test]
    fn what_documents_repeat_is_that_of_the_newest() {
        let page = "| Model | Price |\n|---|---|\n| Rule 1100 | $74.00 |\n| Rule 2000 | $129.00 |\n| Rule 3700 | $189.00 |";
        let document = |name: &str, at: &str| ReadDocument {
            path: larder_vault::VaultPath::new(&format!("users/u/{name}")).unwrap(),
            text: format!("{page}\n\nSeen.\n").into(),
            at: Some(at.parse().unwrap()),
        };
        let documents = [
            document("webpage_cache/old/page_content.md", "2026-01-05T10:00:00Z"),
            document("webpage_cache/new/page_content.md", "2026-01-07T10:00:00Z"),
            document("toolresults.md", "2026-01-06T10:00:00Z"),
            document("notes.md", "2026-01-01T10:00:00Z"),
            document("turns/turn_000001/response.md", "2026-01-05T10:00:00Z"),
            document("turns/turn_000002/context.md", "2026-01-07T10:00:00Z"),
            document("turns/turn_000001/attachments.md", "2026-01-05T10:00:00Z"),
        ];
        let places = all_places(&documents);
        let found: Vec<(usize, &str)> =
            places.iter().map(|place| (place.document, place.text.trim())).collect();
        let seen: Vec<usize> = found.iter().filter(|(_, text)| *text == "Seen.").map(|(at, _)| *at).collect();
        assert_eq!(seen, [0, 1, 2, 3, 4, 5, 6], "short ones stay");
        let pages: Vec<usize> = found.iter().filter(|(_, text)| *text == page).map(|(at, _)| *at).collect();
        assert_eq!(pages, [1, 3, 5, 6], "of pages, of notes, of turns and of what a user attached");
    }

    #[test]
    fn entries_and_documents_are_not_neighbours() {
        let documents = documents();
        let places = all_places(&documents);
        let index = index(&places, &documents);
        let hits = |query| index.search(&Query::new(query)).len();
        assert_eq!(hits("coffee"), 4, "with its neighbours, but not those of the other document");
        assert_eq!(hits("two"), 1);
    }
}
