//! A tree that stops working after so many writes, as a process does that is killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use larder_vault::VaultPath;

use super::super::tree::{Done, Level, Tree};
use crate::error::StoreError;

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
    fn read<'a>(&'a self, path: &'a VaultPath) -> Done<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            self.spend(path.as_str(), false)?;
            self.tree.read(path).await
        })
    }

    fn write<'a>(&'a self, path: &'a VaultPath, bytes: &'a [u8]) -> Done<'a, ()> {
        Box::pin(async move {
            self.spend(path.as_str(), true)?;
            self.tree.write(path, bytes).await
        })
    }

    fn remove<'a>(&'a self, path: &'a VaultPath) -> Done<'a, ()> {
        Box::pin(async move {
            self.spend(path.as_str(), true)?;
            self.tree.remove(path).await
        })
    }

    fn remove_folder<'a>(&'a self, folder: &'a str) -> Done<'a, ()> {
        Box::pin(async move {
            self.spend(folder, true)?;
            self.tree.remove_folder(folder).await
        })
    }

    fn list<'a>(&'a self, folder: &'a str) -> Done<'a, Vec<VaultPath>> {
        self.tree.list(folder)
    }

    fn level<'a>(&'a self, folder: &'a str) -> Done<'a, Level> {
        self.tree.level(folder)
    }

    fn sync<'a>(&'a self, paths: &'a [VaultPath]) -> Done<'a, ()> {
        self.tree.sync(paths)
    }

    fn tidy<'a>(&'a self, folder: &'a str) -> Done<'a, ()> {
        self.tree.tidy(folder)
    }

    fn folders_now(&self, folder: &str) -> Option<Result<Vec<String>, StoreError>> {
        self.tree.folders_now(folder)
    }

    fn has_folder_now(&self, folder: &str) -> bool {
        self.tree.has_folder_now(folder)
    }
}
