//! Vectors in the index of one user, and which of them are nearest to a query. Knows models by name only.
//!
//! A vector is stored as its numbers, one byte each, and their signs, one bit each. Signs are stored together, so
//! that those of a hundred thousand vectors are scanned in milliseconds; the numbers are then read for the few
//! vectors whose signs differ least, which almost always include the nearest.

use std::ops::RangeInclusive;

use larder_vault::VaultPath;
use larder_vault::embedding_text::hash;
use rusqlite::{OptionalExtension, Params, Transaction, params};

use super::put::Subject;
use crate::documents::types::{EmbeddingText, TextVector};
use larder_disk::StoreError;

/// The number of vectors whose signs are stored together.
const BLOCK: i64 = 256;
/// The number of vectors whose numbers are read for one query …
const CANDIDATES: usize = 400;
/// … plus those that tie with the last of them, so that the result does not depend on the order of insertion.
const MOST_CANDIDATES: usize = 4 * CANDIDATES;
/// Bytes of a word of signs.
const WORD: usize = 8;
/// The largest number in a byte.
const LARGEST: f32 = 127.0;

/// Texts about turns of these numbers that lack a vector of this model, newest first and each text once.
pub(in crate::documents) fn texts_without_vector(
    tx: &Transaction<'_>,
    model: &str,
    turns: &RangeInclusive<u32>,
) -> Result<Vec<EmbeddingText>, StoreError> {
    let mut query = tx.prepare_cached(
        "SELECT of, text FROM gists WHERE turn BETWEEN ?2 AND ?3 AND NOT EXISTS
         (SELECT 1 FROM spaces JOIN vectors ON space = id
          WHERE model = ?1 AND spaces.of = gists.of AND vectors.hash = gists.hash)
         GROUP BY of, hash ORDER BY max(turn) DESC, of, document",
    )?;
    let rows = query.query_map(params![model, turns.start(), turns.end()], |row| {
        let of =
            if row.get::<_, i64>(0)? == Subject::Turns as i64 { Subject::Turns } else { Subject::Research };
        Ok(EmbeddingText { of, text: row.get(1)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Inserts vectors, replacing those of the same texts; skips texts that no document contains any more.
pub(in crate::documents) fn insert_vectors(
    tx: &Transaction<'_>,
    model: &str,
    vectors: &[(EmbeddingText, Vec<f32>)],
) -> Result<(), StoreError> {
    for (gist, vector) in vectors.iter().filter(|(_, vector)| !vector.is_empty()) {
        let hash = hash(&gist.text);
        // It may have been removed while its vector was computed.
        let mut said = tx.prepare_cached("SELECT 1 FROM gists WHERE hash = ?1 AND of = ?2")?;
        if !said.exists(params![hash, gist.of as i64])? {
            continue;
        }
        let space = made_space(tx, model, gist.of, vector.len())?;
        let mut known = tx.prepare_cached("SELECT slot FROM vectors WHERE space = ?1 AND hash = ?2")?;
        let slot = match known.query_row(params![space, hash], |row| row.get(0)).optional()? {
            Some(slot) => slot,
            None => tx
                .prepare_cached("SELECT coalesce(max(slot) + 1, 0) FROM vectors WHERE space = ?1")?
                .query_row([space], |row| row.get::<_, i64>(0))?,
        };
        let numbers = in_bytes(vector);
        write_signs(tx, space, slot, &signs(&numbers))?;
        tx.prepare_cached(
            "INSERT OR REPLACE INTO vectors (space, slot, hash, numbers) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![space, slot, hash, numbers])?;
    }
    Ok(())
}

/// The documents of turns before a given number whose texts are nearest to a vector of the same model, nearest first
/// and newer ones first among equals: at most `limit`, each with a cosine of at least `floor`.
pub(in crate::documents) fn near(
    tx: &Transaction<'_>,
    of: Subject,
    vector: &TextVector,
    before: u32,
    floor: f64,
    limit: usize,
) -> Result<Vec<(VaultPath, u32, f64)>, StoreError> {
    let Some(space) = space(tx, &vector.model, of, vector.numbers.len())? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    let mut numbers =
        tx.prepare_cached("SELECT hash, numbers FROM vectors WHERE space = ?1 AND slot = ?2")?;
    let mut documents = tx.prepare_cached(
        "SELECT document, turn FROM gists WHERE hash = ?1 AND of = ?2 AND turn < ?3
         ORDER BY turn DESC, document LIMIT ?4",
    )?;
    let row_limit = i64::try_from(limit).unwrap_or(i64::MAX);
    for slot in differ_least(tx, space, &signs(&in_bytes(&vector.numbers)))? {
        let row = numbers.query_row([space, slot], |row| {
            Ok((row.get::<_, Vec<u8>>(0)?, cosine(&vector.numbers, row.get_ref(1)?.as_blob()?)))
        });
        let Some((hash, score)) = row.optional()?.filter(|(_, score)| *score >= floor) else { continue };
        let rows = documents.query_map(params![hash, of as i64, before, row_limit], |row| {
            Ok((super::read::path(row, 0)?, row.get(1)?, score))
        })?;
        for row in rows {
            found.push(row?);
        }
    }
    found.sort_by(|a: &(VaultPath, u32, f64), b| {
        b.2.total_cmp(&a.2).then(b.1.cmp(&a.1)).then_with(|| a.0.cmp(&b.0))
    });
    found.truncate(limit);
    Ok(found)
}

/// The slots of a space whose signs differ least from these.
fn differ_least(tx: &Transaction<'_>, space: i64, signs: &[u8]) -> Result<Vec<i64>, StoreError> {
    let signs: Vec<u64> = signs.as_chunks::<WORD>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let mut found: Vec<(u32, i64)> = Vec::new();
    let mut query = tx.prepare_cached("SELECT block, bits FROM signs WHERE space = ?1")?;
    let mut rows = query.query([space])?;
    while let Some(row) = rows.next()? {
        let first = row.get::<_, i64>(0)? * BLOCK;
        let words = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?.as_chunks::<WORD>().0;
        for (slot, words) in (first..).zip(words.chunks_exact(signs.len())) {
            let differ = words.iter().zip(&signs).map(|(a, b)| (u64::from_le_bytes(*a) ^ b).count_ones());
            found.push((differ.sum(), slot));
        }
    }
    if found.len() > CANDIDATES {
        let (_, last, _) = found.select_nth_unstable(CANDIDATES - 1);
        let most = last.0;
        found.retain(|(differ, _)| *differ <= most);
    }
    found.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
    Ok(found.into_iter().take(MOST_CANDIDATES).map(|(_, slot)| slot).collect())
}

/// Removes vectors whose texts no document contains any more.
pub(in crate::documents) fn sweep(tx: &Transaction<'_>) -> Result<(), StoreError> {
    let unsaid = "NOT EXISTS (SELECT 1 FROM spaces JOIN gists ON gists.of = spaces.of
                  WHERE spaces.id = vectors.space AND gists.hash = vectors.hash)";
    remove(tx, unsaid, [])
}

/// Removes the vectors of all other models.
pub(in crate::documents) fn retain_vectors_of(tx: &Transaction<'_>, model: &str) -> Result<(), StoreError> {
    remove(tx, "space NOT IN (SELECT id FROM spaces WHERE model = ?1)", [model])
}

fn remove(tx: &Transaction<'_>, which: &str, params: impl Params) -> Result<(), StoreError> {
    let mut gone =
        tx.prepare(&format!("DELETE FROM vectors WHERE {which} RETURNING space, slot, length(numbers)"))?;
    let gone = gone.query_map(params, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let gone: Vec<(i64, i64, u32)> = gone.collect::<Result<_, _>>()?;
    if gone.is_empty() {
        return Ok(());
    }
    tx.execute(
        "DELETE FROM signs WHERE NOT EXISTS (SELECT 1 FROM vectors WHERE vectors.space = signs.space
         AND slot >= block * ?1 AND slot < (block + 1) * ?1)",
        [BLOCK],
    )?;
    tx.execute("DELETE FROM spaces WHERE NOT EXISTS (SELECT 1 FROM vectors WHERE space = spaces.id)", [])?;
    let mut stands = tx.prepare("SELECT 1 FROM signs WHERE space = ?1 AND block = ?2")?;
    for (space, slot, dimensions) in gone {
        if stands.exists([space, slot / BLOCK])? {
            write_signs(tx, space, slot, &vec![0; signs_length(dimensions as usize)])?;
        }
    }
    Ok(())
}

fn space(
    tx: &Transaction<'_>,
    model: &str,
    of: Subject,
    dimensions: usize,
) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT id FROM spaces WHERE model = ?1 AND of = ?2 AND dimensions = ?3";
    let mut query = tx.prepare_cached(sql)?;
    Ok(query.query_row(params![model, of as i64, dimensions as i64], |row| row.get(0)).optional()?)
}

fn made_space(tx: &Transaction<'_>, model: &str, of: Subject, dimensions: usize) -> Result<i64, StoreError> {
    if let Some(space) = space(tx, model, of, dimensions)? {
        return Ok(space);
    }
    let sql = "INSERT INTO spaces (model, of, dimensions) VALUES (?1, ?2, ?3)";
    tx.execute(sql, params![model, of as i64, dimensions as i64])?;
    Ok(tx.last_insert_rowid())
}

fn write_signs(tx: &Transaction<'_>, space: i64, slot: i64, signs: &[u8]) -> Result<(), StoreError> {
    let (block, within) = (slot / BLOCK, usize::try_from(slot % BLOCK).unwrap_or(0));
    let mut query = tx.prepare_cached("SELECT bits FROM signs WHERE space = ?1 AND block = ?2")?;
    let mut bits: Vec<u8> = query.query_row([space, block], |row| row.get(0)).optional()?.unwrap_or_default();
    let place = within * signs.len()..(within + 1) * signs.len();
    if bits.len() < place.end {
        bits.resize(place.end, 0);
    }
    bits[place].copy_from_slice(signs);
    tx.prepare_cached("INSERT OR REPLACE INTO signs (space, block, bits) VALUES (?1, ?2, ?3)")?
        .execute(params![space, block, bits])?;
    Ok(())
}

/// The numbers of a vector as bytes; zeros if they are not all finite.
fn in_bytes(vector: &[f32]) -> Vec<u8> {
    if !vector.iter().all(|number| number.is_finite()) {
        return vec![0; vector.len()];
    }
    let largest = vector.iter().fold(f32::MIN_POSITIVE, |largest, number| largest.max(number.abs()));
    vector.iter().map(|number| (number / largest * LARGEST).round() as i8 as u8).collect()
}

const fn signs_length(dimensions: usize) -> usize {
    dimensions.div_ceil(8 * WORD) * WORD
}

/// One bit per number, set if it is positive.
fn signs(numbers: &[u8]) -> Vec<u8> {
    let mut signs = vec![0; signs_length(numbers.len())];
    for (at, number) in numbers.iter().enumerate() {
        signs[at / 8] |= u8::from((*number as i8) > 0) << (at % 8);
    }
    signs
}

/// How near two vectors are, from -1 to 1; 0 where one of them points nowhere.
fn cosine(vector: &[f32], numbers: &[u8]) -> f64 {
    let (mut both, mut own, mut other) = (0.0_f64, 0.0_f64, 0.0_f64);
    for (a, b) in vector.iter().zip(numbers) {
        let (a, b) = (f64::from(*a), f64::from(*b as i8));
        both += a * b;
        own += a * a;
        other += b * b;
    }
    let lengths = (own * other).sqrt();
    if lengths > 0.0 { both / lengths } else { 0.0 }
}

#[cfg(test)]
#[path = "vectors_tests.rs"]
mod tests;
