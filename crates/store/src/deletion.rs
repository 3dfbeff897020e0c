//! Deletes a user with all raw data (C104), so that neither a crash nor another process leaves half of it.
//!
//! A first transaction deletes the rows and adds a marker; a second one renames the folder so that it is hidden and
//! deletes the marker; then the files are removed. While the marker exists, no rows are written for that user.
//! Opening a store completes what a crash interrupted.
//!
//! The second one also counts an early erasure and leaves the number, under a hash of the folder: what began at a lower
//! one, such as a request that is being answered, writes nothing afterwards (see [`crate::UserStore::since`]).

use std::io;

use rusqlite::Transaction;

use crate::conversations::pass_on;
use crate::store::Store;
use larder_disk::StoreError;
use larder_disk::data_rules::user_tables;
use larder_disk::files;
use larder_disk::index_files;
use larder_disk::user;

/// The prefix of folders that are being removed.
const DELETED_PREFIX: &str = ".deleted-";
/// The number of [`Store::early_erasures`] in the table `meta`.
pub(crate) const EARLY_ERASURES: &str = "early_erasures";

impl Store {
    /// Removes everything of a user: keys, rows, originals, receipts, transcripts, caches. The files are
    /// deleted when this returns.
    pub fn delete_user(&self, user: &str) -> Result<(), StoreError> {
        user::check(user)?;
        self.index().write(|tx| {
            for (table, _) in user_tables().filter(|(table, _)| *table != "conversations") {
                tx.execute(&format!("DELETE FROM {table} WHERE user = ?1"), [user])?;
            }
            pass_on(tx, user, None)?;
            count_early_erasure(tx)?;
            tx.execute("INSERT OR IGNORE INTO deletions (folder) VALUES (?1)", [user::folder(user)])?;
            Ok(())
        })?;
        finish_deletions(self)?;
        index_files::remove_damaged(self.home())
    }

    /// Empties the log of writes, which holds erased bytes until then; false if someone read all the while.
    pub fn empty_log(&self) -> Result<bool, StoreError> {
        self.index().truncate_log()
    }
}

/// Counts an erasure of originals that may have been used within the day, or damage by which one is lost.
pub(crate) fn count_early_erasure(tx: &Transaction<'_>) -> Result<(), StoreError> {
    let sql = "INSERT INTO meta (key, value) VALUES (?1, '1') ON CONFLICT DO UPDATE SET value = value + 1";
    tx.execute(sql, [EARLY_ERASURES])?;
    Ok(())
}

/// The key in `meta` of the number of early erasures at which the user with this folder was deleted last.
pub(crate) fn deleted_at(folder: &str) -> String {
    format!("deleted {}", blake3::hash(folder.as_bytes()).to_hex())
}

/// Completes every deletion in progress.
pub(crate) fn finish_deletions(store: &Store) -> Result<(), StoreError> {
    let pending: Vec<String> = store.index().read(|tx| {
        let mut query = tx.prepare("SELECT folder FROM deletions")?;
        Ok(query.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
    })?;
    if !pending.is_empty() {
        store.index().write(|tx| pending.iter().try_for_each(|folder| move_away(store, tx, folder)))?;
        // Deleted rows are overwritten in the file; the write-ahead log still has them until it is checkpointed.
        store.index().truncate_log()?;
    }
    remove_moved(store)
}

/// Hides the folder of a deleted user's blobs by renaming it, unless another process has done so.
fn move_away(store: &Store, tx: &Transaction<'_>, folder: &str) -> Result<(), StoreError> {
    // The marker is removed first: a process that does not find it must not touch what the user has stored since.
    if tx.execute("DELETE FROM deletions WHERE folder = ?1", [folder])? == 0 {
        return Ok(());
    }
    count_early_erasure(tx)?;
    let note = "INSERT OR REPLACE INTO meta (key, value) SELECT ?1, value FROM meta WHERE key = ?2";
    tx.execute(note, [&deleted_at(folder), EARLY_ERASURES])?;
    let root = store.blobs().root();
    let (from, to) = (root.join(folder), root.join(format!("{DELETED_PREFIX}{}", store.new_run_id()?)));
    match std::fs::rename(&from, to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(StoreError::io(&from, "deleting a user's blobs")(error))
        }
        _ => files::sync_dir(root),
    }
}

/// Removes the hidden folders.
fn remove_moved(store: &Store) -> Result<(), StoreError> {
    for entry in files::entries(store.blobs().root())? {
        if !entry.name.starts_with(DELETED_PREFIX) {
            continue;
        }
        match std::fs::remove_dir_all(&entry.path) {
            // Another process is completing the same deletion.
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(StoreError::io(&entry.path, "deleting a user's blobs")(error));
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreOptions;

    /// A large content, so that there is a folder to delete.
    static CONTENT: [u8; 100_000] = [b'x'; 100_000];

    #[test]
    fn a_deletion_cut_short_is_finished_when_the_store_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Store::open(dir.path(), StoreOptions::default()).unwrap();
        let store = open();
        store.user("a").unwrap().pointers().insert(&CONTENT, "text", "").unwrap();
        let note = "DELETE FROM pointers; INSERT INTO deletions VALUES ('u-a')";
        store.index().write(|tx| Ok(tx.execute_batch(note)?)).unwrap();
        std::fs::create_dir(store.blobs().root().join(".deleted-x")).unwrap();
        let refused = store.user("a").unwrap().pointers().insert(&CONTENT, "text", "");
        assert!(matches!(refused, Err(StoreError::BeingDeleted { .. })));
        let store = open();
        assert!(files::entries(store.blobs().root()).unwrap().is_empty());
        store.user("a").unwrap().pointers().insert(&CONTENT, "text", "").unwrap();
        assert!(store.verify().unwrap().is_clean());
    }

    #[test]
    fn a_deletion_that_another_process_finished_touches_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), StoreOptions::default()).unwrap();
        let user = store.user("a").unwrap();
        let stored = user.pointers().insert(&CONTENT, "text", "").unwrap();
        store.index().write(|tx| move_away(&store, tx, "u-a")).unwrap();
        assert_eq!(user.pointers().resolve(&stored.pointer_id).unwrap(), CONTENT);
    }
}
