//! Follows links inside a vault, by Obsidian's rules. Knows the list of files, not their content.

use hashbrown::HashMap;
use icu_normalizer::ComposingNormalizerBorrowed;
use percent_encoding::percent_decode_str;

use super::is_external;
use super::scan::{Link, LinkKind};
use crate::VaultPath;

/// The files of a vault.
#[derive(Debug, Clone, Default)]
pub struct Vault {
    files: Vec<VaultPath>,
    /// Indices into `files` by path and by name, both [`fold`]ed.
    by_path: HashMap<String, Vec<usize>>,
    by_name: HashMap<String, Vec<usize>>,
}

/// The target of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkDestination<'v> {
    /// A file of the vault, possibly the one that contains the link.
    File(&'v VaultPath),
    /// An external address with a scheme.
    External,
    /// Missing: no such file, or a path outside the vault.
    Missing,
}

/// A path normalised for comparison: letter case, Unicode form, kinds of spaces.
fn fold(path: &str) -> String {
    ComposingNormalizerBorrowed::new_nfc().normalize(path).to_lowercase().replace('\u{a0}', " ")
}

impl Vault {
    /// Creates a vault with these files, in any order.
    pub fn new(files: impl IntoIterator<Item = VaultPath>) -> Self {
        let mut files: Vec<VaultPath> = files.into_iter().collect();
        files.sort();
        files.dedup();
        let mut vault = Self { files, ..Self::default() };
        for (at, file) in vault.files.iter().enumerate() {
            vault.by_path.entry(fold(file.as_str())).or_default().push(at);
            vault.by_name.entry(fold(file.name())).or_default().push(at);
        }
        vault
    }

    /// The files, sorted.
    pub fn files(&self) -> &[VaultPath] {
        &self.files
    }

    /// Whether the vault contains exactly this file.
    pub fn contains(&self, file: &VaultPath) -> bool {
        self.files.binary_search(file).is_ok()
    }

    /// The vault after a rename.
    pub(super) fn renamed(&self, from: &VaultPath, to: &VaultPath) -> Self {
        Self::new(self.files.iter().map(|file| if file == from { to.clone() } else { file.clone() }))
    }

    /// The destination of a link in the file `from`.
    pub fn resolve<'v>(&'v self, from: &'v VaultPath, link: &Link) -> LinkDestination<'v> {
        let found = match link.kind {
            LinkKind::Wiki => self.wiki(from, &link.path),
            LinkKind::Autolink => return LinkDestination::External,
            _ if is_external(&link.path) => return LinkDestination::External,
            _ => self.relative(from, &link.path),
        };
        found.map_or(LinkDestination::Missing, LinkDestination::File)
    }

    /// Resolves a wikilink's path: the full path from the root of the vault; relative to the file if it starts with
    /// `./` or `../`; otherwise the end of any path, preferring files in or below the folder of `from`, then the
    /// shortest.
    pub(super) fn wiki<'v>(&'v self, from: &'v VaultPath, path: &str) -> Option<&'v VaultPath> {
        let path = path.trim();
        if path.is_empty() {
            return Some(from);
        }
        if path.starts_with("./") || path.starts_with("../") {
            return self.exact(from.join(path)?.as_str());
        }
        if let Some(path) = path.strip_prefix('/') {
            return self.exact(path);
        }
        self.exact(path).or_else(|| self.by_end(from, path))
    }

    /// Resolves a CommonMark link: relative to the file, or from the root after `/`; a path that does not resolve is
    /// tried as a wikilink's, as in Obsidian.
    fn relative<'v>(&'v self, from: &'v VaultPath, destination: &str) -> Option<&'v VaultPath> {
        let path = destination.split('?').next().unwrap_or_default();
        let path = percent_decode_str(path).decode_utf8().ok()?;
        if path.is_empty() {
            return destination.is_empty().then_some(from);
        }
        let found = self.written(from, &path);
        let lenient = !path.starts_with(['.', '/']);
        found.or_else(|| lenient.then(|| self.by_end(from, &path)).flatten())
    }

    /// The file at exactly this path: relative to `from`, or from the root after `/`.
    fn written(&self, from: &VaultPath, path: &str) -> Option<&VaultPath> {
        if let Some(path) = path.strip_prefix('/') {
            return self.exact(path);
        }
        from.join(path).filter(|_| !path.ends_with('/')).and_then(|path| self.exact(path.as_str()))
    }

    /// Whether any Markdown reader follows `link` to the same target, not just one that searches the vault.
    pub(super) fn is_plain(&self, from: &VaultPath, link: &Link) -> bool {
        let path = link.path.split('?').next().unwrap_or_default();
        let path = percent_decode_str(path).decode_utf8();
        link.kind != LinkKind::Wiki && path.is_ok_and(|path| self.written(from, &path).is_some())
    }

    /// The file with this path, with or without `.md`; case matters only between files that otherwise have the same
    /// path.
    fn exact(&self, path: &str) -> Option<&VaultPath> {
        [path.to_owned(), format!("{path}.md")].iter().find_map(|path| {
            let files = self.by_path.get(&fold(path))?.iter().map(|at| &self.files[*at]);
            files.clone().find(|file| file.as_str() == path).or_else(|| files.into_iter().next())
        })
    }

    fn by_end(&self, from: &VaultPath, path: &str) -> Option<&VaultPath> {
        let near = match from.folder() {
            "" => String::new(),
            folder => fold(folder) + "/",
        };
        [fold(path), fold(path) + ".md"].iter().find_map(|path| {
            let name = path.rsplit('/').next().unwrap_or_default();
            let files = self.by_name.get(name)?.iter().map(|at| &self.files[*at]);
            let fits = |file: &&VaultPath| {
                let whole = fold(file.as_str());
                whole
                    .strip_suffix(path.as_str())
                    .is_some_and(|before| before.is_empty() || before.ends_with('/'))
            };
            files.filter(fits).min_by_key(|file| {
                let whole = fold(file.as_str());
                (!whole.starts_with(&near), whole.chars().count(), *file)
            })
        })
    }
}
