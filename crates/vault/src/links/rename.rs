//! Renames a note: rewrites exactly the links that must change and preserves every other byte.

use std::collections::BTreeMap;
use std::ops::Range;

use hashbrown::HashMap;

use super::scan::{Link, LinkKind, links};
use super::spell::{encoded, fits_wikilink};
use super::vault::{LinkDestination, Vault};
use crate::{ParseProblem, VaultPath};

/// A note to be moved to another path.
#[derive(Debug, Clone)]
pub struct NoteRename<'v> {
    old: &'v Vault,
    new: Vault,
    from: VaultPath,
    to: VaultPath,
}

/// Why a note cannot be renamed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenameError {
    /// There is no file with the old path.
    #[error("there is no {0} in the vault; give the path of a file from the root of the vault")]
    Missing(VaultPath),
    /// There is already a file with the new path.
    #[error("{0} already exists; choose another name, or move that file first")]
    Taken(VaultPath),
}

/// A note after a rename.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// The whole text.
    pub text: String,
    /// How many links were rewritten.
    pub changed: usize,
    /// Links that should have been rewritten but could not be.
    pub problems: Vec<ParseProblem>,
}

impl<'v> NoteRename<'v> {
    /// Prepares a rename.
    ///
    /// # Errors
    /// If there is no file with the old path, or already one with the new.
    pub fn new(vault: &'v Vault, from: VaultPath, to: VaultPath) -> Result<Self, RenameError> {
        if !vault.contains(&from) {
            return Err(RenameError::Missing(from));
        }
        if vault.contains(&to) {
            return Err(RenameError::Taken(to));
        }
        Ok(Self { old: vault, new: vault.renamed(&from, &to), from, to })
    }

    /// The vault after the rename.
    pub fn vault(&self) -> &Vault {
        &self.new
    }

    /// The text of `note` (its path before the rename), with every link rewritten that pointed to the renamed note,
    /// or would now point elsewhere.
    pub fn rewrite(&self, note: &VaultPath, text: &str) -> Rewritten {
        let found = links(text);
        let (edits, problems) = self.edits(note, &found, text);
        let labels = labels(&found, &edits, text);
        let plain = applied(text, &edits);
        let named =
            (!labels.is_empty()).then(|| applied(text, &edits.iter().chain(&labels).map(own).collect()));
        let text = named.filter(|named| self.keeps(note, &found, &links(named))).unwrap_or(plain);
        Rewritten { text, changed: edits.len(), problems }
    }

    /// The destinations to rewrite.
    fn edits(&self, note: &VaultPath, found: &[Link], text: &str) -> (Edits, Vec<ParseProblem>) {
        let here = if *note == self.from { &self.to } else { note };
        let (mut edits, mut problems) = (Edits::new(), Vec::new());
        for link in found {
            let Some((led, goal)) = self.goal(note, link) else { continue };
            let leads = matches!(self.new.resolve(here, link), LinkDestination::File(leads) if leads == goal)
                && (self.new.is_plain(here, link) || !self.old.is_plain(note, link));
            let own = link.path.is_empty();
            if own || leads && *led != self.from {
                continue;
            }
            match self.spelt(here, link, text, goal) {
                Some((range, new)) => {
                    edits.insert(range.start, (range.end, new));
                }
                None => {
                    let line = text[..link.range.start].matches('\n').count() + 1;
                    let message = format!("the link to {led} cannot be rewritten to {goal}; fix it by hand");
                    problems.push(ParseProblem::new(line, message));
                }
            }
        }
        (edits, problems)
    }

    /// The target of a link in `note` before the rename, and the target it must have now.
    fn goal<'a>(&'a self, note: &'a VaultPath, link: &Link) -> Option<(&'a VaultPath, &'a VaultPath)> {
        match self.old.resolve(note, link) {
            LinkDestination::File(led) => Some((led, if *led == self.from { &self.to } else { led })),
            _ => None,
        }
    }

    /// Whether the rewritten links have the same targets as those before.
    fn keeps(&self, note: &VaultPath, before: &[Link], after: &[Link]) -> bool {
        let here = if *note == self.from { &self.to } else { note };
        let kept = |(old, new): (&Link, &Link)| match self.goal(note, old) {
            Some((_, goal)) => {
                matches!(self.new.resolve(here, new), LinkDestination::File(leads) if leads == goal)
            }
            None => old.path == new.path,
        };
        before.len() == after.len() && before.iter().zip(after).all(kept)
    }

    /// Which bytes to replace, and the replacement in the style of the original link.
    fn spelt(
        &self,
        here: &VaultPath,
        link: &Link,
        text: &str,
        goal: &VaultPath,
    ) -> Option<(Range<usize>, String)> {
        let range = link.target.clone()?;
        let written = text.get(range.clone())?;
        let new = match link.kind {
            LinkKind::Wiki => self.wikilink(here, written, goal)?,
            _ => destination(here, link, written, goal),
        };
        Some((range, new))
    }

    /// The shortest form that still resolves, in the style of the original.
    fn wikilink(&self, here: &VaultPath, written: &str, goal: &VaultPath) -> Option<String> {
        let ending = has_ending(written);
        let cut = |path: &str| if ending { path.to_owned() } else { without_ending(path).to_owned() };
        let relative = here.relative(goal);
        let relative = if relative.starts_with("../") { relative } else { format!("./{relative}") };
        let root = format!("/{goal}");
        let whole = goal.as_str();
        let manners: Vec<&str> = match written {
            path if path.starts_with('/') => vec![&root],
            path if path.starts_with("./") || path.starts_with("../") => vec![&relative, &root],
            path if path.contains('/') => vec![whole, &root],
            _ => vec![goal.name(), whole, &root],
        };
        // Names such as ` .md` need their extension.
        let cut = manners.iter().map(|path| cut(path));
        cut.chain(manners.iter().map(|path| (*path).to_owned()))
            .find(|path| fits_wikilink(path) && self.new.wiki(here, path) == Some(goal))
    }
}

/// Replacement texts by the start and end of the range they replace.
type Edits = BTreeMap<usize, (usize, String)>;

fn own((at, edit): (&usize, &(usize, String))) -> (usize, (usize, String)) {
    (*at, edit.clone())
}

fn applied(text: &str, edits: &Edits) -> String {
    let mut rewritten = text.to_owned();
    for (start, (end, new)) in edits.iter().rev() {
        rewritten.replace_range(*start..*end, new);
    }
    rewritten
}

/// Definitions used by wikilinks: where a definition has that label, `[[note]]` is also the reference `[note]`, and
/// remains one only if the label is renamed too. A label with other uses is kept.
fn labels(found: &[Link], edits: &Edits, text: &str) -> Edits {
    let wikilinks: HashMap<usize, &Link> = found
        .iter()
        .filter(|link| link.kind == LinkKind::Wiki)
        .map(|link| (link.range.end - 1, link))
        .collect();
    let renamed = |link: &Link| -> Option<String> {
        let target = wikilinks.get(&link.range.end)?.target.clone()?;
        let (end, new) = edits.get(&target.start)?;
        let before = text.get(link.range.start + 1..target.start)?;
        Some(format!("{before}{new}{}", text.get(*end..link.range.end - 1)?))
    };
    let mut labels: BTreeMap<usize, (usize, Option<String>)> = BTreeMap::new();
    for link in found {
        let Some(label) = &link.label else { continue };
        let new = renamed(link);
        let entry = labels.entry(label.start).or_insert_with(|| (label.end, new.clone()));
        if entry.1 != new {
            entry.1 = None;
        }
    }
    labels.into_iter().filter_map(|(start, (end, new))| Some((start, (end, new?)))).collect()
}

/// The destination of a CommonMark or HTML link.
fn destination(here: &VaultPath, link: &Link, written: &str, goal: &VaultPath) -> String {
    let path = link.path.split('?').next().unwrap_or_default();
    let plain = !written.contains(['&', '\\']);
    let end = match written.find(['#', '?']).filter(|_| plain) {
        Some(at) => written[at..].to_owned(),
        None => link.fragment.as_ref().map(|fragment| format!("#{}", encoded(fragment))).unwrap_or_default(),
    };
    let new = if path.starts_with('/') { format!("/{goal}") } else { here.relative(goal) };
    let new = if has_ending(path) { new } else { without_ending(&new).to_owned() };
    encoded(&new) + &end
}

fn has_ending(path: &str) -> bool {
    path.get(path.len().saturating_sub(3)..).is_some_and(|end| end.eq_ignore_ascii_case(".md"))
}

fn without_ending(path: &str) -> &str {
    if has_ending(path) { &path[..path.len() - 3] } else { path }
}
