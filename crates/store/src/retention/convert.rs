//! Brings a home of an older format into segments, a batch at a time, next to the traffic. Contents are readable in either
//! form at any moment, so this may stop anywhere and goes on with what is left.

use std::collections::BTreeMap;

use larder_text::hash::ContentHash;
use rusqlite::Transaction;

use super::Collector;
use crate::store::UserStore;
use larder_disk::StoreError;
use larder_disk::segments::PointerNote;

/// Contents moved in one transaction, and the bytes after which no further one is added.
const BATCH: i64 = 64;
const BATCH_BYTES: u64 = 4 << 20;
/// Noted in the index once nothing is left to move.
const DONE: &str = "segments_converted";

/// A pointer, and the content that is not yet a record of it.
struct Unconverted {
    user: String,
    name: String,
    content: ContentHash,
    note: PointerNote,
}

impl Collector<'_> {
    /// Moves what is left of older formats into segments.
    pub(super) fn convert(&mut self) -> Result<(), StoreError> {
        let store = self.store;
        let done = |tx: &Transaction<'_>| {
            Ok(tx.prepare_cached("SELECT 1 FROM meta WHERE key = ?1")?.exists([DONE])?)
        };
        if store.index().read(done)? {
            return Ok(());
        }
        let mut after = (String::new(), String::new());
        while let Some(batch) = store.index().read(|tx| pointers_after(tx, &after))? {
            let mut of_users: BTreeMap<String, BTreeMap<ContentHash, Option<PointerNote>>> = BTreeMap::new();
            for found in batch {
                of_users.entry(found.user.clone()).or_default().insert(found.content, Some(found.note));
                after = (found.user, found.name);
            }
            for (user, contents) in of_users {
                self.paced(|| store.user(&user)?.contents().convert(contents))?;
            }
            if self.stopped {
                return Ok(());
            }
        }
        let mut last = String::new();
        while let Some(user) = store.index().read(|tx| user_after(tx, &last))? {
            self.convert_files(&store.user(&user)?)?;
            if self.stopped {
                return Ok(());
            }
            last = user;
        }
        store.index().meta(DONE, "yes").map(drop)
    }

    /// Moves the contents that are files of their own, except very large ones, and removes the files.
    fn convert_files(&mut self, user: &UserStore) -> Result<(), StoreError> {
        let mut batch = BTreeMap::new();
        let mut bytes = 0;
        for hash in user.blobs().list(user.folder())? {
            bytes += user.blobs().path(user.folder(), hash).metadata().map_or(0, |file| file.len());
            batch.insert(hash, None);
            if batch.len() as i64 >= BATCH || bytes >= BATCH_BYTES {
                self.convert_batch(user, std::mem::take(&mut batch))?;
                bytes = 0;
            }
            if self.stopped {
                return Ok(());
            }
        }
        self.convert_batch(user, batch)?;
        for shard in larder_disk::files::entries(&user.blobs().root().join(user.folder()))? {
            // Only those that are empty.
            let _ = std::fs::remove_dir(shard.path);
        }
        Ok(())
    }

    fn convert_batch(
        &mut self,
        user: &UserStore,
        batch: BTreeMap<ContentHash, Option<PointerNote>>,
    ) -> Result<(), StoreError> {
        let hashes: Vec<_> = batch.keys().copied().collect();
        self.paced(|| {
            user.contents().convert(batch)?;
            for hash in hashes {
                if user.contents().record(hash)?.is_some_and(|row| !row.is_external) {
                    user.blobs().remove(user.folder(), hash)?;
                }
            }
            Ok(0)
        })
    }
}

/// The next pointers whose contents are no records of pointers; `None` if there are none.
fn pointers_after(
    tx: &Transaction<'_>,
    after: &(String, String),
) -> Result<Option<Vec<Unconverted>>, StoreError> {
    let mut query = tx.prepare_cached(
        "SELECT user, name, content, kind, display_text, bytes, created FROM pointers AS p
         WHERE (user, name) > (?1, ?2) AND NOT EXISTS
             (SELECT 1 FROM segment_contents AS s WHERE s.user = p.user AND s.hash = p.content AND s.flags & 1)
         ORDER BY user, name LIMIT ?3",
    )?;
    let mut rows = query.query((&after.0, &after.1, BATCH))?;
    let (mut found, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let note = PointerNote {
            kind: row.get(3)?,
            display_text: row.get(4)?,
            bytes: row.get::<_, i64>(5)?.unsigned_abs(),
            created: row.get::<_, i64>(6)?.unsigned_abs(),
        };
        bytes += note.bytes;
        let content = ContentHash::from_bytes(row.get(2)?);
        found.push(Unconverted { user: row.get(0)?, name: row.get(1)?, content, note });
        if bytes >= BATCH_BYTES {
            break;
        }
    }
    Ok(Some(found).filter(|found| !found.is_empty()))
}

/// The next user who has contents.
pub(crate) fn user_after(tx: &Transaction<'_>, after: &str) -> Result<Option<String>, StoreError> {
    let mut query = tx.prepare_cached(
        "SELECT min(user) FROM (
             SELECT min(user) AS user FROM pointers WHERE user > ?1
             UNION ALL SELECT min(user) FROM transcript_lines WHERE user > ?1
             UNION ALL SELECT min(user) FROM runs WHERE user > ?1
             UNION ALL SELECT min(user) FROM segment_contents WHERE user > ?1)",
    )?;
    Ok(query.query_row([after], |row| row.get(0))?)
}

#[cfg(test)]
#[path = "convert_tests.rs"]
mod tests;
