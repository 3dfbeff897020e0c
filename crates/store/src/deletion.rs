//! Deleting a user with everything raw (C104), so that neither a crash nor another process leaves half of it.
//!
//! First the rows go, in a transaction that also notes the folder; then, in a second one, the folder is renamed
//! out of sight and the note goes; then the files are removed. While the note stands nobody writes rows for that
//! user. Opening a store finishes what a crash interrupted.

use std::io;

use rusqlite::Transaction;

use crate::error::StoreError;
use crate::files;
use crate::store::Store;
use crate::user;

/// How the names of folders that are being removed begin.
const DELETED_PREFIX: &str = ".deleted-";
/// Every table that holds rows of users.
const TABLES: [&str; 23] = [
    "contents",
    "pointers",
    "runs",
    "run_pointers",
    "interventions",
    "compactions",
    "keys",
    "key_days",
    "reservations",
    "sign_ins",
    "exchanges",
    "transcript_lines",
    "calibrations",
    "usage_sums",
    "session_calibrations",
    "round_trips",
    "turn_numbers",
    "turn_drafts",
    "turn_files",
    "document_writes",
    "turn_moves",
    "document_uses",
    "document_sources",
];

impl Store {
    /// Removes everything of a user: keys, rows, originals, receipts, transcripts, caches. The files are gone when this returns.
    pub fn delete_user(&self, user: &str) -> Result<(), StoreError> {
        user::check(user)?;
        self.index().write(|tx| {
            for table in TABLES {
                tx.execute(&format!("DELETE FROM {table} WHERE user = ?1"), [user])?;
            }
            tx.execute(
                "INSERT INTO deletions (folder) VALUES (?1) ON CONFLICT DO NOTHING",
                [user::folder(user)],
            )?;
            Ok(())
        })?;
        self.finish_deletions()
    }

    /// Finishes every deletion that is under way.
    pub(crate) fn finish_deletions(&self) -> Result<(), StoreError> {
        let pending: Vec<String> = self.index().read(|tx| {
            let mut query = tx.prepare("SELECT folder FROM deletions")?;
            Ok(query.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
        })?;
        if !pending.is_empty() {
            self.index().write(|tx| pending.iter().try_for_each(|folder| self.set_aside(tx, folder)))?;
            // Deleted rows are overwritten in the file; the log of writes still has them until it is folded in.
            self.index().truncate_log()?;
        }
        self.remove_set_aside()
    }

    fn set_aside(&self, tx: &Transaction<'_>, folder: &str) -> Result<(), StoreError> {
        // The note is taken down first: whoever finds it gone must not touch what the user has put since.
        if tx.execute("DELETE FROM deletions WHERE folder = ?1", [folder])? == 0 {
            return Ok(());
        }
        let root = self.blobs().root();
        let from = root.join(folder);
        let to = root.join(format!("{DELETED_PREFIX}{}", self.new_run_id()?));
        match std::fs::rename(&from, to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::io(&from, "deleting a user's blobs")(error))
            }
            _ => files::sync_dir(root),
        }
    }

    fn remove_set_aside(&self) -> Result<(), StoreError> {
        for entry in files::entries(self.blobs().root())? {
            if !entry.name.starts_with(DELETED_PREFIX) {
                continue;
            }
            match std::fs::remove_dir_all(&entry.path) {
                // Another process finishes the same deletion.
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(StoreError::io(&entry.path, "deleting a user's blobs")(error));
                }
                _ => {}
            }
        }
        Ok(())
    }
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
        store.user("a").unwrap().put(&CONTENT, "text", "").unwrap();
        let note = "DELETE FROM pointers; INSERT INTO deletions VALUES ('u-a')";
        store.index().write(|tx| Ok(tx.execute_batch(note)?)).unwrap();
        std::fs::create_dir(store.blobs().root().join(".deleted-x")).unwrap();
        let refused = store.user("a").unwrap().put(&CONTENT, "text", "");
        assert!(matches!(refused, Err(StoreError::BeingDeleted { .. })));
        let store = open();
        assert!(files::entries(store.blobs().root()).unwrap().is_empty());
        store.user("a").unwrap().put(&CONTENT, "text", "").unwrap();
        assert!(store.verify().unwrap().is_clean());
    }

    #[test]
    fn a_deletion_that_another_process_finished_touches_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), StoreOptions::default()).unwrap();
        let user = store.user("a").unwrap();
        let stored = user.put(&CONTENT, "text", "").unwrap();
        store.index().write(|tx| store.set_aside(tx, "u-a")).unwrap();
        assert_eq!(user.resolve(&stored.pointer_id).unwrap(), CONTENT);
    }
}
