//! Finishing what a crash interrupted. Everything here can be done again, and by several processes at once.

use std::collections::BTreeSet;

use larder_vault::VaultPath;

use super::index::put;
use super::{Documents, UserDocuments, journal};
use crate::error::StoreError;

impl Documents {
    /// Finishes what a crash interrupted, and builds indexes that are missing; gives the number of committed turns
    /// whose files were written again or found whole.
    ///
    /// Files that somebody has changed since they were written stay as they are.
    ///
    /// # Errors
    /// Reading or writing fails; what is done stays, and another call goes on.
    pub fn recover(&self) -> Result<u64, StoreError> {
        self.finish_forgets()?;
        let entries = self.store().index().read(|tx| journal::committed(tx, None))?;
        for (user, number) in &entries {
            self.user(user)?.redo(*number)?;
        }
        self.finish_moves()?;
        self.read_noted_writes()?;
        self.build_missing()?;
        let done = entries.len() as u64;
        self.retire(entries)?;
        Ok(done)
    }

    /// Reads the documents again whose writing was noted and not seen to end.
    fn read_noted_writes(&self) -> Result<(), StoreError> {
        let noted: Vec<(String, String)> = self.store().index().read(|tx| {
            let mut query = tx.prepare("SELECT user, path FROM document_writes ORDER BY user, path")?;
            let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })?;
        let mut users = BTreeSet::new();
        for (user, path) in noted {
            let documents = self.user(&user)?;
            if let Some(path) = VaultPath::new(&path) {
                documents.tree().tidy(path.folder())?;
                let bytes = documents.tree().read(&path)?;
                documents.index_bytes(&path, bytes.as_deref().unwrap_or_default())?;
                documents.forget_write(&path)?;
            }
            users.insert(user);
        }
        for user in users {
            self.user(&user)?.write_memory_index()?;
        }
        Ok(())
    }

    /// Builds the indexes that do not hold every document.
    fn build_missing(&self) -> Result<(), StoreError> {
        let names = self.user_names()?;
        for name in &names {
            if !self.shelf(name)?.index.is_built()? {
                self.build(name, &|_| {})?;
            }
        }
        self.set_known(names);
        Ok(())
    }
}

impl UserDocuments {
    /// Writes a turn of the journal again, as far as it is not there.
    pub(super) fn redo(&self, number: u32) -> Result<(), StoreError> {
        let files = self.store.index().read(|tx| journal::files_of(tx, self.user(), number))?;
        let folder = self.place.turn(number).folder().to_owned();
        let folders: BTreeSet<String> = files
            .keys()
            .map(|path| {
                path.rsplit_once('/').map_or(folder.clone(), |(below, _)| format!("{folder}/{below}"))
            })
            .collect();
        for folder in &folders {
            self.tree().tidy(folder)?;
        }
        let rows = self.write_turn(&folder, &files, true)?;
        self.index().write(|tx| rows.iter().try_for_each(|rows| put(tx, rows)))?;
        self.write_turn_notes(&rows)
    }
}
