//! A table from byte strings that are known when the crate is built to a few bytes each, used where the binary has it:
//! a look-up reads a seed, then one slot, whether the key is there or not. Knows no tokens.
//!
//! Keys of one length share a part of the table, so a slot is a key with what it maps to, and nothing else.

/// Keys per seed, on average.
#[allow(dead_code, reason = "the build script makes the table")]
const CROWD: usize = 4;
/// Keys are shorter than this.
pub(super) const LENGTHS: usize = 129;
/// Bytes of what a key maps to.
pub(super) const VALUE: usize = 5;
/// Bytes that describe the part of one length: where its seeds begin, how many there are, the same of the slots.
const PART: usize = 16;
/// Keys of up to this many bytes fit into a number with their length.
const PACKED: usize = 15;

/// A table, as this crate's build script wrote it.
#[derive(Clone, Copy)]
pub(super) struct Hashed<'a> {
    parts: &'a [[u8; PART]],
    bytes: &'a [u8],
}

#[allow(dead_code, reason = "the build script writes the table, and reads none")]
impl<'a> Hashed<'a> {
    /// Reads what the build script wrote.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (parts, bytes) = bytes.split_at_checked(PART * LENGTHS)?;
        Some(Self { parts: parts.as_chunks().0, bytes })
    }

    /// What `key` maps to. Empty slots are zeros, so a key of zeros that is not in the table may map to zeros.
    #[inline]
    pub(super) fn get(self, key: &[u8]) -> Option<&'a [u8; VALUE]> {
        let (part, _) = self.parts.get(key.len())?.as_chunks();
        let number = |at: usize| part.get(at).map_or(0, |number| u32::from_le_bytes(*number) as usize);
        let hash = hash(key);
        let seed = self.bytes.get(number(0) + 2 * crowd(hash, number(1))..)?.first_chunk()?;
        let place = place(hash, u16::from_le_bytes(*seed), number(3));
        let slot = self.bytes.get(number(2) + place * (key.len() + VALUE)..)?;
        let (found, value) = slot.split_at_checked(key.len())?;
        let is_key = if key.len() <= PACKED { packed(found) == packed(key) } else { found == key };
        if is_key { value.first_chunk() } else { None }
    }
}

/// How many seeds a part of so many keys has.
#[allow(dead_code, reason = "the build script makes the table")]
pub(super) fn crowds(keys: usize) -> usize {
    keys / CROWD + 1
}

/// How many slots a part of so many keys has.
#[allow(dead_code, reason = "the build script makes the table")]
pub(super) fn size(keys: usize) -> usize {
    keys * 51 / 50 + 1
}

/// A number below `end` in proportion to the upper half of `hash`.
#[inline]
fn scaled(hash: u64, end: usize) -> usize {
    (((hash >> 32) * end as u64) >> 32) as usize
}

/// Which of `crowds` seeds a key has.
#[inline]
pub(super) fn crowd(hash: u64, crowds: usize) -> usize {
    scaled(hash, crowds)
}

/// Which of `size` slots a key has.
#[inline]
pub(super) fn place(hash: u64, seed: u16, size: usize) -> usize {
    scaled((hash ^ u64::from(seed)).wrapping_mul(0x9E37_79B9_7F4A_7C15), size)
}

/// A hash of a key.
#[inline]
pub(super) fn hash(key: &[u8]) -> u64 {
    if key.len() <= PACKED {
        return mix(0, packed(key));
    }
    key.chunks(PACKED).fold(0, |hash, chunk| mix(hash, packed(chunk)))
}

#[inline]
fn mix(hash: u64, packed: u128) -> u64 {
    let (low, high) = (packed as u64 ^ hash, (packed >> 64) as u64);
    let product = u128::from(low ^ 0xD6E8_FEB8_6659_FD93) * u128::from(high ^ 0xC2B2_AE3D_27D4_EB4F);
    (product as u64) ^ (product >> 64) as u64
}

/// Up to [`PACKED`] bytes in one number, which differs from that of other bytes as many.
#[inline]
fn packed(bytes: &[u8]) -> u128 {
    let length = bytes.len();
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        // The bytes that both chunks hold fall onto themselves.
        u128::from(u64::from_le_bytes(*first)) | u128::from(u64::from_le_bytes(*last)) << (8 * (length - 8))
    } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        u128::from(u32::from_le_bytes(*first)) | u128::from(u32::from_le_bytes(*last)) << (8 * (length - 4))
    } else {
        bytes.iter().rev().fold(0, |packed, &byte| packed << 8 | u128::from(byte))
    }
}
