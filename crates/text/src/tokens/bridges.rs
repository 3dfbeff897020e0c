//! Places inside long words of scripts without spaces where no token of a vocabulary can lie across, so that the
//! word may be counted in parts. Knows token bytes, not how a vocabulary merges them.
//!
//! Merging only ever makes tokens. Where two characters meet and no token holds the end of the first followed by
//! the start of the second, nothing merges across, and both sides are encoded as if alone.

/// Bits of the table of pairs; a false hit only costs a chance to divide.
const PAIR_BITS: u32 = 20;
/// Bytes of the table of pairs.
pub(super) const PAIRS: usize = 1 << (PAIR_BITS - 3);
/// Bits of the table of suspects.
const SUSPECT_BITS: u32 = 16;
/// Bytes of the table of suspects.
pub(super) const SUSPECTS: usize = 1 << (SUSPECT_BITS - 3);

/// Which neighbours some token holds together, as this crate's build script wrote it.
#[derive(Clone, Copy)]
pub(super) struct Bridges<'a> {
    /// Pairs of whole characters, hashed.
    pairs: &'a [u8],
    /// Pairs of which some token holds a part of a character: by the last byte on the left and the first two on the
    /// right.
    suspects: &'a [u8],
}

impl<'a> Bridges<'a> {
    /// Reads what the build script wrote.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (pairs, suspects) = bytes.split_at_checked(PAIRS)?;
        (suspects.len() == SUSPECTS).then_some(Self { pairs, suspects })
    }

    /// Whether some token may lie across the place where the characters `left` and `right` meet, both of three bytes or
    /// more.
    #[inline]
    pub(super) fn may_join(self, left: &[u8], right: &[u8]) -> bool {
        let holds =
            |table: &[u8], (byte, bit): (usize, u8)| table.get(byte).is_none_or(|byte| byte & bit != 0);
        let (Some(&last), &[first, second, ..]) = (left.last(), right) else { return true };
        holds(self.pairs, slot(left, right)) || holds(self.suspects, suspect(last, first, second))
    }
}

/// Byte and bit in the table of suspects of the last byte of a character and the first two of the next, both of three
/// bytes or more.
#[inline]
pub(super) fn suspect(last: u8, first: u8, second: u8) -> (usize, u8) {
    let key = usize::from(last & 0x3F) << 10 | usize::from(first & 0x0F) << 6 | usize::from(second & 0x3F);
    (key >> 3, 1 << (key & 7))
}

/// Byte and bit of a pair of characters in the table.
#[inline]
pub(super) fn slot(left: &[u8], right: &[u8]) -> (usize, u8) {
    let packed = |bytes: &[u8]| match *bytes {
        [a, b, c] => u64::from(u32::from_be_bytes([0, a, b, c])),
        _ => bytes.iter().fold(0_u64, |key, &byte| key << 8 | u64::from(byte)),
    };
    let hash = (packed(left) << 32 | packed(right)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - PAIR_BITS);
    ((hash >> 3) as usize, 1 << (hash & 7))
}
