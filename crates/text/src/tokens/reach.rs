//! A lower bound on token counts that needs no tokenizing: from each place, no token reaches further than the
//! longest one that begins with the three bytes there. Knows token bytes, not how a vocabulary merges them.

/// Slots of the table; two beginnings that share a slot share the larger reach, which keeps the bound a bound.
#[allow(dead_code, reason = "the build script makes the table")]
pub(super) const SLOTS: usize = 1 << 18;
/// Tokens shorter than a beginning may start anywhere.
pub(super) const SHORTEST_REACH: u8 = 2;

/// How far one token can reach, as this crate's build script wrote it.
pub(super) struct Reach<'a>(pub(super) &'a [u8]);

impl Reach<'_> {
    /// Whether no choice of tokens covers `bytes` with `limit` tokens or fewer; stops when that is clear.
    ///
    /// Each round moves the frontier as far as one more token can reach from any place before it, so a text that
    /// needs more rounds than `limit` has more tokens than `limit`, however it is divided.
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
