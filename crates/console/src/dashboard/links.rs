//! Resolves the links of a document to addresses of pages. The vault decides; a link to a missing or external target
//! is shown as such. Knows no Markdown beyond what a link is.

use std::collections::BTreeSet;

use larder_store::{StoreError, UserDocuments};
use larder_vault::links::{Link, LinkDestination, LinkKind, Vault, is_external, links};
use larder_vault::{VaultPath, turn_number};
use percent_encoding::percent_decode_str;

use super::figures::segment;
use crate::api::{files_of_turn, place_in_turn};

/// Maximum files looked up for one document's links; any further ones are assumed to exist.
const LOOKED_FOR: usize = 500;

/// The target of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Href {
    /// A page of the dashboard.
    Page(String),
    /// Out of the vault.
    Outside(String),
    /// Nowhere.
    Nowhere,
}

/// The possible targets of one document's links.
#[derive(Debug)]
pub struct Links {
    at: VaultPath,
    vault: Vault,
}

impl Links {
    /// Looks up the targets of the links in `text`, which is at path `at`. Blocks.
    ///
    /// # Errors
    /// The documents cannot be read.
    pub fn of(documents: &UserDocuments, at: &VaultPath, text: &str) -> Result<Self, StoreError> {
        let mut files: BTreeSet<VaultPath> = BTreeSet::from([at.clone()]);
        if let Some((number, _)) = place_in_turn(documents, at) {
            files.extend(files_of_turn(documents, number)?);
        }
        let meant: BTreeSet<VaultPath> = links(text).iter().flat_map(|link| candidates(at, link)).collect();
        let mut looked = 0;
        for path in meant.difference(&files.clone()) {
            looked += 1;
            if looked > LOOKED_FOR || exists(documents, path)? {
                files.insert(path.clone());
            }
        }
        Ok(Self { at: at.clone(), vault: Vault::new(files) })
    }

    /// Resolves a link of this document: a wikilink, or a CommonMark link.
    pub fn lead(&self, is_wiki: bool, destination: &str) -> Href {
        let (path, fragment) = match destination.split_once('#') {
            Some((path, fragment)) => (path, Some(fragment)),
            None => (destination, None),
        };
        let kind = if is_wiki { LinkKind::Wiki } else { LinkKind::Inline };
        let link = Link {
            kind,
            embed: false,
            range: 0..0,
            path: path.to_owned(),
            fragment: fragment.map(str::to_owned),
            target: None,
            label: None,
        };
        match self.vault.resolve(&self.at, &link) {
            LinkDestination::File(file) if *file == self.at => match fragment {
                Some(fragment) => Href::Page(format!("#{}", anchor(fragment))),
                None => Href::Page(address(file)),
            },
            LinkDestination::File(file) => {
                let anchor = fragment.map(|fragment| format!("#{}", anchor(fragment)));
                Href::Page(address(file) + &anchor.unwrap_or_default())
            }
            LinkDestination::External if is_safe(destination) => Href::Outside(destination.to_owned()),
            LinkDestination::External | LinkDestination::Missing => Href::Nowhere,
        }
    }
}

/// Whether a browser may be sent to this address; excludes any that run code.
fn is_safe(address: &str) -> bool {
    let scheme = address.split_once(':').map_or("", |(scheme, _)| scheme);
    ["http", "https", "mailto"].iter().any(|safe| scheme.eq_ignore_ascii_case(safe))
}

/// The files that a link may mean, whether they are there or not.
fn candidates(at: &VaultPath, link: &Link) -> Vec<VaultPath> {
    if is_external(&link.path) || link.path.is_empty() {
        return Vec::new();
    }
    let path = match link.kind {
        LinkKind::Wiki => link.path.trim().to_owned(),
        _ => {
            let path = link.path.split('?').next().unwrap_or_default();
            percent_decode_str(path).decode_utf8_lossy().into_owned()
        }
    };
    let rooted = path.trim_start_matches('/');
    let near = if path.starts_with('/') { None } else { at.join(&path) };
    let named = [near, VaultPath::new(rooted)].into_iter().flatten();
    named.flat_map(|path| [VaultPath::new(&format!("{path}.md")), Some(path)]).flatten().collect()
}

/// Whether a document of this user exists at this path.
fn exists(documents: &UserDocuments, path: &VaultPath) -> Result<bool, StoreError> {
    if let Some((number, "context.md")) = place_in_turn(documents, path) {
        return Ok(documents.catalog().turn(number)?.is_some_and(|turn| turn.context == *path));
    }
    match documents.files().read(path) {
        Ok(bytes) => Ok(bytes.is_some()),
        Err(StoreError::Foreign { .. } | StoreError::Symlink { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The page of a document; that of its turn for `context.md`.
pub fn address(file: &VaultPath) -> String {
    let turn = file.folder().rsplit('/').next().and_then(turn_number);
    match turn {
        Some(turn) if file.name() == "context.md" => format!("/turns/{turn}"),
        _ => vault_address(file),
    }
}

/// The page of a document as a document.
pub fn vault_address(file: &VaultPath) -> String {
    let segments: Vec<String> = file.as_str().split('/').map(segment).collect();
    format!("/vault/{}", segments.join("/"))
}

/// The bytes of a document.
pub fn raw_address(file: &VaultPath) -> String {
    let segments: Vec<String> = file.as_str().split('/').map(segment).collect();
    format!("/api/v1/documents/{}", segments.join("/"))
}

/// The id that a page assigns to the target of a fragment: `^claim-001`, or a heading.
pub fn anchor(fragment: &str) -> String {
    let fragment = percent_decode_str(fragment).decode_utf8_lossy();
    match fragment.trim().strip_prefix('^') {
        Some(block) => block_id(block),
        None => heading_id(fragment.rsplit('#').next().unwrap_or_default()),
    }
}

/// The id of a named block.
pub fn block_id(name: &str) -> String {
    format!("b-{}", name.trim().to_ascii_lowercase())
}

/// The id of a heading: its words as renderers write them into addresses.
pub fn heading_id(text: &str) -> String {
    let kept = text.trim().chars().filter(|char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_'));
    let words: String = kept.map(|char| if char == ' ' { '-' } else { char }).collect();
    format!("h-{}", words.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> VaultPath {
        VaultPath::new(text).unwrap()
    }

    #[test]
    fn links_of_both_styles_lead_to_pages_and_hostile_ones_nowhere() {
        let at = path("users/a/turns/turn_000002/context.md");
        let files = [
            at.clone(),
            path("users/a/turns/turn_000002/toolresults.md"),
            path("users/a/turns/turn_000001/context.md"),
            path("users/a/a b#c.md"),
        ];
        let links = Links { at, vault: Vault::new(files) };
        let page = |address: &str| Href::Page(address.to_owned());
        for (is_wiki, destination, expected) in [
            (
                false,
                "toolresults.md#^result-001",
                page("/vault/users/a/turns/turn_000002/toolresults%2Emd#b-result-001"),
            ),
            (
                true,
                "users/a/turns/turn_000002/toolresults#^Result-001",
                page("/vault/users/a/turns/turn_000002/toolresults%2Emd#b-result-001"),
            ),
            (false, "../turn_000001/context.md", page("/turns/1")),
            (true, "users/a/turns/turn_000001/context#3. Task Plan", page("/turns/1#h-3-task-plan")),
            (true, "#^claim-001", page("#b-claim-001")),
            (false, "/users/a/a%20b%23c.md", page("/vault/users/a/a%20b%23c%2Emd")),
            (false, "https://example.org/x?y#z", Href::Outside("https://example.org/x?y#z".to_owned())),
            (false, "javascript:alert(1)", Href::Nowhere),
            (false, "data:text/html,x", Href::Nowhere),
            (false, "//example.org", Href::Nowhere),
            (false, "../../../../../etc/passwd", Href::Nowhere),
            (true, "users/b/preferences", Href::Nowhere),
        ] {
            assert_eq!(links.lead(is_wiki, destination), expected, "{destination}");
        }
    }
}
