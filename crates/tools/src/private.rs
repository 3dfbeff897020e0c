//! What is Larder's own and out of reach of tools and programs, wherever it lies: the settings, the store and the
//! documents of all users. Decides by real paths, whatever links lead there.

use std::ffi::OsString;
use std::fs::DirEntry;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use larder_engine::config::{DEFAULT_HOME, FILE};

/// Links that are followed on the way to one path, as by the kernel.
const MAX_LINKS: usize = 40;

/// The files and folders that no tool may reach.
#[derive(Debug, Clone)]
pub(super) struct PrivatePaths(Arc<[PathBuf]>);

impl PrivatePaths {
    /// These files and folders, which need not exist yet.
    pub(super) fn new(paths: &[PathBuf]) -> Self {
        Self(paths.into())
    }

    /// Where they are now, with the settings and the store of another project if this workspace has them.
    pub(super) fn resolve(&self, workspace: &Path) -> PrivatePlaces {
        let others = [FILE, DEFAULT_HOME].map(|name| workspace.join(name));
        let others = others.iter().filter(|path| path.symlink_metadata().is_ok());
        PrivatePlaces(
            self.0.iter().chain(others).flat_map(|path| places(path)).map(|path| folded(&path)).collect(),
        )
    }
}

/// Real paths of what is private, in small letters: not every file system tells them apart.
#[derive(Debug)]
pub(super) struct PrivatePlaces(Vec<PathBuf>);

impl PrivatePlaces {
    /// Whether a real path is private or in a private folder.
    pub(super) fn cover(&self, path: &Path) -> bool {
        let path = folded(path);
        self.0.iter().any(|place| path.starts_with(place))
    }

    /// A folder without what is private in it: the folder itself, or everything next to the way there. Links are left
    /// out then, since they may lead anywhere.
    pub(super) fn around(&self, folder: &Path) -> Vec<PathBuf> {
        let Ok(real) = folder.canonicalize() else { return Vec::new() };
        if self.cover(&real) {
            return Vec::new();
        }
        let is_on_the_way = self.0.iter().any(|place| place.starts_with(folded(&real)));
        if !is_on_the_way {
            return vec![real];
        }
        let is_link = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_symlink());
        let entries = std::fs::read_dir(&real).into_iter().flatten().flatten();
        entries.filter(|entry| !is_link(entry)).flat_map(|entry| self.around(&entry.path())).collect()
    }
}

fn folded(path: &Path) -> PathBuf {
    path.as_os_str().to_ascii_lowercase().into()
}

/// Where an absolute path leads, and each link on the way: who replaces one decides what is found at its end.
fn places(path: &Path) -> Vec<PathBuf> {
    let parts = |path: &Path| path.components().rev().map(|part| part.as_os_str().to_owned()).collect();
    let mut left: Vec<OsString> = parts(path);
    let (mut found, mut at) = (Vec::new(), PathBuf::new());
    while let Some(part) = left.pop() {
        match Path::new(&part).components().next() {
            Some(Component::ParentDir) => drop(at.pop()),
            Some(Component::CurDir) | None => {}
            // The root of an absolute link starts anew.
            Some(_) => at.push(&part),
        }
        if let (Ok(target), true) = (at.read_link(), found.len() < MAX_LINKS) {
            found.push(at.clone());
            at.pop();
            left.extend(parts(&target) as Vec<OsString>);
        }
    }
    found.push(at);
    found
}
