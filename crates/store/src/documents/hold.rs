//! Which process works on a turn: it holds a lock, which the system lets go when the process dies. So a turn that was
//! interrupted can be told from one that is under way, and no two processes ever go on with the same one.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::UserDocuments;
use super::types::DraftSummary;
use crate::error::StoreError;
use crate::files;

/// Tries to take a hold: whoever only looks whether it is taken has it for a moment.
const TRIES: usize = 10;
/// Time between two tries.
const PAUSE: Duration = Duration::from_millis(2);

/// The right to work on one turn; it ends when this is dropped.
#[derive(Debug)]
pub struct TurnLease {
    path: PathBuf,
    _locked: File,
}

impl Drop for TurnLease {
    fn drop(&mut self) {
        // Whoever has opened the file by now finds another one, or none, under its name, and opens again.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl UserDocuments {
    /// Takes the hold of a turn; none while another process, or another handle of this one, has it. Where the file
    /// system knows no locks, everybody gets one.
    ///
    /// # Errors
    /// The home folder cannot be written.
    pub fn lease(&self, number: u32) -> Result<Option<TurnLease>, StoreError> {
        take(self.hold_path(number), TRIES)
    }

    /// Takes the right to write documents outside of turns, which one process has at a time: else two that read the same
    /// would both write, and one would not know that the other had.
    pub(super) fn hold_writes(&self) -> Result<TurnLease, StoreError> {
        let path = self.holds().join(format!("{}.writes", self.name));
        let patience = self.documents.store().options().patience.as_millis() / PAUSE.as_millis();
        let held = take(path.clone(), usize::try_from(patience).unwrap_or(usize::MAX).max(TRIES))?;
        held.ok_or(StoreError::Locked { path })
    }

    /// The drafts that nobody works on: turns that were interrupted, by number.
    ///
    /// # Errors
    /// The main database cannot be read.
    pub fn interrupted(&self) -> Result<Vec<DraftSummary>, StoreError> {
        let mut drafts = self.drafts()?;
        drafts.retain(|draft| !self.is_leased(draft.number));
        Ok(drafts)
    }

    /// Whether somebody works on a turn.
    pub fn is_leased(&self, number: u32) -> bool {
        let file = File::open(self.hold_path(number));
        file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    fn hold_path(&self, number: u32) -> PathBuf {
        self.holds().join(format!("{}-{number}", self.name))
    }

    fn holds(&self) -> PathBuf {
        self.documents.store().home().join("turns")
    }
}

/// Takes a lock; none while somebody else has it.
fn take(path: PathBuf, tries: usize) -> Result<Option<TurnLease>, StoreError> {
    if let Some(folder) = path.parent() {
        files::create_dir_all(folder)?;
    }
    for _ in 0..tries {
        let file = files::open_private(&path).map_err(StoreError::io(&path, "opening the lock"))?;
        match file.try_lock() {
            Err(TryLockError::Error(error)) if error.kind() != io::ErrorKind::Unsupported => {
                return Err(StoreError::io(&path, "taking the lock")(error));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            _ if is_at(&file, &path) => return Ok(Some(TurnLease { path, _locked: file })),
            _ => {}
        }
    }
    Ok(None)
}

/// Whether this is the file of that name still.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |metadata: &std::fs::Metadata| (metadata.dev(), metadata.ino());
    matches!((file.metadata(), std::fs::metadata(path)), (Ok(mine), Ok(there)) if id(&mine) == id(&there))
}

/// Whether there is a file of that name still: one that is open keeps its name there.
#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}
