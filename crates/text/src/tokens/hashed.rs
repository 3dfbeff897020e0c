//! A table of keys known when the crate is built, each at its own place: a look-up reads a number from a small
//! table, then one entry, whether the key is there or not. Knows no tokens.

/// Keys per number, on average.
#[allow(dead_code, reason = "the build script makes the table")]
pub(super) const CROWD: usize = 4;

/// A table of entries of `N` bytes, as this crate's build script wrote it.
#[derive(Clone, Copy)]
pub(super) struct Hashed<'a, const N: usize> {
    /// What sets the keys apart that share the number.
    seeds: &'a [[u8; 2]],
    entries: &'a [[u8; N]],
}

impl<'a, const N: usize> Hashed<'a, N> {
    /// Reads a table from the start of `bytes`: how many seeds and entries, the seeds, the entries. Gives what follows.
    pub(super) fn read(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (sizes, rest) = bytes.split_at_checked(8)?;
        let [seeds, entries] = [&sizes[..4], &sizes[4..]].map(|size| size.try_into().map(u32::from_le_bytes));
        let (seeds, rest) = rest.split_at_checked(usize::try_from(seeds.ok()?).ok()?.checked_mul(2)?)?;
        let (entries, rest) = rest.split_at_checked(usize::try_from(entries.ok()?).ok()?.checked_mul(N)?)?;
        let ((seeds, []), (entries, [])) = (seeds.as_chunks(), entries.as_chunks()) else { return None };
        Some((Self { seeds, entries }, rest))
    }

    /// The only entry that may be that of the key with this hash.
    #[inline]
    pub(super) fn candidate(self, hash: u64) -> Option<&'a [u8; N]> {
        let seed = u16::from_le_bytes(*self.seeds.get(crowd(hash, self.seeds.len()))?);
        self.entries.get(place(hash, seed, self.entries.len()))
    }
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
