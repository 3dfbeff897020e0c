//! Files that are either wholly there or not at all: locked temporaries, folder syncs. Knows no formats.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::StoreError;

/// The prefix of unfinished files, which are invisible to every reader.
pub const TEMP_PREFIX: &str = ".tmp-";

/// Creates a folder that only its owner may enter; returns whether it was missing.
pub fn create_dir(path: &Path) -> Result<bool, StoreError> {
    match private_builder().create(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(false),
        Err(error) => Err(StoreError::io(path, "creating the folder")(error)),
    }
}

/// As [`create_dir`], with the folders above it.
pub fn create_dir_all(path: &Path) -> Result<(), StoreError> {
    private_builder().recursive(true).create(path).map_err(StoreError::io(path, "creating the folder"))
}

fn private_builder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// Makes the names in a folder survive a power failure. Only Unix has, and needs, this.
pub fn sync_dir(path: &Path) -> Result<(), StoreError> {
    #[cfg(unix)]
    File::open(path)
        .and_then(|folder| folder.sync_all())
        .map_err(StoreError::io(path, "syncing the folder"))?;
    Ok(())
}

/// Writes `bytes` to a new temporary file in `dir`, readable by its owner only and not yet synced.
///
/// The file is locked while it is open: a process that can lock it knows that its writer is dead (see
/// [`is_abandoned`]).
pub fn write_temp(dir: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix(TEMP_PREFIX).tempfile_in(dir)?;
    match file.as_file().lock() {
        // Without locks, abandoned files cannot be distinguished from others and are never removed.
        Err(error) if error.kind() != io::ErrorKind::Unsupported => return Err(error),
        _ => file.write_all(bytes)?,
    }
    Ok(file)
}

/// Whether the writer of a temporary file has died.
pub fn is_abandoned(path: &Path) -> bool {
    // The lock is released at once: a writer that has not yet locked its new file finds it removed, and writes again.
    File::open(path).is_ok_and(|file| file.try_lock().is_ok())
}

/// Opens, or creates, a file that only its owner may read.
pub fn open_private(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Creates a file that only its owner may read; it must not exist.
pub fn create_private(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Something in a folder.
pub struct FolderEntry {
    /// Its name; invalid UTF-8, which none of Larder's names contains, is replaced.
    pub name: String,
    /// Its place.
    pub path: PathBuf,
}

/// The entries of a folder by name; empty if it does not exist or is not a folder.
pub fn entries(dir: &Path) -> Result<Vec<FolderEntry>, StoreError> {
    let list = || -> io::Result<Vec<FolderEntry>> {
        let entry = |entry: std::fs::DirEntry| FolderEntry {
            name: entry.file_name().to_string_lossy().into_owned(),
            path: entry.path(),
        };
        let mut all =
            std::fs::read_dir(dir)?.map(|found| found.map(entry)).collect::<io::Result<Vec<_>>>()?;
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    };
    match list() {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(Vec::new())
        }
        listed => listed.map_err(StoreError::io(dir, "listing the folder")),
    }
}

/// Copies the files below a folder and returns how many. Unfinished files and links are left out; what is removed
/// meanwhile is skipped.
pub fn copy_all(from: &Path, to: &Path) -> Result<u64, StoreError> {
    let mut copied = 0;
    for entry in entries(from)? {
        let (target, kind) =
            (to.join(&entry.name), entry.path.symlink_metadata().map(|found| found.file_type()));
        match kind {
            Ok(kind) if kind.is_dir() => {
                create_dir_all(&target)?;
                copied += copy_all(&entry.path, &target)?;
            }
            Ok(kind) if kind.is_file() && !entry.name.starts_with(TEMP_PREFIX) => {
                create_dir_all(to)?;
                match std::fs::copy(&entry.path, &target) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    done => {
                        done.map_err(StoreError::io(&target, "copying a file"))?;
                        copied += 1;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(copied)
}

/// How many files there are below a folder.
pub fn count_all(folder: &Path) -> Result<u64, StoreError> {
    let mut count = 0;
    for entry in entries(folder)? {
        count += if entry.path.is_dir() { count_all(&entry.path)? } else { 1 };
    }
    Ok(count)
}

/// Makes everything below a folder survive a crash of the machine.
pub fn sync_all(folder: &Path) -> Result<(), StoreError> {
    for entry in entries(folder)? {
        if entry.path.is_dir() {
            sync_all(&entry.path)?;
        } else {
            File::open(&entry.path)
                .and_then(|file| file.sync_all())
                .map_err(StoreError::io(&entry.path, "syncing the copy"))?;
        }
    }
    sync_dir(folder)
}
