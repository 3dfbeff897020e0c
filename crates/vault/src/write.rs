//! Writes to `context.md`: sections are appended, and no text can be mistaken for a heading.
//!
//! Escaping puts a `\` before any line that would start a section or a compaction; a line that is already such a
//! heading after backslashes gets another one, so that unescaping restores every text byte for byte. Markdown shows
//! an escaped heading as plain text.

use std::borrow::Cow;

use larder_text::sections::{SectionId, Sections, starts_section};

/// The start of a compaction, which replaces everything before it in its section.
pub(super) const COMPACTION: &str = "### Compaction ";
/// The end of a compaction.
pub(super) const COMPACTION_END: &str = "### End of Compaction ";

fn is_reserved(line: &str) -> bool {
    starts_section(line) || line.starts_with(COMPACTION) || line.starts_with(COMPACTION_END)
}

/// Escapes every line of `text` that would start a section or a compaction. Use it for anything written by users,
/// tools and models; [`append_section`] already does.
pub fn escape(text: &str) -> Cow<'_, str> {
    escape_lines(text, is_reserved)
}

/// Reverses [`escape`].
pub fn unescape(text: &str) -> Cow<'_, str> {
    unescape_lines(text, is_reserved)
}

/// Escapes the lines that are `special` without their leading backslashes.
pub(super) fn escape_lines(text: &str, special: impl Fn(&str) -> bool) -> Cow<'_, str> {
    map_lines(text, |line| special(line.trim_start_matches('\\')).then_some(("\\", line)))
}

/// Removes one backslash from the lines to which [`escape_lines`] added one.
pub(super) fn unescape_lines(text: &str, special: impl Fn(&str) -> bool) -> Cow<'_, str> {
    map_lines(text, |line| {
        line.strip_prefix('\\').filter(|rest| special(rest.trim_start_matches('\\'))).map(|rest| ("", rest))
    })
}

/// Replaces the lines for which `map` returns a replacement; borrows if it returns none.
fn map_lines<'t>(text: &'t str, map: impl Fn(&'t str) -> Option<(&'static str, &'t str)>) -> Cow<'t, str> {
    let mut mapped = String::new();
    let mut copied = 0;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        if let Some((prefix, rest)) = map(line) {
            mapped.push_str(&text[copied..at]);
            mapped.push_str(prefix);
            mapped.push_str(rest);
            copied = end;
        }
        at = end;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    mapped.push_str(&text[copied..]);
    Cow::Owned(mapped)
}

/// The text to append to `document` to add a version of section `id` with this body. Earlier bytes are never changed.
/// The first version has the plain heading, each later one ` (Attempt N)`; the body is escaped, so it cannot start a
/// section.
pub fn append_section(document: &str, id: SectionId, body: &str) -> String {
    let newest = Sections::parse(document).attempts(id).map(|section| section.attempt).max();
    let attempt = newest.map(|n| format!(" (Attempt {})", n.saturating_add(1))).unwrap_or_default();
    format!("{}{}{attempt}\n{}", line_break(document), id.heading(), paragraph(&escape(body)))
}

/// Only the last section of a document can be extended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} is not the last section of the document, and earlier sections are immutable; append a new attempt"
)]
pub struct NotLast(pub SectionId);

/// The text to append to `document` to extend its last section, which must be `id`: §0 with phase 0's analysis, §4
/// with the next iteration.
///
/// # Errors
/// If the section is missing, or is not the last one.
pub fn extend_section(document: &str, id: SectionId, body: &str) -> Result<String, NotLast> {
    growing(document, id)?;
    Ok(line_break(document).to_owned() + &paragraph(&escape(body)))
}

/// The text to append to `document` so that views show `text` in place of everything in its last section so far.
/// `original` is a pointer to the original bytes, as text. The bytes remain in the file.
///
/// # Errors
/// If the last section is not `id`.
pub fn append_compaction(
    document: &str,
    id: SectionId,
    original: &str,
    text: &str,
) -> Result<String, NotLast> {
    let section = growing(document, id)?;
    let number = compactions(section).count() + 1;
    let original: String = original.chars().filter(|char| !char.is_control()).collect();
    Ok(format!(
        "{}{COMPACTION}{number}\n\n**Original:** {original}\n\n{}{COMPACTION_END}{number}\n\n",
        line_break(document),
        paragraph(&escape(text))
    ))
}

/// The body of the last section, if it is `id`.
fn growing(document: &str, id: SectionId) -> Result<&str, NotLast> {
    let sections = Sections::parse(document);
    let last = sections.sections.last().filter(|section| section.id == id).ok_or(NotLast(id))?;
    Ok(document.get(last.body.clone()).unwrap_or_default())
}

/// The start of each compaction in a section's body.
pub(super) fn compactions(body: &str) -> impl Iterator<Item = usize> {
    let mut at = 0;
    body.split_inclusive('\n').filter_map(move |line| {
        let start = at;
        at += line.len();
        line.starts_with(COMPACTION).then_some(start)
    })
}

fn line_break(document: &str) -> &'static str {
    if document.is_empty() || document.ends_with('\n') { "" } else { "\n" }
}

/// Appends a line break and a blank line. The blank line belongs to the text before it, so appending moves nothing.
fn paragraph(body: &str) -> String {
    let end = if body.is_empty() || body.ends_with('\n') { "" } else { "\n" };
    format!("{body}{end}\n")
}
