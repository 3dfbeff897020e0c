//! JSON text as spans: parsed without recursion, edited by byte range, and never reserialized.
//!
//! Two parsers produce one tree: [`Document::parse`] accepts exactly the grammar, [`Document::parse_lenient`] accepts
//! any text and marks where it departs from the grammar. Owns the tree, the parsers, string literals and edits. Knows
//! neither wire formats nor what a value means; every byte that no edit covers is preserved.

mod blocks;
mod edit;
mod lenient;
mod literal;
pub mod meaning;
mod nodes;
mod strict;
mod table;
mod terse;
mod value;

pub use edit::{Edit, EditError, add_members, append_to, apply, remove_from, splice, without};
pub use lenient::{is_number, looks_like};
pub use literal::{
    decode, encode, encoded, is_shortest, longest_literal, unquoted, with_escapes_written_out,
};
pub use terse::terse;
pub use value::{Id, Name, Value};

/// The maximum nesting depth of strictly parsed text. Providers allow less, and a later recursive reader may need
/// stack space for each level.
pub const MAX_DEPTH: usize = 512;
/// The maximum number of values and names in a request. Their spans then take at most 40 MiB. A request with 300,000
/// tokens given as numbers, which is what providers accept, uses a seventh of that.
pub const MAX_VALUES: usize = 1 << 21;

/// A text that is not JSON, with the position of the error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not JSON: {what} at line {line}, column {column} (byte {at})")]
pub struct JsonError {
    /// What was expected or found there.
    pub what: &'static str,
    /// The byte offset, from 0.
    pub at: usize,
    /// The line, from 1.
    pub line: usize,
    /// The column in bytes, from 1.
    pub column: usize,
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// All values of a leniently parsed text, one or several in sequence. Always the root, and only the root.
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
    /// Any other unquoted text; only in leniently parsed texts.
    Word,
}

/// One value; the values inside it follow in document order.
#[derive(Debug, Clone, Copy)]
struct JsonNode {
    start: u32,
    end: u32,
    /// The node after this one and everything in it.
    next: u32,
    /// The position of a member's name in [`Document::names`], from 1; 0 for everything else.
    name: u32,
    kind: Kind,
    /// The value violates the grammar, or contains one that does.
    irregular: bool,
}

/// A text and the spans of all its values.
#[derive(Debug, Clone, Default)]
pub struct Document<'t> {
    text: &'t str,
    nodes: Vec<JsonNode>,
    /// Start and end of each member name, quotes included.
    names: Vec<(u32, u32)>,
    /// The size of each value in bytes, without white space between values; left empty by the strict parser, which
    /// runs on every request and does not need it.
    dense: Vec<u32>,
    /// Strings are written as fields of a table: a quote inside quotes is doubled, and nothing else is escaped.
    fields: bool,
}

#[cfg(test)]
mod tests;
