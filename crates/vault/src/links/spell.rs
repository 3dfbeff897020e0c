//! Encodes a path as the destination of a link.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// Characters with a meaning in or around a destination.
const SPECIAL: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'$')
    .add(b'%')
    .add(b'&')
    .add(b'(')
    .add(b')')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'|');

/// A path encoded for `(…)`, for a definition, and for an attribute.
pub(crate) fn encoded(path: &str) -> String {
    let path = utf8_percent_encode(path, SPECIAL).to_string();
    // `a:b` would be parsed as a scheme.
    if super::is_external(&path) { format!("./{path}") } else { path }
}

/// Whether a path is valid in a wikilink.
pub(super) fn fits_wikilink(path: &str) -> bool {
    !path.contains(['[', ']', '#', '|', '^', '\n', '\r']) && path.trim() == path && !path.ends_with('\\')
}
