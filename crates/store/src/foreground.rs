//! Whether someone waits for a model: seen by all processes of a home, and over as soon as a process dies.

use std::fs::{File, TryLockError};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::store::Store;
use larder_disk::files;

/// The lock that this process holds while someone waits.
pub(crate) type ForegroundLock = Mutex<Weak<File>>;

/// Work that someone waits for, until it is dropped.
#[derive(Debug)]
pub struct ForegroundWork {
    _locked: Arc<File>,
}

impl Store {
    /// Says that someone waits for what is done until the value is dropped. `None` where the file system has no locks.
    pub fn enter_foreground(&self) -> Option<ForegroundWork> {
        // One lock serves all that is done at once in this process: a gateway enters with every request.
        let mut current = self.foreground_lock().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(locked) = current.upgrade() {
            return Some(ForegroundWork { _locked: locked });
        }
        let path = self.foreground();
        files::create_dir_all(path.parent()?).ok()?;
        let file = files::open_private(&path).ok()?;
        // Who looks whether anyone waits holds the lock for an instant.
        file.lock_shared().ok()?;
        let locked = Arc::new(file);
        *current = Arc::downgrade(&locked);
        Some(ForegroundWork { _locked: locked })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreOptions;

    #[test]
    fn the_foreground_ends_with_the_last_who_waits() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Store::open(&dir.path().join("home"), StoreOptions::default()).unwrap();
        let (store, other) = (open(), open());
        let (first, second) = (store.enter_foreground().unwrap(), store.clone().enter_foreground().unwrap());
        drop(first);
        assert!(store.is_in_foreground() && other.is_in_foreground());
        drop(second);
        assert!(!store.is_in_foreground() && !other.is_in_foreground());
        let _again = other.enter_foreground();
        assert!(store.is_in_foreground());
    }
}
