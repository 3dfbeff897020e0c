//! §0: the user's query, written and read back byte for byte.
//!
//! The query stands after `**Original:**` and ends where the next field of §0 starts, or the section ends. Lines of
//! the query that look like such a field are escaped; a query that ends in a line break or a backslash is closed by
//! one more backslash, since line breaks at the end of a section are layout.

use std::borrow::Cow;

use super::write::{escape_lines, unescape_lines};
use super::{SectionId, Sections, unescape};

/// Starts the line of §0 that holds the query as typed (R1-3.23).
const ORIGINAL: &str = "**Original:**";
/// What else starts a line of §0 (R1-3.23).
const FIELDS: [&str; 6] = [
    ORIGINAL,
    "**Resolved:**",
    "**Query Type:**",
    "**Was Resolved:**",
    "**Content Reference:**",
    "**Reasoning:**",
];

fn starts_field(line: &str) -> bool {
    FIELDS.iter().any(|field| line.starts_with(field))
}

/// The body of a new §0 that holds `query`, for [`append_section`](super::append_section).
pub fn query_body(query: &str) -> String {
    let close = if query.ends_with(['\n', '\r', '\\']) { "\\" } else { "" };
    format!("{ORIGINAL} {}{close}\n", escape_lines(query, starts_field))
}

/// The query exactly as the user typed it (R1-3.25): the `**Original:**` field of the first §0, or its whole body
/// where a hand-written §0 has no fields. `None` when there is no §0 or nothing in it.
pub fn original_query(document: &str) -> Option<String> {
    let sections = Sections::of(document);
    let section = sections.attempts(SectionId::UserQuery).next()?;
    let body = unescape(document.get(section.body.clone())?);
    let Some(start) = line_starts(&body).find(|&at| body[at..].starts_with(ORIGINAL)) else {
        let plain = body.trim();
        return (!plain.is_empty() && !line_starts(&body).any(|at| starts_field(&body[at..])))
            .then(|| plain.to_owned());
    };
    let value = &body[start + ORIGINAL.len()..];
    // A space always follows in what `query_body` writes; a line break is somebody's own layout.
    let value = value.strip_prefix(' ').unwrap_or_else(|| value.trim_start_matches(['\r', '\n']));
    let end = line_starts(value).skip(1).find(|&at| starts_field(&value[at..])).unwrap_or(value.len());
    let value = value[..end].trim_end_matches(['\r', '\n']);
    let value = value.strip_suffix('\\').unwrap_or(value);
    let query: Cow<'_, str> = unescape_lines(value, starts_field);
    (!query.is_empty()).then(|| query.into_owned())
}

fn line_starts(text: &str) -> impl Iterator<Item = usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1))
}
