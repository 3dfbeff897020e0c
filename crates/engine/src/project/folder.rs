//! Reads a project folder without leaving it: no symbolic link is followed, and count, depth and size are limited.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use larder_core::recipe::{Diagnostic, DiagnosticCode, MAX_FILE_BYTES, ProjectFiles, REGISTRY_PATH};

use super::ProjectError;
use super::root::FOLDERS;

/// Maximum number of files in a project.
const MAX_FILES: usize = 10_000;
/// Maximum folder depth below each of the folders that are read.
const MAX_DEPTH: usize = 8;
/// Maximum bytes of a registry; it has about 2 KiB per recipe.
const MAX_REGISTRY_BYTES: usize = 64 << 20;

/// The contents of a folder.
pub(super) struct FolderContents {
    pub files: ProjectFiles,
    pub problems: Vec<Diagnostic>,
}

/// Reads `recipes/`, `prompts/`, `routes/`, `conversations/` and `registry.yaml` below `root`. Hidden files, and files that
/// are neither YAML nor Markdown, are skipped.
pub(super) fn read(root: &Path) -> Result<FolderContents, ProjectError> {
    let unreadable = |source| ProjectError::Read { path: root.to_owned(), source };
    if !fs::metadata(root).map_err(unreadable)?.is_dir() {
        return Err(unreadable(io::Error::from(io::ErrorKind::NotADirectory)));
    }
    fs::read_dir(root).map_err(unreadable)?;
    let mut contents = FolderContents { files: ProjectFiles::new(), problems: Vec::new() };
    for top in FOLDERS {
        walk(&root.join(top), top, 0, &mut contents);
    }
    let is_own = |path: &String| path.starts_with("recipes/") || path.starts_with("conversations/");
    if !contents.files.keys().any(is_own) && contents.problems.is_empty() {
        let source = io::Error::new(io::ErrorKind::NotFound, "it contains no recipes and no conversations");
        return Err(unreadable(source));
    }
    let registry = root.join(REGISTRY_PATH);
    if fs::symlink_metadata(&registry).is_ok() {
        take(&registry, REGISTRY_PATH, MAX_REGISTRY_BYTES, &mut contents);
    }
    Ok(contents)
}

fn walk(dir: &Path, inside: &str, depth: usize, contents: &mut FolderContents) {
    let kind = match fs::symlink_metadata(dir) {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => return contents.unreadable(inside, &error.to_string()),
    };
    if kind.is_symlink() {
        return contents.unreadable(inside, "symbolic links are not followed");
    }
    if depth > MAX_DEPTH {
        return contents.unreadable(inside, &format!("folders nest deeper than {MAX_DEPTH}"));
    }
    let entries = match fs::read_dir(dir).and_then(Iterator::collect::<io::Result<Vec<_>>>) {
        Ok(entries) => entries,
        Err(error) => return contents.unreadable(inside, &error.to_string()),
    };
    let mut entries: Vec<_> = entries.into_iter().map(|entry| (entry.file_name(), entry)).collect();
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    for (name, entry) in entries {
        let name = name.to_string_lossy();
        if name.starts_with('.') {
            continue;
        }
        let path = format!("{inside}/{name}");
        let is_text = [".yaml", ".yml", ".md"].iter().any(|end| name.ends_with(end));
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(&entry.path(), &path, depth + 1, contents),
            Ok(kind) if kind.is_symlink() => contents.unreadable(&path, "symbolic links are not followed"),
            Ok(_) if !is_text => {}
            Ok(_) if contents.files.len() >= MAX_FILES => {
                let message = format!(
                    "the project contains more than {MAX_FILES} files; this and later ones are not read"
                );
                let problem = Diagnostic::whole_file(DiagnosticCode::TooLarge, &path, message, "");
                return contents.problems.push(problem);
            }
            Ok(_) => take(&entry.path(), &path, MAX_FILE_BYTES, contents),
            Err(error) => contents.unreadable(&path, &error.to_string()),
        }
    }
}

/// Reads one file, at most one byte beyond the limit, so that the check can tell that it is too large.
fn take(path: &Path, inside: &str, limit: usize, contents: &mut FolderContents) {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => return contents.unreadable(inside, &error.to_string()),
    };
    if metadata.file_type().is_symlink() {
        return contents.unreadable(inside, "symbolic links are not followed");
    }
    if !metadata.is_file() {
        return contents.unreadable(inside, "not a regular file");
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    match File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes)) {
        Ok(_) => {
            contents.files.insert(inside.to_owned(), bytes);
        }
        Err(error) => contents.unreadable(inside, &error.to_string()),
    }
}

impl FolderContents {
    fn unreadable(&mut self, inside: &str, why: &str) {
        let message = format!("cannot read {inside}: {why}");
        let help = "put a copy of the file into the project folder";
        self.problems.push(Diagnostic::whole_file(DiagnosticCode::Unreadable, inside, message, help));
    }
}

/// Writes a file next to `path` and renames it, so that readers see either the old or the new one.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension(format!("{}.tmp", std::process::id()));
    let written = File::create_new(&beside).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    let replaced = written.and_then(|()| fs::rename(&beside, path));
    if replaced.is_err() {
        let _ = fs::remove_file(&beside);
    }
    replaced
}
