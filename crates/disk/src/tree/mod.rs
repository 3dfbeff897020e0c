//! A tree of documents: paths and bytes, not their meaning. A folder of this machine is one, a part of a bucket another.

#[cfg(feature = "s3")]
mod bucket;
mod folder;

use std::fmt;

use larder_vault::VaultPath;

use crate::StoreError;

#[cfg(feature = "s3")]
pub use self::bucket::Bucket;
pub use self::folder::Folder;

/// The direct entries of a folder, sorted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Level {
    /// The names of the folders.
    pub folders: Vec<String>,
    /// The files.
    pub files: Vec<VaultPath>,
}

/// A tree of files. Files are written whole or not at all.
pub trait Tree: Send + Sync + fmt::Debug {
    /// A file; `None` if it does not exist.
    fn read(&self, path: &VaultPath) -> Result<Option<Vec<u8>>, StoreError>;

    /// Writes a file, replacing any other. It survives a crash of the machine once it is synced.
    fn write(&self, path: &VaultPath, bytes: &[u8]) -> Result<(), StoreError>;

    /// Removes a file; succeeds if it does not exist.
    fn remove(&self, path: &VaultPath) -> Result<(), StoreError>;

    /// Removes a folder with all its content; succeeds if it does not exist.
    fn remove_folder(&self, folder: &str) -> Result<(), StoreError>;

    /// The files below a folder, sorted. Hidden ones are skipped, and those that no [`VaultPath`] can name.
    fn list(&self, folder: &str) -> Result<Vec<VaultPath>, StoreError>;

    /// The direct entries of a folder, except those that [`Tree::list`] skips.
    fn level(&self, folder: &str) -> Result<Level, StoreError>;

    /// Makes files survive a crash of the machine; missing ones are skipped.
    fn sync(&self, paths: &[VaultPath]) -> Result<(), StoreError>;

    /// Removes leftovers of a killed writer from a folder.
    fn tidy(&self, folder: &str) -> Result<(), StoreError>;

    /// The names of the folders in a folder; `None` if listing them takes a request.
    fn folders_now(&self, folder: &str) -> Option<Result<Vec<String>, StoreError>>;

    /// Whether the folder exists; `false` if determining that takes a request.
    fn has_folder_now(&self, folder: &str) -> bool;
}

#[cfg(test)]
mod tests;
