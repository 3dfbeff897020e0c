//! A tree that stops working after so many writes, as a process does that is killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use larder_vault::VaultPath;

use larder_disk::StoreError;
use larder_disk::tree::{Level, Tree};

/// The same as the tree in it, until it has failed; then everything fails.
#[derive(Debug)]
pub(super) struct Failing {
    pub(super) tree: Arc<dyn Tree>,
    /// Changes that still succeed.
    pub(super) left: AtomicI64,
}

impl Failing {
    /// Whether it has stopped working.
    pub(super) fn is_dead(&self) -> bool {
        self.left.load(Ordering::Relaxed) < 0
    }

    fn spend(&self, path: &str, change: bool) -> Result<(), StoreError> {
        let left = self.left.fetch_sub(i64::from(change), Ordering::Relaxed);
        if left > 0 || (left == 0 && !change) {
            return Ok(());
        }
        Err(StoreError::Objects { path: path.to_owned(), action: "dying", source: "killed".into() })
    }
}

impl Tree for Failing {
    fn read(&self, path: &VaultPath) -> Result<Option<Vec<u8>>, StoreError> {
        self.spend(path.as_str(), false)?;
        self.tree.read(path)
    }

    fn write(&self, path: &VaultPath, bytes: &[u8]) -> Result<(), StoreError> {
        self.spend(path.as_str(), true)?;
        self.tree.write(path, bytes)
    }

    fn remove(&self, path: &VaultPath) -> Result<(), StoreError> {
        self.spend(path.as_str(), true)?;
        self.tree.remove(path)
    }

    fn remove_folder(&self, folder: &str) -> Result<(), StoreError> {
        self.spend(folder, true)?;
        self.tree.remove_folder(folder)
    }

    fn list(&self, folder: &str) -> Result<Vec<VaultPath>, StoreError> {
        self.tree.list(folder)
    }

    fn level(&self, folder: &str) -> Result<Level, StoreError> {
        self.tree.level(folder)
    }

    fn sync(&self, paths: &[VaultPath]) -> Result<(), StoreError> {
        self.tree.sync(paths)
    }

    fn tidy(&self, folder: &str) -> Result<(), StoreError> {
        self.tree.tidy(folder)
    }

    fn folders_now(&self, folder: &str) -> Option<Result<Vec<String>, StoreError>> {
        self.tree.folders_now(folder)
    }

    fn has_folder_now(&self, folder: &str) -> bool {
        self.tree.has_folder_now(folder)
    }
}
