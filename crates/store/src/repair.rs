//! `larder repair`: a new index from the segments, after the old one was lost or damaged. Each record names its owner, its
//! content and what its pointer says; everything else that the index had is lost, and listed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use larder_text::hash::ContentHash;
use larder_text::pointer::Pointer;
use rusqlite::{Connection, OpenFlags};
use serde::Serialize;

use crate::contents::Found;
use crate::index::IndexDb;
use crate::pointers::{StoredPointer, instructions};
use crate::retention::limit;
use crate::store::{Store, StoreOptions, UserStore};
use larder_disk::StoreError;
use larder_disk::data_rules::lost_with_index;
use larder_disk::files;
use larder_disk::home::Layout;
use larder_disk::index_files;
use larder_disk::segments::PointerNote;
use larder_disk::user;

/// What a pointer says whose record is of a format that did not keep it.
const UNKNOWN_KIND: &str = "unknown";
/// The key in `meta` of the time of the repair, until what lost its names then has gone.
pub(crate) const REPAIRED: &str = "repaired";

/// What a repair did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RepairReport {
    /// Whether the index was intact, so that nothing was changed.
    pub intact: bool,
    /// Pointers in the new index.
    pub pointers: u64,
    /// Contents in the new index; those without pointers have lost what named them, and go once they are as old as
    /// transcripts may be.
    pub contents: u64,
    /// Users to whom they belong.
    pub users: u64,
    /// Where the damaged index is now, if there was one.
    pub damaged_index: Option<PathBuf>,
    /// What only the old index had.
    pub lost: Vec<String>,
    /// Records and files that could not be used, and why.
    pub problems: Vec<String>,
}

impl Store {
    /// Rebuilds the index of a home from the contents, if it is missing or damaged. The old one is kept next to it until a
    /// user is forgotten. No other process may use the home meanwhile.
    ///
    /// # Errors
    /// [`StoreError::Locked`] if a process is storing contents, [`StoreError::KeyMissing`] without the key. Or reading or
    /// writing fails: then another repair begins anew.
    pub fn repair(home: &Path, options: StoreOptions) -> Result<RepairReport, StoreError> {
        let layout = Layout { home: home.to_path_buf() };
        let lock = layout.lock(options.patience)?;
        if !layout.key().exists() {
            return Err(StoreError::KeyMissing { path: layout.key() });
        }
        if is_intact(&layout.index()) {
            return Ok(RepairReport { intact: true, ..RepairReport::default() });
        }
        let rebuilt = layout.rebuilt_index();
        index_files::remove(&rebuilt)?;
        let index = IndexDb::open(rebuilt.clone(), options.patience)?;
        let store = Self::over(layout.clone(), options, index)?;
        let mut repair = Repair { store: &store, report: RepairReport::default(), owners: BTreeMap::new() };
        repair.run()?;
        let mut report = repair.report;
        store.index().truncate_log()?;
        drop(store);
        report.damaged_index = index_files::move_damaged(&layout.index())?;
        let named = std::fs::rename(&rebuilt, layout.index());
        named.map_err(StoreError::io(&rebuilt, "naming the rebuilt index"))?;
        // Made from documents, and no longer known to cover what the new index has.
        let derived = home.join("indexes");
        match std::fs::remove_dir_all(&derived) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(StoreError::io(&derived, "removing the indexes of documents")(error));
            }
            _ => {}
        }
        files::sync_dir(home)?;
        drop(lock);
        report.lost = lost_with_index().into_iter().map(str::to_owned).collect();
        Ok(report)
    }
}

/// A repair under way.
struct Repair<'a> {
    store: &'a Store,
    report: RepairReport,
    /// The ids of users by their folders.
    owners: BTreeMap<String, String>,
}

impl Repair<'_> {
    fn run(&mut self) -> Result<(), StoreError> {
        let mut users = BTreeSet::new();
        for entry in files::entries(self.store.blobs().root())? {
            if !entry.name.starts_with("u-") && !entry.name.starts_with("h-") {
                continue;
            }
            if let Some(plain) = entry.name.strip_prefix("u-") {
                self.owners.insert(entry.name.clone(), plain.to_owned());
            }
            for number in self.store.segments().list(&entry.name)? {
                self.segment(&entry.name, number)?;
            }
            self.check(&entry.name)?;
            self.files(&entry.name)?;
            users.extend(self.owners.get(&entry.name).cloned());
        }
        self.report.users = users.len() as u64;
        // There may have been keys: what needed one before must not be open now.
        self.store.index().meta("keys_created", "yes")?;
        self.store.index().meta(REPAIRED, &self.store.now().as_millis().to_string())?;
        let counted = self.store.index().read(|tx| {
            let count = |table: &str| {
                tx.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get::<_, i64>(0))
            };
            Ok((count("pointers")?, count("segment_contents")?))
        })?;
        (self.report.pointers, self.report.contents) = (counted.0.unsigned_abs(), counted.1.unsigned_abs());
        Ok(())
    }

    /// Enters the records of a segment.
    fn segment(&mut self, folder: &str, number: u32) -> Result<(), StoreError> {
        if self.store.segments().lock(folder, number)?.is_none() {
            return Err(StoreError::Locked { path: self.store.segments().path(folder, number) });
        }
        let mut entries = Vec::new();
        for (place, record) in self.store.segments().scan(folder, number)? {
            if user::folder(&record.owner) != folder || user::check(&record.owner).is_err() {
                let path = self.store.segments().path(folder, number);
                self.problem(&path, &format!("the record at byte {} is of another user", place.at));
                continue;
            }
            self.owners.insert(folder.to_owned(), record.owner.clone());
            entries.push((self.store.user(&record.owner)?, place, record));
        }
        self.store.index().write_unsynced(|tx| {
            for (user, place, record) in &entries {
                let held = crate::contents::find(tx, user.user(), record.hash)?;
                // A copy that was about to be erased says less, or the same.
                if matches!(held, Some(Found::Record(row)) if row.has_pointer && record.pointer.is_none()) {
                    continue;
                }
                crate::contents::enter_record(tx, user.user(), record, *place)?;
                if let Some(note) = &record.pointer {
                    user.pointers().insert_row(tx, &pointer(user, record.hash, note), limit::exempt)?;
                }
            }
            Ok(())
        })
    }

    /// Removes the entries of a folder whose contents are damaged, or based on what is.
    fn check(&mut self, folder: &str) -> Result<(), StoreError> {
        let Some(owner) = self.owners.get(folder).cloned() else { return Ok(()) };
        let user = self.store.user(&owner)?;
        let all: Vec<([u8; 32], Option<[u8; 32]>)> = self.store.index().read(|tx| {
            let sql = "SELECT hash, base FROM segment_contents WHERE user = ?1 ORDER BY base IS NOT NULL, segment, at";
            let mut query = tx.prepare(sql)?;
            let rows = query.query_map([&owner], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })?;
        // Whether what others may be based on is intact. What is not in here was only in the old index.
        let mut bases = BTreeMap::new();
        for (hash, base) in all {
            let content = ContentHash::from_bytes(hash);
            let read = user.contents().read(content, |_| ());
            bases.insert(hash, read.is_ok());
            let Err(error) = read else { continue };
            if !error.is_damage() {
                return Err(error);
            }
            let on = base.map(|base| (ContentHash::from_bytes(base), bases.get(&base).copied()));
            match on {
                Some((base, Some(false))) => self.report.problems.push(format!(
                    "content {content} of user {owner:?}: based on content {base}, which is damaged"
                )),
                Some((_, None)) => {}
                _ => self.report.problems.push(error.to_string()),
            }
            self.store.index().write_unsynced(|tx| {
                let of = (&owner, hash);
                tx.execute("DELETE FROM segment_contents WHERE user = ?1 AND hash = ?2", of)?;
                tx.execute("DELETE FROM pointers WHERE user = ?1 AND content = ?2", of)?;
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Enters the contents that are files of an older format: whether they are originals is unknown, so each gets a
    /// pointer.
    fn files(&mut self, folder: &str) -> Result<(), StoreError> {
        let hashes = self.store.blobs().list(folder)?;
        let Some(owner) = self.owners.get(folder).cloned() else {
            if !hashes.is_empty() {
                let path = self.store.blobs().root().join(folder);
                self.problem(&path, "the id of the user is unknown: none of the records has it");
            }
            return Ok(());
        };
        let user = self.store.user(&owner)?;
        let now = self.store.now();
        for hash in hashes {
            if user.contents().record(hash)?.is_some() {
                continue;
            }
            match self.store.blobs().read(folder, hash, |_| ()) {
                Ok(bytes) => {
                    let note = PointerNote {
                        kind: UNKNOWN_KIND.to_owned(),
                        display_text: String::new(),
                        bytes,
                        created: now.as_millis(),
                    };
                    let pointer = pointer(&user, hash, &note);
                    self.store.index().write_unsynced(|tx| {
                        user.pointers().insert_row(tx, &pointer, limit::exempt).map(drop)
                    })?;
                }
                Err(error) => self.report.problems.push(error.to_string()),
            }
        }
        Ok(())
    }

    fn problem(&mut self, path: &Path, reason: &str) {
        self.report.problems.push(format!("{}: {reason}", path.display()));
    }
}

fn pointer(user: &UserStore, content: ContentHash, note: &PointerNote) -> StoredPointer {
    let id = user.key().mint(content);
    StoredPointer {
        rehydrate_instructions: instructions(&id),
        pointer_id: Pointer::whole(id),
        kind: note.kind.clone(),
        display_text: note.display_text.clone(),
        content,
        bytes: note.bytes,
        created: larder_disk::Timestamp::from_millis(note.created),
    }
}

/// Whether SQLite finds nothing wrong with an index. It is only read.
fn is_intact(path: &Path) -> bool {
    if path.metadata().map_or(0, |file| file.len()) == 0 {
        return false;
    }
    let check = || -> rusqlite::Result<bool> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        // Both fail for an index that has lost its tables.
        connection.query_row("SELECT count(*) FROM meta", [], |_| Ok(()))?;
        let found: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        Ok(found == "ok")
    };
    check().unwrap_or(false)
}

#[cfg(test)]
#[path = "repair_tests.rs"]
mod tests;
