//! Places inside long words of scripts without spaces where no token of a vocabulary can lie across, so that the
//! word may be counted in parts. Knows token bytes, not how a vocabulary merges them.
//!
//! Merging only ever makes tokens. Where two characters meet and no token holds the end of the first followed by
//! the start of the second, nothing merges across, and both sides are encoded as if alone.

use hashbrown::HashSet;

/// Bits of the table of pairs; a false hit only costs a chance to divide.
const PAIR_BITS: u32 = 20;

/// Which neighbours some token holds together.
pub(super) struct Bridges {
    /// Pairs of whole characters, hashed.
    pairs: Vec<u64>,
    /// For each last byte on the left: the first bytes on the right of pairs that some token holds in part.
    suspects: Vec<[u64; 4]>,
    /// Those pairs, as [`packed`], of which one side is a part of a character.
    partial: HashSet<u128>,
}

impl Bridges {
    pub(super) fn new(tokens: impl Iterator<Item = Vec<u8>>) -> Self {
        let mut bridges = Self {
            pairs: vec![0; 1 << (PAIR_BITS - 6)],
            suspects: vec![[0; 4]; 256],
            partial: HashSet::new(),
        };
        for token in tokens.filter(|token| !token.is_ascii()) {
            for at in (1..token.len()).filter(|&at| starts_character(token[at])) {
                bridges.insert(&token, at);
            }
        }
        bridges
    }

    /// Records what `token` holds together at `at`, where a character starts.
    fn insert(&mut self, token: &[u8], at: usize) {
        let start = (0..at).rev().find(|&i| starts_character(token[i])).unwrap_or(0);
        let left = &token[start..at];
        let right = &token[at..token.len().min(at + length(token[at]))];
        if starts_character(left[0]) && right.len() == length(right[0]) {
            let (word, bit) = slot(left, right);
            self.pairs[word] |= bit;
        } else {
            let first = right[0];
            self.suspects[usize::from(left[left.len() - 1])][usize::from(first >> 6)] |= 1 << (first & 63);
            self.partial.insert(packed(left, right));
        }
    }

    /// Whether some token may lie across the place where the characters `left` and `right` meet.
    #[inline]
    pub(super) fn may_join(&self, left: &[u8], right: &[u8]) -> bool {
        let (word, bit) = slot(left, right);
        if self.pairs[word] & bit != 0 {
            return true;
        }
        let (Some(&last), Some(&first)) = (left.last(), right.first()) else { return true };
        let suspected = self.suspects[usize::from(last)][usize::from(first >> 6)] & (1 << (first & 63)) != 0;
        suspected
            && (0..left.len())
                .any(|i| (1..=right.len()).any(|j| self.partial.contains(&packed(&left[i..], &right[..j]))))
    }
}

fn starts_character(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

/// Bytes of the character that starts with `lead`.
fn length(lead: u8) -> usize {
    match lead {
        0xF0.. => 4,
        0xE0.. => 3,
        0xC0.. => 2,
        _ => 1,
    }
}

/// Up to four bytes on either side of a place, in one number.
fn packed(left: &[u8], right: &[u8]) -> u128 {
    let pack = |bytes: &[u8]| bytes.iter().fold(1_u64, |key, &byte| key << 8 | u64::from(byte));
    u128::from(pack(left)) << 64 | u128::from(pack(right))
}

/// Word and bit of a pair of characters in the table.
#[inline]
fn slot(left: &[u8], right: &[u8]) -> (usize, u64) {
    let key = left.iter().chain(right).fold(0_u64, |key, &byte| key << 8 | u64::from(byte));
    let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - PAIR_BITS);
    ((hash >> 6) as usize, 1 << (hash & 63))
}
