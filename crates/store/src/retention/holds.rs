//! Which originals documents and messages of conversations refer to: those do not expire.

use std::collections::BTreeSet;

use larder_text::pointer::{PREFIX, Pointer};
use rusqlite::{Transaction, params};

use crate::pointers::to_sql;
use larder_disk::StoreError;

/// The names of all pointers in a document or a message.
///
/// Whose they are is not checked: a foreign one holds nothing.
pub(crate) fn pointers_in(bytes: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(bytes);
    let found = text.match_indices(PREFIX).filter_map(|(at, _)| Pointer::parse_prefix(&text[at..]));
    found.map(|(_, pointer)| pointer.id.name().to_owned()).collect()
}

/// Notes what a document refers to now, in place of what it referred to before.
pub(crate) fn set(tx: &Transaction<'_>, user: &str, path: &str, bytes: &[u8]) -> Result<(), StoreError> {
    set_names(tx, user, path, &pointers_in(bytes))
}

/// As [`set`], of names that are known already.
pub(crate) fn set_names(
    tx: &Transaction<'_>,
    user: &str,
    path: &str,
    names: &BTreeSet<String>,
) -> Result<(), StoreError> {
    release(tx, user, path)?;
    let mut insert =
        tx.prepare_cached("INSERT OR IGNORE INTO document_pointers (user, name, path) VALUES (?1, ?2, ?3)")?;
    for name in names {
        insert.execute(params![user, name, path])?;
    }
    Ok(())
}

/// Notes what the text of a message refers to. Where the text changes or goes, the index removes these notes by itself.
pub(crate) fn set_of_message(
    tx: &Transaction<'_>,
    user: &str,
    number: u64,
    text: &str,
) -> Result<(), StoreError> {
    let mut insert =
        tx.prepare_cached("INSERT INTO message_pointers (user, name, number) VALUES (?1, ?2, ?3)")?;
    for name in pointers_in(text.as_bytes()) {
        insert.execute(params![user, name, to_sql(number)])?;
    }
    Ok(())
}

/// A document has gone.
pub(crate) fn release(tx: &Transaction<'_>, user: &str, path: &str) -> Result<(), StoreError> {
    tx.prepare_cached("DELETE FROM document_pointers WHERE user = ?1 AND path = ?2")?
        .execute(params![user, path])?;
    Ok(())
}

/// A folder of documents has gone.
pub(crate) fn release_folder(tx: &Transaction<'_>, user: &str, folder: &str) -> Result<(), StoreError> {
    tx.prepare_cached(
        "DELETE FROM document_pointers WHERE user = ?1 AND path >= ?2 || '/' AND path < ?2 || '0'",
    )?
    .execute(params![user, folder])?;
    Ok(())
}

/// The documents of a folder are in another one now.
pub(crate) fn rename_folder(
    tx: &Transaction<'_>,
    user: &str,
    from: &str,
    to: &str,
) -> Result<(), StoreError> {
    tx.prepare_cached(
        "UPDATE OR REPLACE document_pointers SET path = ?3 || substr(path, ?4)
         WHERE user = ?1 AND path >= ?2 || '/' AND path < ?2 || '0'",
    )?
    .execute(params![user, from, to, to_sql(from.chars().count() as u64 + 1)])?;
    Ok(())
}

/// The documents that hold something, of one user.
pub(crate) fn documents(tx: &Transaction<'_>, user: &str) -> Result<Vec<String>, StoreError> {
    let mut query = tx.prepare_cached("SELECT DISTINCT path FROM document_pointers WHERE user = ?1")?;
    Ok(query.query_map([user], |row| row.get(0))?.collect::<Result<_, _>>()?)
}
