//! The files a question is about: listed once, read again whenever a part of them is needed, never all in memory.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use larder_text::hash::ContentHash;
use serde::Serialize;

use super::AskError;

/// Bytes of all files together.
const MAX_BYTES: u64 = 1 << 30;
/// Bytes of one file.
const MAX_FILE: u64 = 256 << 20;
/// Files at most.
const MAX_FILES: usize = 1_000_000;
/// Bytes of text cached for rereading.
const KEPT_BYTES: usize = 64 << 20;
/// Folders without text written by the user.
const SKIPPED: [&str; 4] = ["target", "node_modules", "__pycache__", "venv"];

/// Why a file with zero bytes in it is not read.
const BINARY: &str = "binary";

/// A file or folder that was not read, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkippedFile {
    /// Its path.
    pub path: String,
    /// Why.
    pub reason: String,
    /// Whether such files are skipped by design: hidden and empty ones, pictures, links, build output.
    #[serde(skip)]
    pub is_expected: bool,
}

impl SkippedFile {
    /// Something that could not be read.
    fn failed(path: &Path, reason: impl fmt::Display) -> Self {
        Self { path: shown(path), reason: reason.to_string(), is_expected: false }
    }

    /// A file that is skipped by design.
    fn expected(path: &Path, reason: &str) -> Self {
        Self { path: shown(path), reason: reason.to_owned(), is_expected: true }
    }
}

impl fmt::Display for SkippedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.reason)
    }
}

/// A path as users type it.
fn shown(path: &Path) -> String {
    path.strip_prefix("./").unwrap_or(path).to_string_lossy().into_owned()
}

/// A file that was read as text.
#[derive(Debug)]
pub(super) struct LibraryFile {
    /// Its path as users type it.
    pub name: String,
    /// `None` for a text from the store.
    path: Option<PathBuf>,
    /// The hash of its content when it was first read.
    pub hash: ContentHash,
}

/// Files by number, in the order of their names.
#[derive(Debug, Default)]
pub(super) struct Library {
    pub files: Vec<LibraryFile>,
    /// What was not read.
    pub skipped: Vec<SkippedFile>,
    /// Bytes of all files.
    pub bytes: u64,
    kept: BTreeMap<usize, Arc<str>>,
    kept_bytes: usize,
}

/// Paths and sizes that a walk found.
#[derive(Debug, Default)]
pub(super) struct WalkedPaths {
    pub paths: Vec<(PathBuf, u64)>,
    pub skipped: Vec<SkippedFile>,
    pub bytes: u64,
    seen: HashSet<PathBuf>,
}

impl WalkedPaths {
    /// Finds every file under `paths` without reading any.
    pub fn under(paths: &[PathBuf]) -> Result<Self, AskError> {
        let mut found = Self::default();
        for path in paths {
            let failed = |source| AskError::Read { path: path.clone(), source };
            let metadata = std::fs::metadata(path).map_err(failed)?;
            if metadata.is_dir() {
                found.walk(path);
            } else {
                found.add(path.clone(), metadata.len());
            }
        }
        Ok(found)
    }

    /// Walks a folder in order of names, without recursion, since folders can be nested to any depth. Links are not
    /// followed: they could lead outside the named folder.
    fn walk(&mut self, dir: &Path) {
        let mut waiting = vec![(dir.to_owned(), true)];
        while let Some((path, is_dir)) = waiting.pop() {
            if !is_dir {
                let size = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
                self.add(path, size);
                continue;
            }
            let entries = match std::fs::read_dir(&path) {
                Ok(entries) => entries,
                Err(error) => {
                    self.skipped.push(SkippedFile::failed(&path, error));
                    continue;
                }
            };
            let mut entries: Vec<_> = entries.filter_map(Result::ok).collect();
            entries.sort_by_key(|entry| std::cmp::Reverse(entry.file_name()));
            for entry in entries {
                let name = entry.file_name().to_string_lossy().into_owned();
                let Ok(kind) = entry.file_type() else { continue };
                let why = match name.as_str() {
                    hidden if hidden.starts_with('.') => "hidden",
                    folder if kind.is_dir() && SKIPPED.contains(&folder) => "ignored folder",
                    _ if kind.is_symlink() => "symbolic link",
                    _ if !kind.is_dir() && !kind.is_file() => "not a file",
                    _ => {
                        waiting.push((entry.path(), kind.is_dir()));
                        continue;
                    }
                };
                self.skipped.push(SkippedFile::expected(&entry.path(), why));
            }
        }
    }

    /// Adds a file, unless it was added before, under whatever path.
    fn add(&mut self, path: PathBuf, size: u64) {
        if !self.seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())) {
            return;
        }
        if size > MAX_FILE || self.bytes.saturating_add(size) > MAX_BYTES {
            let reason = format!("too large ({size} bytes)");
            return self.skipped.push(SkippedFile::failed(&path, reason));
        }
        if self.paths.len() >= MAX_FILES {
            return self.skipped.push(SkippedFile::failed(&path, format!("more than {MAX_FILES} files")));
        }
        self.bytes = self.bytes.saturating_add(size);
        self.paths.push((path, size));
    }
}

impl Library {
    /// Reads a file; returns its number and text if it is text.
    pub fn add(&mut self, path: PathBuf) -> Option<(usize, Arc<str>)> {
        let text = match read(&path) {
            Ok(text) if text.trim().is_empty() => {
                self.skipped.push(SkippedFile::expected(&path, "empty"));
                return None;
            }
            Ok(text) => text,
            Err(why) => {
                let is_expected = why == BINARY;
                self.skipped.push(SkippedFile { is_expected, ..SkippedFile::failed(&path, why) });
                return None;
            }
        };
        let text: Arc<str> = text.into();
        let name = shown(&path);
        let number = self.push(name, Some(path), &text);
        self.keep(number, &text);
        Some((number, text))
    }

    /// Adds a text from the store.
    pub fn hold(&mut self, name: String, text: &Arc<str>) -> usize {
        let number = self.push(name, None, text);
        self.kept.insert(number, Arc::clone(text));
        number
    }

    fn push(&mut self, name: String, path: Option<PathBuf>, text: &str) -> usize {
        self.bytes = self.bytes.saturating_add(text.len() as u64);
        self.files.push(LibraryFile { name, path, hash: ContentHash::new(text.as_bytes()) });
        self.files.len() - 1
    }

    /// The text of a file as it was first read; `None` when it has changed since or no longer exists.
    pub fn text(&mut self, number: usize) -> Option<Arc<str>> {
        if let Some(text) = self.kept.get(&number) {
            return Some(Arc::clone(text));
        }
        let file = self.files.get(number)?;
        match read(file.path.as_deref()?) {
            Ok(text) if ContentHash::new(text.as_bytes()) == file.hash => {
                let text: Arc<str> = text.into();
                self.keep(number, &text);
                Some(text)
            }
            Ok(_) => {
                tracing::warn!(file = file.name, "it changed while it was being read");
                None
            }
            Err(why) => {
                tracing::warn!(file = file.name, "{why}");
                None
            }
        }
    }

    /// The file called `name`: its path, or the end of exactly one path.
    pub fn find(&self, name: &str) -> Option<usize> {
        let name = name.trim().trim_start_matches("./");
        if let Some(at) = self.files.iter().position(|file| file.name == name) {
            return Some(at);
        }
        let ends = |file: &LibraryFile| !name.is_empty() && Path::new(&file.name).ends_with(name);
        let mut fitting = (0..self.files.len()).filter(|&at| ends(&self.files[at]));
        fitting.next().filter(|_| fitting.next().is_none())
    }

    fn keep(&mut self, number: usize, text: &Arc<str>) {
        if self.kept_bytes.saturating_add(text.len()) <= KEPT_BYTES {
            self.kept_bytes = self.kept_bytes.saturating_add(text.len());
            self.kept.insert(number, Arc::clone(text));
        }
    }
}

fn read(path: &Path) -> Result<String, String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(format!("too large ({} bytes)", bytes.len()));
    }
    match String::from_utf8(bytes) {
        Ok(text) if text.contains('\0') => Err(BINARY.to_owned()),
        Ok(text) => Ok(text),
        Err(error) if error.as_bytes().contains(&0) => Err(BINARY.to_owned()),
        Err(_) => Err("not UTF-8".to_owned()),
    }
}
