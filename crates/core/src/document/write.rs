//! Writing to `context.md`: sections are appended, and no text can pass for a heading.
//!
//! Escaping puts one `\` before a line that would start a section; a line that already is such a heading behind
//! backslashes gets one more, so that unescaping gives every text back byte for byte. Markdown shows an escaped
//! heading as plain text.

use std::borrow::Cow;

use crate::content::sections::{SectionId, Sections, starts_section};

/// `text` with every line escaped that would start a section (C8). Use it for whatever users, tools and models
/// wrote; [`append_section`] does.
pub fn escape(text: &str) -> Cow<'_, str> {
    escape_lines(text, starts_section)
}

/// The text that [`escape`] was given.
pub fn unescape(text: &str) -> Cow<'_, str> {
    unescape_lines(text, starts_section)
}

/// Escapes the lines that are `special` once their leading backslashes are taken off.
pub(super) fn escape_lines(text: &str, special: fn(&str) -> bool) -> Cow<'_, str> {
    map_lines(text, |line| special(line.trim_start_matches('\\')).then_some(("\\", line)))
}

/// Takes one backslash off the lines that [`escape_lines`] put one on.
pub(super) fn unescape_lines(text: &str, special: fn(&str) -> bool) -> Cow<'_, str> {
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

/// What to write at the end of `document` to add a version of section `id` with this body (R1-3.3, C7). Earlier
/// bytes are never touched. The first version has the plain heading, each later one ` (Attempt N)`; the body is
/// escaped, so it cannot start a section of its own.
pub fn append_section(document: &str, id: SectionId, body: &str) -> String {
    let newest = Sections::of(document).attempts(id).map(|section| section.attempt).max();
    let line_break = if document.is_empty() || document.ends_with('\n') { "" } else { "\n" };
    let attempt = newest.map(|n| format!(" (Attempt {})", n.saturating_add(1))).unwrap_or_default();
    let body = escape(body);
    let end = if body.is_empty() || body.ends_with('\n') { "" } else { "\n" };
    // The blank line that sets sections apart belongs to the section before it: appending the next one moves nothing.
    format!("{line_break}{}{attempt}\n{body}{end}\n", id.heading())
}
