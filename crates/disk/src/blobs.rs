//! Content-addressed files: written once, whole or not at all, checked on every read. Knows users only by folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use larder_text::hash::ContentHash;
use tempfile::NamedTempFile;

use crate::StoreError;
use crate::files;
use crate::{frame, segments};

/// Maximum number of unfinished files open at a time.
const MAX_OPEN: usize = 128;
/// Attempts to write into a folder that another process keeps removing.
const MAX_TRIES: usize = 3;

/// The blobs of a home folder: `<user folder>/<2 hex digits>/<62 hex digits>`, each one zstd frame.
#[derive(Debug)]
pub struct Blobs {
    root: PathBuf,
    /// Folders whose own directory entries this process has already synced.
    durable: Mutex<BTreeSet<PathBuf>>,
}

impl Blobs {
    /// The blobs below a folder.
    pub fn new(root: PathBuf) -> Self {
        Self { root, durable: Mutex::default() }
    }

    /// The folder below which they are.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the blob of a content is.
    pub fn path(&self, folder: &str, hash: ContentHash) -> PathBuf {
        let hex = hash.to_hex();
        let (first, rest) = hex.split_at(2);
        self.root.join(folder).join(first).join(rest)
    }

    /// Stores the frames of contents; when it returns, they survive a crash of the machine. Intact blobs are not rewritten,
    /// damaged ones are replaced.
    pub fn put_all(&self, folder: &str, frames: &BTreeMap<ContentHash, Vec<u8>>) -> Result<(), StoreError> {
        let mut tries = 1;
        loop {
            match self.write_missing(folder, frames) {
                Err(StoreError::Io { source, .. })
                    if source.kind() == io::ErrorKind::NotFound && tries < MAX_TRIES =>
                {
                    tries += 1
                }
                done => return done,
            }
        }
    }

    fn write_missing(&self, folder: &str, frames: &BTreeMap<ContentHash, Vec<u8>>) -> Result<(), StoreError> {
        let mut touched = BTreeSet::new();
        let mut pending = Vec::new();
        for (&hash, frame) in frames {
            let path = self.path(folder, hash);
            let parent = path.parent().unwrap_or(&self.root).to_path_buf();
            // Also for blobs that exist: their writer may not have synced the folders yet.
            self.ensure_dir(&parent)?;
            match self.read(folder, hash, |_| ()) {
                Ok(_) => {}
                Err(StoreError::MissingBlob { .. }) => pending.push((path, write(&parent, frame)?)),
                Err(StoreError::CorruptBlob { path, reason }) => {
                    tracing::warn!(path = %path.display(), reason, "replacing a damaged blob");
                    pending.push((path, write(&parent, frame)?));
                }
                Err(other) => return Err(other),
            }
            touched.insert(parent);
            if pending.len() == MAX_OPEN {
                finish(&mut pending)?;
            }
        }
        finish(&mut pending)?;
        touched.iter().try_for_each(|dir| files::sync_dir(dir))
    }

    /// Creates the folder of a blob, and syncs its name once per process.
    fn ensure_dir(&self, dir: &Path) -> Result<(), StoreError> {
        let Some(parent) = dir.parent().filter(|_| dir != self.root) else { return Ok(()) };
        self.ensure_dir(parent)?;
        let created = files::create_dir(dir)?;
        let known = self.durable.lock().unwrap_or_else(PoisonError::into_inner).contains(dir);
        if created || !known {
            files::sync_dir(parent)?;
            self.durable.lock().unwrap_or_else(PoisonError::into_inner).insert(dir.to_path_buf());
        }
        Ok(())
    }

    /// Whether the file exists; its content is not checked.
    pub fn contains(&self, folder: &str, hash: ContentHash) -> bool {
        self.path(folder, hash).is_file()
    }

    /// Removes a blob; there need not be one. Sync its folder before relying on this after a power failure.
    pub fn remove(&self, folder: &str, hash: ContentHash) -> Result<(), StoreError> {
        let path = self.path(folder, hash);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::io(&path, "erasing a blob")(error))
            }
            _ => Ok(()),
        }
    }

    /// Bytes of all blobs and segments, with what was erased of segments.
    pub fn bytes_on_disk(&self) -> Result<u64, StoreError> {
        let mut bytes: u64 = 0;
        for user in files::entries(&self.root)? {
            for entry in files::entries(&user.path)? {
                let of_shard = files::entries(&entry.path)?;
                let segment = segments::is_segment(&entry.name).then_some(entry);
                for file in of_shard.into_iter().chain(segment) {
                    bytes = bytes.saturating_add(file.path.metadata().map_or(0, |file| file.len()));
                }
            }
        }
        Ok(bytes)
    }

    /// The addresses of a user's blobs.
    pub fn list(&self, folder: &str) -> Result<Vec<ContentHash>, StoreError> {
        let mut hashes = Vec::new();
        for shard in files::entries(&self.root.join(folder))? {
            let names =
                files::entries(&shard.path)?.into_iter().map(|file| format!("{}{}", shard.name, file.name));
            hashes.extend(names.filter_map(|name| name.parse::<ContentHash>().ok()));
        }
        Ok(hashes)
    }

    /// Passes the content to `sink` piece by piece and returns its length. The hash is known only at the end, so discard
    /// what `sink` received unless this returns `Ok`.
    pub fn read(&self, folder: &str, hash: ContentHash, sink: impl FnMut(&[u8])) -> Result<u64, StoreError> {
        let path = self.path(folder, hash);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(StoreError::MissingBlob { path });
            }
            opened => opened.map_err(StoreError::io(&path, "reading the blob"))?,
        };
        frame::stream(file, hash, sink).map_err(|reason| StoreError::CorruptBlob { path, reason })
    }
}

fn write(dir: &Path, frame: &[u8]) -> Result<NamedTempFile, StoreError> {
    files::write_temp(dir, frame).map_err(StoreError::io(dir, "writing a blob"))
}

/// Syncs the written files, then renames them into place.
fn finish(pending: &mut Vec<(PathBuf, NamedTempFile)>) -> Result<(), StoreError> {
    for (path, file) in pending.iter() {
        file.as_file().sync_data().map_err(StoreError::io(path, "syncing a blob"))?;
    }
    for (path, file) in pending.drain(..) {
        file.persist(&path).map_err(|error| StoreError::io(&path, "naming a blob")(error.error))?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "blobs_tests.rs"]
mod tests;
