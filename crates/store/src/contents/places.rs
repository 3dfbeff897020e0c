//! Where the index says that a content is: the tables of small contents and of records in segments.

use larder_text::hash::ContentHash;
use rusqlite::{OptionalExtension, Transaction};

use crate::pointers::to_sql;
use larder_disk::StoreError;
use larder_disk::segments::{Record, RecordPlace};

/// The record has what its pointer says.
const HAS_POINTER: i64 = 1;
/// The content is a file of its own.
const IS_EXTERNAL: i64 = 2;

/// A content as the index knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// A row with its frame.
    Row(Vec<u8>),
    /// A record of a segment.
    Record(RecordRow),
}

/// A record as the index knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordRow {
    pub(crate) place: RecordPlace,
    /// Whether it has what its pointer says.
    pub(crate) has_pointer: bool,
    /// Whether the content is a file of its own.
    pub(crate) is_external: bool,
    /// The content without which it cannot be read.
    pub(crate) base: Option<ContentHash>,
}

/// The columns of [`RecordRow`], from which [`record_row`] reads it.
pub(crate) const COLUMNS: &str = "segment, at, length, flags, base";

/// Reads [`COLUMNS`] from a column on.
pub(crate) fn record_row(row: &rusqlite::Row<'_>, from: usize) -> rusqlite::Result<RecordRow> {
    let flags: i64 = row.get(from + 3)?;
    Ok(RecordRow {
        place: RecordPlace {
            segment: row.get(from)?,
            at: row.get::<_, i64>(from + 1)?.unsigned_abs(),
            length: row.get::<_, i64>(from + 2)?.unsigned_abs(),
        },
        has_pointer: flags & HAS_POINTER > 0,
        is_external: flags & IS_EXTERNAL > 0,
        base: row.get::<_, Option<[u8; 32]>>(from + 4)?.map(ContentHash::from_bytes),
    })
}

/// Where a content is; `None` if it has no entry, as one that is only a file of its own.
pub(crate) fn find(tx: &Transaction<'_>, user: &str, hash: ContentHash) -> Result<Option<Found>, StoreError> {
    if let Some(row) = record(tx, user, hash)? {
        return Ok(Some(Found::Record(row)));
    }
    let mut query = tx.prepare_cached("SELECT frame FROM contents WHERE user = ?1 AND hash = ?2")?;
    Ok(query.query_row((user, hash.as_bytes()), |row| row.get(0)).optional()?.map(Found::Row))
}

/// The record of a content.
pub(crate) fn record(
    tx: &Transaction<'_>,
    user: &str,
    hash: ContentHash,
) -> Result<Option<RecordRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM segment_contents WHERE user = ?1 AND hash = ?2");
    let mut query = tx.prepare_cached(&sql)?;
    Ok(query.query_row((user, hash.as_bytes()), |row| record_row(row, 0)).optional()?)
}

/// Whether a content is a row.
pub(crate) fn is_row(tx: &Transaction<'_>, user: &str, hash: ContentHash) -> Result<bool, StoreError> {
    let mut query = tx.prepare_cached("SELECT 1 FROM contents WHERE user = ?1 AND hash = ?2")?;
    Ok(query.exists((user, hash.as_bytes()))?)
}

/// The length of the frame of a row; 0 if there is none.
pub(crate) fn row_bytes(tx: &Transaction<'_>, user: &str, hash: ContentHash) -> Result<u64, StoreError> {
    let mut query = tx.prepare_cached("SELECT length(frame) FROM contents WHERE user = ?1 AND hash = ?2")?;
    let bytes: Option<i64> = query.query_row((user, hash.as_bytes()), |row| row.get(0)).optional()?;
    Ok(bytes.unwrap_or(0).unsigned_abs())
}

/// Writes a row.
pub(crate) fn insert_row(
    tx: &Transaction<'_>,
    user: &str,
    hash: ContentHash,
    frame: &[u8],
) -> Result<(), StoreError> {
    let mut insert = tx.prepare_cached(
        "INSERT INTO contents (user, hash, frame) VALUES (?1, ?2, ?3)
         ON CONFLICT (user, hash) DO UPDATE SET frame = excluded.frame",
    )?;
    insert.execute((user, hash.as_bytes(), frame))?;
    Ok(())
}

pub(crate) fn delete_row(tx: &Transaction<'_>, user: &str, hash: ContentHash) -> Result<(), StoreError> {
    tx.prepare_cached("DELETE FROM contents WHERE user = ?1 AND hash = ?2")?
        .execute((user, hash.as_bytes()))?;
    Ok(())
}

/// Writes where a record is, in place of where the content was before; an earlier record is noted for erasure.
pub(crate) fn insert_record(
    tx: &Transaction<'_>,
    user: &str,
    record: &Record,
    place: RecordPlace,
) -> Result<(), StoreError> {
    if let Some(held) = self::record(tx, user, record.hash)? {
        note_erasure(tx, user, held.place)?;
        note_base(tx, user, held.base.filter(|_| held.base != record.base))?;
    }
    delete_row(tx, user, record.hash)?;
    enter_record(tx, user, record, place)
}

/// As [`insert_record`], but what was entered before is only forgotten.
pub(crate) fn enter_record(
    tx: &Transaction<'_>,
    user: &str,
    record: &Record,
    place: RecordPlace,
) -> Result<(), StoreError> {
    let flag = |set: bool, bit: i64| if set { bit } else { 0 };
    let flags = flag(record.pointer.is_some(), HAS_POINTER) | flag(record.frame.is_none(), IS_EXTERNAL);
    let mut insert = tx.prepare_cached(
        "INSERT OR REPLACE INTO segment_contents (user, hash, segment, at, length, flags, base)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    insert.execute((
        user,
        record.hash.as_bytes(),
        place.segment,
        to_sql(place.at),
        to_sql(place.length),
        flags,
        record.base.as_ref().map(ContentHash::as_bytes),
    ))?;
    Ok(())
}

/// Removes the entries of a content; its record is noted for erasure, and so is what it was based on.
pub(crate) fn delete(tx: &Transaction<'_>, user: &str, hash: ContentHash) -> Result<(), StoreError> {
    delete_row(tx, user, hash)?;
    let Some(row) = record(tx, user, hash)? else { return Ok(()) };
    note_erasure(tx, user, row.place)?;
    tx.prepare_cached("DELETE FROM segment_contents WHERE user = ?1 AND hash = ?2")?
        .execute((user, hash.as_bytes()))?;
    note_base(tx, user, row.base)
}

/// Notes what a content was based on: nothing else may name it.
fn note_base(tx: &Transaction<'_>, user: &str, base: Option<ContentHash>) -> Result<(), StoreError> {
    let Some(base) = base else { return Ok(()) };
    tx.prepare_cached("INSERT INTO erasures (user, hash) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
        .execute((user, base.as_bytes()))?;
    Ok(())
}

/// Notes a record whose bytes may go.
fn note_erasure(tx: &Transaction<'_>, user: &str, place: RecordPlace) -> Result<(), StoreError> {
    tx.prepare_cached(
        "INSERT INTO segment_erasures (user, segment, at, length) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
    )?
    .execute((user, place.segment, to_sql(place.at), to_sql(place.length)))?;
    Ok(())
}
