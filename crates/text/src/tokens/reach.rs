//! A lower bound on token counts that needs no tokenizing: from any position, no token extends further than the
//! longest one that starts with the three bytes there. Knows token bytes, not how a vocabulary merges them.

/// Slots of the table; prefixes that share a slot share the larger reach, so the bound still holds.
pub(super) const SLOTS: usize = 1 << 18;
/// Tokens shorter than a prefix may start anywhere.
pub(super) const SHORTEST_REACH: u8 = 2;

/// How far one token can extend, as written by this crate's build script.
pub(super) struct Reach<'a>(pub(super) &'a [u8]);

impl Reach<'_> {
    /// Whether no sequence of at most `limit` tokens covers `bytes`; stops as soon as this is certain.
    ///
    /// Each round advances the frontier as far as one more token can extend from any position before it. A text that
    /// needs more rounds than `limit` has more tokens than `limit`, however it is split.
    pub(super) fn surely_exceeds(&self, bytes: &[u8], limit: usize) -> bool {
        let (mut tokens, mut frontier, mut furthest) = (0_usize, 0_usize, 0_usize);
        for at in 0..bytes.len() {
            let reach =
                bytes.get(at..).and_then(slot).and_then(|slot| self.0.get(slot)).unwrap_or(&SHORTEST_REACH);
            furthest = furthest.max(at + usize::from(*reach));
            if at == frontier {
                tokens += 1;
                if tokens > limit {
                    return true;
                }
                frontier = furthest;
            }
        }
        false
    }
}

pub(super) fn slot(bytes: &[u8]) -> Option<usize> {
    let &[a, b, c, ..] = bytes else { return None };
    let key = u32::from_le_bytes([a, b, c, 0]).wrapping_mul(0x9E37_79B1);
    Some((key >> 14) as usize)
}
