//! Writing to `context.md`: sections are appended, and no text can pass for a heading.
//!
//! Escaping puts one `\` before a line that would start a section or a compaction; a line that already is such a
//! heading behind backslashes gets one more, so that unescaping gives every text back byte for byte. Markdown shows
//! an escaped heading as plain text.

use std::borrow::Cow;

use larder_text::sections::{SectionId, Sections, starts_section};

/// Starts a compaction, which replaces everything before it in its section (C7).
pub(super) const COMPACTION: &str = "### Compaction ";
/// Ends it.
pub(super) const COMPACTION_END: &str = "### End of Compaction ";

fn is_reserved(line: &str) -> bool {
    starts_section(line) || line.starts_with(COMPACTION) || line.starts_with(COMPACTION_END)
}

/// `text` with every line escaped that would start a section (C8) or a compaction. Use it for whatever users, tools
/// and models wrote; [`append_section`] does.
pub fn escape(text: &str) -> Cow<'_, str> {
    escape_lines(text, is_reserved)
}

/// The text that [`escape`] was given.
pub fn unescape(text: &str) -> Cow<'_, str> {
    unescape_lines(text, is_reserved)
}

/// Escapes the lines that are `special` once their leading backslashes are taken off.
pub(super) fn escape_lines(text: &str, special: impl Fn(&str) -> bool) -> Cow<'_, str> {
    map_lines(text, |line| special(line.trim_start_matches('\\')).then_some(("\\", line)))
}

/// Removes one backslash from the lines to which [`escape_lines`] added one.
pub(super) fn unescape_lines(text: &str, special: impl Fn(&str) -> bool) -> Cow<'_, str> {
    map_lines(text, |line| {
        line.strip_prefix('\\').filter(|rest| special(rest.trim_start_matches('\\'))).map(|rest| ("", rest))
    })
}

/// Replaces the lines for which `map` gives a replacement; borrows where it gives none.
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

/// What to write at the end of `document` to add a version of section `id` with this body (C7). Earlier
/// bytes are never touched. The first version has the plain heading, each later one ` (Attempt N)`; the body is
/// escaped, so it cannot start a section of its own.
pub fn append_section(document: &str, id: SectionId, body: &str) -> String {
    let newest = Sections::parse(document).attempts(id).map(|section| section.attempt).max();
    let attempt = newest.map(|n| format!(" (Attempt {})", n.saturating_add(1))).unwrap_or_default();
    format!("{}{}{attempt}\n{}", line_break(document), id.heading(), paragraph(&escape(body)))
}

/// A section can only grow while it is the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} is not the last section of the document, and written sections stay as they are; append a new attempt"
)]
pub struct NotLast(pub SectionId);

/// What to write at the end of `document` to go on with its last section, which must be `id`: §0 gets what phase 0
/// found out, §4 its next iteration.
///
/// # Errors
/// It is missing, or another section follows it.
pub fn extend_section(document: &str, id: SectionId, body: &str) -> Result<String, NotLast> {
    growing(document, id)?;
    Ok(line_break(document).to_owned() + &paragraph(&escape(body)))
}

/// What to write at the end of `document` so that views show `text` for everything that its last section holds up to
/// here (C7). `original` is a pointer to the original bytes, as text. The bytes stay in the file.
///
/// # Errors
/// The last section is not `id`.
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

/// Where the compactions of a section's body start.
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

/// With a line break and a blank line at its end. The blank line belongs to the text before it: appending moves
/// nothing.
fn paragraph(body: &str) -> String {
    let end = if body.is_empty() || body.ends_with('\n') { "" } else { "\n" };
    format!("{body}{end}\n")
}
