//! The documents of a turn: what a recipe reads of `context.md`, and how a section is added to it.
//!
//! Knows sections; does not know recipes, packs, budgets or where a document is stored. Everything here takes a
//! text and gives a text.

mod query;
mod write;

use std::ops::Range;

use crate::content::sections::{Section, SectionId, Sections};

pub use query::{original_query, query_body};
pub use write::{append_section, escape, unescape};

/// What a recipe sees of `context.md`: one version of each section it selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View<'t> {
    text: &'t str,
    /// The versions shown, in the order of the section numbers.
    pub sections: Vec<Section>,
    /// Sections that were selected and do not stand in the document; they are skipped (C3).
    pub absent: Vec<SectionId>,
}

impl<'t> View<'t> {
    /// Heading and body of a shown section, as written.
    pub fn text_of(&self, section: &Section) -> &'t str {
        self.slice(&section.range)
    }

    /// The body of a shown section, as written.
    pub fn body_of(&self, section: &Section) -> &'t str {
        self.slice(&section.body)
    }

    /// All shown sections, one after the other.
    pub fn joined(&self) -> String {
        let mut joined = String::new();
        for section in &self.sections {
            // Only the last section of a document may lack its line break, and it need not be the last one shown.
            if !joined.is_empty() && !joined.ends_with('\n') {
                joined.push('\n');
            }
            joined.push_str(self.text_of(section));
        }
        joined
    }

    fn slice(&self, range: &Range<usize>) -> &'t str {
        self.text.get(range.clone()).unwrap_or_default()
    }
}

/// The view of `context.md` for a recipe that reads `selected` (R0-12.6). §0 is always in it (R0-12.7) and is the
/// first one written, since the user's query is immutable (R1-3.20); of every other section the newest version is
/// shown (C8). Frontmatter and preamble are not.
pub fn select(text: &str, selected: impl IntoIterator<Item = SectionId>) -> View<'_> {
    let all = Sections::of(text);
    let mut wanted = [false; SectionId::ALL.len()];
    for id in selected.into_iter().chain([SectionId::UserQuery]) {
        wanted[usize::from(id.number())] = true;
    }
    let mut view = View { text, sections: Vec::new(), absent: Vec::new() };
    for id in SectionId::ALL.into_iter().filter(|id| wanted[usize::from(id.number())]) {
        let shown = if id == SectionId::UserQuery { all.attempts(id).next() } else { all.newest(id) };
        match shown {
            Some(section) => view.sections.push(section.clone()),
            None => view.absent.push(id),
        }
    }
    view
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
