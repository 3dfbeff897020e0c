//! The home folder: its setup, and the key that mints its pointers. Knows nothing of blobs or the index.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rusqlite::{Connection, OpenFlags};

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

/// What of a home folder cannot be written, although every command that writes may have to: the folder itself, one in
/// it, or a file that is written in place. Others are replaced, which takes no permission of theirs.
pub fn unwritable(home: &Path) -> Option<PathBuf> {
    let denied = |written: io::Result<File>| {
        let kinds = [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem];
        cfg!(unix) && written.is_err_and(|error| kinds.contains(&error.kind()))
    };
    let folder = |path: &Path| denied(tempfile::tempfile_in(path));
    let file = |path: &Path| denied(File::options().write(true).open(path));
    if folder(home) {
        return Some(home.to_path_buf());
    }
    // What cannot be listed cannot be read either, which its reader reports.
    let within = |path: &Path| files::entries(path).unwrap_or_default();
    let indexes = home.join("indexes");
    let below = within(&indexes).into_iter().flat_map(|entry| {
        let files = within(&entry.path);
        std::iter::once(entry).chain(files)
    });
    let in_place = |name: &str| name == "lock" || name.starts_with("index.sqlite");
    let of_home = within(home).into_iter().filter(|entry| entry.path.is_dir() || in_place(&entry.name));
    let mut all = of_home.chain(below);
    all.find(|entry| if entry.path.is_dir() { folder(&entry.path) } else { file(&entry.path) })
        .map(|entry| entry.path)
}

/// Fills an empty folder with what is read in place of a home that cannot be written: copies of its databases, which
/// even readers write to, and links to everything else. What is written there is gone with the folder.
///
/// # Errors
/// Something cannot be read, a database changes all the time, or the folder cannot be written.
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

/// The files that SQLite keeps next to a database: its log, and the memory that its processes share.
const BESIDE: [&str; 2] = ["-wal", "-shm"];
/// Attempts to copy a database that changes meanwhile.
const COPIES: usize = 5;

/// Copies a file that may then be written. What SQLite keeps next to a database is copied with it.
fn copy_file(from: &Path, to: &Path) -> Result<(), StoreError> {
    let name = from.to_string_lossy();
    if BESIDE.iter().any(|ending| name.ends_with(ending)) {
        return Ok(());
    }
    if is_database(from) { copy_database(from, to) } else { copy_bytes(from, to) }
}

fn is_database(path: &Path) -> bool {
    const START: &[u8; 16] = b"SQLite format 3\0";
    let mut start = [0; START.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *START
}

fn copy_bytes(from: &Path, to: &Path) -> Result<(), StoreError> {
    let mut source = File::open(from).map_err(StoreError::io(from, "copying the file"))?;
    let mut copy = files::create_private(to).map_err(StoreError::io(to, "creating the copy"))?;
    io::copy(&mut source, &mut copy).map(|_| ()).map_err(StoreError::io(to, "writing the copy"))
}

/// Copies a consistent snapshot of a database, even while another process writes to it.
fn copy_database(from: &Path, to: &Path) -> Result<(), StoreError> {
    // SQLite would make it readable by others.
    files::create_private(to).map_err(StoreError::io(to, "creating the copy"))?;
    let connection = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_ONLY);
    let copied =
        connection.and_then(|connection| connection.execute("VACUUM INTO ?1", [to.to_string_lossy()]));
    if copied.is_ok() {
        return Ok(());
    }
    // No process has it open, so that a reader would have to create the memory which they share; or it is damaged, which
    // is for the readers of the copy to say.
    for _ in 0..COPIES {
        let before = state(from);
        for ending in ["", BESIDE[0]] {
            let (from, to) = (with_ending(from, ending), with_ending(to, ending));
            match std::fs::remove_file(&to) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(StoreError::io(&to, "removing the copy")(error));
                }
                _ if from.exists() => copy_bytes(&from, &to)?,
                _ => {}
            }
        }
        if state(from) == before {
            return Ok(());
        }
    }
    Err(StoreError::Locked { path: from.to_path_buf() })
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

/// What changes whenever a process opens a database or writes to it: the length and time of its files.
fn state(path: &Path) -> Vec<Option<(u64, Option<SystemTime>)>> {
    let of = |ending: &&str| {
        let file = std::fs::metadata(with_ending(path, ending)).ok()?;
        Some((file.len(), file.modified().ok()))
    };
    ["", BESIDE[0], BESIDE[1]].iter().map(of).collect()
}

#[cfg(unix)]
fn link(from: &Path, to: &Path) -> Result<(), StoreError> {
    std::os::unix::fs::symlink(from, to).map_err(StoreError::io(to, "linking the folder"))
}

/// Never called: see [`unwritable`].
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

#[cfg(test)]
#[path = "home_tests.rs"]
mod tests;
