//! From a draft to files. One durable transaction turns the draft into a journal entry with all its files; then the
//! files are written, `metadata.json` last, followed by the rows of the index and the notes. The entry is removed
//! when the files are synced, which is done for many turns at once. A commit therefore waits for a single sync.

use std::sync::atomic::Ordering;

use larder_vault::{TurnMetadata, VaultPath, read_json};

use super::drafts::Drafts;
use super::index::{Indexed, PathKind, Rows, put, rows_of};
use super::journal::{self, TurnFiles};
use super::notes;
use super::types::TurnDraft;
use super::{Documents, UserDocuments};
use crate::jobs::{self, NewJob};
use larder_disk::StoreError;

/// The file that marks a folder as a turn.
pub(super) const METADATA: &str = "metadata.json";
/// Commits after which the files of all of them are synced and their entries removed, in the last of them.
const BATCH: u64 = 64;

/// The state of a draft before its files are written.
enum Stage {
    /// It is in the journal with these files.
    Journalled(TurnFiles),
    /// It was committed before, and its files are safe.
    Safe,
}

impl Drafts<'_> {
    /// Commits a turn whose files include its `metadata.json`. When it returns, the turn survives any crash; a second
    /// call changes nothing. Files that are not Markdown get readable notes next to them (C80).
    ///
    /// # Errors
    /// If the turn is incomplete or not this user's, or writing fails: before the journal entry, nothing has
    /// happened; after it, [`super::Documents::recover`] or another call completes the commit.
    pub fn commit(&self, draft: &TurnDraft) -> Result<(), StoreError> {
        self.commit_with(draft, &[])
    }

    /// As [`commit`](Self::commit), and adds background jobs to the queue: all of it, or nothing.
    ///
    /// # Errors
    /// As there.
    pub fn commit_with(&self, draft: &TurnDraft, jobs: &[NewJob]) -> Result<(), StoreError> {
        self.require_place(draft)?;
        let writer = self.docs.writer();
        let files = whole(draft)?;
        let Stage::Journalled(files) = writer.journal(draft, files, jobs)? else { return Ok(()) };
        let rows = writer.write_files(draft.place.folder(), &files, false)?;
        self.docs.index().write(|tx| rows.iter().try_for_each(|rows| put(tx, rows)))?;
        writer.write_notes_after(&rows)?;
        retire_when_due(&self.docs.documents)
    }
}

/// Turns drafts into files.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnWriter<'d> {
    pub(super) docs: &'d UserDocuments,
}

impl TurnWriter<'_> {
    /// Adds a turn to the journal, durably; an existing entry is left unchanged.
    fn journal(
        &self,
        draft: &TurnDraft,
        mut files: TurnFiles,
        new_jobs: &[NewJob],
    ) -> Result<Stage, StoreError> {
        let user = self.docs.user();
        let row = self.docs.store.index().read(|tx| journal::is_committed(tx, user, draft.number))?;
        if row.is_none() && self.docs.tree().read(&draft.place.metadata())?.is_some() {
            return Ok(Stage::Safe);
        }
        self.add_wrappers(draft, &mut files);
        self.docs.store.write(|tx| {
            if journal::is_committed(tx, user, draft.number)? == Some(true) {
                return Ok(Stage::Journalled(journal::files_of(tx, user, draft.number)?));
            }
            self.docs.drafts().insert_row(tx, draft, true)?;
            journal::insert_files(tx, user, draft.number, &files)?;
            new_jobs.iter().try_for_each(|new| jobs::insert(tx, user, new, self.docs.store.now()))?;
            Ok(Stage::Journalled(files))
        })
    }

    /// Adds notes for files that people cannot read directly.
    fn add_wrappers(&self, draft: &TurnDraft, files: &mut TurnFiles) {
        let made: Vec<_> = files
            .iter()
            .filter_map(|(path, bytes)| {
                notes::wrapper_of(&draft.place, self.docs.user(), draft.created_at, path, bytes)
            })
            .collect();
        for (path, note) in made {
            files.entry(path).or_insert(note);
        }
    }

    /// Writes the files of a turn, `metadata.json` last, and returns their rows. With `repair`, intact files are left
    /// unchanged, even if they have been edited since.
    pub(super) fn write_files(
        &self,
        folder: &str,
        files: &TurnFiles,
        repair: bool,
    ) -> Result<Vec<Rows>, StoreError> {
        let (last, first): (Vec<_>, Vec<_>) = files.iter().partition(|(path, _)| *path == METADATA);
        let mut rows = Vec::new();
        for (path, bytes) in first.into_iter().chain(last) {
            let path = VaultPath::new(&format!("{folder}/{path}"));
            let path = path.ok_or_else(|| bad_path(folder, files))?;
            let standing = if repair { self.docs.tree().read(&path)? } else { None };
            let standing = standing.filter(|standing| !is_torn(standing, bytes));
            if standing.is_none() {
                self.docs.tree().write(&path, bytes)?;
            }
            if let Indexed::Rows(found) = rows_of(&path, standing.as_deref().unwrap_or(bytes)) {
                rows.push(*found);
            }
        }
        Ok(rows)
    }

    fn write_notes_after(&self, rows: &[Rows]) -> Result<(), StoreError> {
        let written = self.docs.notes().write_for(rows);
        if let Err(error) = &written {
            // The turn is committed even if its notes are not written; the next commit writes them again.
            tracing::warn!(%error, "the index notes of the turns were not written");
        }
        Ok(())
    }
}

/// Whether `standing` is what a crash of the machine may have left of `bytes`, rather than an edit.
fn is_torn(standing: &[u8], bytes: &[u8]) -> bool {
    standing != bytes
        && (bytes.starts_with(standing) || standing.iter().all(|byte| *byte == 0) || {
            let written = standing.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            written < standing.len() && bytes.starts_with(standing.get(..written).unwrap_or_default())
        })
}

fn bad_path(folder: &str, files: &TurnFiles) -> StoreError {
    let bad = files.keys().find(|path| VaultPath::new(&format!("{folder}/{path}")).is_none());
    StoreError::Foreign { path: bad.cloned().unwrap_or_default(), expected: format!("{folder}/") }
}

/// The files of a draft, if they are a whole turn.
fn whole(draft: &TurnDraft) -> Result<TurnFiles, StoreError> {
    let bad = |reason: String| Err(StoreError::BadTurn { number: draft.number, reason });
    let folder = draft.place.folder();
    let inside = |path: &String| {
        VaultPath::new(&format!("{folder}/{path}"))
            .is_some_and(|path| PathKind::parse(&path).is_some_and(|spot| spot.turn == Some(draft.number)))
    };
    if !draft.files.keys().all(inside) {
        return Err(bad_path(folder, &draft.files));
    }
    let Some(metadata) = draft.files.get(METADATA) else {
        return bad(format!("its files do not include {METADATA}; add it before the commit"));
    };
    let read = str::from_utf8(metadata).map(read_json::<TurnMetadata>);
    match read.map(|reading| (reading.value, reading.problems)) {
        Ok((Some(metadata), _)) if metadata.turn_number == draft.number => Ok(draft.files.clone()),
        Ok((Some(metadata), _)) => bad(format!("its {METADATA} is that of turn {}", metadata.turn_number)),
        Ok((None, problems)) => {
            let problem = problems.first().map(ToString::to_string).unwrap_or_default();
            bad(format!("its {METADATA} cannot be read ({problem})"))
        }
        Err(error) => bad(format!("its {METADATA} is not text ({error})")),
    }
}

impl Documents {
    /// Syncs the files and rows of turns in the journal and removes the turns from it. Turns whose files are still
    /// being written remain.
    pub(super) fn retire(&self, entries: Vec<(String, u32)>) -> Result<(), StoreError> {
        let mut done = Vec::new();
        let mut handles = std::collections::BTreeSet::new();
        for (user, number) in entries {
            let documents = self.user(&user)?;
            let paths = self.store().index().read(|tx| {
                let mut query =
                    tx.prepare_cached("SELECT path FROM turn_files WHERE user = ?1 AND number = ?2")?;
                let rows = query.query_map((&user, number), |row| row.get::<_, String>(0))?;
                Ok(rows.collect::<Result<Vec<_>, _>>()?)
            })?;
            let place = documents.place.turn(number);
            if self.tree().read(&place.metadata())?.is_none() || documents.catalog().turn(number)?.is_none() {
                continue;
            }
            let paths = paths.iter().filter_map(|path| VaultPath::new(&format!("{}/{path}", place.folder())));
            self.tree().sync(&paths.collect::<Vec<_>>())?;
            handles.insert(user.clone());
            done.push((user, number));
        }
        for user in handles {
            self.user(&user)?.index().sync()?;
        }
        self.store().index().write_unsynced(|tx| {
            done.iter().try_for_each(|(user, number)| journal::remove(tx, user, *number))
        })
    }
}

fn retire_when_due(all: &Documents) -> Result<(), StoreError> {
    if all.inner.journalled.fetch_add(1, Ordering::Relaxed) + 1 < BATCH {
        return Ok(());
    }
    all.inner.journalled.store(0, Ordering::Relaxed);
    let entries = all.store().index().read(|tx| journal::committed(tx, None))?;
    all.retire(entries)
}
