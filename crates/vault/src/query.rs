//! The user's query in a document, byte for byte.

use super::{SectionId, Sections, unescape};

pub use super::context::query_body;

/// The query exactly as the user typed it: the `**Original:**` field of the first §0, or its whole body
/// where a hand-written §0 has no fields. `None` when there is no §0 or nothing in it.
pub fn original_query(document: &str) -> Option<String> {
    let sections = Sections::parse(document);
    let section = sections.attempts(SectionId::UserQuery).next()?;
    super::context::original_in(&unescape(document.get(section.body.clone())?))
}
