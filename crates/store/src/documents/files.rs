//! Reading and writing single documents, within the folders of one user.

use larder_text::hash::ContentHash;
use larder_vault::VaultPath;
use rusqlite::{Transaction, params};
use std::sync::PoisonError;

use super::index::{Indexed, is_indexed, put, remove, rows_of};
use super::{UserDocuments, notes};
use crate::retention::holds;
use larder_disk::StoreError;

/// Knowledge about sites, which all users can read (R1-7.2).
const SHARED: &str = "site_knowledge";

/// Reads and writes single documents of one user; from [`UserDocuments::files`].
#[derive(Debug, Clone, Copy)]
pub struct DocumentFiles<'d> {
    pub(super) docs: &'d UserDocuments,
}

impl DocumentFiles<'_> {
    /// Reads a document; `None` if it does not exist. Paths of other users are refused; `site_knowledge/` is readable
    /// by all.
    ///
    /// # Errors
    /// If the path belongs to another user or contains a symbolic link, or reading fails.
    pub fn read(&self, path: &VaultPath) -> Result<Option<Vec<u8>>, StoreError> {
        if !path.as_str().starts_with("site_knowledge/") {
            self.docs.require_own(path)?;
        }
        self.docs.tree().read(path)
    }

    /// As [`DocumentFiles::read`], for text.
    ///
    /// # Errors
    /// As `read`; and [`StoreError::NotText`] for bytes that are not UTF-8.
    pub fn read_text(&self, path: &VaultPath) -> Result<Option<String>, StoreError> {
        let Some(bytes) = self.read(path)? else { return Ok(None) };
        let text = String::from_utf8(bytes).map_err(|error| StoreError::NotText {
            path: path.to_string(),
            at: error.utf8_error().valid_up_to(),
        })?;
        Ok(Some(text))
    }

    /// All files below a folder, sorted; empty if the folder does not exist. Hidden files are skipped.
    ///
    /// # Errors
    /// The folder is not one of this user, or listing fails.
    pub fn list(&self, folder: &str) -> Result<Vec<VaultPath>, StoreError> {
        let folder = folder.trim_end_matches('/');
        let inside = VaultPath::new(&format!("{folder}/x")).filter(|inside| self.docs.owns(inside));
        let archived = folder.strip_prefix("archive/").and_then(|rest| rest.split_once('/'));
        let own = inside.is_some() || archived.is_some_and(|(_, name)| name == self.docs.name);
        let shared = folder == SHARED || folder.starts_with("site_knowledge/");
        match VaultPath::new(folder) {
            Some(_) if shared || own => self.docs.tree().list(folder),
            _ => Err(self.docs.foreign(folder)),
        }
    }

    /// Writes a document outside turns, durably. `seen` is the hash of the version that was read, `None` if there was
    /// no such document.
    ///
    /// # Errors
    /// [`StoreError::Changed`] if the document has changed since; nothing is written then. Also if the path does not
    /// belong to this user, or writing fails.
    pub fn write(&self, path: &VaultPath, bytes: &[u8], seen: Option<ContentHash>) -> Result<(), StoreError> {
        self.docs.require_own(path)?;
        let _one_at_a_time = self.docs.handles.writes.lock().unwrap_or_else(PoisonError::into_inner);
        let _one_process = self.docs.leases().lock_writes()?;
        let standing = self.docs.tree().read(path)?;
        if standing.as_deref().map(ContentHash::new) != seen {
            return Err(StoreError::Changed { path: path.to_string() });
        }
        let indexed = is_indexed(path);
        if indexed {
            self.note_write(path)?;
        }
        self.hold(path, bytes)?;
        self.docs.tree().write(path, bytes)?;
        self.docs.tree().sync(std::slice::from_ref(path))?;
        if indexed {
            self.index_bytes(path, bytes)?;
            self.forget_write(path)?;
        }
        if notes::shows_memory(path) {
            self.docs.notes().write_memory_index()?;
        } else if notes::is_site(path) {
            self.docs.notes().write_wrapper(path, bytes, None)?;
        }
        Ok(())
    }

    /// Keeps the originals that a document refers to from expiring.
    pub(super) fn hold(&self, path: &VaultPath, bytes: &[u8]) -> Result<(), StoreError> {
        let names = holds::pointers_in(bytes);
        let set = |tx: &Transaction<'_>| holds::set_names(tx, self.docs.user(), path.as_str(), &names);
        // Most documents refer to none, and need not wait for a sync.
        if names.is_empty() { self.docs.store.write_unsynced(set) } else { self.docs.store.write(set) }
    }

    /// Records that the index may be older than a document, in case of a crash in between.
    fn note_write(&self, path: &VaultPath) -> Result<(), StoreError> {
        self.docs.store.write_unsynced(|tx| {
            let sql = "INSERT INTO document_writes (user, path) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
            tx.execute(sql, params![self.docs.user(), path.as_str()])?;
            Ok(())
        })
    }

    pub(super) fn forget_write(&self, path: &VaultPath) -> Result<(), StoreError> {
        self.docs.store.write_unsynced(|tx| {
            let sql = "DELETE FROM document_writes WHERE user = ?1 AND path = ?2";
            tx.execute(sql, params![self.docs.user(), path.as_str()])?;
            Ok(())
        })
    }

    /// Indexes these bytes as the content of a document.
    pub(super) fn index_bytes(&self, path: &VaultPath, bytes: &[u8]) -> Result<(), StoreError> {
        let rows = rows_of(path, bytes);
        self.docs.index().write(|tx| match &rows {
            Indexed::Rows(rows) => put(tx, rows),
            _ => remove(tx, path),
        })
    }
}
