//! The home folder: its setup, and the key that mints its pointers. Knows nothing of blobs or the index.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::{Entropy, StoreError, files};

/// The length of the master pointer key, in bytes.
const KEY_BYTES: usize = 32;
/// Pause between two attempts to lock the home folder.
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// Writes a file of the caller's own into a home folder, creating the folder if it is missing: readers find the old or
/// the new file, whole. The store does not use it.
///
/// # Errors
/// If it cannot be written.
pub fn write_home_file(home: &Path, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
    files::create_dir_all(home)?;
    let path = home.join(name);
    let io = || StoreError::io(&path, "writing the file");
    let temp = files::write_temp(home, bytes).map_err(io())?;
    temp.as_file().sync_all().map_err(io())?;
    temp.persist(&path).map_err(|error| io()(error.error))?;
    files::sync_dir(home)
}

/// Removes such a file; returns whether there was one.
///
/// # Errors
/// If it cannot be removed.
pub fn remove_home_file(home: &Path, name: &str) -> Result<bool, StoreError> {
    let path = home.join(name);
    match std::fs::remove_file(&path) {
        Ok(()) => files::sync_dir(home).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(StoreError::io(&path, "removing the file")(error)),
    }
}

/// Whether a home folder may be read only: nothing can be created in it, or its index cannot be written.
pub fn is_read_only(home: &Path) -> bool {
    let index = Layout { home: home.to_path_buf() }.index();
    let written = tempfile::tempfile_in(home).and_then(|_| File::options().write(true).open(index));
    let denied = [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem];
    cfg!(unix) && written.is_err_and(|error| denied.contains(&error.kind()))
}

/// Fills an empty folder with what is read in place of a home that cannot be written: copies of its databases, which
/// even readers write to, and links to everything else. What is written there is gone with the folder.
///
/// # Errors
/// Something cannot be read, or the folder cannot be written.
pub fn copy_to_read(home: &Path, folder: &Path) -> Result<(), StoreError> {
    let home = std::path::absolute(home).map_err(StoreError::io(home, "finding the folder"))?;
    for entry in files::entries(&home)? {
        let to = folder.join(&entry.name);
        match entry.name.as_str() {
            "lock" => {}
            "indexes" => copy_files(&entry.path, &to)?,
            _ if entry.path.is_dir() => link(&entry.path, &to)?,
            _ => copy_file(&entry.path, &to)?,
        }
    }
    Ok(())
}

fn copy_files(from: &Path, to: &Path) -> Result<(), StoreError> {
    files::create_dir_all(to)?;
    for entry in files::entries(from)? {
        let to = to.join(&entry.name);
        if entry.path.is_dir() { copy_files(&entry.path, &to)? } else { copy_file(&entry.path, &to)? }
    }
    Ok(())
}

/// Copies a file that may then be written, but not the memory that processes share for a database.
fn copy_file(from: &Path, to: &Path) -> Result<(), StoreError> {
    if from.to_string_lossy().ends_with("-shm") {
        return Ok(());
    }
    let mut source = File::open(from).map_err(StoreError::io(from, "copying the file"))?;
    let mut copy = files::create_private(to).map_err(StoreError::io(to, "creating the copy"))?;
    io::copy(&mut source, &mut copy).map(|_| ()).map_err(StoreError::io(to, "writing the copy"))
}

#[cfg(unix)]
fn link(from: &Path, to: &Path) -> Result<(), StoreError> {
    std::os::unix::fs::symlink(from, to).map_err(StoreError::io(to, "linking the folder"))
}

/// Never called: see [`is_read_only`].
#[cfg(not(unix))]
fn link(from: &Path, _: &Path) -> Result<(), StoreError> {
    Err(StoreError::io(from, "linking the folder")(io::ErrorKind::Unsupported.into()))
}

/// The paths in a home folder.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The folder.
    pub home: PathBuf,
}

impl Layout {
    /// The index.
    pub fn index(&self) -> PathBuf {
        self.home.join("index.sqlite")
    }

    /// A new index, while it is made.
    pub fn rebuilt_index(&self) -> PathBuf {
        self.home.join("index.sqlite.rebuilt")
    }

    /// Fails if there is no index, although there are contents: a new one would know none of them.
    pub fn require_index(&self) -> Result<(), StoreError> {
        let path = self.index();
        if std::fs::metadata(&path).is_ok_and(|index| index.len() > 0) {
            return Ok(());
        }
        for user in files::entries(&self.blobs())? {
            if !user.name.starts_with('.') && !files::entries(&user.path)?.is_empty() {
                let detail = "missing, although the folder contains a store".to_owned();
                return Err(StoreError::IndexCorrupt { path, detail });
            }
        }
        Ok(())
    }

    /// The folder of contents, with one of each user.
    pub fn blobs(&self) -> PathBuf {
        self.home.join("blobs")
    }

    /// The file of the master key.
    pub fn key(&self) -> PathBuf {
        self.home.join("key")
    }

    /// Creates the folders and takes the setup lock; it is held until the file is dropped.
    pub fn lock(&self, patience: Duration) -> Result<File, StoreError> {
        files::create_dir_all(&self.home)?;
        if files::create_dir(&self.blobs())? {
            files::sync_dir(&self.home)?;
        }
        let path = self.home.join("lock");
        let file = files::open_private(&path).map_err(StoreError::io(&path, "opening the lock"))?;
        let started = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                    return Ok(file);
                }
                Err(TryLockError::Error(error)) => {
                    return Err(StoreError::io(&path, "taking the lock")(error));
                }
                Err(TryLockError::WouldBlock) if started.elapsed() > patience => {
                    return Err(StoreError::Locked { path });
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            }
        }
    }

    /// The master key: read, or created if there is no store yet. It is never replaced.
    pub fn master_key(&self, entropy: &dyn Entropy) -> Result<[u8; KEY_BYTES], StoreError> {
        let path = self.key();
        match std::fs::read(&path) {
            Ok(bytes) => bytes
                .try_into()
                .map_err(|_| StoreError::KeyInvalid { path, reason: "not a key, which is 32 bytes long" }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if std::fs::metadata(self.index()).is_ok_and(|index| index.len() > 0) {
                    return Err(StoreError::KeyMissing { path });
                }
                self.create_key(&path, entropy)
            }
            Err(error) => Err(StoreError::io(&path, "reading the key")(error)),
        }
    }

    fn create_key(&self, path: &Path, entropy: &dyn Entropy) -> Result<[u8; KEY_BYTES], StoreError> {
        let mut key = [0; KEY_BYTES];
        entropy.fill(&mut key).map_err(|source| StoreError::Randomness { source })?;
        let io = || StoreError::io(path, "creating the key");
        let temp = files::write_temp(&self.home, &key).map_err(io())?;
        temp.as_file().sync_all().map_err(io())?;
        temp.persist_noclobber(path).map_err(|error| io()(error.error))?;
        files::sync_dir(&self.home)?;
        Ok(key)
    }
}
