//! Whether someone waits for a model: seen by all processes of a home, and over as soon as a process dies.

use std::fs::{File, TryLockError};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::files;
use crate::locks::is_at;

/// The file that is locked while someone waits.
#[derive(Debug)]
pub struct Foreground {
    path: PathBuf,
    waiting: Arc<Mutex<Waiting>>,
}

/// Who waits in this process. A gateway enters with every request, so the file stays open and is locked once for all.
#[derive(Debug, Default)]
struct Waiting {
    file: Option<File>,
    count: usize,
}

/// Work that someone waits for, until it is dropped.
#[derive(Debug)]
pub struct ForegroundWork {
    waiting: Arc<Mutex<Waiting>>,
}

impl Drop for ForegroundWork {
    fn drop(&mut self) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.count -= 1;
        // Where a file cannot be unlocked, closing it unlocks it.
        if waiting.count == 0 && waiting.file.as_ref().is_some_and(|file| file.unlock().is_err()) {
            waiting.file = None;
        }
    }
}

impl Foreground {
    /// The one of this file.
    pub fn new(path: PathBuf) -> Self {
        Self { path, waiting: Arc::default() }
    }

    /// Says that someone waits for what is done until the value is dropped. `None` where the file system has no locks.
    pub fn enter(&self) -> Option<ForegroundWork> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.count == 0 {
            let file = match waiting.file.take().filter(|file| is_at(file, &self.path)) {
                Some(file) => file,
                None => {
                    files::create_dir_all(self.path.parent()?).ok()?;
                    files::open_private(&self.path).ok()?
                }
            };
            // Who looks whether anyone waits holds the lock for an instant.
            file.lock_shared().ok()?;
            waiting.file = Some(file);
        }
        waiting.count += 1;
        Some(ForegroundWork { waiting: Arc::clone(&self.waiting) })
    }

    /// Whether someone waits.
    pub fn is_occupied(&self) -> bool {
        // Two jobs that look at once would each take the other's lock for someone who waits.
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.count > 0 {
            return true;
        }
        File::open(&self.path).is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_foreground_ends_with_the_last_who_waits() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Foreground::new(dir.path().join("turns/foreground"));
        let (one, other) = (open(), open());
        let (first, second) = (one.enter().unwrap(), one.enter().unwrap());
        drop(first);
        assert!(one.is_occupied() && other.is_occupied());
        drop(second);
        assert!(!one.is_occupied() && !other.is_occupied());
        let again = other.enter();
        assert!(one.is_occupied());
        drop(again);
        std::fs::remove_file(dir.path().join("turns/foreground")).unwrap();
        let _after = other.enter();
        assert!(one.is_occupied(), "somebody cleaned up");
    }

    #[test]
    fn who_looks_is_not_taken_for_someone_who_waits() {
        let dir = tempfile::tempdir().unwrap();
        let foreground = Foreground::new(dir.path().join("turns/foreground"));
        drop(foreground.enter());
        let looks = || (0..2_000).all(|_| !foreground.is_occupied());
        let quiet = std::thread::scope(|scope| {
            let lookers: Vec<_> = (0..4).map(|_| scope.spawn(looks)).collect();
            lookers.into_iter().all(|looker| looker.join().unwrap())
        });
        assert!(quiet);
    }
}
