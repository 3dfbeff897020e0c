//! A perfect hash table for keys known at build time: a look-up reads a seed from a small table, then exactly one
//! entry, whether the key is present or not. Knows no tokens.

/// Keys per seed, on average.
const CROWD: usize = 4;

/// A hash table of which only the seeds are stored; entries are inserted again when it is loaded.
pub(super) struct Hashed<T> {
    /// One seed per bucket, which separates the keys in the bucket.
    seeds: &'static [[u8; 2]],
    entries: Vec<T>,
}

impl<T: Copy + Default> Hashed<T> {
    /// An empty table for `keys` keys, with the seeds that this crate's build script found for them.
    pub(super) fn new(seeds: &'static [u8], keys: usize) -> Self {
        Self { seeds: seeds.as_chunks().0, entries: vec![T::default(); size(keys)] }
    }

    /// Inserts the entry of a key with this hash. Keys that the seeds were not built for overwrite each other.
    #[inline]
    pub(super) fn insert(&mut self, hash: u64, entry: T) {
        if let Some(place) = self.place(hash).and_then(|place| self.entries.get_mut(place)) {
            *place = entry;
        }
    }

    /// The only entry that can belong to the key with this hash.
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

/// The number of seeds in a table of this many keys.
pub(super) fn crowds(keys: usize) -> usize {
    keys / CROWD + 1
}

/// The number of entries in a table of this many keys.
pub(super) fn size(keys: usize) -> usize {
    keys * 21 / 20 + 1
}

/// Maps the upper half of `hash` proportionally to a number below `end`.
#[inline]
fn scaled(hash: u64, end: usize) -> usize {
    (((hash >> 32) * end as u64) >> 32) as usize
}

/// The index of a key's seed among `crowds` seeds.
#[inline]
pub(super) fn crowd(hash: u64, crowds: usize) -> usize {
    scaled(hash, crowds)
}

/// The index of a key's entry among `size` entries.
#[inline]
pub(super) fn place(hash: u64, seed: u16, size: usize) -> usize {
    scaled((hash ^ u64::from(seed)).wrapping_mul(0x9E37_79B9_7F4A_7C15), size)
}

/// Hashes a key that consists of two numbers.
#[inline]
pub(super) fn hash(low: u64, high: u64) -> u64 {
    let product = u128::from(low ^ 0xD6E8_FEB8_6659_FD93) * u128::from(high ^ 0xC2B2_AE3D_27D4_EB4F);
    (product as u64) ^ (product >> 64) as u64
}
