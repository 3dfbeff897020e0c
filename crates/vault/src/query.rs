//! Reads the user's query from a document, byte for byte.

use super::{SectionId, Sections, unescape};

pub use super::context::query_body;

/// The text of §0 for a prompt that contains the query as a message of its own: in place of the query, it refers to
/// that message.
pub fn without_query(section: &str) -> String {
    let (heading, body) = section.split_once('\n').unwrap_or((section, ""));
    format!("{heading}\n{}", super::context::without_original(body))
}

/// The query exactly as the user typed it: the `**Original:**` field of the first §0, or its whole body if a
/// hand-written §0 has no fields. `None` if there is no §0 or it is empty.
pub fn original_query(document: &str) -> Option<String> {
    let sections = Sections::parse(document);
    let section = sections.attempts(SectionId::UserQuery).next()?;
    super::context::original_in(&unescape(document.get(section.body.clone())?))
}
