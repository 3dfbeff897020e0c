//! Locks between processes: files that the holder locks, which the system releases when it dies.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{StoreError, files};

/// Attempts to take a lease: a process that merely checks it also holds it for a moment.
const TRIES: usize = 10;
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(2);

/// The right to work on something; it ends when this is dropped.
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

impl TurnLease {
    /// Whether some process has the lock at a path.
    pub fn is_held(path: &Path) -> bool {
        let file = File::open(path);
        file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }
}

/// Takes the lock of work that one process of a home does; `None` while another has it. Where the file system has no locks,
/// every caller gets one.
///
/// # Errors
/// The folder cannot be written.
pub fn take_lease(path: PathBuf) -> Result<Option<TurnLease>, StoreError> {
    wait_for_lease(path, Duration::ZERO)
}

/// As [`take_lease`], for work that two processes must never do at once: where the file system has no locks, nobody
/// gets it.
///
/// # Errors
/// The folder cannot be written, or its file system has no locks.
pub fn take_sole_lease(path: PathBuf) -> Result<Option<TurnLease>, StoreError> {
    let Some(lease) = take_lease(path)? else { return Ok(None) };
    let locked = File::open(&lease.path).map_err(TryLockError::Error).and_then(|file| file.try_lock_shared());
    let error = match locked {
        Err(TryLockError::WouldBlock) => return Ok(Some(lease)),
        Err(TryLockError::Error(error)) => error,
        Ok(()) => io::ErrorKind::Unsupported.into(),
    };
    Err(StoreError::io(&lease.path, "taking a lock, which the file system of a home must have")(error))
}

/// Removes the files of locks that processes left which were killed. One that somebody holds, or whose holder cannot be
/// told, stays.
///
/// # Errors
/// The folder cannot be read.
pub fn sweep(folder: &Path) -> Result<(), StoreError> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in files::entries(folder)? {
        let Ok(file) = File::open(&entry.path) else { continue };
        if file.try_lock().is_ok() && is_at(&file, &entry.path) {
            drop(TurnLease { path: entry.path, _locked: file });
        }
    }
    Ok(())
}

/// Takes a lock as [`take_lease`], and waits so long for another process that has it.
///
/// # Errors
/// The folder cannot be written.
pub fn wait_for_lease(path: PathBuf, patience: Duration) -> Result<Option<TurnLease>, StoreError> {
    let tries = usize::try_from(patience.as_millis() / PAUSE.as_millis()).unwrap_or(usize::MAX).max(TRIES);
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
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |metadata: &std::fs::Metadata| (metadata.dev(), metadata.ino());
    matches!((file.metadata(), std::fs::metadata(path)), (Ok(mine), Ok(there)) if id(&mine) == id(&there))
}

/// Whether a file still exists at that path: on this system, an open file keeps its name.
#[cfg(not(unix))]
pub(crate) fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}
