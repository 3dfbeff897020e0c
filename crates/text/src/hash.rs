//! Content addresses: BLAKE3 digests of original bytes; repeats among short hashes. Does not know where the bytes are stored.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The BLAKE3 digest (32 bytes) that names a piece of content everywhere: in blobs, caches, pointers, receipts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// The address of `bytes`.
    pub fn new(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// Restores an address from its stored bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes of the digest.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// 64 lower-case hexadecimal digits.
    pub fn to_hex(self) -> String {
        blake3::Hash::from_bytes(self.0).to_hex().to_string()
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentHash({})", self.to_hex())
    }
}

/// The text is not 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a content hash is 64 hexadecimal digits")]
pub struct ParseHashError;

impl FromStr for ContentHash {
    type Err = ParseHashError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        blake3::Hash::from_hex(text).map(|hash| Self(*hash.as_bytes())).map_err(|_| ParseHashError)
    }
}

impl Serialize for ContentHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_hex())
    }
}

impl<'de> Deserialize<'de> for ContentHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Whether one of these hashes of values occurs twice.
pub fn has_repeat(hashes: &[u64]) -> bool {
    repeat_by_table(hashes).unwrap_or_else(|| {
        let mut sorted = hashes.to_vec();
        sorted.sort_unstable();
        sorted.windows(2).any(|pair| pair[0] == pair[1])
    })
}

/// As [`has_repeat`]; `None` if too many hashes want the same places, as where the values were chosen for that.
fn repeat_by_table(hashes: &[u64]) -> Option<bool> {
    const EMPTY: u64 = 0;
    // On average a place is found with one step or two.
    const MOST_STEPS: usize = 8;
    let size = (2 * hashes.len()).next_power_of_two().max(2);
    let mut table = vec![EMPTY; size];
    let mut left = MOST_STEPS * hashes.len();
    let mut has_empty = false;
    for &hash in hashes {
        if hash == EMPTY {
            if std::mem::replace(&mut has_empty, true) {
                return Some(true);
            }
            continue;
        }
        let mut at = (hash >> (u64::BITS - size.ilog2())) as usize;
        while table[at] != EMPTY && table[at] != hash {
            at = (at + 1) % size;
            left = left.checked_sub(1)?;
        }
        if std::mem::replace(&mut table[at], hash) == hash {
            return Some(true);
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_round_trips() {
        let hash = ContentHash::new(b"larder");
        assert_eq!(hash.to_hex().parse(), Ok(hash));
        assert_eq!("zz".parse::<ContentHash>(), Err(ParseHashError));
    }

    #[test]
    fn a_repeat_is_found_also_among_hashes_that_were_chosen() {
        let spread: Vec<u64> = (0..5_000_u64).map(|at| at.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
        // All want the same place.
        let chosen: Vec<u64> = (0..5_000).collect();
        assert_eq!((repeat_by_table(&spread), repeat_by_table(&chosen)), (Some(false), None));
        for hashes in [&[][..], &[0], &[0, 2, 1], &spread, &chosen] {
            assert!(!has_repeat(hashes));
            if let Some(&first) = hashes.first() {
                assert!(has_repeat(&[hashes, &[first]].concat()));
            }
        }
    }
}
