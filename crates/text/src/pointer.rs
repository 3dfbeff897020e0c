//! Pointers: short, unforgeable references to stored content that a model can read.
//!
//! A pointer is written `lp1-` + 13 base32 digits of the content hash + `-` + 6 base32 digits of a keyed checksum,
//! and may end in a fragment that narrows it: `#L12-40` (lines, from 1, both ends included; `#L12` is that one line) or
//! `#B1024-2048` (bytes, from 0, the end excluded). This module mints, recognises and checks the text; it does not know where
//! the bytes are kept.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::hash::ContentHash;

/// Crockford's base32: no letter that reads like a digit, so ids survive being retyped.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// How every pointer starts.
pub const PREFIX: &str = "lp1-";
/// 13 digits hold 65 bits of the content hash.
const NAME_DIGITS: usize = 13;
/// 6 digits hold 30 bits of the keyed checksum.
const CHECK_DIGITS: usize = 6;

/// The secret of one user in one store. A pointer minted with one key is plain text under any other.
#[derive(Clone)]
pub struct PointerKey([u8; 32]);

impl fmt::Debug for PointerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PointerKey(..)")
    }
}

impl PointerKey {
    /// A key from its 32 secret bytes.
    pub const fn new(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    /// Derives the key of one user; no user's key reveals anything about another's.
    pub fn for_user(&self, user: &str) -> Self {
        let mut input = self.0.to_vec();
        input.extend_from_slice(user.as_bytes());
        Self(blake3::derive_key("larder 2026 pointer key of one user", &input))
    }

    /// Mints the id for content with this hash.
    pub fn mint(&self, content: ContentHash) -> PointerId {
        let name = base32(content.as_bytes(), NAME_DIGITS);
        let check = self.check(&name);
        PointerId { text: format!("{PREFIX}{name}-{check}").into() }
    }

    /// Whether this key minted the id. Anything else that merely looks like a pointer is plain text.
    pub fn owns(&self, id: &PointerId) -> bool {
        let expected = self.check(id.name());
        expected == id.text[PREFIX.len() + NAME_DIGITS + 1..]
    }

    /// Every pointer in `text` that this key minted, with the byte range at which it appears.
    pub fn find_in(&self, text: &str) -> Vec<(Range<usize>, Pointer)> {
        let mut found = Vec::new();
        let mut end = 0;
        for at in memchr::memmem::find_iter(text.as_bytes(), PREFIX) {
            let pointer = Pointer::parse_prefix(&text[at..]).filter(|(_, pointer)| self.owns(&pointer.id));
            if let Some((len, pointer)) = pointer.filter(|_| at >= end) {
                end = at + len;
                found.push((at..end, pointer));
            }
        }
        found
    }

    fn check(&self, name: &str) -> String {
        base32(blake3::keyed_hash(&self.0, name.as_bytes()).as_bytes(), CHECK_DIGITS)
    }
}

fn base32(bytes: &[u8], digits: usize) -> String {
    (0..digits)
        .map(|digit| {
            let value = (0..5).fold(0, |value, offset| {
                let bit = digit * 5 + offset;
                value << 1 | (bytes[bit / 8] >> (7 - bit % 8) & 1)
            });
            char::from(ALPHABET[usize::from(value)])
        })
        .collect()
}

/// The name of stored content and its checksum, without a fragment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PointerId {
    text: Arc<str>,
}

impl PointerId {
    /// The digits taken from the content hash, by which a store looks the content up.
    pub fn name(&self) -> &str {
        &self.text[PREFIX.len()..PREFIX.len() + NAME_DIGITS]
    }

    /// The digits by which content with this hash is looked up, whichever key minted the pointer.
    pub fn name_of(content: ContentHash) -> String {
        base32(content.as_bytes(), NAME_DIGITS)
    }

    /// The id as it is written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for PointerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The part of the stored content that a pointer refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fragment {
    /// Lines `first..=last`, counted from 1; a line includes its line break.
    Lines {
        /// The first line, from 1.
        first: usize,
        /// The last line, inclusive.
        last: usize,
    },
    /// Bytes `start..end`, counted from 0.
    Bytes {
        /// The first byte, from 0.
        start: usize,
        /// One past the last byte.
        end: usize,
    },
}

/// A pointer as written in a text: an id and, if it refers to a part only, a fragment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pointer {
    /// The id of the stored content.
    pub id: PointerId,
    /// The part it refers to; `None` is all of the content.
    pub fragment: Option<Fragment>,
}

impl Pointer {
    /// A pointer to the whole content.
    pub const fn whole(id: PointerId) -> Self {
        Self { id, fragment: None }
    }

    /// A pointer to bytes `range` of the content.
    pub const fn bytes(id: PointerId, range: Range<usize>) -> Self {
        Self { id, fragment: Some(Fragment::Bytes { start: range.start, end: range.end }) }
    }

    /// A pointer to lines `first..=last` of the content.
    pub const fn lines(id: PointerId, first: usize, last: usize) -> Self {
        Self { id, fragment: Some(Fragment::Lines { first, last }) }
    }

    /// Parses a pointer at the very start of `text`; returns its length in bytes and the pointer.
    pub fn parse_prefix(text: &str) -> Option<(usize, Self)> {
        let rest = text.strip_prefix(PREFIX)?.as_bytes();
        let digits = |bytes: &[u8]| bytes.iter().all(|byte| ALPHABET.contains(byte));
        let id_len = NAME_DIGITS + 1 + CHECK_DIGITS;
        let body = rest.get(..id_len)?;
        let well_formed =
            digits(&body[..NAME_DIGITS]) && body[NAME_DIGITS] == b'-' && digits(&body[NAME_DIGITS + 1..]);
        if !well_formed || rest.get(id_len).is_some_and(u8::is_ascii_alphanumeric) {
            return None;
        }
        let mut len = PREFIX.len() + id_len;
        let id = PointerId { text: text[..len].into() };
        let fragment = parse_fragment(&text[len..]).map(|(fragment_len, fragment)| {
            len += fragment_len;
            fragment
        });
        Some((len, Self { id, fragment }))
    }
}

fn parse_fragment(text: &str) -> Option<(usize, Fragment)> {
    let kind = *text.strip_prefix('#')?.as_bytes().first()?;
    if !matches!(kind, b'L' | b'B') {
        return None;
    }
    let numbers = &text[2..];
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(numbers.len());
    let numbers = &numbers[..end];
    let (from, to) = match kind {
        // Links on other sites name a single line without an end, and models imitate them.
        b'L' => numbers.split_once('-').unwrap_or((numbers, numbers)),
        _ => numbers.split_once('-')?,
    };
    let (from, to): (usize, usize) = (from.parse().ok()?, to.parse().ok()?);
    let fragment = match kind {
        b'L' if from >= 1 && from <= to => Fragment::Lines { first: from, last: to },
        b'B' if from <= to => Fragment::Bytes { start: from, end: to },
        _ => return None,
    };
    Some((2 + end, fragment))
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.id)?;
        match self.fragment {
            None => Ok(()),
            Some(Fragment::Lines { first, last }) => write!(f, "#L{first}-{last}"),
            Some(Fragment::Bytes { start, end }) => write!(f, "#B{start}-{end}"),
        }
    }
}

/// Why a text is not a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParsePointerError {
    /// It has another form.
    #[error(
        "not a pointer: expected lp1-<13 digits>-<6 digits>, with #L<line>, #L<first>-<last> or #B<start>-<end> after \
         it for a part"
    )]
    Form,
    /// It is a pointer to a part whose start is after its end.
    #[error("a pointer whose part is reversed: it starts at {start} and ends at {end}")]
    Reversed {
        /// The first number.
        start: usize,
        /// The second number.
        end: usize,
    },
}

impl ParsePointerError {
    fn of(text: &str) -> Self {
        let reversed = || {
            let (len, _) = Pointer::parse_prefix(text)?;
            let part = text[len..].strip_prefix("#L").or_else(|| text[len..].strip_prefix("#B"))?;
            let (start, end) = part.split_once('-')?;
            let (start, end) = (start.parse().ok()?, end.parse().ok()?);
            (start > end).then_some(Self::Reversed { start, end })
        };
        reversed().unwrap_or(Self::Form)
    }
}

impl FromStr for Pointer {
    type Err = ParsePointerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match Self::parse_prefix(text) {
            Some((len, pointer)) if len == text.len() => Ok(pointer),
            _ => Err(ParsePointerError::of(text)),
        }
    }
}

impl Serialize for Pointer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Pointer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> PointerKey {
        PointerKey::new([byte; 32])
    }

    #[test]
    fn a_pointer_reads_back_as_it_was_written() {
        let id = key(1).mint(ContentHash::new(b"text"));
        for pointer in
            [Pointer::whole(id.clone()), Pointer::lines(id.clone(), 1, 9), Pointer::bytes(id.clone(), 0..0)]
        {
            assert_eq!(pointer.to_string().parse(), Ok(pointer));
        }
    }

    #[test]
    fn one_line_needs_no_end() {
        let id = key(1).mint(ContentHash::new(b"text"));
        let line = Pointer::lines(id.clone(), 1_334, 1_334);
        assert_eq!(format!("{id}#L1334").parse(), Ok(line.clone()));
        let text = format!("see {id}#L1334, and {id}#L4-");
        let found = key(1).find_in(&text);
        assert_eq!((found[0].1.clone(), &text[found[0].0.clone()]), (line, &*format!("{id}#L1334")));
        assert_eq!(found[1].1, Pointer::whole(id), "an invalid fragment is left in the text");
    }

    #[test]
    fn only_the_minting_key_owns_a_pointer() {
        let id = key(1).mint(ContentHash::new(b"text"));
        assert!(key(1).owns(&id));
        assert!(!key(2).owns(&id));
        assert!(!key(1).for_user("a").owns(&id));
    }

    #[test]
    fn look_alikes_in_text_are_passed_over() {
        let id = key(1).mint(ContentHash::new(b"text"));
        let text = format!("see {id}#L3-4, not lp1-0000000000000-000000 nor lp1-é {id}x");
        let found = key(1).find_in(&text);
        assert_eq!(found.len(), 1);
        assert_eq!(&text[found[0].0.clone()], format!("{id}#L3-4"));
    }

    #[test]
    fn a_fragment_that_is_none_is_left_in_the_text() {
        let id = key(1).mint(ContentHash::new(b"text"));
        assert!(format!("{id}#L0-4").parse::<Pointer>().is_err());
        assert!(format!("{id}#L9-4").parse::<Pointer>().is_err());
        for none in ["#", "#L", "#L0", "#L4-", "#L-4", "#L10-L20", "#B4"] {
            assert!(format!("{id}{none}").parse::<Pointer>().is_err(), "{none}");
        }
        assert!(format!("{id}#é").parse::<Pointer>().is_err());
    }
}
