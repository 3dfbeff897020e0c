//! A cursor over the values of a document: type, text, members and items. Knows nothing of parsing.

use std::borrow::Cow;
use std::ops::Range;

use super::literal::literal_is;
use super::{Document, JsonNode, Kind, decode};

/// A value's place in its [`Document`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(u32);

/// One value of a document.
#[derive(Debug, Clone, Copy)]
pub struct Value<'d, 't> {
    doc: &'d Document<'t>,
    id: Id,
}

/// The name of a member: a string literal and its position.
#[derive(Debug, Clone, Copy)]
pub struct Name<'t> {
    literal: &'t str,
    start: usize,
}

impl<'t> Document<'t> {
    /// The root: the value of the text, or the [`Kind::Stream`] of its values if it was parsed leniently.
    pub const fn root(&self) -> Value<'_, 't> {
        self.value(Id(0))
    }

    /// The value at a place.
    pub const fn value(&self, id: Id) -> Value<'_, 't> {
        Value { doc: self, id }
    }
}

impl<'d, 't> Value<'d, 't> {
    fn node(self) -> JsonNode {
        self.doc.nodes[self.id.0 as usize]
    }

    /// The value's place in the document.
    pub const fn id(self) -> Id {
        self.id
    }

    /// The type of the value.
    pub fn kind(self) -> Kind {
        self.node().kind
    }

    /// The byte range of the value, quotes and brackets included.
    pub fn span(self) -> Range<usize> {
        let JsonNode { start, end, .. } = self.node();
        start as usize..end as usize
    }

    /// The value as written.
    pub fn raw(self) -> &'t str {
        &self.doc.text[self.span()]
    }

    /// The decoded text of a string; `None` for other values. See [`decode`].
    pub fn text(self) -> Option<Cow<'t, str>> {
        (self.kind() == Kind::String).then(|| decode(self.raw()))
    }

    /// The value as a non-negative integer, if it is one.
    pub fn as_u64(self) -> Option<u64> {
        self.raw().parse().ok()
    }

    /// Whether it is `true`.
    pub fn is_true(self) -> bool {
        self.raw() == "true"
    }

    /// Whether it is this string.
    pub fn is(self, text: &str) -> bool {
        self.kind() == Kind::String && literal_is(self.raw(), text)
    }

    /// The direct children: items, or member values.
    fn inside(self) -> impl Iterator<Item = Value<'d, 't>> {
        let end = self.node().next;
        let mut at = self.id.0 + 1;
        std::iter::from_fn(move || {
            (at < end).then(|| {
                let value = self.doc.value(Id(at));
                at = value.node().next;
                value
            })
        })
    }

    /// The items of an array; empty for other values.
    pub fn items(self) -> impl Iterator<Item = Value<'d, 't>> {
        let array = self.kind() == Kind::Array;
        self.inside().filter(move |_| array)
    }

    /// The members of an object in document order, duplicates included; empty for other values.
    pub fn members(self) -> impl Iterator<Item = (Name<'t>, Value<'d, 't>)> {
        // Only members have names.
        self.inside().filter_map(|value| Some((value.name()?, value)))
    }

    fn name(self) -> Option<Name<'t>> {
        let at = (self.node().name as usize).checked_sub(1)?;
        let (start, end) = self.doc.names[at];
        Some(Name { literal: &self.doc.text[start as usize..end as usize], start: start as usize })
    }

    /// The member with this name; the last one if there are several, which is how most parsers resolve duplicates.
    pub fn get(self, name: &str) -> Option<Value<'d, 't>> {
        self.members().filter(|(key, _)| key.is(name)).last().map(|(_, value)| value)
    }

    /// The member with this name, unless it is `null`.
    pub fn given(self, name: &str) -> Option<Value<'d, 't>> {
        self.get(name).filter(|value| value.kind() != Kind::Null)
    }
}

impl<'t> Name<'t> {
    /// The byte range of the name, quotes included.
    pub const fn span(self) -> Range<usize> {
        self.start..self.start + self.literal.len()
    }

    /// The literal as written, quotes included.
    pub const fn raw(self) -> &'t str {
        self.literal
    }

    /// The name, decoded. See [`decode`].
    pub fn text(self) -> Cow<'t, str> {
        decode(self.literal)
    }

    /// Whether it is this name.
    pub fn is(self, name: &str) -> bool {
        literal_is(self.literal, name)
    }
}
