//! Values by index, for readers that keep or compare many of them: index 0 is the root, and the values inside a value
//! follow it in document order. Knows nothing of parsing.

use std::borrow::Cow;
use std::ops::Range;

use super::{Document, Kind, decode, unquoted};

impl<'t> Document<'t> {
    /// The text that was parsed.
    pub const fn text(&self) -> &'t str {
        self.text
    }

    /// The number of values, the root included.
    #[allow(clippy::len_without_is_empty, reason = "there always is a root")]
    pub const fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The last value that starts at or before byte `place`; the root if none does.
    pub fn at(&self, place: usize) -> usize {
        self.nodes.partition_point(|node| node.start as usize <= place).saturating_sub(1)
    }

    /// The type of a value.
    pub fn kind(&self, node: usize) -> Kind {
        self.nodes[node].kind
    }

    /// Whether the value violates the grammar, or contains one that does.
    pub fn is_irregular(&self, node: usize) -> bool {
        self.nodes[node].irregular
    }

    /// The byte range of a value, quotes and brackets included.
    pub fn span(&self, node: usize) -> Range<usize> {
        self.nodes[node].start as usize..self.nodes[node].end as usize
    }

    /// A value as written.
    pub fn raw(&self, node: usize) -> &'t str {
        &self.text[self.span(node)]
    }

    /// The byte range of a value, without the quotes of a string.
    pub fn inner(&self, node: usize) -> Range<usize> {
        let span = self.span(node);
        if unquoted(&self.text[span.clone()]).len() == span.len() {
            span
        } else {
            span.start + 1..span.end - 1
        }
    }

    /// Whether the text is a table of fields instead of JSON.
    pub const fn is_table(&self) -> bool {
        self.fields
    }

    /// The beginning of a string's text, decoded from at most about `most` bytes; the text of other values as written.
    pub fn beginning(&self, node: usize, most: usize) -> Cow<'t, str> {
        let (raw, inner) = (self.raw(node), &self.text[self.inner(node)]);
        if inner.len() == raw.len() || self.kind(node) != Kind::String {
            return Cow::Borrowed(&raw[..raw.floor_char_boundary(most)]);
        }
        let mut part = &inner[..inner.floor_char_boundary(most)];
        if self.fields {
            return if part.contains("\"\"") {
                Cow::Owned(part.replace("\"\"", "\""))
            } else {
                Cow::Borrowed(part)
            };
        }
        if memchr::memchr(b'\\', part.as_bytes()).is_none() {
            return Cow::Borrowed(part);
        }
        if part.len() < inner.len() {
            // Two escapes may be one character, and none is longer than six bytes.
            let from = part.floor_char_boundary(part.len().saturating_sub(11));
            part = part[from..].find('\\').map_or(part, |at| &part[..from + at]);
        }
        Cow::Owned(decode(&format!("\"{part}\"")).into_owned())
    }

    /// The size in bytes of a leniently parsed value without white space between values; 0 after strict parsing.
    pub fn dense(&self, node: usize) -> usize {
        self.dense.get(node).map_or(0, |&dense| dense as usize)
    }

    /// The byte range of a member's name, quotes included; empty for values that are not members.
    pub fn name_span(&self, node: usize) -> Range<usize> {
        let name = (self.nodes[node].name as usize).checked_sub(1).map(|at| self.names[at]);
        name.map_or(0..0, |(start, end)| start as usize..end as usize)
    }

    /// A member's name as written, without its quotes; empty for values that are not members.
    pub fn name(&self, node: usize) -> &'t str {
        unquoted(&self.text[self.name_span(node)])
    }

    /// Whether a value is of a type that can contain others.
    pub fn is_container(&self, node: usize) -> bool {
        matches!(self.nodes[node].kind, Kind::Stream | Kind::Object | Kind::Array)
    }

    /// Whether a value contains others.
    pub fn has_children(&self, node: usize) -> bool {
        self.after(node) > node + 1
    }

    /// The value that follows `node` and its descendants.
    pub fn after(&self, node: usize) -> usize {
        self.nodes[node].next as usize
    }

    /// The direct children of `node`.
    pub fn children(&self, node: usize) -> impl Iterator<Item = usize> + use<'_, 't> {
        let end = self.after(node);
        let mut next = node + 1;
        std::iter::from_fn(move || {
            let child = next;
            (child < end).then(|| {
                next = self.after(child);
                child
            })
        })
    }

    /// The values within `node`, itself included, that are not containers.
    pub fn leaves(&self, node: usize) -> impl Iterator<Item = usize> + use<'_, 't> {
        (node..self.after(node)).filter(|&inner| !self.is_container(inner))
    }
}
