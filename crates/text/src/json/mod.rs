//! JSON text as spans: read without recursion and edited by byte range, never serialized again.
//!
//! One tree for two readers: [`Document::parse`] accepts the grammar and nothing else, [`Document::parse_lenient`]
//! accepts any text and marks where it departs from the grammar. Owns the tree, the readers, string literals and edits. Knows
//! neither wire formats nor what a value means; every byte that no edit covers is kept.

mod edit;
mod lenient;
mod literal;
mod nodes;
mod strict;
mod table;
mod value;

pub use edit::{Edit, EditError, add_members, append_to, apply, remove_from, splice, without};
pub use lenient::{is_number, looks_like};
pub use literal::{decode, encode, encoded, unquoted};
pub use value::{Id, Name, Value};

/// Containers within containers that a strictly read text may have. Providers allow fewer, and a later reader that
/// recurses may need stack for each.
pub const MAX_DEPTH: usize = 512;
/// Values and names that a request may have. Their places then take at most 40 MiB. A request of 300,000 tokens as
/// numbers, which is what providers accept, has a seventh of that.
pub const MAX_VALUES: usize = 1 << 21;

/// A text that is not JSON, with the place of the fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not JSON: {what} at line {line}, column {column} (byte {at})")]
pub struct JsonError {
    /// What was expected or found.
    pub what: &'static str,
    /// The byte, from 0.
    pub at: usize,
    /// The line, from 1.
    pub line: usize,
    /// The column in bytes, from 1.
    pub column: usize,
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// All values of a leniently read text: one, or several after each other. Always the root, and only there.
    Stream,
    /// `{…}`
    Object,
    /// `[…]`
    Array,
    /// `"…"`
    String,
    /// A number.
    Number,
    /// `true` or `false`.
    Bool,
    /// `null`
    Null,
    /// Anything else without quotes; only in leniently read texts.
    Word,
}

/// One value; the values inside it follow in the order of the text.
#[derive(Debug, Clone, Copy)]
struct JsonNode {
    start: u32,
    end: u32,
    /// The node after this one and everything in it.
    next: u32,
    /// The position of a member's name in [`Document::names`], from 1; 0 for everything else.
    name: u32,
    kind: Kind,
    /// It departs from the grammar, or holds a value that does.
    irregular: bool,
}

/// A text and the spans of all its values.
#[derive(Debug, Clone, Default)]
pub struct Document<'t> {
    text: &'t str,
    nodes: Vec<JsonNode>,
    /// Start and end of the names of members, quotes included.
    names: Vec<(u32, u32)>,
    /// Of every value the bytes without the white space between values; left empty by strict reading, which is on the
    /// path of every request and has no use for it.
    dense: Vec<u32>,
}

#[cfg(test)]
mod tests;
