//! Completes what a crash interrupted. Everything here is idempotent and may run in several processes at once.

use std::collections::BTreeSet;

use larder_vault::VaultPath;

use super::archive::finish_moves;
use super::commit::TurnWriter;
use super::forget::finish_forgets;
use super::index::put;
use super::{Documents, journal};
use larder_disk::StoreError;

impl Documents {
    /// Completes what a crash interrupted, and builds missing indexes; returns the number of committed turns whose
    /// files were rewritten or found intact.
    ///
    /// Files that have been edited since they were written are left unchanged.
    ///
    /// # Errors
    /// If reading or writing fails; completed work remains, and another call continues.
    pub fn recover(&self) -> Result<u64, StoreError> {
        finish_forgets(self)?;
        let entries = self.store().index().read(|tx| journal::committed(tx, None))?;
        for (user, number) in &entries {
            self.user(user)?.writer().redo(*number)?;
        }
        finish_moves(self)?;
        read_noted_writes(self)?;
        self.build_missing()?;
        let done = entries.len() as u64;
        self.retire(entries)?;
        Ok(done)
    }

    /// Builds the indexes that do not cover every document.
    pub(crate) fn build_missing(&self) -> Result<(), StoreError> {
        let names = self.user_names()?;
        for name in &names {
            if !self.handles(name)?.index.is_built()? {
                self.build(name, &|_| {})?;
            }
        }
        self.set_known(names);
        Ok(())
    }
}

/// Rereads documents whose write was recorded as started but not as finished.
fn read_noted_writes(all: &Documents) -> Result<(), StoreError> {
    let noted: Vec<(String, String)> = all.store().index().read(|tx| {
        let mut query = tx.prepare("SELECT user, path FROM document_writes ORDER BY user, path")?;
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    })?;
    let mut users = BTreeSet::new();
    for (user, path) in noted {
        let documents = all.user(&user)?;
        if let Some(path) = VaultPath::new(&path) {
            documents.tree().tidy(path.folder())?;
            let bytes = documents.tree().read(&path)?;
            documents.files().hold(&path, bytes.as_deref().unwrap_or_default())?;
            documents.files().index_bytes(&path, bytes.as_deref().unwrap_or_default())?;
            documents.files().forget_write(&path)?;
        }
        users.insert(user);
    }
    for user in users {
        all.user(&user)?.notes().write_memory_index()?;
    }
    Ok(())
}

impl TurnWriter<'_> {
    /// Rewrites the missing parts of a turn in the journal.
    pub(super) fn redo(&self, number: u32) -> Result<(), StoreError> {
        let files = self.docs.store.index().read(|tx| journal::files_of(tx, self.docs.user(), number))?;
        let folder = self.docs.place.turn(number).folder().to_owned();
        let folders: BTreeSet<String> = files
            .keys()
            .map(|path| {
                path.rsplit_once('/').map_or(folder.clone(), |(below, _)| format!("{folder}/{below}"))
            })
            .collect();
        for folder in &folders {
            self.docs.tree().tidy(folder)?;
        }
        let rows = self.write_files(&folder, &files, true)?;
        self.docs.index().write(|tx| rows.iter().try_for_each(|rows| put(tx, rows)))?;
        self.docs.notes().write_for(&rows)
    }
}
