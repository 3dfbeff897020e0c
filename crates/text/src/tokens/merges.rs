//! Byte-pair encoding of one piece. Knows which bytes are a token, and of which rank; nothing of text.
//!
//! The tables are used in place in the binary, so a process spends nothing on them before its first count. The
//! vocabularies share the tables because most tokens of cl100k_base are tokens of o200k_base too.

use std::collections::BTreeMap;

use super::hashed::{Hashed, VALUE};

/// The rank of bytes that are not a token.
const NONE: u32 = u32::MAX;
/// Pieces up to this many bytes are searched for the next pair to join; in longer ones a queue gives it.
const SHORT: usize = 48;
/// Pieces of up to this many bytes, as most words have, are often a token; that is looked up first.
const WHOLE: usize = 15;
/// Pairs of bytes.
pub(super) const BYTE_PAIRS: usize = 1 << 16;

/// Which tokens join, as this crate's build script wrote it.
#[derive(Clone, Copy)]
pub(super) struct Merges<'a> {
    /// For each pair of bytes the number of the token that they are, or 0.
    pairs: &'a [[u8; 2]],
    /// By that number, the ranks; those of 0 are zeros.
    pair_ranks: &'a [[u8; VALUE]],
    /// By their bytes, the ranks of tokens of three bytes or more.
    longer: Hashed<'a>,
    /// Which vocabulary's ranks count.
    column: Column,
}

/// Which vocabulary's rank to read of the two that the tables hold for each token.
#[derive(Debug, Clone, Copy)]
pub(super) enum Column {
    Cl100k,
    O200k,
}

#[allow(dead_code, reason = "the build script writes the tables, and reads none")]
impl<'a> Merges<'a> {
    /// Reads what the build script wrote: how many tokens of two bytes there are, then the tables in the order of the
    /// fields. `None` if it is too short.
    pub(super) fn read(file: &'a [u8], column: Column) -> Option<Self> {
        let (short, rest) = file.split_first_chunk()?;
        let (pairs, rest) = rest.split_at_checked(2 * BYTE_PAIRS)?;
        let (pair_ranks, rest) = rest.split_at_checked(VALUE * (1 + u32::from_le_bytes(*short) as usize))?;
        let (pairs, pair_ranks) = (pairs.as_chunks().0, pair_ranks.as_chunks().0);
        Some(Self { pairs, pair_ranks, longer: Hashed::read(rest)?, column })
    }

    /// The rank of the token that two bytes are.
    #[inline]
    fn of_bytes(self, left: u8, right: u8) -> u32 {
        let number = self.pairs.get(usize::from(left) << 8 | usize::from(right));
        let number = number.map_or(0, |number| usize::from(u16::from_le_bytes(*number)));
        self.rank(self.pair_ranks.get(number))
    }

    /// The rank of the token that three or more bytes are.
    #[inline]
    fn of_longer(self, bytes: &[u8]) -> u32 {
        self.rank(self.longer.get(bytes))
    }

    #[inline]
    fn rank(self, ranks: Option<&[u8; VALUE]>) -> u32 {
        let rank = ranks.map_or(0, |ranks| unpack(*ranks, self.column));
        if rank == 0 { NONE } else { rank }
    }

    /// The rank of the token that three or more bytes are; `None` if they are none.
    pub(super) fn token_rank(self, bytes: &[u8]) -> Option<u32> {
        Some(self.of_longer(bytes)).filter(|rank| *rank != NONE)
    }

    /// Tokens of a piece.
    pub(super) fn count(self, piece: &[u8]) -> usize {
        match piece.len() {
            0 | 1 => piece.len(),
            2 => 1 + usize::from(self.of_bytes(piece[0], piece[1]) == NONE),
            ..=WHOLE if self.of_longer(piece) != NONE => 1,
            ..=SHORT => self.count_short(piece),
            _ => self.lengths(piece).len(),
        }
    }

    /// Tokens of a piece of at least one byte and at most [`SHORT`].
    #[inline]
    fn count_short(self, piece: &[u8]) -> usize {
        let mut starts = STARTS;
        let mut joined = [NONE; SHORT];
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
            starts.copy_within(at + 2..=count, at + 1);
            joined.copy_within(at + 1..count, at);
            count -= 1;
            let join =
                |at: usize| self.of_longer(&piece[usize::from(starts[at])..usize::from(starts[at + 2])]);
            if at + 1 < count {
                joined[at] = join(at);
            }
            if at > 0 {
                joined[at - 1] = join(at - 1);
            }
        }
    }

    /// The bytes of each token of a piece.
    ///
    /// A token ranks above those that it is made of, so ranks come up in order, and all places of a rank are known when
    /// its turn comes.
    pub(super) fn lengths(self, piece: &[u8]) -> Vec<usize> {
        let mut parts: Vec<Part> =
            (0..piece.len()).map(|at| Part { length: 1, joined: NONE, start: at }).collect();
        let mut queue: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (at, bytes) in piece.windows(2).enumerate() {
            offer(&mut parts, &mut queue, at, self.of_bytes(bytes[0], bytes[1]));
        }
        while let Some((rank, mut places)) = queue.pop_first() {
            places.sort_unstable();
            for at in places {
                // What was offered before a neighbour joined another is out of date.
                if parts[at].joined != rank {
                    continue;
                }
                let next = at + parts[at].length;
                parts[next].joined = NONE;
                parts[at].length += parts[next].length;
                let after = at + parts[at].length;
                parts[after - 1].start = at;
                let end = parts.get(after).map(|part| after + part.length);
                let joined = end.map_or(NONE, |end| self.of_longer(&piece[at..end]));
                offer(&mut parts, &mut queue, at, joined);
                if let Some(before) = at.checked_sub(1).map(|end| parts[end].start) {
                    let joined = self.of_longer(&piece[before..after]);
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

/// Records that the part at `at` joins with the next one to the token of this rank.
fn offer(parts: &mut [Part], queue: &mut BTreeMap<u32, Vec<usize>>, at: usize, rank: u32) {
    parts[at].joined = rank;
    if rank != NONE {
        queue.entry(rank).or_default().push(at);
    }
}

/// A part of a long piece, described where its first byte is; where its last byte is appears its start.
struct Part {
    length: usize,
    /// The rank to which it joins with the next part, or [`NONE`].
    joined: u32,
    start: usize,
}

/// Where the parts of a piece start while each is one byte.
static STARTS: [u8; SHORT + 1] = {
    let mut starts = [0; SHORT + 1];
    let mut at = 0;
    while at < starts.len() {
        starts[at] = at as u8;
        at += 1;
    }
    starts
};

/// The ranks of a token in both vocabularies, 0 where they do not have it, as the tables hold them: the low 16
/// bits of each, then the high bits of both.
#[allow(dead_code, reason = "the crate only reads the tables")]
pub(super) fn pack([cl100k, o200k]: [u32; 2]) -> [u8; VALUE] {
    let ([a, b, high_cl100k, _], [c, d, high_o200k, _]) = (cl100k.to_le_bytes(), o200k.to_le_bytes());
    [a, b, c, d, high_cl100k << 4 | high_o200k]
}

#[inline]
fn unpack([a, b, c, d, high]: [u8; VALUE], column: Column) -> u32 {
    match column {
        Column::Cl100k => u32::from_le_bytes([a, b, high >> 4, 0]),
        Column::O200k => u32::from_le_bytes([c, d, high & 15, 0]),
    }
}
