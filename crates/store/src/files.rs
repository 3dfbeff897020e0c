//! Files that are either wholly there or not at all: locked temporaries, folder syncs. Knows no formats.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::path::Path;

use tempfile::NamedTempFile;

use crate::error::StoreError;

/// How the names of unfinished files begin. They are invisible to every reader.
pub(crate) const TEMP_PREFIX: &str = ".tmp-";

/// Makes a folder that only its owner may enter; says whether it was missing.
pub(crate) fn create_dir(path: &Path) -> Result<bool, StoreError> {
    match private_builder().create(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(false),
        Err(error) => Err(StoreError::io(path, "creating the folder")(error)),
    }
}

/// As [`create_dir`], with the folders above it.
pub(crate) fn create_dir_all(path: &Path) -> Result<(), StoreError> {
    private_builder().recursive(true).create(path).map_err(StoreError::io(path, "creating the folder"))
}

fn private_builder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// Makes the names in a folder survive a power failure. Only Unix has, and needs, this.
pub(crate) fn sync_dir(path: &Path) -> Result<(), StoreError> {
    #[cfg(unix)]
    File::open(path)
        .and_then(|folder| folder.sync_all())
        .map_err(StoreError::io(path, "syncing the folder"))?;
    Ok(())
}

/// Writes `bytes` to a new temporary file in `dir`, readable by its owner only and not yet synced.
///
/// The file is locked while it is open: whoever can lock it knows that its writer is dead.
pub(crate) fn write_temp(dir: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix(TEMP_PREFIX).tempfile_in(dir)?;
    match file.as_file().lock() {
        // Without locks nobody can tell abandoned files from others, and so nobody removes them.
        Err(error) if error.kind() != io::ErrorKind::Unsupported => return Err(error),
        _ => file.write_all(bytes)?,
    }
    Ok(file)
}

/// Opens (and if need be makes) a file that only its owner may read.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
