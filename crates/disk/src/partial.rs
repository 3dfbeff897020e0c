//! Folders that are written next to where they will be, and get their name once they are whole. Knows nothing of what
//! is in them.

use std::path::{Path, PathBuf};

use crate::locks::{TurnLease, take_lease};
use crate::{StoreError, files};

/// Random characters in the name of a folder that is being written.
const RANDOM: usize = 6;

/// A folder that is being written. Dropping it removes the folder, unless it was finished.
#[derive(Debug)]
pub struct PartialFolder {
    path: PathBuf,
    is_finished: bool,
    _lease: TurnLease,
}

impl PartialFolder {
    /// Creates it for a target that must be empty or missing, and removes what killed processes left of theirs for the same
    /// target.
    ///
    /// # Errors
    /// [`StoreError::NotEmpty`], or [`StoreError::Locked`] while another process writes the same target. Or the folder of
    /// the target cannot be written.
    pub fn begin(target: &Path) -> Result<Self, StoreError> {
        if target.exists() && (!target.is_dir() || !files::entries(target)?.is_empty()) {
            return Err(StoreError::NotEmpty { path: target.to_path_buf() });
        }
        let name = target.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let parent = parent(target);
        let lock = parent.join(format!(".{name}.partial.lock"));
        let lease = take_lease(lock.clone())?;
        let lease = lease.ok_or_else(|| StoreError::Locked { path: lock.clone() })?;
        let prefix = format!(".{name}.partial-");
        // Where the file system has no locks, another process may be writing them.
        if TurnLease::is_held(&lock) {
            remove_leftovers(parent, &prefix)?;
        }
        let mut folder = tempfile::Builder::new();
        #[cfg(unix)]
        folder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = folder.prefix(&prefix).rand_bytes(RANDOM).tempdir_in(parent);
        let path = folder.map_err(StoreError::io(parent, "creating a folder"))?.keep();
        Ok(Self { path, is_finished: false, _lease: lease })
    }

    /// Where it is until it is finished.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Syncs it and gives it its name.
    ///
    /// # Errors
    /// Syncing or renaming fails; then it is removed.
    pub fn finish(mut self, target: &Path) -> Result<(), StoreError> {
        files::sync_all(&self.path)?;
        std::fs::rename(&self.path, target).map_err(StoreError::io(target, "naming the copy"))?;
        self.is_finished = true;
        files::sync_dir(parent(target))
    }
}

impl Drop for PartialFolder {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

fn parent(target: &Path) -> &Path {
    target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn remove_leftovers(parent: &Path, prefix: &str) -> Result<(), StoreError> {
    for entry in files::entries(parent)? {
        let is_ours =
            |rest: &str| rest.len() == RANDOM && rest.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if entry.name.strip_prefix(prefix).is_some_and(is_ours)
            && entry.path.is_dir()
            && !entry.path.is_symlink()
        {
            std::fs::remove_dir_all(&entry.path)
                .map_err(StoreError::io(&entry.path, "removing an unfinished copy"))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_goes_and_what_another_is_writing_stays() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("backup");
        let leftover = dir.path().join(".backup.partial-Ab3dEf");
        let of_another = dir.path().join(".backup.partial-2.partial-Ab3dEf");
        let of_the_user = dir.path().join(".backup.partial-old");
        for folder in [&leftover, &of_another, &of_the_user] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("index.sqlite"), "half").unwrap();
        }
        let partial = PartialFolder::begin(&target).unwrap();
        assert!(!leftover.exists() && of_another.exists() && of_the_user.exists());
        let refused = PartialFolder::begin(&target);
        assert!(matches!(refused, Err(StoreError::Locked { .. })), "{refused:?}");
        assert!(partial.path().exists());
        partial.finish(&target).unwrap();
        std::fs::remove_dir_all(of_the_user).unwrap();
        let left: Vec<_> = files::entries(dir.path()).unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!(left, [".backup.partial-2.partial-Ab3dEf", "backup"]);
    }
}
