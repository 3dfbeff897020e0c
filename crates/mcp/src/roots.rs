//! The folders that tools may read, and how names by callers resolve to paths in them. Knows no protocol and no tool.

use std::path::{Component, Path, PathBuf};

use super::brief;

/// Files and folders that tools may read, with everything in them. Hidden files (names that begin with a dot) and paths
/// that leave the folders through a link or `..` are closed.
#[derive(Debug, Clone, Default)]
pub struct Roots {
    /// Canonical, so that no link is left in them.
    folders: Vec<PathBuf>,
}

/// A folder that cannot be opened to tools.
#[derive(Debug, thiserror::Error)]
#[error("cannot open {} to tools: {source}; give an existing folder", path.display())]
pub struct RootError {
    /// The folder.
    pub path: PathBuf,
    /// Why.
    pub source: std::io::Error,
}

/// A path that is not open. The message does not reveal whether such a file exists.
#[derive(Debug, thiserror::Error)]
pub(super) enum Closed {
    #[error(
        "no folder is open to this server, so no file can be read; give the text itself or a pointer instead"
    )]
    NoRoots,
    #[error("{name:?} is not open to this server; open are the files in {open}, except hidden ones")]
    Outside { name: String, open: String },
}

impl Roots {
    /// Opens nothing.
    pub fn none() -> Self {
        Self::default()
    }

    /// Opens these folders or files.
    ///
    /// # Errors
    /// If one of them does not exist.
    pub fn open(folders: &[PathBuf]) -> Result<Self, RootError> {
        let open =
            |path: &PathBuf| path.canonicalize().map_err(|source| RootError { path: path.clone(), source });
        Ok(Self { folders: folders.iter().map(open).collect::<Result<_, _>>()? })
    }

    /// Everything that is open.
    pub(super) fn all(&self) -> Result<Vec<PathBuf>, Closed> {
        if self.folders.is_empty() {
            return Err(Closed::NoRoots);
        }
        Ok(self.folders.clone())
    }

    /// The file or folder that a caller calls `name`: an absolute path, or one in the first folder that has it. The
    /// store's own folder is closed wherever it lies: it holds what belongs to other users.
    pub(super) fn find(&self, name: &str, store: &Path) -> Result<PathBuf, Closed> {
        if self.folders.is_empty() {
            return Err(Closed::NoRoots);
        }
        let store = store.canonicalize().unwrap_or_else(|_| store.to_owned());
        // Joining an absolute path gives that path.
        let real = self.folders.iter().filter_map(|folder| folder.join(name).canonicalize().ok());
        let mut open = real.filter(|path| self.is_open(path) && !path.starts_with(&store));
        open.next().ok_or_else(|| Closed::Outside { name: brief(name), open: self.names() })
    }

    /// Whether a canonical path is a plain file or a folder that lies in an open one, with nothing hidden on the way.
    fn is_open(&self, path: &Path) -> bool {
        let is_hidden = |part: Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
        let lies_in =
            |root: &PathBuf| path.strip_prefix(root).is_ok_and(|rest| !rest.components().any(is_hidden));
        self.folders.iter().any(lies_in)
            && std::fs::metadata(path).is_ok_and(|found| found.is_file() || found.is_dir())
    }

    fn names(&self) -> String {
        self.folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
    }

    /// A document's name as [`Self::find`] takes it back: within the folder, if only one is open.
    pub(super) fn shown(&self, name: &str) -> String {
        let [folder] = self.folders.as_slice() else { return name.to_owned() };
        match Path::new(name).strip_prefix(folder) {
            Ok(rest) if !rest.as_os_str().is_empty() => rest.to_string_lossy().into_owned(),
            _ => name.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shop() -> (tempfile::TempDir, Roots) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("open/a/notes.md", "notes"),
            ("open/.env", "secret"),
            ("open/.git/config", "secret"),
            ("open/store/key", "secret"),
            ("outside.md", "secret"),
        ] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let roots = Roots::open(&[dir.path().join("open")]).unwrap();
        (dir, roots)
    }

    #[test]
    fn files_in_a_root_are_found_by_either_name() {
        let (dir, roots) = shop();
        let store = dir.path().join("open/store");
        let real = dir.path().canonicalize().unwrap().join("open/a/notes.md");
        for name in ["a/notes.md", "./a/notes.md", "a/../a/notes.md", real.to_str().unwrap()] {
            assert_eq!(roots.find(name, &store).unwrap(), real, "{name}");
        }
        assert_eq!(roots.shown(real.to_str().unwrap()), "a/notes.md");
        assert!(roots.find("", &store).is_ok(), "the root itself");
        assert_eq!(roots.all().unwrap().len(), 1);
    }

    #[test]
    fn no_path_leads_out_of_a_root() {
        let (dir, roots) = shop();
        let store = dir.path().join("open/store");
        let open = dir.path().join("open");
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(dir.path().join("outside.md"), open.join("link.md")).unwrap();
            std::os::unix::fs::symlink(dir.path(), open.join("up")).unwrap();
            std::os::unix::fs::symlink(open.join(".env"), open.join("env.txt")).unwrap();
        }
        let outside = dir.path().join("outside.md");
        for name in [
            "../outside.md",
            "a/../../outside.md",
            outside.to_str().unwrap(),
            "link.md",
            "up/outside.md",
            "env.txt",
            ".env",
            ".git/config",
            "store/key",
            "/etc/passwd",
            "/dev/null",
            "..",
            "a\0b",
            "missing.md",
        ] {
            let error = roots.find(name, &store).unwrap_err();
            assert!(matches!(error, Closed::Outside { .. }), "{name}: {error}");
        }
        let (there, missing) = (roots.find("../outside.md", &store), roots.find("../missing.md", &store));
        let words =
            |found: Result<PathBuf, Closed>| found.unwrap_err().to_string().replace("outside", "missing");
        assert_eq!(words(there), words(missing), "errors do not tell what there is elsewhere");
    }

    #[test]
    fn without_roots_nothing_is_open() {
        let error = Roots::none().find("a.md", Path::new("store")).unwrap_err();
        assert!(matches!(error, Closed::NoRoots), "{error}");
        assert!(Roots::none().all().is_err());
        assert!(Roots::open(&[PathBuf::from("/no/such/folder")]).is_err());
    }
}
