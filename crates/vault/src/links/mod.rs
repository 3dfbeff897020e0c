//! Links: finds them in Markdown, follows them inside a vault, rewrites them when a note is renamed, and writes them
//! in both styles.
//!
//! Knows CommonMark, wikilinks and the list of a vault's files; does not know what a document is about, and reads no
//! files.

mod dual;
mod html;
mod outline;
mod rename;
mod scan;
mod spell;
mod vault;
mod wiki;

pub use dual::{DualLink, Reference};
pub(crate) use dual::{files_in, section_of_turn};
pub use outline::{Anchor, Heading, NoteOutline};
pub use rename::{NoteRename, RenameError, Rewritten};
pub use scan::{Dialect, Link, LinkKind, links, scan};
pub(crate) use spell::encoded;
pub use vault::{LinkDestination, Vault};

/// Whether a destination has a scheme or a host, and so points outside the vault.
pub fn is_external(path: &str) -> bool {
    let scheme = path.split_once(':').is_some_and(|(scheme, _)| {
        scheme.len() >= 2
            && scheme.starts_with(|char: char| char.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
    });
    scheme || path.starts_with("//")
}

#[cfg(test)]
#[path = "links_tests.rs"]
mod tests;
