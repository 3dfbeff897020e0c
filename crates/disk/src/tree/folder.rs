//! Documents in a folder of this machine. Files are written under a temporary name and renamed. Symbolic links below
//! the root are never followed, so nothing outside is read or written.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use larder_vault::VaultPath;

use super::{Level, Tree};
use crate::StoreError;
use crate::files::{self, TEMP_PREFIX};

/// Attempts to write a file whose temporary another process keeps removing.
const MAX_TRIES: usize = 3;

/// Nesting of folders that a listing descends into; a path of 1,024 bytes cannot have more.
const DEEPEST: usize = 512;

/// A folder, its path resolved.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
}

impl Folder {
    /// Opens a folder, creating it if it is missing. The path to the root may contain links; nothing below it may.
    ///
    /// # Errors
    /// The folder can be neither created nor opened.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        files::create_dir_all(root)?;
        let root = root.canonicalize().map_err(StoreError::io(root, "opening the documents"))?;
        Ok(Self { root })
    }

    /// The place of a file or folder, if no part of the way is a link. Parts may be missing.
    fn place(&self, path: &str) -> Result<PathBuf, StoreError> {
        let mut place = self.root.clone();
        for name in path.split('/').filter(|name| !name.is_empty()) {
            place.push(name);
            match fs::symlink_metadata(&place) {
                Ok(found) if found.file_type().is_symlink() => {
                    return Err(StoreError::Symlink { path: place });
                }
                Err(error) if !is_missing(&error) => {
                    return Err(StoreError::io(&place, "looking for a document")(error));
                }
                _ => {}
            }
        }
        Ok(place)
    }

    fn walk(&self, folder: &str, depth: usize, file: &mut impl FnMut(VaultPath)) -> Result<(), StoreError> {
        let place = self.place(folder)?;
        for entry in entries(&place)? {
            let Some(name) = shown(&entry) else { continue };
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let kind = entry.file_type().map_err(StoreError::io(&place, "listing documents"))?;
            if kind.is_dir() && depth < DEEPEST {
                self.walk(&path, depth + 1, file)?;
            } else if let Some(path) = VaultPath::new(&path).filter(|_| kind.is_file()) {
                file(path);
            }
        }
        Ok(())
    }
}

impl Tree for Folder {
    fn read(&self, path: &VaultPath) -> Result<Option<Vec<u8>>, StoreError> {
        let place = self.place(path.as_str())?;
        match fs::read(&place) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if is_missing(&error) || place.is_dir() => Ok(None),
            Err(error) => Err(StoreError::io(&place, "reading a document")(error)),
        }
    }

    fn write(&self, path: &VaultPath, bytes: &[u8]) -> Result<(), StoreError> {
        let place = self.place(path.as_str())?;
        let folder = place.parent().unwrap_or(&self.root);
        let failed = |error| StoreError::io(&place, "writing a document")(error);
        let mut tries = 1;
        loop {
            let written = match files::write_temp(folder, bytes) {
                Err(error) if is_missing(&error) => {
                    files::create_dir_all(folder)?;
                    files::write_temp(folder, bytes)
                }
                written => written,
            };
            match written.map_err(failed)?.persist(&place) {
                Ok(_) => return Ok(()),
                // Another process, which completes what a crash left, has removed the new file before it was locked.
                Err(error) if is_missing(&error.error) && tries < MAX_TRIES => tries += 1,
                Err(error) => return Err(failed(error.error)),
            }
        }
    }

    fn list(&self, folder: &str) -> Result<Vec<VaultPath>, StoreError> {
        let mut found = Vec::new();
        self.walk(folder, 0, &mut |path| found.push(path))?;
        found.sort();
        Ok(found)
    }

    fn level(&self, folder: &str) -> Result<Level, StoreError> {
        let place = self.place(folder)?;
        let mut level = Level::default();
        for entry in entries(&place)? {
            let Some(name) = shown(&entry) else { continue };
            let kind = entry.file_type().map_err(StoreError::io(&place, "listing documents"))?;
            if kind.is_dir() {
                level.folders.push(name);
            } else if kind.is_file() {
                level.files.extend(VaultPath::new(format!("{folder}/{name}").trim_start_matches('/')));
            }
        }
        level.folders.sort();
        level.files.sort();
        Ok(level)
    }

    fn sync(&self, paths: &[VaultPath]) -> Result<(), StoreError> {
        let mut folders = BTreeSet::new();
        for path in paths {
            let place = self.place(path.as_str())?;
            match File::open(&place).and_then(|file| file.sync_all()) {
                Err(error) if !is_missing(&error) => {
                    return Err(StoreError::io(&place, "syncing a document")(error));
                }
                _ => {}
            }
            let above = place.ancestors().skip(1).take_while(|folder| folder.starts_with(&self.root));
            folders.extend(above.map(Path::to_path_buf));
        }
        folders.iter().filter(|folder| folder.is_dir()).try_for_each(|folder| files::sync_dir(folder))
    }

    fn remove(&self, path: &VaultPath) -> Result<(), StoreError> {
        let place = self.place(path.as_str())?;
        match fs::remove_file(&place) {
            Err(error) if !is_missing(&error) => Err(StoreError::io(&place, "removing a document")(error)),
            _ => Ok(()),
        }
    }

    fn remove_folder(&self, folder: &str) -> Result<(), StoreError> {
        let place = self.place(folder)?;
        match fs::remove_dir_all(&place) {
            Err(error) if !is_missing(&error) => Err(StoreError::io(&place, "removing documents")(error)),
            _ => Ok(()),
        }
    }

    fn tidy(&self, folder: &str) -> Result<(), StoreError> {
        for entry in files::entries(&self.place(folder)?)? {
            if entry.name.starts_with(TEMP_PREFIX) && files::is_abandoned(&entry.path) {
                let removed = fs::remove_file(&entry.path);
                removed
                    .or_else(|error| if is_missing(&error) { Ok(()) } else { Err(error) })
                    .map_err(StoreError::io(&entry.path, "removing an unfinished file"))?;
            }
        }
        Ok(())
    }

    fn folders_now(&self, folder: &str) -> Option<Result<Vec<String>, StoreError>> {
        Some(self.level(folder).map(|level| level.folders))
    }

    fn has_folder_now(&self, folder: &str) -> bool {
        self.place(folder).is_ok_and(|place| place.exists())
    }
}

/// Nothing there, or a file where a folder should be.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn entries(place: &Path) -> Result<Vec<fs::DirEntry>, StoreError> {
    match fs::read_dir(place).and_then(Iterator::collect) {
        Err(error) if is_missing(&error) => Ok(Vec::new()),
        listed => listed.map_err(StoreError::io(place, "listing documents")),
    }
}

/// The name of a listed entry; excludes hidden files, unfinished files, and names that are not UTF-8.
fn shown(entry: &fs::DirEntry) -> Option<String> {
    entry.file_name().into_string().ok().filter(|name| !name.starts_with('.'))
}
