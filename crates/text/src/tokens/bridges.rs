//! Places inside long words of scripts without spaces that no token of a vocabulary can span, so that the word can be
//! counted in parts. Knows token bytes, not how a vocabulary merges them.
//!
//! Merging only ever creates tokens. Where two characters meet and no token contains the end of the first followed by
//! the start of the second, nothing merges across, and both sides are encoded as if alone.

/// Bits of the pair table; a false positive only costs an opportunity to split.
const PAIR_BITS: u32 = 20;
/// Bytes of the pair table.
pub(super) const PAIRS: usize = 1 << (PAIR_BITS - 3);
/// Bits of the suspect table.
const SUSPECT_BITS: u32 = 16;
/// Bytes of the suspect table.
pub(super) const SUSPECTS: usize = 1 << (SUSPECT_BITS - 3);

/// Which neighbouring characters some token spans, as written by this crate's build script.
#[derive(Clone, Copy)]
pub(super) struct Bridges<'a> {
    /// Pairs of whole characters, hashed.
    pairs: &'a [u8],
    /// Pairs in which some token contains part of a character, keyed by the last byte on the left and the first two
    /// on the right.
    suspects: &'a [u8],
}

impl<'a> Bridges<'a> {
    /// Reads the build script's output.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (pairs, suspects) = bytes.split_at_checked(PAIRS)?;
        (suspects.len() == SUSPECTS).then_some(Self { pairs, suspects })
    }

    /// Whether some token may span the boundary between the characters `left` and `right`, each of three bytes or
    /// more.
    #[inline]
    pub(super) fn may_join(self, left: &[u8], right: &[u8]) -> bool {
        let holds =
            |table: &[u8], (byte, bit): (usize, u8)| table.get(byte).is_none_or(|byte| byte & bit != 0);
        let (Some(&last), &[first, second, ..]) = (left.last(), right) else { return true };
        holds(self.pairs, slot(left, right)) || holds(self.suspects, suspect(last, first, second))
    }
}

/// The byte and bit in the suspect table for the last byte of a character and the first two of the next, each of
/// three bytes or more.
#[inline]
pub(super) fn suspect(last: u8, first: u8, second: u8) -> (usize, u8) {
    let key = usize::from(last & 0x3F) << 10 | usize::from(first & 0x0F) << 6 | usize::from(second & 0x3F);
    (key >> 3, 1 << (key & 7))
}

/// The byte and bit in the pair table for a pair of characters.
#[inline]
pub(super) fn slot(left: &[u8], right: &[u8]) -> (usize, u8) {
    let packed = |bytes: &[u8]| match *bytes {
        [a, b, c] => u64::from(u32::from_be_bytes([0, a, b, c])),
        _ => bytes.iter().fold(0_u64, |key, &byte| key << 8 | u64::from(byte)),
    };
    let hash = (packed(left) << 32 | packed(right)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - PAIR_BITS);
    ((hash >> 3) as usize, 1 << (hash & 7))
}
