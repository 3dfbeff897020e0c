//! The turn index: which earlier turns matter to a query (R1-10.2, R1-5.4, R1-5.8; E13). Knows what the index says of
//! turns; does not read them.

use std::collections::BTreeMap;

use larder_store::{DocumentKind, TurnRow};

use super::phrases::PaddedQuery;
use super::ranking::{Ranked, day, fuse, order, scores};
use super::trace::Trace;
use super::{RECENT_TURNS, Retrieval, RetrievalError, SearchRequest, TURN_INDEX_LIMIT, TurnCandidate};

/// Newest turns that are ranked.
const NEWEST: u64 = 40;
/// Turns that contain words of the query that are ranked.
const HITS: u64 = 60;
/// Of so many best hits the turns before and after are ranked too: an answer may lack the words of its question.
const WITH_NEIGHBOURS: usize = 10;
/// The weight of recency next to that of the words: about one place among the first, since fused rankings are
/// flat. A query that names nothing gets the newest turns all the same.
const RECENCY: f64 = 0.02;

/// The turns that are ranked, by number, and what the index found in them.
struct TurnPool {
    turns: BTreeMap<u32, (TurnRow, String)>,
    newest: Vec<u32>,
    hits: Vec<u32>,
    /// Those whose meaning is near that of the query, nearest first.
    meant: Vec<u32>,
    /// The last turn of the session.
    previous: Option<u32>,
}

/// The place at which the last turn of the session is offered at the latest, as long as the prompt has room for so
/// many: a follow-up may share no word with it.
const PREVIOUS: usize = 3;

/// At most 20 turns, best first.
pub(super) fn find(
    retrieval: &Retrieval<'_>,
    request: &SearchRequest<'_>,
    trace: &mut Trace,
) -> Result<Vec<TurnCandidate>, RetrievalError> {
    if let Some(turn) = referenced(retrieval, request)? {
        let found = candidate(retrieval, turn, 1.0, "the query refers to it; the index was not searched");
        trace_used(retrieval, &found, trace);
        return Ok(vec![found]);
    }
    let pool = TurnPool::fill(retrieval, request)?;
    let ranked = pool.ranked(retrieval, request);
    let newest = pool.by_recency(request.session);
    let mut fused = fuse(&[
        (1.0, pool.hits.clone()),
        (1.0, ranked.clone()),
        (1.0, pool.meant.clone()),
        (RECENCY, newest),
    ]);
    if let Some(previous) = fused.iter().position(|(number, _)| Some(*number) == pool.previous)
        && previous > PREVIOUS
    {
        fused[PREVIOUS..=previous].rotate_right(1);
    }
    let mut found = Vec::new();
    for (number, score) in fused {
        let Some((row, _)) = pool.turns.get(&number) else { continue };
        let why = match (pool.hits.contains(&number), pool.meant.contains(&number)) {
            (true, true) => "it holds words of the query, and its meaning is near",
            (true, false) => "it holds words of the query",
            (false, true) => "its meaning is near the query",
            (false, false) if ranked.contains(&number) => {
                "it is next to a turn that holds words of the query"
            }
            (false, false) if pool.previous == Some(number) => "it is the last one of the conversation",
            (false, false) => "it is recent",
        };
        if found.len() == TURN_INDEX_LIMIT {
            trace.unused("turn", row.context.as_str(), score, format!("{why}, and 20 others rank above it"));
            continue;
        }
        let found_turn = candidate(retrieval, row.clone(), score, why);
        trace_used(retrieval, &found_turn, trace);
        found.push(found_turn);
    }
    Ok(found)
}

/// The turn that a reference names, if there is one before this.
fn referenced(
    retrieval: &Retrieval<'_>,
    request: &SearchRequest<'_>,
) -> Result<Option<TurnRow>, RetrievalError> {
    let number = request.reference.and_then(|reference| reference.source_turn);
    let number = number.filter(|number| *number < request.before);
    Ok(number.map(|number| retrieval.documents.catalog().turn(number)).transpose()?.flatten())
}

fn trace_used(retrieval: &Retrieval<'_>, turn: &TurnCandidate, trace: &mut Trace) {
    let tokens = retrieval.counter.count(&turn.line());
    trace.used("turn", turn.context.as_str(), turn.score, tokens, turn.why.as_str());
}

fn candidate(retrieval: &Retrieval<'_>, row: TurnRow, score: f64, why: &str) -> TurnCandidate {
    TurnCandidate {
        turn: row.number,
        context: row.context,
        query: row.query,
        summary: row.summary,
        topic: row.topic,
        quality: row.quality,
        status: row.status,
        created_at: row.created_at,
        age_seconds: retrieval.age(row.created_at),
        score,
        why: why.to_owned(),
    }
}

impl TurnPool {
    fn fill(retrieval: &Retrieval<'_>, request: &SearchRequest<'_>) -> Result<Self, RetrievalError> {
        let documents = retrieval.documents;
        let meant = retrieval.near_turns(request)?;
        let catalog = documents.catalog();
        let of_session = match request.session {
            Some(session) => catalog.recent_turns(RECENT_TURNS, Some(request.before), Some(session))?,
            None => Vec::new(),
        };
        let previous = of_session.first().map(|row| row.number);
        let mut pool = Self { turns: BTreeMap::new(), newest: Vec::new(), hits: Vec::new(), meant, previous };
        for row in catalog.recent_turns(NEWEST, Some(request.before), None)?.into_iter().chain(of_session) {
            if !pool.turns.contains_key(&row.number) {
                pool.newest.push(row.number);
                pool.turns.insert(row.number, (row, String::new()));
            }
        }
        for hit in retrieval.search(request.query, &[DocumentKind::Context], HITS)? {
            let Some(number) = hit.turn.filter(|number| *number < request.before) else { continue };
            pool.add(retrieval, number)?;
            if let Some((_, snippet)) = pool.turns.get_mut(&number) {
                *snippet = hit.snippet;
                pool.hits.push(number);
            }
        }
        for number in pool.meant.clone() {
            pool.add(retrieval, number)?;
        }
        for number in pool.hits.iter().take(WITH_NEIGHBOURS).copied().collect::<Vec<_>>() {
            let neighbours = [number.checked_sub(1), number.checked_add(1)];
            for number in neighbours.into_iter().flatten().filter(|number| *number < request.before) {
                pool.add(retrieval, number)?;
            }
        }
        Ok(pool)
    }

    fn add(&mut self, retrieval: &Retrieval<'_>, number: u32) -> Result<(), RetrievalError> {
        if !self.turns.contains_key(&number)
            && let Some(row) = retrieval.documents.catalog().turn(number)?
        {
            self.turns.insert(number, (row, String::new()));
        }
        Ok(())
    }

    /// Numbers in the order of the index: turns that follow one another in one session are neighbours. A query that
    /// names nothing ranks none.
    fn ranked(&self, retrieval: &Retrieval<'_>, request: &SearchRequest<'_>) -> Vec<u32> {
        if PaddedQuery::new(request.query).searched().is_empty() {
            return Vec::new();
        }
        let text = |(row, snippet): &(TurnRow, String)| {
            let topic = row.topic.as_deref().unwrap_or_default().replace(['.', '_'], " ");
            let summary = row.summary.as_deref().unwrap_or_default();
            format!("{}\n{summary}\n{topic}\n{snippet}", row.query)
        };
        let texts: Vec<String> = self.turns.values().map(text).collect();
        let rows: Vec<&TurnRow> = self.turns.values().map(|(row, _)| row).collect();
        let ranked = texts.iter().zip(&rows).enumerate().map(|(at, (text, row))| {
            let follows =
                at > 0 && rows[at - 1].number + 1 == row.number && rows[at - 1].session == row.session;
            Ranked { text, day: day(row.created_at), apart: !follows }
        });
        let scores = scores(request.query, retrieval.now, ranked);
        order(&scores).into_iter().map(|at| rows[at].number).collect()
    }

    /// The newest turns: those of the session first, if the query comes from one.
    fn by_recency(&self, session: Option<&str>) -> Vec<u32> {
        let of_session = |number: &u32| {
            session.is_some()
                && self.turns.get(number).is_some_and(|(row, _)| row.session.as_deref() == session)
        };
        let (mut first, rest): (Vec<u32>, Vec<u32>) = self.newest.iter().copied().partition(of_session);
        first.extend(rest);
        first
    }
}
