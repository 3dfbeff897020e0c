//! The size limit between collections: while the store is over it and nothing may be removed, nothing new is taken. The
//! last collection's finding is kept in the index, so that every process obeys it.

use rusqlite::Transaction;

use crate::store::Store;
use larder_disk::StoreError;

const KEY: &str = "over_limit";

/// Keeps what a collection found.
pub(super) fn set(store: &Store, over: bool) -> Result<(), StoreError> {
    if store.is_over_limit()? == over {
        return Ok(());
    }
    store.index().write(|tx| {
        match over {
            true => tx.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, 'yes')", [KEY])?,
            false => tx.execute("DELETE FROM meta WHERE key = ?1", [KEY])?,
        };
        Ok(())
    })
}

impl Store {
    /// Whether the last collection, of any process, found the store above its limit.
    ///
    /// # Errors
    /// Reading fails.
    pub fn is_over_limit(&self) -> Result<bool, StoreError> {
        self.index().read(is_over)
    }

    /// Fails where [`Store::is_over_limit`] holds. For work whose result is stored once it is paid for, even if the limit is
    /// reached meanwhile.
    ///
    /// # Errors
    /// [`StoreError::OverLimit`], or reading fails.
    pub fn require_room(&self) -> Result<(), StoreError> {
        self.index().read(require_room)
    }
}

fn is_over(tx: &Transaction<'_>) -> Result<bool, StoreError> {
    Ok(tx.prepare_cached("SELECT 1 FROM meta WHERE key = ?1")?.exists([KEY])?)
}

/// How it is checked whether something may be added: [`require_room`] or [`exempt`].
pub(crate) type RoomCheck = fn(&Transaction<'_>) -> Result<(), StoreError>;

/// Fails while the store is over its limit; call it before adding an original, a line of a transcript or a run, and before
/// beginning a turn, a session or a message.
pub(crate) fn require_room(tx: &Transaction<'_>) -> Result<(), StoreError> {
    if is_over(tx)? { Err(StoreError::OverLimit) } else { Ok(()) }
}

/// Lets what is already under way finish.
pub(crate) const fn exempt(_: &Transaction<'_>) -> Result<(), StoreError> {
    Ok(())
}
