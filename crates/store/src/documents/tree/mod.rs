//! The storage of documents: a folder or a bucket. Knows paths and bytes, not their meaning.

#[cfg(feature = "s3")]
mod bucket;
mod folder;

use std::fmt;
use std::sync::Arc;

use larder_vault::VaultPath;

use super::types::DocumentPlace;
use larder_disk::StoreError;

/// The direct entries of a folder, sorted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Level {
    /// The names of the folders.
    pub(super) folders: Vec<String>,
    /// The files.
    pub(super) files: Vec<VaultPath>,
}

/// A tree of files. Files are written whole or not at all.
pub(super) trait Tree: Send + Sync + fmt::Debug {
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

/// The tree at a place.
pub(super) fn open(place: &DocumentPlace) -> Result<Arc<dyn Tree>, StoreError> {
    match place {
        DocumentPlace::Folder(root) => Ok(Arc::new(folder::Folder::open(root)?)),
        #[cfg(feature = "s3")]
        DocumentPlace::Url(url) => Ok(Arc::new(bucket::Bucket::open(url)?)),
        #[cfg(not(feature = "s3"))]
        DocumentPlace::Url(url) => Err(StoreError::BadPlace {
            place: url.clone(),
            reason: "this Larder was built without S3; build it with the feature s3, or name a folder"
                .to_owned(),
        }),
    }
}

#[cfg(test)]
#[path = "../tests/tree_tests.rs"]
mod tests;
