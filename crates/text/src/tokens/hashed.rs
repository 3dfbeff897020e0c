//! A table of keys known when the crate is built, each at its own place: a look-up reads a number from a small
//! table, then one entry, whether the key is there or not. Knows no tokens.

/// Keys per number, on average.
const CROWD: usize = 4;

/// A table of entries, of which only the seeds are stored: the entries are inserted again when it is loaded.
pub(super) struct Hashed<T> {
    /// What sets the keys apart that share the number.
    seeds: &'static [[u8; 2]],
    entries: Vec<T>,
}

impl<T: Copy + Default> Hashed<T> {
    /// An empty table for `keys` keys with the seeds that this crate's build script found for them.
    pub(super) fn new(seeds: &'static [u8], keys: usize) -> Self {
        Self { seeds: seeds.as_chunks().0, entries: vec![T::default(); size(keys)] }
    }

    /// Inserts the entry of a key with this hash. Keys other than those that the seeds were made for replace each other.
    #[inline]
    pub(super) fn insert(&mut self, hash: u64, entry: T) {
        if let Some(place) = self.place(hash).and_then(|place| self.entries.get_mut(place)) {
            *place = entry;
        }
    }

    /// The only entry that may be that of the key with this hash.
    #[inline]
    pub(super) fn candidate(&self, hash: u64) -> Option<T> {
        self.place(hash).and_then(|place| self.entries.get(place)).copied()
    }

    #[inline]
    fn place(&self, hash: u64) -> Option<usize> {
        let seed = u16::from_le_bytes(*self.seeds.get(crowd(hash, self.seeds.len()))?);
        Some(place(hash, seed, self.entries.len()))
    }
}

/// How many seeds a table of so many keys has.
pub(super) fn crowds(keys: usize) -> usize {
    keys / CROWD + 1
}

/// How many entries a table of so many keys has.
pub(super) fn size(keys: usize) -> usize {
    keys * 21 / 20 + 1
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

/// Which of `size` entries a key has.
#[inline]
pub(super) fn place(hash: u64, seed: u16, size: usize) -> usize {
    scaled((hash ^ u64::from(seed)).wrapping_mul(0x9E37_79B9_7F4A_7C15), size)
}

/// A hash of two numbers that are the key.
#[inline]
pub(super) fn hash(low: u64, high: u64) -> u64 {
    let product = u128::from(low ^ 0xD6E8_FEB8_6659_FD93) * u128::from(high ^ 0xC2B2_AE3D_27D4_EB4F);
    (product as u64) ^ (product >> 64) as u64
}
