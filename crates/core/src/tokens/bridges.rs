//! Places inside long words of scripts without spaces where no token of a vocabulary can lie across, so that the
//! word may be counted in parts. Knows token bytes, not how a vocabulary merges them.
//!
//! Merging only ever makes tokens. Where two characters meet and no token holds the end of the first followed by
//! the start of the second, nothing merges across, and both sides are encoded as if alone.

/// Bits of the table of pairs; a false hit only costs a chance to divide.
const PAIR_BITS: u32 = 20;
/// Bytes of the table of pairs.
pub(super) const PAIRS: usize = 1 << (PAIR_BITS - 3);
/// Bytes of the table of suspects: a bit for each last byte on the left and first byte on the right.
pub(super) const SUSPECTS: usize = 256 * 256 / 8;
/// Bytes of a pair of which one side is a part of a character, as [`packed`].
const PARTIAL: usize = 16;

/// Which neighbours some token holds together, as this crate's build script wrote it.
pub(super) struct Bridges<'a> {
    /// Pairs of whole characters, hashed.
    pairs: &'a [u8],
    /// For each last byte on the left: the first bytes on the right of pairs that some token holds in part.
    suspects: &'a [u8],
    /// Those pairs, in order.
    partial: &'a [[u8; PARTIAL]],
}

impl<'a> Bridges<'a> {
    /// Reads what the build script wrote.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (pairs, rest) = bytes.split_at_checked(PAIRS)?;
        let (suspects, rest) = rest.split_at_checked(SUSPECTS)?;
        let (partial, []) = rest.as_chunks() else { return None };
        Some(Self { pairs, suspects, partial })
    }

    /// Whether some token may lie across the place where the characters `left` and `right` meet.
    #[inline]
    pub(super) fn may_join(&self, left: &[u8], right: &[u8]) -> bool {
        let (byte, bit) = slot(left, right);
        if self.pairs[byte] & bit != 0 {
            return true;
        }
        let (Some(&last), Some(&first)) = (left.last(), right.first()) else { return true };
        let (byte, bit) = suspect(last, first);
        let holds = |i: usize, j: usize| {
            self.partial.binary_search(&packed(&left[i..], &right[..j]).to_be_bytes()).is_ok()
        };
        self.suspects[byte] & bit != 0 && (0..left.len()).any(|i| (1..=right.len()).any(|j| holds(i, j)))
    }
}

/// Up to four bytes on either side of a place, in one number.
pub(super) fn packed(left: &[u8], right: &[u8]) -> u128 {
    let pack = |bytes: &[u8]| bytes.iter().fold(1_u64, |key, &byte| key << 8 | u64::from(byte));
    u128::from(pack(left)) << 64 | u128::from(pack(right))
}

/// Byte and bit of two bytes in the table of suspects.
#[inline]
pub(super) fn suspect(last: u8, first: u8) -> (usize, u8) {
    (usize::from(last) * 32 + usize::from(first >> 3), 1 << (first & 7))
}

/// Byte and bit of a pair of characters in the table.
#[inline]
pub(super) fn slot(left: &[u8], right: &[u8]) -> (usize, u8) {
    let key = left.iter().chain(right).fold(0_u64, |key, &byte| key << 8 | u64::from(byte));
    let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - PAIR_BITS);
    ((hash >> 3) as usize, 1 << (hash & 7))
}
