//! Finding documents by their words, in a time that hardly grows with the number of documents.
//!
//! Each word of the query is looked up in the newest documents that contain it, up to a cap. Below the cap, all its
//! documents are known; the frequency of a more common word is estimated from the density of its matches. The
//! documents with most of the query's weight are ranked with BM25 over their texts.

use std::collections::HashMap;

use larder_text::bm25::{bm25, rarity};
use larder_vault::search_words::{counts, of_query, snippet};
use rusqlite::{OptionalExtension, Transaction};

use super::choose::{Lookup, QueryWord, ROWS, choose};
use super::put::COLUMNS;
use crate::documents::types::{DocumentHit, DocumentKind};
use larder_disk::StoreError;

/// The number of documents whose texts are read and ranked.
const WEIGHED: usize = 96;

/// A document that is weighed.
struct Candidate {
    hit: DocumentHit,
    id: i64,
    text: String,
    counts: Vec<u32>,
    length: u32,
}

/// Documents of the given kinds, or of all if none is given, that contain words of the query, best first.
pub(in crate::documents) fn search(
    tx: &Transaction<'_>,
    query: &str,
    kinds: &[DocumentKind],
    limit: u64,
) -> Result<Vec<DocumentHit>, StoreError> {
    let columns: Vec<&str> = kinds.iter().map(|kind| COLUMNS[*kind as usize]).collect();
    let mut lookup = Lookup::new(tx, &columns)?;
    let words = look_up(tx, &of_query(query), &mut lookup)?;
    let places: HashMap<&str, usize> =
        words.iter().enumerate().map(|(at, word)| (word.text.as_str(), at)).collect();
    let weights: Vec<f64> = words.iter().map(|word| word.weight).collect();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut candidates = Vec::new();
    for id in choose(&words, &mut lookup, WEIGHED.max(limit.min(4 * WEIGHED)))? {
        candidates.extend(candidate(tx, id, &places)?);
    }
    weigh(&mut candidates, &weights);
    candidates.truncate(limit);
    Ok(candidates
        .into_iter()
        .map(|candidate| {
            let snippet = snippet(&candidate.text, &places, &weights);
            DocumentHit { snippet, ..candidate.hit }
        })
        .collect())
}

/// The words with the documents that contain them, rarest first; words without documents are omitted.
pub(super) fn look_up(
    tx: &Transaction<'_>,
    texts: &[String],
    lookup: &mut Lookup<'_>,
) -> Result<Vec<QueryWord>, StoreError> {
    let newest: i64 =
        tx.prepare_cached("SELECT coalesce(max(id), 0) FROM documents")?.query_row([], |row| row.get(0))?;
    let mut words = Vec::new();
    for text in texts {
        let rows = lookup.rows(&[&[text.as_str()]], ROWS)?;
        if let Some(oldest) = rows.last() {
            let span = (newest - oldest + 1).max(1) as f64;
            let all = newest.max(1) as f64;
            let share = (rows.len() as f64 / if rows.len() < ROWS { all } else { span }).min(1.0);
            let weight = rarity(all as usize, (share * all).round() as usize);
            words.push(QueryWord { text: text.clone(), rows, weight, share });
        }
    }
    words.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    Ok(words)
}

fn candidate(
    tx: &Transaction<'_>,
    id: i64,
    places: &HashMap<&str, usize>,
) -> Result<Option<Candidate>, StoreError> {
    let mut query = tx.prepare_cached("SELECT path, kind, turn, text FROM documents WHERE id = ?1")?;
    let row = query
        .query_row([id], |row| {
            let kind: i64 = row.get(1)?;
            Ok((super::read::path(row, 0)?, kind, row.get(2)?, row.get::<_, Vec<u8>>(3)?))
        })
        .optional()?;
    let Some((document, kind, turn, frame)) = row else { return Ok(None) };
    let text = zstd::stream::decode_all(frame.as_slice())
        .map_err(StoreError::io(std::path::Path::new(document.as_str()), "reading its text in the index"))?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let (counts, length) = counts(&text, places);
    let hit = DocumentHit { document, kind: kind_of(kind), turn, score: 0.0, snippet: String::new() };
    Ok(Some(Candidate { hit, id, text, counts, length }))
}

const fn kind_of(number: i64) -> DocumentKind {
    match number {
        0 => DocumentKind::Context,
        1 => DocumentKind::Research,
        2 => DocumentKind::Page,
        3 => DocumentKind::Memory,
        _ => DocumentKind::Other,
    }
}

/// Scores and sorts the candidates, newer ones first among equals.
fn weigh(candidates: &mut [Candidate], weights: &[f64]) {
    let total: f64 = candidates.iter().map(|candidate| f64::from(candidate.length)).sum();
    let mean = (total / candidates.len().max(1) as f64).max(1.0);
    for candidate in candidates.iter_mut() {
        let length = f64::from(candidate.length) / mean;
        let parts = candidate.counts.iter().zip(weights);
        candidate.hit.score = parts.map(|(&count, &weight)| bm25(weight, f64::from(count), length)).sum();
    }
    candidates.sort_by(|a, b| b.hit.score.total_cmp(&a.hit.score).then(b.id.cmp(&a.id)));
}
