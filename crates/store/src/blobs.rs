//! Content-addressed files: written once, whole or not at all, checked on every read. Knows users only by folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use larder_core::hash::ContentHash;
use tempfile::NamedTempFile;

use crate::error::StoreError;
use crate::files;

/// The default of zstd: about 3 times smaller text at some 300 MB/s.
const COMPRESSION_LEVEL: i32 = 3;
/// How many unfinished files are open at once.
const MAX_OPEN: usize = 128;
/// A folder that is removed while it is written to is made anew this often.
const MAX_TRIES: usize = 3;

/// The blobs of a home folder: `<user folder>/<2 hex digits>/<62 hex digits>`, each one zstd frame.
#[derive(Debug)]
pub(crate) struct Blobs {
    root: PathBuf,
    /// Folders whose own names this process has already made durable.
    durable: Mutex<BTreeSet<PathBuf>>,
}

impl Blobs {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root, durable: Mutex::default() }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn path(&self, folder: &str, hash: ContentHash) -> PathBuf {
        let hex = hash.to_hex();
        let (first, rest) = hex.split_at(2);
        self.root.join(folder).join(first).join(rest)
    }

    /// Stores all contents; when it returns they survive a crash of the machine. What is there already and whole
    /// is not written again; what is there and damaged is replaced.
    pub(crate) fn put_all(&self, folder: &str, contents: &[&[u8]]) -> Result<Vec<ContentHash>, StoreError> {
        let hashes: Vec<_> = contents.iter().map(|content| ContentHash::of(content)).collect();
        let mut missing = BTreeMap::new();
        for (hash, content) in hashes.iter().zip(contents) {
            missing.insert(*hash, *content);
        }
        let mut tries = 1;
        loop {
            match self.write_missing(folder, &missing) {
                Err(StoreError::Io { source, .. })
                    if source.kind() == io::ErrorKind::NotFound && tries < MAX_TRIES =>
                {
                    tries += 1
                }
                done => return done.map(|()| hashes),
            }
        }
    }

    fn write_missing(&self, folder: &str, contents: &BTreeMap<ContentHash, &[u8]>) -> Result<(), StoreError> {
        let mut touched = BTreeSet::new();
        let mut pending = Vec::new();
        for (&hash, content) in contents {
            let path = self.path(folder, hash);
            let parent = path.parent().unwrap_or(&self.root).to_path_buf();
            match self.read(folder, hash, |_| ()) {
                // Whoever wrote it may not have synced the folder yet.
                Ok(_) => {}
                Err(StoreError::MissingBlob { .. }) => pending.push((path, write(&parent, content, self)?)),
                Err(StoreError::CorruptBlob { path, reason }) => {
                    tracing::warn!(path = %path.display(), reason, "replacing a damaged blob");
                    pending.push((path, write(&parent, content, self)?));
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

    /// Makes the folder of a blob, and its name durable, once per process.
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

    /// Whether the file is there; says nothing of what it holds.
    pub(crate) fn contains(&self, folder: &str, hash: ContentHash) -> bool {
        self.path(folder, hash).is_file()
    }

    /// Hands the content to `sink` piece by piece and gives its length. What `sink` has seen is right only if this
    /// returns `Ok`: the hash is known at the end.
    pub(crate) fn read(
        &self,
        folder: &str,
        hash: ContentHash,
        mut sink: impl FnMut(&[u8]),
    ) -> Result<u64, StoreError> {
        let path = self.path(folder, hash);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(StoreError::MissingBlob { path });
            }
            opened => opened.map_err(StoreError::io(&path, "reading the blob"))?,
        };
        let corrupt = |reason: String| StoreError::CorruptBlob { path: path.clone(), reason };
        let mut decoder =
            zstd::stream::read::Decoder::new(file).map_err(|error| corrupt(error.to_string()))?;
        let mut hasher = blake3::Hasher::new();
        let mut buffer = vec![0; zstd::zstd_safe::DCtx::out_size()];
        loop {
            let read = decoder.read(&mut buffer).map_err(|error| corrupt(error.to_string()))?;
            let Some(piece) = buffer.get(..read).filter(|piece| !piece.is_empty()) else { break };
            hasher.update(piece);
            sink(piece);
        }
        if hasher.finalize().as_bytes() != hash.as_bytes() {
            return Err(corrupt("its content has another hash".to_owned()));
        }
        Ok(hasher.count())
    }

    /// The whole content.
    pub(crate) fn get(&self, folder: &str, hash: ContentHash) -> Result<Vec<u8>, StoreError> {
        let mut content = Vec::new();
        self.read(folder, hash, |piece| content.extend_from_slice(piece))?;
        Ok(content)
    }
}

fn write(dir: &Path, content: &[u8], blobs: &Blobs) -> Result<NamedTempFile, StoreError> {
    blobs.ensure_dir(dir)?;
    zstd::bulk::compress(content, COMPRESSION_LEVEL)
        .and_then(|frame| files::write_temp(dir, &frame))
        .map_err(StoreError::io(dir, "writing a blob"))
}

/// Syncs the written files, then gives them their names.
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
