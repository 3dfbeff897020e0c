//! Segments that are mostly erased: what is left of them moves to another one, and the file goes.

use larder_text::hash::ContentHash;
use rusqlite::Transaction;

use super::Collector;
use crate::contents::Found;
use crate::store::UserStore;
use larder_disk::StoreError;
use larder_disk::segments::Record;

/// Bytes of contents moved in one transaction.
const BATCH_BYTES: usize = 1 << 20;

impl Collector<'_> {
    /// Rewrites the segments of which more than half is erased, except those that some process appends to.
    pub(super) fn rewrite(&mut self) -> Result<(), StoreError> {
        let store = self.store;
        let erased: Vec<(String, u32, i64)> = store.index().read(|tx| {
            let mut query =
                tx.prepare_cached("SELECT user, number, dead FROM segments ORDER BY user, number")?;
            let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })?;
        for (user, number, dead) in erased {
            let user = store.user(&user)?;
            if self.stopped {
                break;
            }
            if dead.unsigned_abs().saturating_mul(2) >= store.segments().size(user.folder(), number) {
                self.rewrite_segment(&user, number)?;
            }
        }
        Ok(())
    }

    fn rewrite_segment(&mut self, user: &UserStore, number: u32) -> Result<(), StoreError> {
        // Nobody appends to it as long as this exists, and all that was appended is committed or never will be.
        let lock = user.segments().lock(user.folder(), number)?;
        if lock.is_some() {
            let (mut batch, mut bytes) = (Vec::new(), 0);
            for (place, record) in user.segments().scan(user.folder(), number)? {
                let Some(row) = user.contents().record(record.hash)?.filter(|row| row.place == place) else {
                    continue;
                };
                bytes += record.frame.as_ref().map_or(0, Vec::len);
                batch.push((Some(Found::Record(row)), record));
                if bytes >= BATCH_BYTES {
                    self.move_batch(user, std::mem::take(&mut batch))?;
                    bytes = 0;
                }
                if self.stopped {
                    return Ok(());
                }
            }
            self.move_batch(user, batch)?;
            if user.index().read(|tx| in_segment(tx, user.user(), number))?.is_some() {
                tracing::warn!(
                    number,
                    user = user.user(),
                    "a segment with damaged records stays; run `larder verify`"
                );
                return Ok(());
            }
            user.segments().remove(user.folder(), number)?;
        } else if user.segments().size(user.folder(), number) > 0 {
            return Ok(());
        }
        user.index().write_unsynced(|tx| {
            for sql in [
                "DELETE FROM segment_erasures WHERE user = ?1 AND segment = ?2",
                "DELETE FROM segments WHERE user = ?1 AND number = ?2",
            ] {
                tx.prepare_cached(sql)?.execute((user.user(), number))?;
            }
            Ok(())
        })
    }

    fn move_batch(
        &mut self,
        user: &UserStore,
        batch: Vec<(Option<Found>, Record)>,
    ) -> Result<(), StoreError> {
        self.paced(|| user.contents().move_all(batch, |_, _| Ok(true)).map(|()| 0))
    }
}

/// A content that is in a segment.
fn in_segment(tx: &Transaction<'_>, user: &str, number: u32) -> Result<Option<ContentHash>, StoreError> {
    let mut query =
        tx.prepare_cached("SELECT hash FROM segment_contents WHERE user = ?1 AND segment = ?2 LIMIT 1")?;
    let mut rows = query.query((user, number))?;
    Ok(rows.next()?.map(|row| row.get(0)).transpose()?.map(ContentHash::from_bytes))
}
