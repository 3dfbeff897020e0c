//! JSON text as spans: read without recursion, changed by byte range, never written anew.
//!
//! Owns the grammar, string literals and edits. Knows no wire format. Whatever no edit covers stays byte for byte.

mod edit;
mod literal;

use std::borrow::Cow;
use std::ops::Range;

pub use edit::{Edit, EditError, add_members, append_to, apply, remove_from, splice, without};
use literal::{before, literal_is, special};
pub use literal::{decode, encode, encoded};

/// Containers within containers that a text may have. Providers allow fewer; a reader that recurses further on may need
/// stack for each.
pub const MAX_DEPTH: usize = 512;
/// Values that a request may have, names of members among them: the list of their places then takes no more than 32 MiB.
/// A request of 300,000 tokens as numbers, which is what providers take, has a seventh of that.
pub const MAX_VALUES: usize = 1 << 21;

/// A text that is no JSON, with the place at which it stops being any.
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

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
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
}

/// One value; those inside it follow in the order of the text, members as name, value, name, value …
#[derive(Debug, Clone, Copy)]
struct Node {
    start: u32,
    end: u32,
    /// The node after this one and everything in it.
    next: u32,
    kind: Kind,
}

/// A value's place in its [`Document`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(u32);

/// A text and the spans of all its values.
#[derive(Debug, Clone, Default)]
pub struct Document<'t> {
    text: &'t str,
    nodes: Vec<Node>,
}

/// One value of a document.
#[derive(Debug, Clone, Copy)]
pub struct Value<'d, 't> {
    doc: &'d Document<'t>,
    id: Id,
}

impl<'t> Document<'t> {
    /// Reads a text of one JSON value.
    ///
    /// # Errors
    /// With the place, where the grammar is left or containers are nested deeper than [`MAX_DEPTH`].
    pub fn parse(text: &'t str) -> Result<Self, JsonError> {
        Self::parse_up_to(text, usize::MAX)
    }

    /// Reads a text that anybody may have sent.
    ///
    /// # Errors
    /// As [`Document::parse`], and where it has more than [`MAX_VALUES`] values.
    pub fn parse_request(text: &'t str) -> Result<Self, JsonError> {
        Self::parse_up_to(text, MAX_VALUES)
    }

    fn parse_up_to(text: &'t str, most: usize) -> Result<Self, JsonError> {
        let fail = |(at, what): Fault| {
            let before = &text.as_bytes()[..at.min(text.len())];
            let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
            let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
            JsonError { what, at, line, column: before.len() - line_start + 1 }
        };
        if u32::try_from(text.len()).is_err() {
            return Err(fail((0, "more than 4 GiB")));
        }
        let nodes = Vec::with_capacity(text.len() / 64 + 16);
        let mut scan = Scan { bytes: text.as_bytes(), at: 0, nodes, most };
        scan.run().map_err(fail)?;
        Ok(Self { text, nodes: scan.nodes })
    }

    /// The value that the text is.
    pub const fn root(&self) -> Value<'_, 't> {
        self.value(Id(0))
    }

    /// The value at a place.
    pub const fn value(&self, id: Id) -> Value<'_, 't> {
        Value { doc: self, id }
    }
}

impl<'d, 't> Value<'d, 't> {
    fn node(self) -> Node {
        self.doc.nodes[self.id.0 as usize]
    }

    /// Its place.
    pub const fn id(self) -> Id {
        self.id
    }

    /// What it is.
    pub fn kind(self) -> Kind {
        self.node().kind
    }

    /// Its bytes in the text.
    pub fn span(self) -> Range<usize> {
        let Node { start, end, .. } = self.node();
        start as usize..end as usize
    }

    /// It as it stands.
    pub fn raw(self) -> &'t str {
        &self.doc.text[self.span()]
    }

    /// The text of a string, decoded; none for other values. See [`decode`].
    pub fn text(self) -> Option<Cow<'t, str>> {
        (self.kind() == Kind::String).then(|| decode(self.raw()))
    }

    /// A whole number that is not negative.
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

    /// The values directly inside: items of an array, names and values of an object in turn.
    fn inside(self) -> impl Iterator<Item = Value<'d, 't>> {
        let Node { next: end, kind, .. } = self.node();
        let mut at = self.id.0 + 1;
        let container = matches!(kind, Kind::Object | Kind::Array);
        std::iter::from_fn(move || {
            (container && at < end).then(|| {
                let value = self.doc.value(Id(at));
                at = value.node().next;
                value
            })
        })
    }

    /// The items of an array; none of anything else.
    pub fn items(self) -> impl Iterator<Item = Value<'d, 't>> {
        let array = self.kind() == Kind::Array;
        self.inside().filter(move |_| array)
    }

    /// The members of an object in order, each as name and value, those with the same name too; none of anything else.
    pub fn members(self) -> impl Iterator<Item = (Value<'d, 't>, Value<'d, 't>)> {
        let object = self.kind() == Kind::Object;
        let mut inside = self.inside();
        std::iter::from_fn(move || {
            if !object {
                return None;
            }
            Some((inside.next()?, inside.next()?))
        })
    }

    /// The member of this name; the last if there are several, as most readers have it.
    pub fn get(self, name: &str) -> Option<Value<'d, 't>> {
        self.members().filter(|(key, _)| key.is(name)).last().map(|(_, value)| value)
    }

    /// The member of this name, unless it is `null`.
    pub fn given(self, name: &str) -> Option<Value<'d, 't>> {
        self.get(name).filter(|value| value.kind() != Kind::Null)
    }
}

/// Where reading stopped, and why.
type Fault = (usize, &'static str);

/// What may stand next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Value,
    ValueOrEnd,
    Name,
    NameOrEnd,
    CommaOrEnd,
    Nothing,
}

struct Scan<'t> {
    bytes: &'t [u8],
    at: usize,
    nodes: Vec<Node>,
    /// Values that there may be.
    most: usize,
}

impl Scan<'_> {
    fn run(&mut self) -> Result<(), Fault> {
        let mut open: Vec<usize> = Vec::new();
        let mut next = Next::Value;
        loop {
            self.skip_blanks();
            if self.nodes.len() > self.most {
                return Err((self.at, "more than 2,097,152 values"));
            }
            let Some(&byte) = self.bytes.get(self.at) else {
                return if next == Next::Nothing {
                    Ok(())
                } else {
                    Err((self.at, "the text ends too early"))
                };
            };
            next = match (next, byte) {
                (Next::Nothing, _) => return Err((self.at, "something follows the value")),
                (Next::ValueOrEnd | Next::CommaOrEnd, b']') | (Next::NameOrEnd | Next::CommaOrEnd, b'}') => {
                    self.close(&mut open, byte)?;
                    after_value(&open)
                }
                (Next::CommaOrEnd, b',') => {
                    self.at += 1;
                    match open.last().map(|&node| self.nodes[node].kind) {
                        Some(Kind::Object) => Next::Name,
                        _ => Next::Value,
                    }
                }
                (Next::CommaOrEnd, _) => return Err((self.at, "expected a comma or the end")),
                (Next::Name | Next::NameOrEnd, b'"') => {
                    self.string()?;
                    self.skip_blanks();
                    self.expect(b':', "expected a colon after the name")?;
                    Next::Value
                }
                (Next::Name | Next::NameOrEnd, _) => return Err((self.at, "expected a name in quotes")),
                (Next::Value | Next::ValueOrEnd, b'{' | b'[') => {
                    if open.len() == MAX_DEPTH {
                        return Err((self.at, "containers nested more than 512 deep"));
                    }
                    open.push(self.nodes.len());
                    self.at += 1;
                    if byte == b'{' {
                        self.push(Kind::Object, self.at - 1);
                        Next::NameOrEnd
                    } else {
                        self.push(Kind::Array, self.at - 1);
                        Next::ValueOrEnd
                    }
                }
                (Next::Value | Next::ValueOrEnd, _) => {
                    self.scalar(byte)?;
                    after_value(&open)
                }
            };
        }
    }

    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), Fault> {
        if self.bytes.get(self.at) != Some(&byte) {
            return Err((self.at, what));
        }
        self.at += 1;
        Ok(())
    }

    /// A value from `start` to here. Places and counts fit: the text has fewer than 2³² bytes.
    fn push(&mut self, kind: Kind, start: usize) {
        let next = self.nodes.len() as u32 + 1;
        self.nodes.push(Node { start: start as u32, end: self.at as u32, next, kind });
    }

    fn close(&mut self, open: &mut Vec<usize>, byte: u8) -> Result<(), Fault> {
        let kind = if byte == b'}' { Kind::Object } else { Kind::Array };
        let Some(node) = open.pop().filter(|&node| self.nodes[node].kind == kind) else {
            return Err((self.at, "this bracket closes nothing"));
        };
        self.at += 1;
        let next = self.nodes.len() as u32;
        self.nodes[node].end = self.at as u32;
        self.nodes[node].next = next;
        Ok(())
    }

    fn scalar(&mut self, byte: u8) -> Result<(), Fault> {
        match byte {
            b'"' => self.string(),
            b't' => self.word("true", Kind::Bool),
            b'f' => self.word("false", Kind::Bool),
            b'n' => self.word("null", Kind::Null),
            b'-' | b'0'..=b'9' => self.number(),
            _ => Err((self.at, "expected a value")),
        }
    }

    fn word(&mut self, word: &str, kind: Kind) -> Result<(), Fault> {
        let start = self.at;
        if !self.bytes[start..].starts_with(word.as_bytes()) {
            return Err((start, "expected a value"));
        }
        self.at += word.len();
        self.push(kind, start);
        Ok(())
    }

    fn number(&mut self) -> Result<(), Fault> {
        let start = self.at;
        self.at += usize::from(self.bytes[start] == b'-');
        if self.bytes.get(self.at) == Some(&b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
        }
        self.push(Kind::Number, start);
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at == start { Err((start, "expected a digit")) } else { Ok(()) }
    }

    fn string(&mut self) -> Result<(), Fault> {
        let start = self.at;
        let mut at = start + 1;
        loop {
            if let Some(eight) = self.bytes.get(at..).and_then(<[u8]>::first_chunk) {
                at += before(special(*eight));
            }
            match self.bytes.get(at) {
                None => return Err((start, "this string does not end")),
                Some(b'"') => break,
                Some(b'\\') => at += 1 + self.escape(at + 1)?,
                Some(0..b' ') => return Err((at, "a control character in a string")),
                Some(_) => at += 1,
            }
        }
        self.at = at + 1;
        self.push(Kind::String, start);
        Ok(())
    }

    /// How many bytes the escape has whose backslash stands before `at`.
    fn escape(&self, at: usize) -> Result<usize, Fault> {
        match self.bytes.get(at) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(1),
            Some(b'u') => match self.bytes.get(at + 1..at + 5) {
                Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => Ok(5),
                _ => Err((at, "expected four hexadecimal digits")),
            },
            _ => Err((at, "no such escape")),
        }
    }
}

const fn after_value(open: &[usize]) -> Next {
    if open.is_empty() { Next::Nothing } else { Next::CommaOrEnd }
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
