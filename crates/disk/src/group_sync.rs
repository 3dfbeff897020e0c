//! One sync for all writers of a file that wait for one: each is often covered by the sync of another.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Counts the writes to a file and how many of them are synced.
#[derive(Debug, Default)]
pub struct GroupSync {
    written: AtomicU64,
    synced: Mutex<u64>,
}

/// A write that is not yet synced; from [`GroupSync::written`].
#[derive(Debug, Clone, Copy)]
pub struct Unsynced(u64);

impl GroupSync {
    /// Counts a write that has just been made.
    pub fn written(&self) -> Unsynced {
        Unsynced(self.written.fetch_add(1, Ordering::SeqCst) + 1)
    }

    /// Returns once the write survives a crash of the machine; `file` is the one that was written to.
    pub fn sync(&self, write: Unsynced, file: &File) -> io::Result<()> {
        let mut synced = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
        if *synced >= write.0 {
            return Ok(());
        }
        let covered = self.written.load(Ordering::SeqCst);
        file.sync_data()?;
        *synced = covered;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_covers_what_was_written_before_it() {
        let file = tempfile::tempfile().unwrap();
        let group = GroupSync::default();
        let writes = [group.written(), group.written()];
        group.sync(writes[1], &file).unwrap();
        assert_eq!(*group.synced.lock().unwrap(), 2);
        group.sync(writes[0], &file).unwrap();
        let third = group.written();
        assert_eq!(*group.synced.lock().unwrap(), 2, "a later write is not covered");
        group.sync(third, &file).unwrap();
        assert_eq!(*group.synced.lock().unwrap(), 3);
    }
}
