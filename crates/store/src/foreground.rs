//! Whether someone waits for a model: seen by all processes of a home, and over as soon as a process dies.

use std::fs::{File, TryLockError};
use std::path::PathBuf;

use crate::store::Store;
use larder_disk::files;

/// Work that someone waits for, until it is dropped.
#[derive(Debug)]
pub struct ForegroundWork {
    _locked: File,
}

impl Store {
    /// Says that someone waits for what is done until the value is dropped. `None` where the file system has no locks.
    pub fn enter_foreground(&self) -> Option<ForegroundWork> {
        let path = self.foreground();
        files::create_dir_all(path.parent()?).ok()?;
        let file = files::open_private(&path).ok()?;
        // Who looks whether anyone waits holds the lock for an instant.
        file.lock_shared().ok()?;
        Some(ForegroundWork { _locked: file })
    }

    /// Whether someone waits.
    pub fn is_in_foreground(&self) -> bool {
        let file = File::open(self.foreground());
        file.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
    }

    fn foreground(&self) -> PathBuf {
        self.home().join("turns/foreground")
    }
}
