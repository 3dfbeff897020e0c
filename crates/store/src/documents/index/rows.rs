//! The rows of one document: a function of its path and its bytes alone. So an index that is rebuilt equals the one that
//! grew turn by turn.

use std::collections::BTreeSet;

use larder_vault::layout::is_earlier_attempt;
use larder_vault::links::{Link, LinkKind, is_external, links};
use larder_vault::{Document, Manifest, Research, Scope, TurnMetadata, VaultPath, read_json};
use percent_encoding::percent_decode_str;

use super::PathKind;
use crate::documents::types::DocumentKind;

/// Maximum indexed bytes of a document: far more than anyone reads at once, and a bound for tool output.
const MOST_TEXT: usize = 256 << 10;

/// The rows of one document.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::documents) struct Rows {
    pub(super) path: VaultPath,
    pub(super) turn: Option<u32>,
    pub(super) archived: bool,
    /// Its text, if it is searchable.
    pub(super) text: Option<(DocumentKind, String)>,
    /// Where it links to, in the vault.
    pub(super) links: BTreeSet<VaultPath>,
    pub(super) metadata: Option<TurnMetadata>,
    pub(super) research: Option<(Research, Scope)>,
    pub(super) capture: Option<Manifest>,
}

impl Rows {
    /// The topic of the research that the document is.
    pub(in crate::documents) fn research_topic(&self) -> Option<&str> {
        self.research.as_ref().map(|(research, _)| research.topic.as_str())
    }

    /// Whether the document marks its folder as a turn.
    pub(in crate::documents) fn is_turn(&self) -> bool {
        self.metadata.is_some()
    }
}

/// What there is to index in a document.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::documents) enum Indexed {
    /// Nothing: it is not read at all.
    Nothing,
    /// It cannot be parsed as the type that its name implies.
    Unreadable,
    /// These rows.
    Rows(Box<Rows>),
}

/// Whether there may be something to index in a document at this path.
pub(in crate::documents) fn is_indexed(path: &VaultPath) -> bool {
    PathKind::parse(path)
        .is_some_and(|spot| spot.kind().is_some() || spot.is_metadata() || spot.is_manifest())
}

/// The rows of a document.
pub(in crate::documents) fn rows_of(path: &VaultPath, bytes: &[u8]) -> Indexed {
    let Some(spot) = PathKind::parse(path).filter(|_| is_indexed(path)) else { return Indexed::Nothing };
    let Ok(text) = str::from_utf8(bytes) else { return Indexed::Unreadable };
    let mut rows = Rows {
        path: path.clone(),
        turn: spot.turn,
        archived: spot.archived,
        text: None,
        links: BTreeSet::new(),
        metadata: None,
        research: None,
        capture: None,
    };
    if spot.is_metadata() {
        rows.metadata = read_json(text).value;
    } else if spot.is_manifest() {
        rows.capture = read_json(text).value;
    } else if let Some(kind) = spot.kind() {
        if path.name().ends_with(".md") {
            rows.links = links_in(path, text);
        }
        if spot.is_research() {
            let document = Document::<Research>::read(text, path).value;
            rows.research = document.map(|document| {
                let scope = document.meta.map_or(Scope::User, |meta| meta.scope);
                (document.value, scope)
            });
        }
        // What an attempt said that another one replaced is no answer: only its links count.
        let searched = if is_earlier_attempt(spot.rest) { 0 } else { MOST_TEXT };
        rows.text = Some((kind, text[..text.floor_char_boundary(searched)].to_owned()));
    }
    let read = rows.metadata.is_some() || rows.capture.is_some() || rows.text.is_some();
    if read { Indexed::Rows(Box::new(rows)) } else { Indexed::Unreadable }
}

/// The documents that a text links to. Links are resolved by their text alone, since the set of existing files is not
/// part of a document: a bare name refers to a note in the same folder.
pub(in crate::documents) fn links_in(path: &VaultPath, text: &str) -> BTreeSet<VaultPath> {
    let mut found: BTreeSet<VaultPath> =
        links(text).iter().filter_map(|link| destination(path, link)).collect();
    found.remove(path);
    found
}

fn destination(from: &VaultPath, link: &Link) -> Option<VaultPath> {
    let path = link.path.trim();
    if path.is_empty() || link.kind == LinkKind::Autolink {
        return None;
    }
    if link.kind == LinkKind::Wiki {
        let name = path.rsplit('/').next().unwrap_or(path);
        let file = if name.contains('.') { path.to_owned() } else { format!("{path}.md") };
        let beside = !path.contains('/') || path.starts_with("./") || path.starts_with("../");
        return if beside { from.join(&file) } else { VaultPath::new(file.trim_start_matches('/')) };
    }
    if is_external(path) {
        return None;
    }
    let path = percent_decode_str(path.split('?').next()?).decode_utf8().ok()?;
    match path.strip_prefix('/') {
        Some(path) => VaultPath::new(path),
        None => from.join(&path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_where_they_say() {
        let path = VaultPath::new("users/u/turns/turn_000002/context.md").unwrap();
        let text = "[a](../turn_000001/research.md#x) [[users/u/turns/turn_000001/research|r]] [[ticket]] \
                    [b](https://example.com) [[users/u/turns/turn_000002/metrics.json]] [c](/users/u/facts.md) \
                    [d](../../../../../etc/passwd) [e](a%20b.md) <https://x.y> [[context]] `[[no]]`";
        let Indexed::Rows(rows) = rows_of(&path, text.as_bytes()) else { panic!() };
        let found: Vec<&str> = rows.links.iter().map(VaultPath::as_str).collect();
        assert_eq!(
            found,
            [
                "users/u/facts.md",
                "users/u/turns/turn_000001/research.md",
                "users/u/turns/turn_000002/a b.md",
                "users/u/turns/turn_000002/metrics.json",
                "users/u/turns/turn_000002/ticket.md",
            ]
        );
    }

    #[test]
    fn unreadable_values_are_reported() {
        let path = |path: &str| VaultPath::new(path).unwrap();
        let turn = "users/u/turns/turn_000002";
        for (file, bytes) in [
            ("metadata.json", b"{" as &[u8]),
            ("context.md", b"\xff"),
            ("webpage_cache/a/manifest.json", b"[]"),
        ] {
            assert_eq!(rows_of(&path(&format!("{turn}/{file}")), bytes), Indexed::Unreadable, "{file}");
        }
        assert_eq!(rows_of(&path(&format!("{turn}/metrics.json")), b"\xff"), Indexed::Nothing);
        let Indexed::Rows(rows) = rows_of(&path(&format!("{turn}/response_1.md")), b"not the [answer](a.md)")
        else {
            panic!("its links count")
        };
        assert_eq!((rows.text.map(|(_, text)| text), rows.links.len()), (Some(String::new()), 1));
        assert_eq!(rows_of(&path("site_knowledge/a.md"), b"x"), Indexed::Nothing);
    }
}
