//! How a path is written as the destination of a link.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// What has a meaning in a destination or around it.
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

/// A path as it can be written in `(…)`, in a definition, and in an attribute.
pub(super) fn encoded(path: &str) -> String {
    let path = utf8_percent_encode(path, SPECIAL).to_string();
    // `a:b` would be taken for a scheme.
    if super::is_external(&path) { format!("./{path}") } else { path }
}

/// Whether a path can be written in a wikilink.
pub(super) fn fits_wikilink(path: &str) -> bool {
    !path.contains(['[', ']', '#', '|', '^', '\n', '\r']) && path.trim() == path && !path.ends_with('\\')
}
