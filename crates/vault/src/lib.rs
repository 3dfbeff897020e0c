//! Documents: the files of turns and memory, each with one writer and one reader, and the links between them.
//!
//! The text is the source of truth and a value is one reading of it: people's edits are preserved, and what cannot be
//! parsed is reported with its line. Everything here maps text to text; nothing knows recipes, packs, budgets, or how
//! a file is stored.
//!
//! | | |
//! |---|---|
//! | `context.md` | [`context`], appended to by [`append_section`], [`extend_section`], [`append_compaction`]; seen through [`select`] |
//! | other Markdown | [`Document`] of a [`DocumentValue`]; any note: [`Note`] and its [`Frontmatter`] |
//! | JSON | [`read_json`], [`write_json`], [`rewrite_json`] |
//! | links | [`links`] |
//! | names and places | [`VaultPath`], [`safe_name`], [`layout`] |
//! | how long knowledge lives | [`lifecycle`] |
//! | what is searched and embedded of them | [`search_words`], [`embedding_text`] |
#![deny(missing_docs)]

mod analysis;
mod answers;
mod attachments;
mod blocks;
pub mod context;
pub mod embedding_text;
mod file;
mod json;
pub mod layout;
pub mod lifecycle;
pub mod links;
mod memory;
mod meta;
mod names;
mod note;
mod page;
pub mod path_kind;
mod problem;
mod query;
mod quote;
mod research;
pub mod search_words;
mod sync;
mod tool_results;
mod turn_files;
mod value;
mod vault_notes;
mod write;

use std::borrow::Cow;
use std::ops::Range;

use larder_text::sections::{Section, SectionId, Sections};

pub use analysis::{ContentReference, QueryAnalysis};
pub use answers::{Response, Ticket};
pub use attachments::{Attachment, Attachments};
pub use file::{Document, DocumentValue};
pub use json::{read_json, rewrite_json, write_json};
pub use larder_text::Mode;
pub use memory::{
    FactLine, FactRecord, FactRecords, Facts, PreferenceLine, PreferenceRecord, PreferenceRecords,
    Preferences, SiteKnowledge, SitePattern,
};
pub use meta::{ContentKind, Meta, Tag};
pub use names::{VaultPath, safe_name, turn_name, turn_number, url_slug};
pub use note::{Frontmatter, Note};
pub use page::{Captured, ContentSummary, ExtractedData, Manifest, PageContent, PageStretch, value_names};
pub use problem::{ParseProblem, ParsedDocument};
pub use query::{original_query, query_body, without_query};
pub use research::{Backlink, Listing, ReputableSource, Research, Stock, WriteUp};
pub use tool_results::{ToolResult, ToolResults};
pub use turn_files::{DayFigures, RunMetrics, TurnMetadata, TurnMetrics, TurnStatus};
pub use value::{BlockId, DocumentTime, Hours, Intent, ReferenceType, Scope, Score, Ttl, ValueError};
pub use vault_notes::{IndexEntry, IndexNote, TopicEntry, Wrapper};
pub use write::{NotLast, append_compaction, append_section, escape, extend_section, unescape};

/// A recipe's view of `context.md`: one version of each selected section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextView<'t> {
    text: &'t str,
    /// The versions shown, in the order of the section numbers.
    pub sections: Vec<Section>,
    /// Selected sections that the document does not contain; they are skipped.
    pub absent: Vec<SectionId>,
}

impl<'t> ContextView<'t> {
    /// Heading and body of a shown section: as written, or starting at its last compaction.
    pub fn text_of(&self, section: &Section) -> Cow<'t, str> {
        let body = self.body_of(section);
        match write::compactions(body).last() {
            None => Cow::Borrowed(self.slice(&section.range)),
            Some(at) => Cow::Owned(format!(
                "{}{}",
                self.slice(&(section.range.start..section.body.start)),
                &body[at..]
            )),
        }
    }

    /// The body of a shown section, as written.
    pub fn body_of(&self, section: &Section) -> &'t str {
        self.slice(&section.body)
    }

    /// All shown sections, concatenated.
    pub fn joined(&self) -> String {
        let mut joined = String::new();
        for section in &self.sections {
            // Only a document's last section may lack its line break, and it need not be shown last.
            if !joined.is_empty() && !joined.ends_with('\n') {
                joined.push('\n');
            }
            joined.push_str(&self.text_of(section));
        }
        joined
    }

    fn slice(&self, range: &Range<usize>) -> &'t str {
        self.text.get(range.clone()).unwrap_or_default()
    }
}

/// The view of `context.md` for a recipe that reads `selected`. §0 is always included, in its first version, since
/// the user's query is immutable; every other section is shown in its newest version. Frontmatter and preamble are
/// excluded.
pub fn select(text: &str, selected: impl IntoIterator<Item = SectionId>) -> ContextView<'_> {
    let all = Sections::parse(text);
    let mut wanted = [false; SectionId::ALL.len()];
    for id in selected.into_iter().chain([SectionId::UserQuery]) {
        wanted[usize::from(id.number())] = true;
    }
    let mut view = ContextView { text, sections: Vec::new(), absent: Vec::new() };
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
