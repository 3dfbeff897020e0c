//! Whether files with providers' keys have changed since they were read. Never reads a key.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

/// What distinguishes a changed file from an unchanged one.
pub(crate) type FileState = (Option<SystemTime>, u64);

/// Key files, and what they were like before they were read. Unlike other files, they may be links: secrets are mounted
/// as such, and a new one comes by another link.
#[derive(Debug)]
pub(crate) struct KeyFiles(BTreeMap<PathBuf, Option<FileState>>);

impl KeyFiles {
    /// These files, as they are now.
    pub(crate) fn look(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let marked = |path: PathBuf| {
            let mark = std::fs::metadata(&path).ok().map(|file| (file.modified().ok(), file.len()));
            (path, mark)
        };
        Self(paths.into_iter().map(marked).collect())
    }

    /// The same files, as they are now.
    pub(crate) fn look_again(&self) -> Self {
        Self::look(self.0.keys().cloned())
    }

    /// Whether one of them is not what it was.
    pub(crate) fn have_changed(&self) -> bool {
        self.look_again().0 != self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_that_changes_comes_or_goes_is_noticed_behind_a_link_too() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let absent = KeyFiles::look([path.clone()]);
        assert!(!absent.have_changed());
        std::fs::write(&path, "sk-1").unwrap();
        assert!(absent.have_changed());
        let written = absent.look_again();
        assert!(!written.have_changed());
        std::fs::write(&path, "sk-one").unwrap();
        assert!(written.have_changed());
        std::fs::remove_file(&path).unwrap();
        assert!(written.have_changed());
        #[cfg(unix)]
        {
            std::fs::write(dir.path().join("new"), "sk-2").unwrap();
            std::os::unix::fs::symlink("new", &path).unwrap();
            let linked = KeyFiles::look([path.clone()]);
            std::fs::write(dir.path().join("new"), "sk-two").unwrap();
            assert!(linked.have_changed());
        }
    }
}
