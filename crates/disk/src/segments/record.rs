//! One record of a segment: a content with its owner and, for an original, what its pointer says. Bytes only, no files.
//!
//! ```text
//!  0  4  "LRS1"
//!  4  1  flags: 1 base, 2 pointer, 4 the content has a file of its own
//!  6  2  length of the owner's id
//!  8  4  length of the pointer's description
//! 12  4  length of the frame
//! 16  8  check of the 16 bytes above and of the record's position
//! 24  8  check of all below up to the frame; zero once the record is erased
//! 32 32  hash of the content
//!        [32 bytes: hash of the base], owner, description as JSON, frame, zeros up to a multiple of 8
//! ```
//!
//! Numbers are little-endian. Lengths outlast erasure, so that a reader finds the next record. The position is part of
//! the check: bytes inside a content cannot pass for a record.

use larder_text::hash::ContentHash;
use serde::{Deserialize, Serialize};

const MAGIC: [u8; 4] = *b"LRS1";
const HEADER: usize = 24;
/// The header, the check of the body and the hash.
const FIXED: usize = HEADER + 8 + 32;
/// Records begin at multiples of this.
pub(super) const ALIGNMENT: u64 = 8;

const HAS_BASE: u8 = 1;
const HAS_POINTER: u8 = 2;
const IS_EXTERNAL: u8 = 4;

/// What a record keeps of the pointer to its content, so that the index can be rebuilt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointerNote {
    /// The kind of the content.
    #[serde(rename = "k")]
    pub kind: String,
    /// The line that describes it.
    #[serde(rename = "d")]
    pub display_text: String,
    /// Its length.
    #[serde(rename = "b")]
    pub bytes: u64,
    /// When it was stored, in milliseconds since 1970.
    #[serde(rename = "c")]
    pub created: u64,
}

/// A record to be written, or read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Whose it is.
    pub owner: String,
    /// The hash of the content.
    pub hash: ContentHash,
    /// The content without which the frame cannot be read.
    pub base: Option<ContentHash>,
    /// The pointer that was made with it.
    pub pointer: Option<PointerNote>,
    /// The content as a zstd frame; `None` if it is a file of its own.
    pub frame: Option<Vec<u8>>,
}

/// What is at a place of a segment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A record, and its length.
    Record(Record, u64),
    /// One that was erased, or whose body is damaged, and its length.
    Dead(u64),
    /// No record.
    Nothing,
}

impl Record {
    /// Its bytes at a position.
    pub(super) fn encode(&self, at: u64) -> Vec<u8> {
        let note = self.pointer.as_ref().map_or_else(Vec::new, |note| {
            // A struct of strings and numbers is always JSON.
            serde_json::to_vec(note).unwrap_or_default()
        });
        let frame = self.frame.as_deref().unwrap_or_default();
        let flags = flag(self.base.is_some(), HAS_BASE)
            | flag(self.pointer.is_some(), HAS_POINTER)
            | flag(self.frame.is_none(), IS_EXTERNAL);
        let mut bytes = Vec::with_capacity(FIXED + 40 + self.owner.len() + note.len() + frame.len());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&[flags, 0]);
        // An id has 256 bytes at most, a description some hundreds, and a frame is a file of its own long before 4 GB.
        bytes.extend_from_slice(&u16::try_from(self.owner.len()).unwrap_or(u16::MAX).to_le_bytes());
        bytes.extend_from_slice(&u32::try_from(note.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend_from_slice(&u32::try_from(frame.len()).unwrap_or(u32::MAX).to_le_bytes());
        let check = header_check(&bytes, at);
        bytes.extend_from_slice(&check);
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(self.hash.as_bytes());
        bytes.extend_from_slice(self.base.as_ref().map_or(&[][..], |base| base.as_bytes()));
        bytes.extend_from_slice(self.owner.as_bytes());
        bytes.extend_from_slice(&note);
        let check = short_hash(&[&bytes[HEADER + 8..]]);
        bytes[HEADER..HEADER + 8].copy_from_slice(&check);
        bytes.extend_from_slice(frame);
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT as usize), 0);
        bytes
    }
}

/// Reads what begins at the start of `bytes`, which is at a position of a segment.
pub(super) fn decode(bytes: &[u8], at: u64) -> Found {
    let Some(lengths) = Lengths::read(bytes, at) else { return Found::Nothing };
    let length = lengths.record();
    match lengths.body(bytes) {
        Some(record) => Found::Record(record, length),
        None => Found::Dead(length),
    }
}

/// The part of a record that erasing overwrites: everything but its lengths.
pub(super) fn erasable(at: u64, length: u64) -> (u64, u64) {
    (at + HEADER as u64, length.saturating_sub(HEADER as u64))
}

struct Lengths {
    flags: u8,
    owner: usize,
    note: usize,
    frame: usize,
}

impl Lengths {
    fn read(bytes: &[u8], at: u64) -> Option<Self> {
        let header = bytes.get(..HEADER)?;
        if header[..4] != MAGIC || header[16..24] != header_check(&header[..16], at) {
            return None;
        }
        let number = |from: usize| {
            u32::from_le_bytes([header[from], header[from + 1], header[from + 2], header[from + 3]]) as usize
        };
        let owner = usize::from(u16::from_le_bytes([header[6], header[7]]));
        Some(Self { flags: header[4], owner, note: number(8), frame: number(12) })
    }

    fn base(&self) -> usize {
        if self.flags & HAS_BASE > 0 { 32 } else { 0 }
    }

    /// The length of the whole record.
    fn record(&self) -> u64 {
        let bytes = FIXED + self.base() + self.owner + self.note + self.frame;
        (bytes as u64).next_multiple_of(ALIGNMENT)
    }

    fn body(&self, bytes: &[u8]) -> Option<Record> {
        let end = FIXED + self.base() + self.owner + self.note;
        let (named, frame) = (bytes.get(HEADER + 8..end)?, bytes.get(end..end + self.frame)?);
        if bytes[HEADER..HEADER + 8] != short_hash(&[named]) {
            return None;
        }
        let (hash, rest) = named.split_at(32);
        let (base, rest) = rest.split_at(self.base());
        let (owner, note) = rest.split_at(self.owner);
        let hash_of = |bytes: &[u8]| <[u8; 32]>::try_from(bytes).ok().map(ContentHash::from_bytes);
        Some(Record {
            owner: String::from_utf8(owner.to_vec()).ok()?,
            hash: hash_of(hash)?,
            base: if base.is_empty() { None } else { Some(hash_of(base)?) },
            pointer: match self.flags & HAS_POINTER > 0 {
                true => Some(serde_json::from_slice(note).ok()?),
                false => None,
            },
            frame: (self.flags & IS_EXTERNAL == 0).then(|| frame.to_vec()),
        })
    }
}

const fn flag(set: bool, bit: u8) -> u8 {
    if set { bit } else { 0 }
}

fn header_check(header: &[u8], at: u64) -> [u8; 8] {
    short_hash(&[header, &at.to_le_bytes()])
}

fn short_hash(parts: &[&[u8]]) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    let mut short = [0; 8];
    hasher.finalize_xof().fill(&mut short);
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record() -> impl Strategy<Value = Record> {
        let note = ("[a-z_]{0,12}", ".{0,40}", any::<u64>(), any::<u64>()).prop_map(
            |(kind, display_text, bytes, created)| PointerNote { kind, display_text, bytes, created },
        );
        let frame = prop::option::of(prop::collection::vec(any::<u8>(), 0..200));
        (".{1,30}", any::<[u8; 32]>(), prop::option::of(any::<[u8; 32]>()), prop::option::of(note), frame)
            .prop_map(|(owner, hash, base, pointer, frame)| Record {
                owner,
                hash: ContentHash::from_bytes(hash),
                base: base.map(ContentHash::from_bytes),
                pointer,
                frame,
            })
    }

    proptest! {
        #[test]
        fn a_record_is_read_as_written_at_its_place_only(record in record(), at in 0..1_000_u64, cut in 0..400_usize) {
            let bytes = record.encode(at * ALIGNMENT);
            prop_assert_eq!(bytes.len() as u64 % ALIGNMENT, 0);
            let length = bytes.len() as u64;
            prop_assert_eq!(decode(&bytes, at * ALIGNMENT), Found::Record(record, length));
            prop_assert_eq!(decode(&bytes, (at + 1) * ALIGNMENT), Found::Nothing);
            prop_assert!(cut >= bytes.len() || !matches!(decode(&bytes[..cut], at), Found::Record(..)) || cut + 8 > bytes.len());
        }

        #[test]
        fn an_erased_record_has_its_length_only(record in record()) {
            let mut bytes = record.encode(0);
            let (from, length) = erasable(0, bytes.len() as u64);
            bytes[from as usize..(from + length) as usize].fill(0);
            prop_assert_eq!(decode(&bytes, 0), Found::Dead(bytes.len() as u64));
        }
    }
}
