//! Which process is running a turn: it holds a lock, which the system releases when the process dies. An interrupted
//! turn can thus be distinguished from a running one, and no two processes ever continue the same turn.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::UserDocuments;
use larder_disk::StoreError;
use larder_disk::files;

/// Attempts to take a lease: a process that merely checks it also holds it for a moment.
const TRIES: usize = 10;
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(2);

/// The right to work on one turn; it ends when this is dropped.
#[derive(Debug)]
pub struct TurnLease {
    path: PathBuf,
    _locked: File,
}

impl Drop for TurnLease {
    fn drop(&mut self) {
        // A process that has already opened the file then finds a different file, or none, under its name, and
        // reopens it.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Which turns of one user some process works on; from [`UserDocuments::leases`].
#[derive(Debug, Clone, Copy)]
pub struct Leases<'d> {
    pub(super) docs: &'d UserDocuments,
}

impl Leases<'_> {
    /// Takes the lease of a turn; `None` while another process, or another handle of this one, has it. Where the file
    /// system has no locks, every caller gets one.
    ///
    /// # Errors
    /// The home folder cannot be written.
    pub fn acquire(&self, number: u32) -> Result<Option<TurnLease>, StoreError> {
        take(self.path(number), TRIES)
    }

    /// Takes the lock for writing documents outside turns, which one process holds at a time: otherwise two processes
    /// that read the same version could both write, and one would overwrite the other.
    pub(super) fn lock_writes(&self) -> Result<TurnLease, StoreError> {
        self.lock(self.folder().join(format!("{}.writes", self.docs.name)))
    }

    /// Takes the lock for writing the figures of all users.
    pub(super) fn lock_figures(&self) -> Result<TurnLease, StoreError> {
        self.lock(self.folder().join("figures"))
    }

    fn lock(&self, path: PathBuf) -> Result<TurnLease, StoreError> {
        let patience = self.docs.documents.store().options().patience.as_millis() / PAUSE.as_millis();
        let held = take(path.clone(), usize::try_from(patience).unwrap_or(usize::MAX).max(TRIES))?;
        held.ok_or(StoreError::Locked { path })
    }

    /// Whether some process works on a turn.
    pub fn is_held(&self, number: u32) -> bool {
        let file = File::open(self.path(number));
        file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    fn path(&self, number: u32) -> PathBuf {
        self.folder().join(format!("{}-{number}", self.docs.name))
    }

    fn folder(&self) -> PathBuf {
        self.docs.documents.store().home().join("turns")
    }
}

/// Takes the lock of work that one process of a home does; `None` while another has it.
pub(crate) fn take_lease(path: PathBuf) -> Result<Option<TurnLease>, StoreError> {
    take(path, TRIES)
}

/// Takes a lock; `None` if another process holds it.
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

/// Whether the file is still at that path.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |metadata: &std::fs::Metadata| (metadata.dev(), metadata.ino());
    matches!((file.metadata(), std::fs::metadata(path)), (Ok(mine), Ok(there)) if id(&mine) == id(&there))
}

/// Whether a file still exists at that path: on this system, an open file keeps its name.
#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}
