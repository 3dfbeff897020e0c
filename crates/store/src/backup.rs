//! `larder backup` and `larder restore`: a copy of a home that is itself a home.
//!
//! The index is copied first, as of one moment, then every content that it names, each checked against its hash. What a
//! collection erased in between has lost its names in the home; it loses them in the copy too, as an expired original.
//! Documents come last: a turn that the copied index has as committed is finished from it when the copy is opened. A
//! copy gets its name once it is whole and synced.

use std::path::Path;

use larder_text::hash::ContentHash;
use rusqlite::{Connection, OpenFlags};
use serde::{Deserialize, Serialize};

use crate::contents::{self, COLUMNS, RecordRow, record_row};
use crate::index::FORMAT_VERSION;
use crate::retention;
use crate::store::{Store, UserStore};
use larder_disk::StoreError;
use larder_disk::Timestamp;
use larder_disk::files;
use larder_disk::partial::PartialFolder;
use larder_disk::segments::Record;

/// The file that makes a folder a backup.
const MANIFEST: &str = "backup.json";
/// The folder of the documents, unless the settings name another place.
const DOCUMENTS: &str = "documents";
/// Records copied in one transaction, and the bytes after which no further one is added.
const BATCH: usize = 256;
const BATCH_BYTES: u64 = 4 << 20;

/// What is said in a backup of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    created: Timestamp,
    by: String,
    format: i64,
}

/// What a backup or a restored home has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BackupReport {
    /// Originals behind pointers.
    pub pointers: u64,
    /// All contents.
    pub contents: u64,
    /// Documents of turns and memory.
    pub documents: u64,
    /// What is damaged, as `larder verify` reports it.
    pub problems: Vec<String>,
}

impl BackupReport {
    /// The report with problems at the place where they were found first: the folder of the copy has another name soon.
    fn naming(mut self, copy: &Path, from: &Path) -> Self {
        let (copy, from) = (copy.display().to_string(), from.display().to_string());
        self.problems.iter_mut().for_each(|problem| *problem = problem.replace(&copy, &from));
        self
    }
}

impl Store {
    /// Writes a copy of the home to the folder `target`, which must be empty or missing, while others use the store. Documents
    /// belong to it if they are in the home. `progress` gets the number of contents copied.
    ///
    /// # Errors
    /// [`StoreError::NotEmpty`], [`StoreError::Locked`] while another backup is written there. Or reading or writing fails:
    /// then there is nothing at `target`.
    pub fn backup(&self, target: &Path, progress: &dyn Fn(u64)) -> Result<BackupReport, StoreError> {
        let partial = PartialFolder::begin(target)?;
        let copy = self.copy_index(partial.path())?;
        let mut copied = 0;
        let mut last = String::new();
        while let Some(user) = copy.index().read(|tx| retention::user_after(tx, &last))? {
            let users = (self.user(&user)?, copy.user(&user)?);
            copy_records(&users.0, &users.1, &mut |more| {
                copied += more;
                progress(copied);
            })?;
            for hash in self.blobs().list(users.0.folder())? {
                copy_file(&users.0, &users.1, hash)?;
            }
            last = user;
        }
        let documents = files::copy_all(&self.home().join(DOCUMENTS), &partial.path().join(DOCUMENTS))?;
        let report = checked(&copy, Some(self), documents)?.naming(partial.path(), self.home());
        copy.index().truncate_log()?;
        drop(copy);
        let by = concat!("larder ", env!("CARGO_PKG_VERSION")).to_owned();
        let manifest = Manifest { created: self.now(), by, format: FORMAT_VERSION };
        let json = serde_json::to_string_pretty(&manifest)
            .map_err(|source| StoreError::Record { what: MANIFEST.to_owned(), source })?;
        write(&partial.path().join(MANIFEST), json.as_bytes())?;
        partial.finish(target)?;
        Ok(report)
    }

    /// Copies a backup to `home`, which must be empty or missing.
    ///
    /// # Errors
    /// [`StoreError::NotABackup`], [`StoreError::NotEmpty`], [`StoreError::SchemaTooNew`]. Or reading or writing fails: then
    /// there is nothing at `home`.
    pub fn restore(
        backup: &Path,
        home: &Path,
        options: crate::StoreOptions,
    ) -> Result<BackupReport, StoreError> {
        let path = backup.join(MANIFEST);
        let manifest =
            std::fs::read(&path).ok().and_then(|json| serde_json::from_slice::<Manifest>(&json).ok());
        let Some(manifest) = manifest else {
            return Err(StoreError::NotABackup { path: backup.to_path_buf() });
        };
        if manifest.format > FORMAT_VERSION {
            return Err(StoreError::SchemaTooNew { path, found: manifest.format, known: FORMAT_VERSION });
        }
        let partial = PartialFolder::begin(home)?;
        files::copy_all(backup, partial.path())?;
        let manifest = partial.path().join(MANIFEST);
        std::fs::remove_file(&manifest).map_err(StoreError::io(&manifest, "restoring"))?;
        let documents = files::count_all(&partial.path().join(DOCUMENTS))?;
        let opened = Self::open(partial.path(), options)
            .and_then(|store| Ok((checked(&store, None, documents)?.naming(partial.path(), backup), store)));
        let (report, store) = opened.map_err(|error| error.of_original(partial.path(), backup))?;
        store.index().truncate_log()?;
        drop(store);
        partial.finish(home)?;
        Ok(report)
    }

    /// A store in `folder` with the index as it is now, the key, and no contents but rows.
    fn copy_index(&self, folder: &Path) -> Result<Self, StoreError> {
        let (index, key) = (folder.join("index.sqlite"), folder.join("key"));
        let from = self.home().join("key");
        let bytes = std::fs::read(&from).map_err(StoreError::io(&from, "reading the key"))?;
        write(&key, &bytes)?;
        // SQLite would make it readable by others.
        files::create_private(&index).map_err(StoreError::io(&index, "creating the copy of the index"))?;
        let path = self.index().path();
        // A connection of its own: the copy of a large index must not hold up readers.
        let copied =
            Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).and_then(|connection| {
                connection.busy_timeout(self.options().patience)?;
                connection.execute("VACUUM INTO ?1", [index.to_string_lossy()])
            });
        copied.map_err(|error| StoreError::from(error).at_index(path))?;
        let layout = larder_disk::home::Layout { home: folder.to_path_buf() };
        let _lock = layout.lock(self.options().patience)?;
        let index = crate::index::IndexDb::open(index, self.options().patience)?;
        Self::over(layout, self.options().clone(), index)
    }
}

/// Copies the records that the index of the copy has of a user.
fn copy_records(from: &UserStore, to: &UserStore, copied: &mut dyn FnMut(u64)) -> Result<(), StoreError> {
    let mut entries: Vec<(ContentHash, RecordRow)> = to.index().read(|tx| {
        let sql = format!("SELECT hash, {COLUMNS} FROM segment_contents WHERE user = ?1");
        let mut query = tx.prepare(&sql)?;
        let rows = query
            .query_map([to.user()], |row| Ok((ContentHash::from_bytes(row.get(0)?), record_row(row, 1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    })?;
    // In the order of the files.
    entries.sort_by_key(|(_, row)| row.place);
    to.index().write_unsynced(|tx| {
        for table in ["segment_contents", "segment_erasures", "segments"] {
            let column = format!("DELETE FROM {table} WHERE user = ?1");
            tx.execute(&column, [to.user()])?;
        }
        Ok(())
    })?;
    let mut batch = Vec::new();
    let mut bytes = 0;
    for (hash, row) in entries {
        if let Some(record) = read_record(from, hash, row)? {
            bytes += row.place.length;
            batch.push(record);
        }
        if batch.len() == BATCH || bytes >= BATCH_BYTES {
            copied(batch.len() as u64);
            write_records(to, &std::mem::take(&mut batch))?;
            bytes = 0;
        }
    }
    copied(batch.len() as u64);
    write_records(to, &batch)
}

/// The record of a content, wherever it is by now; `None` if it was erased or is damaged.
fn read_record(from: &UserStore, hash: ContentHash, row: RecordRow) -> Result<Option<Record>, StoreError> {
    let mut row = row;
    loop {
        match from.segments().read(from.folder(), row.place) {
            Ok(record) if record.hash == hash => return Ok(Some(record)),
            Ok(_) => {}
            Err(error) if error.is_damage() => {}
            Err(error) => return Err(error),
        }
        match from.contents().record(hash)? {
            Some(now) if now != row => row = now,
            _ => return Ok(None),
        }
    }
}

fn write_records(to: &UserStore, records: &[Record]) -> Result<(), StoreError> {
    if records.is_empty() {
        return Ok(());
    }
    let appended = to.segments().append(to.folder(), records)?;
    to.index().write_unsynced(|tx| {
        for (record, place) in records.iter().zip(&appended.places) {
            contents::enter_record(tx, to.user(), record, *place)?;
        }
        Ok(())
    })
}

/// Copies a content that is a file of its own; it may have been erased.
fn copy_file(from: &UserStore, to: &UserStore, hash: ContentHash) -> Result<(), StoreError> {
    let path = from.blobs().path(from.folder(), hash);
    match std::fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        frame => {
            let frame = frame.map_err(StoreError::io(&path, "reading the blob"))?;
            to.blobs().put_all(to.folder(), &std::iter::once((hash, frame)).collect())
        }
    }
}

/// Copies a content that was brought from a file into a segment since the index was copied; returns whether it was.
fn copy_converted(from: &UserStore, to: &UserStore, hash: ContentHash) -> Result<bool, StoreError> {
    let Some(row) = from.contents().record(hash)? else { return Ok(false) };
    let record = read_record(from, hash, row)?;
    write_records(to, record.as_slice())?;
    Ok(record.is_some())
}

/// Checks a copy. Of what the original has erased meanwhile, the names go as well.
fn checked(copy: &Store, original: Option<&Store>, documents: u64) -> Result<BackupReport, StoreError> {
    let mut report = copy.verify()?;
    if let Some(original) = original {
        let mut is_changed = false;
        for (user, hash) in &report.missing {
            if !original.index().read(|tx| retention::is_named(tx, user, *hash))? {
                copy.index().write_unsynced(|tx| retention::remove_named(tx, user, *hash, copy.now()))?;
                is_changed = true;
            } else {
                is_changed |= copy_converted(&original.user(user)?, &copy.user(user)?, *hash)?;
            }
        }
        if is_changed {
            report = copy.verify()?;
        }
    }
    let problems = report.problems.iter().map(ToString::to_string).collect();
    Ok(BackupReport { pointers: report.pointers, contents: report.blobs, documents, problems })
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    files::create_private(path)
        .and_then(|mut file| std::io::Write::write_all(&mut file, bytes))
        .map_err(StoreError::io(path, "writing the copy"))
}

#[cfg(test)]
#[path = "backup_tests.rs"]
mod tests;
