//! Reads the user's query from a document, byte for byte.

use super::{SectionId, Sections, unescape};

pub use super::context::query_body;

/// The query exactly as the user typed it: the `**Original:**` field of the first §0, or its whole body if a
/// hand-written §0 has no fields. `None` if there is no §0 or it is empty.
pub fn original_query(document: &str) -> Option<String> {
    let sections = Sections::parse(document);
    let section = sections.attempts(SectionId::UserQuery).next()?;
    super::context::original_in(&unescape(document.get(section.body.clone())?))
}
