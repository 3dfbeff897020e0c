//! Which of 64 bytes are of a kind, as the bits of one number. JSON inside of JSON has an escape every few bytes: walking
//! over bits takes a fraction of the time that comparing byte by byte does. Knows nothing of JSON but its characters.

use wide::u8x16;

/// Bytes that are examined at once.
pub(super) const BLOCK: usize = 64;

/// The even positions of a block.
const EVEN: u64 = 0x5555_5555_5555_5555;

/// Those positions of a block that a backslash escapes, given those of backslashes; and whether the last byte is a
/// backslash that escapes the byte after the block. The first byte must not be escaped.
///
/// A run of backslashes escapes every second byte from its second on. Adding the starts of runs to the runs carries
/// through each run, which tells where it ends (Langdale and Lemire, "Parsing Gigabytes of JSON per Second", 2019, 3.1.1).
pub(super) const fn escaped(backslashes: u64) -> (u64, bool) {
    let follow = backslashes << 1;
    let odd_starts = backslashes & !EVEN & !follow;
    let (ends, carried) = odd_starts.overflowing_add(backslashes);
    ((EVEN ^ (ends << 1)) & follow, carried)
}

/// The bytes of a block, ready to be compared.
#[derive(Clone, Copy)]
pub(super) struct Block([u8x16; 4]);

impl Block {
    /// Reads a block.
    pub(super) fn new(bytes: &[u8; BLOCK]) -> Self {
        let (lanes, _) = bytes.as_chunks();
        Self(std::array::from_fn(|at| u8x16::new(lanes[at])))
    }

    /// The positions of this byte.
    pub(super) fn equal(self, byte: u8) -> u64 {
        self.mask(|lane| lane.simd_eq(u8x16::splat(byte)))
    }

    /// The positions of control characters.
    pub(super) fn controls(self) -> u64 {
        self.mask(|lane| lane.min(u8x16::splat(b' ' - 1)).simd_eq(lane))
    }

    /// The positions of bytes that may follow a backslash and end the escape.
    pub(super) fn short_escapes(self) -> u64 {
        let one_of = |lane: u8x16| b"\"\\/bfnrt".map(|byte| lane.simd_eq(u8x16::splat(byte)));
        self.mask(|lane| one_of(lane).into_iter().fold(u8x16::ZERO, |found, equal| found | equal))
    }

    fn mask(self, test: impl Fn(u8x16) -> u8x16) -> u64 {
        let bits = |at: usize| u64::from(test(self.0[at]).to_bitmask()) << (16 * at);
        bits(0) | bits(1) | bits(2) | bits(3)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn positions(bytes: &[u8; BLOCK], test: impl Fn(usize) -> bool) -> u64 {
        (0..bytes.len()).filter(|&at| test(at)).fold(0, |mask, at| mask | 1 << at)
    }

    proptest! {
        #[test]
        fn bytes_are_found_as_one_by_one(bytes: [u8; BLOCK]) {
            let block = Block::new(&bytes);
            prop_assert_eq!(block.equal(b'\\'), positions(&bytes, |at| bytes[at] == b'\\'));
            prop_assert_eq!(block.controls(), positions(&bytes, |at| bytes[at] < b' '));
            let short = positions(&bytes, |at| b"\"\\/bfnrt".contains(&bytes[at]));
            prop_assert_eq!(block.short_escapes(), short);
        }

        #[test]
        fn escaped_bytes_are_found_as_one_by_one(backslashes: u64) {
            let (mut expected, mut escapes) = (0_u64, false);
            for at in 0..BLOCK {
                expected |= u64::from(escapes) << at;
                escapes = !escapes && backslashes >> at & 1 == 1;
            }
            prop_assert_eq!(escaped(backslashes), (expected, escapes));
        }
    }
}
