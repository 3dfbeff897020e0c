//! The second step of a collection: bytes that nothing names any more.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use larder_text::hash::ContentHash;
use rusqlite::Transaction;

use crate::pointers::to_sql;
use crate::store::Store;
use larder_disk::StoreError;
use larder_disk::files;
use larder_disk::segments::RecordPlace;
use larder_disk::user;

/// Contents erased in one transaction: each may be a file to remove, and others wait for the transaction.
const BATCH: i64 = 64;
/// Records overwritten in one transaction.
const RECORDS: i64 = 32;

/// A content that is noted for erasure, with its user.
type Noted = (String, ContentHash);

impl Store {
    /// Erases the next contents that are noted for it and that nothing has named again; returns the bytes freed, `None`
    /// if none were noted.
    pub(super) fn erase_batch(&self) -> Result<Option<u64>, StoreError> {
        let noted = self.index().read(noted)?;
        let erased = self.erase_records()?;
        if noted.is_empty() {
            return Ok(erased.then_some(0));
        }
        let mut folders = BTreeSet::new();
        let mut kept = Vec::new();
        // A crash of the machine may undo this: the contents are then still noted.
        let freed = self.index().write_unsynced(|tx| {
            let mut freed: u64 = 0;
            // What others are based on comes last: they may go here, and would note it again.
            let (based, plain) = self.by_base(tx, &noted)?;
            for (user, hash) in based.into_iter().chain(plain) {
                if is_named(tx, user, *hash)? {
                    kept.push((user.clone(), *hash));
                    continue;
                }
                freed = freed.saturating_add(self.user(user)?.contents().erase(tx, *hash)?);
                let path = self.blobs().path(&user::folder(user), *hash);
                folders.extend(path.parent().map(Path::to_path_buf));
            }
            Ok(freed)
        })?;
        for (user, hash) in &kept {
            self.user(user)?.contents().forget_pointer(*hash)?;
        }
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

    /// The contents with a base, and the others.
    fn by_base<'n>(
        &self,
        tx: &Transaction<'_>,
        noted: &'n [Noted],
    ) -> Result<(Vec<&'n Noted>, Vec<&'n Noted>), StoreError> {
        let (mut based, mut plain) = (Vec::new(), Vec::new());
        for content in noted {
            let row = crate::contents::record(tx, &content.0, content.1)?;
            if row.is_some_and(|row| row.base.is_some()) { based.push(content) } else { plain.push(content) }
        }
        Ok((based, plain))
    }

    /// Overwrites the next records that are noted for it; returns whether there were any. Their notes were committed
    /// together with the removal of their entries, and go once the bytes have gone.
    pub(super) fn erase_records(&self) -> Result<bool, StoreError> {
        let noted = self.index().read(noted_records)?;
        if noted.is_empty() {
            return Ok(false);
        }
        // The removal of the entries must not be undone by a power failure once the bytes have gone.
        self.index().sync()?;
        // In a transaction that writes: the folder of a user who is deleted cannot be replaced meanwhile.
        let noted = self.index().write_unsynced(|tx| {
            let mut still = noted_records(tx)?;
            still.retain(|user, places| {
                places.retain(|place| noted.get(user).is_some_and(|noted| noted.contains(place)));
                !places.is_empty()
            });
            for (user, places) in &still {
                self.segments().erase(&user::folder(user), places)?;
            }
            Ok(still)
        })?;
        for (user, places) in &noted {
            self.segments().sync(&user::folder(user), places)?;
        }
        self.index().write_unsynced(|tx| {
            let mut done = tx.prepare_cached(
                "DELETE FROM segment_erasures WHERE user = ?1 AND segment = ?2 AND at = ?3",
            )?;
            let mut count = tx.prepare_cached(
                "INSERT INTO segments (user, number, dead) VALUES (?1, ?2, ?3)
                 ON CONFLICT (user, number) DO UPDATE SET dead = dead + excluded.dead",
            )?;
            for (user, places) in &noted {
                for place in places {
                    // None if another process has erased it as well.
                    if done.execute((user, place.segment, to_sql(place.at)))? > 0 {
                        count.execute((user, place.segment, to_sql(place.length)))?;
                    }
                }
            }
            Ok(())
        })?;
        Ok(true)
    }

    /// Bytes that contents and index take on disk, without pages of the index that are free for reuse and without what was
    /// erased of segments.
    pub(super) fn bytes_on_disk(&self) -> Result<u64, StoreError> {
        let (pages, erased): (i64, i64) = self.index().read(|tx| {
            let pragma = |name| Ok::<i64, StoreError>(tx.pragma_query_value(None, name, |row| row.get(0))?);
            let pages = (pragma("page_count")? - pragma("freelist_count")?) * pragma("page_size")?;
            let erased = "SELECT coalesce((SELECT sum(dead) FROM segments), 0)
                               + coalesce((SELECT sum(length) FROM segment_erasures), 0)";
            Ok((pages, tx.query_row(erased, [], |row| row.get(0))?))
        })?;
        let contents = self.blobs().bytes_on_disk()?.saturating_sub(erased.unsigned_abs());
        Ok(contents.saturating_add(pages.unsigned_abs()))
    }
}

fn noted(tx: &Transaction<'_>) -> Result<Vec<(String, ContentHash)>, StoreError> {
    let mut query = tx.prepare_cached("SELECT user, hash FROM erasures LIMIT ?1")?;
    let rows = query.query_map([BATCH], |row| Ok((row.get(0)?, ContentHash::from_bytes(row.get(1)?))))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Records whose bytes may go, by user.
fn noted_records(tx: &Transaction<'_>) -> Result<BTreeMap<String, Vec<RecordPlace>>, StoreError> {
    let mut query = tx.prepare_cached("SELECT user, segment, at, length FROM segment_erasures LIMIT ?1")?;
    let mut rows = query.query([RECORDS])?;
    let mut places: BTreeMap<String, Vec<RecordPlace>> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let (at, length): (i64, i64) = (row.get(2)?, row.get(3)?);
        places.entry(row.get(0)?).or_default().push(RecordPlace {
            segment: row.get(1)?,
            at: at.unsigned_abs(),
            length: length.unsigned_abs(),
        });
    }
    Ok(places)
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
    UNION ALL SELECT 2, run_id FROM runs WHERE user = ?1 AND output = ?2 AND output IS NOT NULL
    UNION ALL SELECT 3, hex(hash) FROM segment_contents WHERE user = ?1 AND base = ?2 AND base IS NOT NULL";

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
