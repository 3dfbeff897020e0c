//! What follows from the path of a document: its user, its turn, its type. Reads no bytes.

use serde::{Deserialize, Serialize};

use crate::layout::{UserPlace, is_research};
use crate::{VaultPath, turn_number};

/// The type of a document, by its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum DocumentKind {
    /// `context.md` of a turn.
    Context,
    /// `research.md` of a turn.
    Research,
    /// `page_content.md` of a captured page.
    Page,
    /// Facts, preferences and the records behind them.
    Memory,
    /// Any other text.
    Other,
}

/// A parsed path of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathKind<'p> {
    /// The name of the user's folder.
    pub name: &'p str,
    /// The turn.
    pub turn: Option<u32>,
    /// Whether it is in the archive.
    pub archived: bool,
    /// The path inside the turn's folder, or inside the user's.
    pub rest: &'p str,
}

impl<'p> PathKind<'p> {
    /// `None` for a path outside the folders of users.
    pub fn parse(path: &'p VaultPath) -> Option<Self> {
        let (top, below) = path.as_str().split_once('/')?;
        match top {
            "users" => {
                let (name, rest) = below.split_once('/')?;
                let in_turn = rest.strip_prefix("turns/").and_then(|rest| rest.split_once('/'));
                let in_turn = in_turn.and_then(|(folder, rest)| Some((turn_number(folder)?, rest)));
                Some(match in_turn {
                    Some((turn, rest)) => Self { name, turn: Some(turn), archived: false, rest },
                    None => Self { name, turn: None, archived: false, rest },
                })
            }
            "archive" => {
                let mut parts = below.splitn(4, '/');
                let (_month, name, folder) = (parts.next()?, parts.next()?, parts.next()?);
                match parts.next() {
                    Some(rest) => Some(Self { name, turn: Some(turn_number(folder)?), archived: true, rest }),
                    None if folder == "index.md" => {
                        Some(Self { name, turn: None, archived: true, rest: folder })
                    }
                    None => None,
                }
            }
            _ => None,
        }
    }

    /// The type of the document, if it is searchable. Generated notes are not: they would match every query.
    pub fn kind(&self) -> Option<DocumentKind> {
        let name = self.rest.rsplit('/').next().unwrap_or_default();
        if self.turn.is_some() {
            return match self.rest {
                "context.md" => Some(DocumentKind::Context),
                _ if !name.ends_with(".md") || is_wrapper(name) => None,
                _ if is_research(self.rest) => Some(DocumentKind::Research),
                _ if name == "page_content.md" => Some(DocumentKind::Page),
                _ => Some(DocumentKind::Other),
            };
        }
        if self.archived {
            return None;
        }
        match self.rest {
            "turns/index.md" | "memory/index.md" | "research_cache/index.md" => None,
            "facts.md" | "preferences.md" => Some(DocumentKind::Memory),
            rest if rest.starts_with("memory/") => {
                let is_shown = name.ends_with(".md") && !is_wrapper(name);
                (name.ends_with(".json") || is_shown).then_some(DocumentKind::Memory)
            }
            rest if rest.starts_with("research_cache/") => None,
            _ => (name.ends_with(".md") && !is_wrapper(name)).then_some(DocumentKind::Other),
        }
    }

    /// Whether the path is a piece of research: `research.md`, or `research_2.md` where a turn did more than one.
    pub fn is_research(&self) -> bool {
        self.turn.is_some() && is_research(self.rest)
    }

    /// Whether the path is the file that marks a folder as a turn.
    pub fn is_metadata(&self) -> bool {
        self.turn.is_some() && self.rest == "metadata.json"
    }

    /// Whether the path is the manifest of a captured page.
    pub fn is_manifest(&self) -> bool {
        let page =
            self.rest.strip_prefix("webpage_cache/").and_then(|page| page.strip_suffix("/manifest.json"));
        self.turn.is_some() && page.is_some_and(|page| !page.contains('/'))
    }
}

/// The readable note next to a file that is not Markdown (C80).
fn is_wrapper(name: &str) -> bool {
    name.ends_with(".json.md") || name.ends_with(".png.md")
}

/// The name of a user's folder.
pub fn name_of(place: &UserPlace) -> String {
    place.preferences().folder().trim_start_matches("users/").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_say_what_documents_are() {
        use DocumentKind::{Context, Memory, Other, Page, Research};
        for (path, turn, archived, kind) in [
            ("users/u/turns/turn_000815/context.md", Some(815), false, Some(Context)),
            ("users/u/turns/turn_000815/research.md", Some(815), false, Some(Research)),
            ("users/u/turns/turn_000815/research_2.md", Some(815), false, Some(Research)),
            ("users/u/turns/turn_000815/research_x.md", Some(815), false, Some(Other)),
            ("users/u/turns/turn_000815/metrics.json.md", Some(815), false, None),
            ("users/u/turns/turn_000815/webpage_cache/a_1/page_content.md", Some(815), false, Some(Page)),
            ("archive/2026-01/u/turn_000815/response.md", Some(815), true, Some(Other)),
            ("archive/2026-01/u/index.md", None, true, None),
            ("users/u/turns/index.md", None, false, None),
            ("users/u/turns/mine.md", None, false, Some(Other)),
            ("users/u/memory/facts.json", None, false, Some(Memory)),
            ("users/u/memory/index.md", None, false, None),
            ("users/u/memory/facts.json.md", None, false, None),
            ("users/u/facts.md", None, false, Some(Memory)),
            ("users/u/research_cache/a.json", None, false, None),
        ] {
            let path = VaultPath::new(path).unwrap();
            let spot = PathKind::parse(&path).unwrap();
            assert_eq!((spot.turn, spot.archived, spot.kind()), (turn, archived, kind), "{path}");
        }
        let shared = VaultPath::new("site_knowledge/amazon.com.json").unwrap();
        assert_eq!(PathKind::parse(&shared), None);
        assert_eq!(name_of(&UserPlace::new("henry")), "henry");
    }
}
