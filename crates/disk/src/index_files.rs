//! The files of an SQLite index: removed, or moved out of the way when it is damaged. Knows nothing of what is in them.

use std::path::{Path, PathBuf};

use crate::{StoreError, files};

/// The files of an index: itself, its log and what SQLite shares between processes.
fn all(path: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|suffix| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    })
}

/// Removes an index that is not finished, if there is one.
///
/// # Errors
/// A file cannot be removed.
pub fn remove(path: &Path) -> Result<(), StoreError> {
    for file in all(path) {
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(StoreError::io(&file, "removing an unfinished index")(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Gives a damaged index another name, which is returned and under which SQLite's own tools can still read it; `None` if
/// there is no index. A log without its index gets such a name, too: it is of use if the index turns up again.
///
/// # Errors
/// A file cannot be renamed.
pub fn move_damaged(path: &Path) -> Result<Option<PathBuf>, StoreError> {
    let is_there = path.symlink_metadata().is_ok();
    let free = (1_u32..).map(|number| path.with_extension(format!("sqlite.damaged-{number}")));
    let is_free = |to: &PathBuf| all(to).iter().all(|file| file.symlink_metadata().is_err());
    let Some(to) = free.into_iter().find(is_free) else { return Ok(None) };
    // The log first: a new index must not find it.
    for (from, to) in all(path).into_iter().zip(all(&to)).rev() {
        match std::fs::rename(&from, &to) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            renamed => {
                renamed.map_err(StoreError::io(&from, "moving the damaged index"))?;
            }
        }
    }
    Ok(is_there.then_some(to))
}

/// Removes the damaged indexes that repairs have kept: what they hold of a single user cannot be found.
///
/// # Errors
/// A file cannot be removed.
pub fn remove_damaged(home: &Path) -> Result<(), StoreError> {
    for entry in files::entries(home)? {
        if entry.name.starts_with("index.sqlite.damaged-") {
            std::fs::remove_file(&entry.path)
                .map_err(StoreError::io(&entry.path, "removing a damaged index"))?;
        }
    }
    Ok(())
}
