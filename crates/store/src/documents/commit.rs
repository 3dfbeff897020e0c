//! From a draft to files. One durable transaction turns the draft into an entry of the journal that holds all its
//! files; the files follow, `metadata.json` last; then the rows of the index and the notes. The entry goes when the files
//! are synced, which is done for many turns at once. So a commit waits for one sync.

use std::sync::atomic::Ordering;

use larder_vault::{TurnMetadata, VaultPath, read_json};

use super::index::{Indexed, Rows, Spot, put, rows_of};
use super::journal::{self, Files};
use super::notes;
use super::types::TurnDraft;
use super::{Documents, UserDocuments};
use crate::error::StoreError;

/// The file that makes a folder a turn.
pub(super) const METADATA: &str = "metadata.json";
/// Commits after which the files of all of them are synced and their entries go: one commit in so many takes longer.
const BATCH: u64 = 64;

/// What became of a draft.
enum Stage {
    /// It is in the journal with these files.
    Journalled(Files),
    /// It was committed before, and its files are safe.
    Safe,
}

impl UserDocuments {
    /// Commits a turn whose files hold its `metadata.json`. When it returns, the turn survives every crash; a second
    /// call changes nothing. Files that are not Markdown get their readable notes beside them (C80).
    ///
    /// # Errors
    /// The turn is not whole or not this user's. Or writing fails: before the journal, and nothing has happened; or
    /// after it, and [`super::Documents::recover`] or another call finishes the commit.
    pub fn commit(&self, draft: &TurnDraft) -> Result<(), StoreError> {
        self.require_place(draft)?;
        let files = whole(draft)?;
        let Stage::Journalled(files) = self.journal(draft, files)? else { return Ok(()) };
        let rows = self.write_turn(draft.place.folder(), &files, false)?;
        self.index().write(|tx| rows.iter().try_for_each(|rows| put(tx, rows)))?;
        self.write_notes_after(&rows)?;
        self.documents.retire_when_due()
    }

    /// Puts a turn into the journal, durably; one that is in it already stays as it is.
    fn journal(&self, draft: &TurnDraft, mut files: Files) -> Result<Stage, StoreError> {
        let user = self.user();
        let row = self.store.index().read(|tx| journal::is_committed(tx, user, draft.number))?;
        if row.is_none() && self.tree().read(&draft.place.metadata())?.is_some() {
            return Ok(Stage::Safe);
        }
        self.add_wrappers(draft, &mut files);
        self.store.write(|tx| {
            if journal::is_committed(tx, user, draft.number)? == Some(true) {
                return Ok(Stage::Journalled(journal::files_of(tx, user, draft.number)?));
            }
            self.put_row(tx, draft, true)?;
            journal::put_files(tx, user, draft.number, &files)?;
            Ok(Stage::Journalled(files))
        })
    }

    /// Notes for files that people cannot read as they are.
    fn add_wrappers(&self, draft: &TurnDraft, files: &mut Files) {
        let made: Vec<_> = files
            .iter()
            .filter_map(|(path, bytes)| {
                notes::wrapper_of(&draft.place, self.user(), draft.created_at, path, bytes)
            })
            .collect();
        for (path, note) in made {
            files.entry(path).or_insert(note);
        }
    }

    /// Writes the files of a turn, `metadata.json` last, and gives their rows. When `mending`, files that stand there
    /// and are whole are left alone, even if somebody has changed them since.
    pub(super) fn write_turn(
        &self,
        folder: &str,
        files: &Files,
        mending: bool,
    ) -> Result<Vec<Rows>, StoreError> {
        let (last, first): (Vec<_>, Vec<_>) = files.iter().partition(|(path, _)| *path == METADATA);
        let mut rows = Vec::new();
        for (path, bytes) in first.into_iter().chain(last) {
            let path = VaultPath::new(&format!("{folder}/{path}"));
            let path = path.ok_or_else(|| bad_path(folder, files))?;
            let standing = if mending { self.tree().read(&path)? } else { None };
            let standing = standing.filter(|standing| !is_torn(standing, bytes));
            if standing.is_none() {
                self.tree().write(&path, bytes)?;
            }
            if let Indexed::Rows(found) = rows_of(&path, standing.as_deref().unwrap_or(bytes)) {
                rows.push(*found);
            }
        }
        Ok(rows)
    }

    fn write_notes_after(&self, rows: &[Rows]) -> Result<(), StoreError> {
        let written = self.write_turn_notes(rows);
        if let Err(error) = &written {
            // The turn is committed whatever becomes of the notes about it; the next commit writes them again.
            tracing::warn!(%error, "the notes over the turns were not written");
        }
        Ok(())
    }
}

/// Whether `standing` is what a crash of the machine may have left of `bytes`, and nobody's own words.
fn is_torn(standing: &[u8], bytes: &[u8]) -> bool {
    standing != bytes
        && (bytes.starts_with(standing) || standing.iter().all(|byte| *byte == 0) || {
            let written = standing.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            written < standing.len() && bytes.starts_with(standing.get(..written).unwrap_or_default())
        })
}

fn bad_path(folder: &str, files: &Files) -> StoreError {
    let bad = files.keys().find(|path| VaultPath::new(&format!("{folder}/{path}")).is_none());
    StoreError::Foreign { path: bad.cloned().unwrap_or_default(), expected: format!("{folder}/") }
}

/// The files of a draft, if they are a whole turn.
fn whole(draft: &TurnDraft) -> Result<Files, StoreError> {
    let bad = |reason: String| Err(StoreError::BadTurn { number: draft.number, reason });
    let folder = draft.place.folder();
    let inside = |path: &String| {
        VaultPath::new(&format!("{folder}/{path}"))
            .is_some_and(|path| Spot::of(&path).is_some_and(|spot| spot.turn == Some(draft.number)))
    };
    if !draft.files.keys().all(inside) {
        return Err(bad_path(folder, &draft.files));
    }
    let Some(metadata) = draft.files.get(METADATA) else {
        return bad(format!("there is no {METADATA} among its files; add it before the commit"));
    };
    let read = str::from_utf8(metadata).map(read_json::<TurnMetadata>);
    match read.map(|reading| (reading.value, reading.problems)) {
        Ok((Some(metadata), _)) if metadata.turn_number == draft.number => Ok(draft.files.clone()),
        Ok((Some(metadata), _)) => bad(format!("its {METADATA} is that of turn {}", metadata.turn_number)),
        Ok((None, problems)) => {
            let problem = problems.first().map(ToString::to_string).unwrap_or_default();
            bad(format!("its {METADATA} cannot be read ({problem})"))
        }
        Err(error) => bad(format!("its {METADATA} is no text ({error})")),
    }
}

impl Documents {
    fn retire_when_due(&self) -> Result<(), StoreError> {
        if self.inner.journalled.fetch_add(1, Ordering::Relaxed) + 1 < BATCH {
            return Ok(());
        }
        self.inner.journalled.store(0, Ordering::Relaxed);
        let entries = self.store().index().read(|tx| journal::committed(tx, None))?;
        self.retire(entries)
    }

    /// Syncs the files and rows of turns in the journal and takes the turns out of it. Turns whose files are not all
    /// there yet, since somebody is writing them, stay.
    pub(super) fn retire(&self, entries: Vec<(String, u32)>) -> Result<(), StoreError> {
        let mut done = Vec::new();
        let mut shelves = std::collections::BTreeSet::new();
        for (user, number) in entries {
            let documents = self.user(&user)?;
            let paths = self.store().index().read(|tx| {
                let mut query =
                    tx.prepare_cached("SELECT path FROM turn_files WHERE user = ?1 AND number = ?2")?;
                let rows = query.query_map((&user, number), |row| row.get::<_, String>(0))?;
                Ok(rows.collect::<Result<Vec<_>, _>>()?)
            })?;
            let place = documents.place.turn(number);
            if self.tree().read(&place.metadata())?.is_none() || documents.turn(number)?.is_none() {
                continue;
            }
            let paths = paths.iter().filter_map(|path| VaultPath::new(&format!("{}/{path}", place.folder())));
            self.tree().sync(&paths.collect::<Vec<_>>())?;
            shelves.insert(user.clone());
            done.push((user, number));
        }
        for user in shelves {
            self.user(&user)?.index().sync()?;
        }
        self.store().index().write_unsynced(|tx| {
            done.iter().try_for_each(|(user, number)| journal::remove(tx, user, *number))
        })
    }
}
