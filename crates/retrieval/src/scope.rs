//! Where a link may lead: the places in the user's own part of the vault that a written path can mean. Pure; a path
//! that leaves it means no place.

use larder_vault::links::is_external;
use larder_vault::{VaultPath, turn_name, turn_number};

/// The part of the vault that one user may read: the own folder, the own archive, and what is shared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VaultScope {
    /// `users/henry`.
    home: String,
}

/// A link, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LinkTarget {
    /// Places to look at, in this order.
    pub(super) places: Vec<VaultPath>,
    /// A heading or a block of the document.
    pub(super) fragment: Option<String>,
}

impl VaultScope {
    /// The scope of the user whose documents are in the folder `home`.
    pub(super) fn new(home: &str) -> Self {
        Self { home: home.to_owned() }
    }

    /// Whether this user may read the document.
    fn holds(&self, path: &VaultPath) -> bool {
        let path = path.as_str();
        let name = self.home.rsplit('/').next().unwrap_or_default();
        let own = |rest: Option<&str>| rest.is_some_and(|rest| rest.starts_with('/'));
        let archive = path.strip_prefix("archive/").and_then(|rest| rest.split_once('/'));
        own(path.strip_prefix(&self.home))
            || own(archive.and_then(|(_, rest)| rest.strip_prefix(name)))
            || path.starts_with("site_knowledge/")
    }

    /// The places that a path in the document `from` may mean, or that a path named by a model may mean.
    ///
    /// # Errors
    /// Why the path means none, for the record.
    pub(super) fn places(&self, written: &str, from: Option<&VaultPath>) -> Result<LinkTarget, &'static str> {
        let written = written.trim();
        let inner = written.strip_prefix("[[").and_then(|rest| rest.strip_suffix("]]"));
        let written = inner.map_or(written, |inner| inner.split('|').next().unwrap_or(inner)).trim();
        if is_external(written) {
            return Err("an address outside the vault is not followed");
        }
        let (path, fragment) = match written.split_once('#') {
            Some((path, fragment)) => (path, Some(decoded(fragment)).filter(|fragment| !fragment.is_empty())),
            None => (written, None),
        };
        let path = decoded(path);
        if path.is_empty() {
            let own = from.cloned().ok_or("it names no document")?;
            return Ok(LinkTarget { places: vec![own], fragment });
        }
        let path = with_six_digits(&path);
        let mut places = self.readings(&path, from);
        if places.is_empty() {
            return Err("it leaves the vault, or is not a path of it");
        }
        places.retain(|place| self.holds(place));
        if places.is_empty() {
            return Err("it leads to what this user may not read");
        }
        // A wikilink leaves out `.md`.
        let named: Vec<VaultPath> = places
            .iter()
            .filter(|place| !place.name().contains('.'))
            .filter_map(|place| VaultPath::new(&format!("{place}.md")))
            .collect();
        places.extend(named);
        Ok(LinkTarget { places, fragment })
    }

    /// From the root of the vault, from the document that contains the link, from the user's folder, among the turns.
    fn readings(&self, path: &str, from: Option<&VaultPath>) -> Vec<VaultPath> {
        if let Some(path) = path.strip_prefix('/') {
            return VaultPath::new(path).into_iter().collect();
        }
        let turns = VaultPath::new(&format!("{}/turns/turn/context.md", self.home));
        if path.starts_with("../") || path.starts_with("./") {
            return from.or(turns.as_ref()).and_then(|from| from.join(path)).into_iter().collect();
        }
        let Some(plain) = VaultPath::new(path.trim_end_matches('/')) else { return Vec::new() };
        if ["users/", "archive/", "site_knowledge/"].iter().any(|root| path.starts_with(root)) {
            return vec![plain];
        }
        let nearby = from.and_then(|from| from.join(plain.as_str()));
        let below = |folder: &str| VaultPath::new(&format!("{}{folder}/{plain}", self.home));
        let mut places: Vec<VaultPath> = nearby.into_iter().chain(below("")).chain(below("/turns")).collect();
        let mut seen = Vec::new();
        places.retain(|place| {
            !seen.contains(place) && {
                seen.push(place.clone());
                true
            }
        });
        places
    }
}

/// The turn in whose folder a place is, and the path inside it.
pub(super) fn in_turn(path: &VaultPath) -> Option<(u32, &str)> {
    let (_, rest) = path.as_str().split_once("/turns/")?;
    let (turn, inside) = rest.split_once('/')?;
    Some((turn_number(turn)?, inside))
}

/// Pads short numbers of turns (C79).
fn with_six_digits(path: &str) -> String {
    let name = |name: &str| turn_number(name).map_or_else(|| name.to_owned(), turn_name);
    path.split('/').map(name).collect::<Vec<_>>().join("/")
}

/// Percent signs read; what does not spell UTF-8 stays as it is.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits =
            after.get(..2).filter(|_| first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(written: &str) -> Vec<String> {
        let from = VaultPath::new("users/henry/turns/turn_000815/context.md");
        let target = VaultScope::new("users/henry").places(written, from.as_ref());
        target.map(|target| target.places.iter().map(ToString::to_string).collect()).unwrap_or_default()
    }

    #[test]
    fn every_spelling_of_our_own_links_leads_there() {
        let research = "users/henry/turns/turn_000759/research.md";
        for written in [
            "users/henry/turns/turn_000759/research.md",
            "/users/henry/turns/turn_000759/research.md",
            "../turn_000759/research.md",
            "../turn_759/research.md#^claim-001",
            "turns/turn_000759/research.md",
            "turn_759/research.md",
            "turn%5F759/research.md",
            "[[users/henry/turns/turn_000759/research|research_759]]",
        ] {
            assert!(
                places(written).iter().any(|place| place == research),
                "{written}: {:?}",
                places(written)
            );
        }
        assert!(
            places("research_cache/commerce.laptop.json")
                .contains(&"users/henry/research_cache/commerce.laptop.json".to_owned())
        );
        assert_eq!(places("archive/2026-01/henry/turn_000001/context.md").len(), 1);
        assert_eq!(places("site_knowledge/amazon.com.json").len(), 1);
    }

    #[test]
    fn no_link_leaves_the_users_part_of_the_vault() {
        for hostile in [
            "../../../../etc/passwd",
            "/etc/passwd",
            "..%2f..%2f..%2fbob/facts.md",
            "users/bob/facts.md",
            "users/henryk/facts.md",
            "../../../bob/turns/turn_000001/context.md",
            "archive/2026-01/bob/x.md",
            "https://example.com/x",
            "file:///etc/passwd",
            "//host/x",
            "C:\\x",
            "a\0b",
            "javascript:alert(1)",
            "[[../../../bob/facts]]",
            "users/henry/../bob/facts.md",
            "data:text/plain,x",
            "",
        ] {
            let outside = |place: &String| !place.starts_with("users/henry/");
            assert!(!places(hostile).iter().any(outside), "{hostile}: {:?}", places(hostile));
        }
    }
}
