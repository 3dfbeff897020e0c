//! Links in Larder's own documents, in both styles: relative for any Markdown reader, and as a wikilink for Obsidian.
//! Written by rule, never by a model.

use larder_text::sections::SectionId;
use serde::{Deserialize, Serialize};

use super::spell::encoded;
use crate::quote::{inline, uninline};
use crate::{BlockId, VaultPath};

/// The separator between the two styles.
const BETWEEN: &str = " | ";

/// A link to a file of the vault.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DualLink {
    /// The linked file.
    pub file: VaultPath,
    /// The linked block in it, if any.
    pub block: Option<BlockId>,
    /// The wikilink's text: one line, without brackets and vertical bars.
    pub label: String,
}

impl DualLink {
    /// Creates a link to a whole file.
    pub fn new(file: VaultPath, label: &str) -> Self {
        Self { file, block: None, label: label_of(label) }
    }

    /// Creates a link to one block of a file.
    pub fn to_block(file: VaultPath, block: BlockId, label: &str) -> Self {
        Self { file, block: Some(block), label: label_of(label) }
    }

    fn fragment(&self) -> String {
        self.block.as_ref().map(|block| format!("#{block}")).unwrap_or_default()
    }

    /// `[turn_000759/research.md](../turn_000759/research.md)`, as written in the file `at`.
    pub fn relative(&self, at: &VaultPath) -> String {
        let path = encoded(&at.relative(&self.file));
        format!("[{}]({path}{})", label_of(self.file.short()), self.fragment())
    }

    /// `[[users/u/turns/turn_000759/research|research]]`; names that are not valid in wikilinks are linked relative
    /// to the root.
    pub fn wiki(&self) -> String {
        let path = self.file.wiki();
        let plain = path.chars().all(|char| char.is_alphanumeric() || " _-./".contains(char));
        if !plain || path.trim() != path {
            return format!("[{}](/{}{})", self.label, encoded(self.file.as_str()), self.fragment());
        }
        format!("[[{}{}|{}]]", self.file.wiki(), self.fragment(), self.label)
    }

    /// Both styles on one line.
    pub fn both(&self, at: &VaultPath) -> String {
        format!("{}{BETWEEN}{}", self.relative(at), self.wiki())
    }

    /// Reads a link that [`both`](Self::both), [`relative`](Self::relative) or [`wiki`](Self::wiki) wrote in the file
    /// `at`.
    pub(crate) fn read(text: &str, at: &VaultPath) -> Option<Self> {
        let found = super::scan(text, super::Dialect::Vault);
        let link = found.iter().find(|link| link.kind == super::LinkKind::Wiki).or(found.first())?;
        let block = match &link.fragment {
            Some(fragment) => Some(fragment.parse().ok()?),
            None => None,
        };
        if link.kind == super::LinkKind::Wiki {
            let whole = &text[link.range.clone()];
            let label = whole.split_once('|').map_or("", |(_, label)| label.trim_end_matches("]]"));
            let named = |path: &str| path.rsplit('/').next().is_some_and(|name| name.contains('.'));
            let path = if named(&link.path) { link.path.clone() } else { format!("{}.md", link.path) };
            let path = path.trim_start_matches('/');
            return Some(Self { file: VaultPath::new(path)?, block, label: label.to_owned() });
        }
        let path = percent_encoding::percent_decode_str(&link.path).decode_utf8().ok()?;
        let file = match path.strip_prefix('/') {
            Some(path) => VaultPath::new(path)?,
            None => at.join(&path)?,
        };
        // Without a wikilink, the last link contains the label.
        let shown = found.last().and_then(|last| text[last.range.clone()].split_once("]("));
        let label = shown.map_or("", |(label, _)| label.trim_start_matches('['));
        Some(Self { label: label.to_owned(), file, block })
    }
}

/// A link in both styles from a file of a turn, at path `at`, to a section of the turn's `context.md`; `None` for a file
/// outside turns.
pub(crate) fn section_of_turn(at: &VaultPath, section: SectionId, attempt: u32) -> Option<String> {
    let folders = at.folder().match_indices('/').map(|(end, _)| &at.folder()[..end]);
    let folder = folders.chain([at.folder()]).find(|folder| folder_turn(folder).is_some())?;
    let context = VaultPath::new(&format!("{folder}/context.md"))?;
    let heading = match attempt {
        1 => section.heading().to_owned(),
        attempt => format!("{} (Attempt {attempt})", section.heading()),
    };
    let heading = heading.trim_start_matches('#').trim();
    let label = format!("{} section {}", folder.rsplit('/').next()?, section.number());
    let relative = format!("[{}]({}#{})", context.short(), encoded(&at.relative(&context)), encoded(heading));
    // Only a wikilink can name a heading as it is.
    let wiki = DualLink::new(context, &label).wiki().replacen('|', &format!("#{heading}|"), 1);
    Some(format!("{relative}{BETWEEN}{wiki}"))
}

/// The files that a text of ours, in the file `at`, links to, each once.
pub(crate) fn files_in(text: &str, at: &VaultPath) -> Vec<VaultPath> {
    let mut files = Vec::new();
    for link in super::scan(text, super::Dialect::Vault) {
        let file = DualLink::read(&text[link.range], at).map(|link| link.file);
        files.extend(file.filter(|file| !files.contains(file)));
    }
    files
}

/// The turn whose folder this is.
fn folder_turn(folder: &str) -> Option<u32> {
    crate::turn_number(folder.rsplit('/').next()?)
}

/// The text reduced to what is valid in any label.
fn label_of(text: &str) -> String {
    let kept = |char: char| char.is_alphanumeric() || "_-.,:+'@/#".contains(char);
    let plain = text.replace(|char: char| !kept(char), " ");
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An entry of `Source References`: a link and what it is useful for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Reference {
    /// The link.
    pub link: DualLink,
    /// A note such as `Full research`; may be untrusted text.
    pub note: String,
}

impl Reference {
    /// `[1] [turn_000759/research.md](../turn_000759/research.md) - "Full research"`.
    pub(crate) fn numbered(&self, number: usize, at: &VaultPath) -> String {
        format!("[{number}] {} - \"{}\"", self.link.relative(at), inline(&self.note))
    }

    /// `[[users/u/turns/turn_000759/research|research_759_abc123]] - "Full research"`.
    pub(crate) fn wiki(&self) -> String {
        format!("{} - \"{}\"", self.link.wiki(), inline(&self.note))
    }

    /// Reads either form.
    pub(crate) fn read(item: &str, at: &VaultPath) -> Option<Self> {
        let (link, note) = item.split_once(" - \"").unwrap_or((item, ""));
        let note = uninline(note.strip_suffix('"').unwrap_or(note));
        Some(Self { link: DualLink::read(link, at)?, note })
    }
}
