//! Research that is at hand: what is still good answers at once, what is stale is offered with that word, what is
//! expired is not offered (R1-10.3, R1-10.4, R1-12.2 to R1-12.5; C77, C106; E19).

use std::collections::BTreeMap;

use larder_store::{DocumentKind, ResearchRow};
use larder_vault::lifecycle::{ResearchLife, ResearchState};
use larder_vault::{Document, Research, VaultPath};

use super::memory::Memory;
use super::phrases::PaddedQuery;
use super::ranking::{Ranked, day, fuse, order, scores};
use super::render::line;
use super::trace::Trace;
use super::{ResearchCandidate, Retrieval, RetrievalError, SearchRequest, TurnCandidate};

/// Newest pieces of research that are ranked, and newest on a topic.
const NEWEST: u64 = 40;
const OF_TOPIC: u64 = 10;
/// Topics of the best turns whose research is ranked …
const TOPICS: usize = 3;
/// … and documents that contain words of the query.
const HITS: u64 = 30;
/// Research that is offered as cached, and otherwise.
const CACHED: usize = 3;
const OTHERS: usize = 5;
/// Share of a topic's words that the query, or a preference with it, must contain for its research to answer at once.
const ON_TOPIC: f64 = 0.5;
/// Listings, facts and sources in a digest.
const DIGEST: usize = 5;

/// Research by what it is good for.
#[derive(Default)]
pub(super) struct OfferedResearch {
    /// Still good, and on the topic.
    pub(super) cached: Vec<ResearchCandidate>,
    /// Anything else that may help.
    pub(super) hits: Vec<ResearchCandidate>,
}

pub(super) async fn find(
    retrieval: &Retrieval<'_>,
    request: &SearchRequest<'_>,
    turns: &[TurnCandidate],
    memory: &Memory,
    trace: &mut Trace,
) -> Result<OfferedResearch, RetrievalError> {
    let ResearchPool { rows, hits, meant } = pool(retrieval, request, turns)?;
    // Preferences say which ones "some" means (R1-12.2, R1-14.3).
    let likes = memory.preferences.iter().filter(|line| line.score > 0.0).map(|line| line.value.as_str());
    let query = likes.fold(request.query.to_owned(), |query, value| query + " " + value);
    let rows: Vec<ResearchRow> = rows.into_values().collect();
    let fused = ranking(retrieval, &query, &rows, [&hits, &meant]);
    let words = PaddedQuery::new(&query);
    let mut offered = OfferedResearch::default();
    for (at, score) in fused {
        let row = &rows[at];
        let state = life(row).state(retrieval.now);
        let on_topic = words.shared(&PaddedQuery::new(&row.topic)) >= ON_TOPIC;
        let why = match state {
            ResearchState::Active if on_topic => "active, on the topic of the query",
            ResearchState::Active => "active",
            ResearchState::Stale => "stale: what stays true is offered, the rest has to be researched anew",
            ResearchState::Created | ResearchState::Expired | ResearchState::Archived => {
                let why = row.superseded_by.as_ref().map_or_else(
                    || format!("{state}: nothing in it is valid any more"),
                    |newer| format!("{state}: {} took its place", line(newer)),
                );
                trace.unused("research", row.document.as_str(), score, why);
                continue;
            }
        };
        let by_meaning = meant.contains(&row.document) && !hits.contains(&row.document);
        let why = format!("{why}{}", if by_meaning { "; its meaning is near the query" } else { "" });
        let cached = state == ResearchState::Active && on_topic;
        let (list, most) = if cached { (&mut offered.cached, CACHED) } else { (&mut offered.hits, OTHERS) };
        if list.len() == most {
            trace.unused(
                "research",
                row.document.as_str(),
                score,
                format!("{why}, and {most} others rank above it"),
            );
            continue;
        }
        let candidate = candidate(retrieval, row, state, score).await;
        let tokens = retrieval.counter.count(&candidate.text());
        trace.used("research", row.document.as_str(), score, tokens, why);
        list.push(candidate);
    }
    Ok(offered)
}

/// The research that is ranked.
struct ResearchPool {
    rows: BTreeMap<VaultPath, ResearchRow>,
    /// Documents that contain words of the query, best first.
    hits: Vec<VaultPath>,
    /// Documents whose meaning is near the query, nearest first.
    meant: Vec<VaultPath>,
}

fn pool(
    retrieval: &Retrieval<'_>,
    request: &SearchRequest<'_>,
    turns: &[TurnCandidate],
) -> Result<ResearchPool, RetrievalError> {
    let documents = retrieval.documents;
    let mut found = documents.catalog().research(None, NEWEST)?;
    let mut topics: Vec<String> = Vec::new();
    let add = |topic: Option<String>, topics: &mut Vec<String>| {
        topics.extend(topic.filter(|topic| !topics.contains(topic)));
    };
    turns.iter().take(TOPICS).for_each(|turn| add(turn.topic.clone(), &mut topics));
    let near = retrieval.near_research(request)?;
    let meant = near.iter().map(|row| row.document.clone()).collect();
    found.extend(near);
    let mut hits = Vec::new();
    for hit in retrieval.search(request.query, &[DocumentKind::Research], HITS)? {
        let Some(turn) = hit.turn.filter(|turn| *turn < request.before) else { continue };
        if !found.iter().any(|row| row.document == hit.document) {
            add(documents.catalog().turn(turn)?.and_then(|row| row.topic), &mut topics);
        }
        hits.push(hit.document);
    }
    for topic in topics {
        found.extend(documents.catalog().research(Some(&topic), OF_TOPIC)?);
    }
    let earlier = found.into_iter().filter(|row| row.turn < request.before);
    let rows = earlier.map(|row| (row.document.clone(), row)).collect();
    Ok(ResearchPool { rows, hits, meant })
}

/// Positions in `rows`, best first: by rankings of documents, and by titles and topics. Rows that none of them finds are
/// not ranked.
fn ranking(
    retrieval: &Retrieval<'_>,
    query: &str,
    rows: &[ResearchRow],
    rankings: [&[VaultPath]; 2],
) -> Vec<(usize, f64)> {
    let texts: Vec<String> =
        rows.iter().map(|row| format!("{}\n{}", row.title, row.topic.replace(['.', '_'], " "))).collect();
    let ranked =
        texts.iter().zip(rows).map(|(text, row)| Ranked { text, day: day(row.created_at), apart: true });
    let named = order(&scores(query, retrieval.now, ranked));
    let place = |document: &VaultPath| rows.iter().position(|row| row.document == *document);
    let [hits, meant] = rankings.map(|documents| documents.iter().filter_map(place).collect());
    let mut fused = fuse(&[(1.0, hits), (1.0, named), (1.0, meant)]);
    // Of equals the better, then the newer.
    fused.sort_by(|a, b| {
        let (first, second) = (&rows[a.0], &rows[b.0]);
        let quality = second.quality.get().total_cmp(&first.quality.get());
        b.1.total_cmp(&a.1).then(quality).then(second.created_at.cmp(&first.created_at)).then(a.0.cmp(&b.0))
    });
    fused
}

fn life(row: &ResearchRow) -> ResearchLife {
    ResearchLife {
        created: row.created_at,
        expires: row.expires_at,
        indexed: true,
        superseded: row.superseded_by.is_some(),
        archived: row.document.as_str().starts_with("archive/"),
    }
}

async fn candidate(
    retrieval: &Retrieval<'_>,
    row: &ResearchRow,
    state: ResearchState,
    score: f64,
) -> ResearchCandidate {
    let text = retrieval.documents.files().read_text(&row.document).ok().flatten().unwrap_or_default();
    let read = Document::<Research>::read(&text, &row.document).value.map(|document| document.value);
    ResearchCandidate {
        document: row.document.clone(),
        id: row.id.clone(),
        turn: row.turn,
        topic: row.topic.clone(),
        intent: row.intent,
        title: row.title.clone(),
        quality: row.quality,
        state,
        created_at: row.created_at,
        age_seconds: retrieval.age(row.created_at),
        expires_at: row.expires_at,
        scope: row.scope,
        score,
        digest: read.map(|research| digest(&research, state)).unwrap_or_default(),
    }
}

/// The best results of research. Prices and stock of stale research are left out.
fn digest(research: &Research, state: ResearchState) -> String {
    let mut text = String::new();
    let mut list = |heading: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            text.push_str(&format!("{heading}:\n{}\n", lines.join("\n")));
        }
    };
    if state == ResearchState::Active {
        let listings = research.listings.iter().take(DIGEST).map(|listing| {
            let stock = listing.in_stock;
            format!(
                "- {} | {} | {} | in stock: {stock}",
                line(&listing.product),
                line(&listing.price),
                line(&listing.vendor)
            )
        });
        list("top results", listings.collect());
    }
    list("facts", research.facts.iter().take(DIGEST).map(|fact| format!("- {}", line(fact))).collect());
    let sources = research.sources.iter().take(DIGEST);
    list(
        "reputable sources",
        sources
            .map(|source| {
                format!("- {} ({}, {})", line(&source.vendor), line(&source.kind), source.reliability)
            })
            .collect(),
    );
    text
}
