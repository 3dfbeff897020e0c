//! The files of drafts and of committed turns in the main database: the journal. Knows its tables and no file.

use std::collections::BTreeMap;

use larder_text::hash::ContentHash;
use larder_vault::layout::UserPlace;
use rusqlite::{OptionalExtension, Transaction, params};

use crate::retention::holds;
use larder_disk::StoreError;
use larder_disk::frame::{self, FrameReader};

/// Files from this many bytes on are compressed.
const LARGE: usize = 2 << 10;

/// Files of a turn by their path in its folder.
pub(super) type TurnFiles = BTreeMap<String, Vec<u8>>;

/// Whether there is a row for a turn, and whether it is a committed one.
pub(super) fn is_committed(
    tx: &Transaction<'_>,
    user: &str,
    number: u32,
) -> Result<Option<bool>, StoreError> {
    let mut query = tx.prepare_cached("SELECT committed FROM turn_drafts WHERE user = ?1 AND number = ?2")?;
    Ok(query.query_row(params![user, number], |row| row.get(0)).optional()?)
}

/// Updates the stored files to match the map; unchanged ones are not rewritten.
pub(super) fn insert_files(
    tx: &Transaction<'_>,
    user: &str,
    number: u32,
    files: &TurnFiles,
) -> Result<(), StoreError> {
    let mut query = tx.prepare_cached("SELECT path, hash FROM turn_files WHERE user = ?1 AND number = ?2")?;
    let rows = query.query_map(params![user, number], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let stored: BTreeMap<String, [u8; 32]> = rows.collect::<Result<_, _>>()?;
    let mut remove =
        tx.prepare_cached("DELETE FROM turn_files WHERE user = ?1 AND number = ?2 AND path = ?3")?;
    let folder = folder(user, number);
    for path in stored.keys().filter(|path| !files.contains_key(*path)) {
        remove.execute(params![user, number, path])?;
        holds::release(tx, user, &format!("{folder}/{path}"))?;
    }
    let mut put = tx.prepare_cached(
        "INSERT OR REPLACE INTO turn_files (user, number, path, hash, bytes, zstd, frame)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for (path, bytes) in files {
        let hash = ContentHash::new(bytes);
        if stored.get(path) == Some(hash.as_bytes()) {
            continue;
        }
        holds::set(tx, user, &format!("{folder}/{path}"), bytes)?;
        let length = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        if bytes.len() < LARGE {
            put.execute(params![user, number, path, hash.as_bytes(), length, false, bytes])?;
        } else {
            let compressed = frame::compress(bytes)
                .map_err(StoreError::io(std::path::Path::new(path), "compressing a file of a turn"))?;
            put.execute(params![user, number, path, hash.as_bytes(), length, true, compressed])?;
        }
    }
    Ok(())
}

/// Where the documents of a turn will be.
fn folder(user: &str, number: u32) -> String {
    UserPlace::new(user).turn(number).folder().to_owned()
}

/// Removes a draft that becomes no turn.
pub(super) fn discard(tx: &Transaction<'_>, user: &str, number: u32) -> Result<(), StoreError> {
    holds::release_folder(tx, user, &folder(user, number))?;
    remove(tx, user, number)
}

/// The stored files of a turn.
pub(super) fn files_of(tx: &Transaction<'_>, user: &str, number: u32) -> Result<TurnFiles, StoreError> {
    let mut query = tx.prepare_cached(
        "SELECT path, hash, bytes, zstd, frame FROM turn_files WHERE user = ?1 AND number = ?2",
    )?;
    let rows = query.query_map(params![user, number], |row| {
        let bytes: i64 = row.get(2)?;
        Ok((row.get::<_, String>(0)?, row.get(1)?, bytes, row.get(3)?, row.get::<_, Vec<u8>>(4)?))
    })?;
    let mut reader = FrameReader::new()?;
    let mut files = TurnFiles::new();
    for row in rows {
        let (path, hash, bytes, compressed, frame): (String, [u8; 32], i64, bool, Vec<u8>) = row?;
        let hash = ContentHash::from_bytes(hash);
        let limit = usize::try_from(bytes).unwrap_or(0);
        let content = match compressed {
            true => reader.read(&frame, limit, hash),
            false if ContentHash::new(&frame) == hash => Ok(frame),
            false => Err("its content has another hash".to_owned()),
        };
        let content = content.map_err(|reason| StoreError::BadTurn {
            number,
            reason: format!("{path} is damaged in the main database ({reason}); restore it from a backup"),
        })?;
        files.insert(path, content);
    }
    Ok(files)
}

/// Removes a turn.
pub(super) fn remove(tx: &Transaction<'_>, user: &str, number: u32) -> Result<(), StoreError> {
    for table in ["turn_files", "turn_drafts"] {
        tx.prepare_cached(&format!("DELETE FROM {table} WHERE user = ?1 AND number = ?2"))?
            .execute(params![user, number])?;
    }
    Ok(())
}

/// All turns of the journal, of one user or of all, by user and number.
pub(super) fn committed(tx: &Transaction<'_>, user: Option<&str>) -> Result<Vec<(String, u32)>, StoreError> {
    let mut query = tx.prepare_cached(
        "SELECT user, number FROM turn_drafts WHERE committed = 1 AND (?1 IS NULL OR user = ?1)
         ORDER BY user, number",
    )?;
    let rows = query.query_map([user], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
