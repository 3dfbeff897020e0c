//! The second step of a collection: bytes that nothing names any more.

use std::collections::BTreeSet;
use std::path::Path;

use larder_text::hash::ContentHash;
use rusqlite::Transaction;

use crate::error::StoreError;
use crate::files;
use crate::store::Store;
use crate::user;

/// Contents erased in one transaction: each may be a file to remove, and others wait for the transaction.
const BATCH: i64 = 64;

impl Store {
    /// Erases the next contents that are noted for it and that nothing has named again; returns the bytes freed, `None`
    /// if none were noted.
    pub(super) fn erase_batch(&self) -> Result<Option<u64>, StoreError> {
        let noted = self.index().read(noted)?;
        if noted.is_empty() {
            return Ok(None);
        }
        let mut folders = BTreeSet::new();
        // A crash of the machine may undo this: the contents are then still noted.
        let freed = self.index().write_unsynced(|tx| {
            let mut freed: u64 = 0;
            for (user, hash) in &noted {
                if is_named(tx, user, *hash)? {
                    continue;
                }
                freed = freed.saturating_add(self.user(user)?.contents().erase(tx, *hash)?);
                let path = self.blobs().path(&user::folder(user), *hash);
                folders.extend(path.parent().map(Path::to_path_buf));
            }
            Ok(freed)
        })?;
        // Before the notes go: a power failure must not bring files back that nothing knows of.
        for folder in folders.iter().filter(|folder| folder.is_dir()) {
            files::sync_dir(folder)?;
        }
        self.index().write_unsynced(|tx| {
            let mut done = tx.prepare_cached("DELETE FROM erasures WHERE user = ?1 AND hash = ?2")?;
            for (user, hash) in &noted {
                done.execute((user, hash.as_bytes()))?;
            }
            Ok(())
        })?;
        Ok(Some(freed))
    }

    /// Bytes that blobs and index take on disk, without pages of the index that are free for reuse.
    pub(super) fn bytes_on_disk(&self) -> Result<u64, StoreError> {
        let pages: i64 = self.index().read(|tx| {
            let pragma = |name| Ok::<i64, StoreError>(tx.pragma_query_value(None, name, |row| row.get(0))?);
            Ok((pragma("page_count")? - pragma("freelist_count")?) * pragma("page_size")?)
        })?;
        Ok(self.blobs().bytes_on_disk()?.saturating_add(pages.unsigned_abs()))
    }
}

fn noted(tx: &Transaction<'_>) -> Result<Vec<(String, ContentHash)>, StoreError> {
    let mut query = tx.prepare_cached("SELECT user, hash FROM erasures LIMIT ?1")?;
    let rows = query.query_map([BATCH], |row| Ok((row.get(0)?, ContentHash::from_bytes(row.get(1)?))))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// What names a content: the kind of row, and its id.
const NAMERS: &str = "
    SELECT 0, name FROM pointers WHERE user = ?1 AND name = ?4 AND content = ?2
    UNION ALL SELECT 1, session FROM transcript_lines
    WHERE user = ?1 AND iif(json_valid(document), document ->> '$.raw.hash', NULL) = ?3
    UNION ALL SELECT 1, session FROM transcript_lines
    WHERE user = ?1 AND iif(json_valid(document), document ->> '$.sent.hash', NULL) = ?3
      AND iif(json_valid(document), document ->> '$.sent.hash', NULL) IS NOT NULL
    UNION ALL SELECT 2, run_id FROM runs WHERE user = ?1 AND receipt = ?2
    UNION ALL SELECT 2, run_id FROM runs WHERE user = ?1 AND output = ?2 AND output IS NOT NULL";

/// Whether a row names a content.
pub(crate) fn is_named(tx: &Transaction<'_>, user: &str, hash: ContentHash) -> Result<bool, StoreError> {
    let mut named = false;
    each_namer(tx, user, hash, |_, _| {
        named = true;
        false
    })?;
    Ok(named)
}

/// Passes what names a content to `visit`, as the number of its kind and its id, until that returns false.
pub(super) fn each_namer(
    tx: &Transaction<'_>,
    user: &str,
    hash: ContentHash,
    mut visit: impl FnMut(u8, String) -> bool,
) -> Result<(), StoreError> {
    let mut query = tx.prepare_cached(NAMERS)?;
    let name = larder_text::pointer::PointerId::name_of(hash);
    let mut rows = query.query((user, hash.as_bytes(), hash.to_hex(), name))?;
    while let Some(row) = rows.next()? {
        if !visit(row.get(0)?, row.get(1)?) {
            break;
        }
    }
    Ok(())
}
