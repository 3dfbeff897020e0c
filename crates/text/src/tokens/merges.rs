//! Byte-pair encoding of one piece. Knows which tokens merge, nothing of text.
//!
//! Tokens are identified by rank, single bytes by value, which is below the rank of any longer token. A token only
//! ever results from merging the two tokens that its own bytes, encoded alone, are merged from last: no token crosses
//! the ends of those bytes earlier, so they are encoded as if alone. One pair per token is therefore enough, and no
//! bytes need comparing.

use std::collections::BTreeMap;

use super::hashed::{self, Hashed};

/// Bits of a rank.
const RANK_BITS: u32 = 18;
/// The rank of pairs that do not merge.
const NONE: u32 = u32::MAX;
/// Pieces up to this many bytes are scanned for the next merge; longer ones use a priority queue.
const SHORT: usize = 48;
/// Ranks below this one belong to single bytes.
const BYTES: u32 = 256;
/// Bytes that a pair of tokens takes in the file: the low 16 bits of each, then the high bits of both.
#[allow(dead_code, reason = "the build script does not read what it writes")]
const PACKED: usize = 5;
/// Tokens of up to this many bytes are also indexed by their bytes.
pub(super) const WHOLE: usize = 15;

/// The merge table.
pub(super) struct Merges {
    /// The rank of each pair of bytes.
    bytes: Vec<u32>,
    /// Pairs of tokens and the rank they merge to.
    pairs: Hashed<u64>,
    /// Short tokens by their bytes, so that most words need no merging.
    whole: Hashed<u128>,
}

#[allow(dead_code, reason = "the build script writes the file and does not read it")]
impl Merges {
    /// Loads the build script's output: the number of pairs and short tokens, the seeds of both tables, and for each
    /// multi-byte token, by rank, the two tokens that merge to it. `None` if the lengths do not match.
    pub(super) fn load(file: &'static [u8]) -> Option<Self> {
        let (sizes, rest) = file.split_at_checked(8)?;
        let size = |bytes: &[u8]| usize::try_from(u32::from_le_bytes(bytes.try_into().ok()?)).ok();
        let (pairs, short) = (size(&sizes[..4])?, size(&sizes[4..])?);
        let (pair_seeds, rest) = rest.split_at_checked(2 * hashed::crowds(pairs))?;
        let (whole_seeds, rest) = rest.split_at_checked(2 * hashed::crowds(short))?;
        let (packed, []) = rest.as_chunks::<PACKED>() else { return None };
        let mut merges = Self {
            bytes: vec![NONE; 1 << 16],
            pairs: Hashed::new(pair_seeds, pairs),
            whole: Hashed::new(whole_seeds, short),
        };
        // The bytes of each token so far, packed as for `whole`; 0 if there are too many.
        let mut tokens: Vec<u128> = (0..=u8::MAX).map(|byte| whole(&[byte])).collect();
        for (rank, packed) in (BYTES..).zip(packed) {
            let (left, right) = unpack(*packed);
            merges.pairs.insert(hash_of_pair(pair(left, right)), entry(pair(left, right), rank));
            if let (Ok(left), Ok(right)) = (u8::try_from(left), u8::try_from(right)) {
                merges.bytes[usize::from(left) << 8 | usize::from(right)] = rank;
            }
            let part = |token: u32| tokens.get(token as usize).copied();
            let joined = concat(part(left)?, part(right)?);
            if joined >> (8 * WHOLE) > 2 {
                merges.whole.insert(hash_of_whole(joined), joined);
            }
            tokens.push(joined);
        }
        Some(merges)
    }

    #[inline]
    fn of_bytes(&self, left: u8, right: u8) -> u32 {
        self.bytes.get(usize::from(left) << 8 | usize::from(right)).copied().unwrap_or(NONE)
    }

    #[inline]
    fn of_tokens(&self, left: u32, right: u32) -> u32 {
        let key = pair(left, right);
        let entry = self.pairs.candidate(hash_of_pair(key)).unwrap_or(0);
        if entry >> RANK_BITS == key { (entry & ((1 << RANK_BITS) - 1)) as u32 } else { NONE }
    }

    /// Whether a piece of at most [`WHOLE`] bytes is a token.
    #[inline]
    fn is_whole(&self, piece: &[u8]) -> bool {
        let whole = whole(piece);
        self.whole.candidate(hash_of_whole(whole)) == Some(whole)
    }

    /// The number of tokens in a piece.
    pub(super) fn count(&self, piece: &[u8]) -> usize {
        match piece.len() {
            0 | 1 => piece.len(),
            2 => 1 + usize::from(self.of_bytes(piece[0], piece[1]) == NONE),
            ..=WHOLE if self.is_whole(piece) => 1,
            ..=SHORT => self.count_short(piece),
            _ => self.lengths(piece).len(),
        }
    }

    #[inline]
    fn count_short(&self, piece: &[u8]) -> usize {
        let mut tokens = [0; SHORT];
        let mut joined = [NONE; SHORT];
        for (token, &byte) in tokens.iter_mut().zip(piece) {
            *token = u32::from(byte);
        }
        for (rank, bytes) in joined.iter_mut().zip(piece.windows(2)) {
            *rank = self.of_bytes(bytes[0], bytes[1]);
        }
        let mut count = piece.len();
        loop {
            let (mut lowest, mut at) = (NONE, 0);
            for (i, &rank) in joined[..count - 1].iter().enumerate() {
                if rank < lowest {
                    (lowest, at) = (rank, i);
                }
            }
            if lowest == NONE {
                return count;
            }
            tokens.copy_within(at + 2..count, at + 1);
            joined.copy_within(at + 1..count, at);
            count -= 1;
            tokens[at] = lowest;
            if at + 1 < count {
                joined[at] = self.of_tokens(lowest, tokens[at + 1]);
            }
            if at > 0 {
                joined[at - 1] = self.of_tokens(tokens[at - 1], lowest);
            }
        }
    }

    /// The length in bytes of each token of a piece.
    ///
    /// A token ranks above the tokens it is merged from, so ranks come up in order, and all positions of a rank are
    /// known when its turn comes.
    pub(super) fn lengths(&self, piece: &[u8]) -> Vec<usize> {
        let mut parts: Vec<Part> = (0..piece.len())
            .map(|at| Part { token: u32::from(piece[at]), joined: NONE, length: 1, start: at })
            .collect();
        let mut queue: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (at, bytes) in piece.windows(2).enumerate() {
            offer(&mut parts, &mut queue, at, self.of_bytes(bytes[0], bytes[1]));
        }
        while let Some((rank, mut places)) = queue.pop_first() {
            places.sort_unstable();
            for at in places {
                // The entry is stale: a neighbour has merged since it was queued.
                if parts[at].joined != rank {
                    continue;
                }
                let next = at + parts[at].length;
                parts[next].joined = NONE;
                parts[at].token = rank;
                parts[at].length += parts[next].length;
                let after = at + parts[at].length;
                parts[after - 1].start = at;
                let joined = parts.get(after).map_or(NONE, |after| self.of_tokens(rank, after.token));
                offer(&mut parts, &mut queue, at, joined);
                if let Some(before) = at.checked_sub(1).map(|end| parts[end].start) {
                    let joined = self.of_tokens(parts[before].token, rank);
                    offer(&mut parts, &mut queue, before, joined);
                }
            }
        }
        let mut at = 0;
        std::iter::from_fn(|| {
            let length = parts.get(at)?.length;
            at += length;
            Some(length)
        })
        .collect()
    }
}

/// Queues the merge of the part at `at` with the next one into the token of this rank.
fn offer(parts: &mut [Part], queue: &mut BTreeMap<u32, Vec<usize>>, at: usize, rank: u32) {
    parts[at].joined = rank;
    if rank != NONE {
        queue.entry(rank).or_default().push(at);
    }
}

/// A part of a long piece, stored at the index of its first byte; the index of its last byte holds its start.
struct Part {
    token: u32,
    /// The rank it merges to with the next part, or [`NONE`].
    joined: u32,
    length: usize,
    start: usize,
}

/// A pair of tokens as a key.
pub(super) fn pair(left: u32, right: u32) -> u64 {
    u64::from(left) << RANK_BITS | u64::from(right)
}

pub(super) fn hash_of_pair(pair: u64) -> u64 {
    hashed::hash(pair, 0)
}

/// The table entry for a pair.
pub(super) fn entry(pair: u64, rank: u32) -> u64 {
    pair << RANK_BITS | u64::from(rank)
}

/// Packs up to [`WHOLE`] bytes and their length into one number.
#[inline]
pub(super) fn whole(piece: &[u8]) -> u128 {
    let length = piece.len();
    let bytes = if let (Some(first), Some(last)) = (piece.first_chunk(), piece.last_chunk()) {
        // Where the two chunks overlap they hold the same bytes.
        u128::from(u64::from_le_bytes(*first)) | u128::from(u64::from_le_bytes(*last)) << (8 * (length - 8))
    } else if let (Some(first), Some(last)) = (piece.first_chunk(), piece.last_chunk()) {
        u128::from(u32::from_le_bytes(*first)) | u128::from(u32::from_le_bytes(*last)) << (8 * (length - 4))
    } else {
        piece.iter().rev().fold(0, |bytes, &byte| bytes << 8 | u128::from(byte))
    };
    bytes | (length as u128) << (8 * WHOLE)
}

/// The packed concatenation of two packed tokens; 0 if it exceeds [`WHOLE`] bytes, or either token is 0 for that
/// reason.
#[inline]
fn concat(left: u128, right: u128) -> u128 {
    const LENGTH: usize = 8 * WHOLE;
    let (length, added) = ((left >> LENGTH) as usize, (right >> LENGTH) as usize);
    if length == 0 || added == 0 || length + added > WHOLE {
        return 0;
    }
    let bytes = |whole: u128| whole & ((1 << LENGTH) - 1);
    bytes(left) | bytes(right) << (8 * length) | ((length + added) as u128) << LENGTH
}

/// Packs two tokens as stored in the file.
#[allow(dead_code, reason = "the crate only reads the file")]
pub(super) fn pack(left: u32, right: u32) -> [u8; PACKED] {
    let ([a, b, high_left, _], [c, d, high_right, _]) = (left.to_le_bytes(), right.to_le_bytes());
    [a, b, c, d, high_left << 4 | high_right]
}

#[inline]
fn unpack([a, b, c, d, high]: [u8; PACKED]) -> (u32, u32) {
    (u32::from_le_bytes([a, b, high >> 4, 0]), u32::from_le_bytes([c, d, high & 15, 0]))
}

#[inline]
pub(super) fn hash_of_whole(whole: u128) -> u64 {
    hashed::hash(whole as u64, (whole >> 64) as u64)
}
