//! The longest beginning or end of a text that fits into a number of tokens. Knows counts of parts and safe cuts.

use super::{CachedEngine, cuts};

/// A first approach in parts of this many bytes; the rest is searched within one part.
const PART: usize = 512;
/// Searches of a part without cuts end this close to the limit instead of at it.
const LARGE_PART: usize = 16 * 1024;

/// A text is kept from its start or from its end.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Start,
    End,
}

impl Side {
    /// About `bytes` bytes of `text` from this side, cut at a character boundary, never more than asked for.
    fn keep(self, text: &str, bytes: usize) -> &str {
        match self {
            Self::Start => &text[..text.floor_char_boundary(bytes)],
            Self::End => &text[text.ceil_char_boundary(text.len().saturating_sub(bytes))..],
        }
    }

    /// Divides off a part from this side that counts alone: (the part, the rest).
    fn part(self, text: &str) -> (&str, &str) {
        match self {
            Self::Start => text.split_at(cuts::head_end(text, PART)),
            Self::End => {
                let (rest, part) = text.split_at(cuts::tail_start(text, PART));
                (part, rest)
            }
        }
    }
}

/// The longest stretch of `text` from `side` of at most `max` tokens, without the margin of an estimate.
pub(super) fn fit<'t>(counter: &CachedEngine, text: &'t str, max: usize, side: Side) -> &'t str {
    let shape = counter.engine.shape();
    let text = shape.longest.map_or(text, |longest| side.keep(text, longest.saturating_mul(max)));
    let (mut kept, mut left, mut rest) = (0, max, text);
    while !rest.is_empty() {
        let (part, after) = if shape.cuts { side.part(rest) } else { (rest, "") };
        match counter.raw_up_to(part, left) {
            Some(tokens) => {
                kept += part.len();
                left -= tokens;
                rest = after;
            }
            None => {
                kept += search(counter, part, left, side);
                break;
            }
        }
    }
    side.keep(text, kept)
}

/// Bytes of `part`, which exceeds `max` tokens, that fit from `side`.
///
/// Counts grow with the text but for a token or two at its end, so the place is narrowed down by turns in
/// proportion to the tokens left and by halves; what is returned has itself been counted.
fn search(counter: &CachedEngine, part: &str, max: usize, side: Side) -> usize {
    let (mut fits, mut tokens, mut exceeds) = (0, 0, part.len());
    let mut stride = max.saturating_mul(4);
    for turn in 0.. {
        let gap = exceeds - fits;
        if gap <= 1 || (part.len() > LARGE_PART && max - tokens <= 1) {
            break;
        }
        let ahead = match (max - tokens).saturating_mul(fits).checked_div(tokens) {
            Some(in_proportion) if turn % 2 == 0 => in_proportion,
            _ => stride.min(gap / 2),
        };
        let aim = fits + ahead.clamp(1, gap - 1);
        // A character of four bytes may begin before the place aimed at and end after it.
        let candidates =
            [aim, fits + 1, fits + 2, fits + 3, fits + 4].map(|bytes| side.keep(part, bytes).len());
        let Some(candidate) = candidates.into_iter().find(|&bytes| bytes > fits && bytes < exceeds) else {
            break;
        };
        match counter.fresh_up_to(side.keep(part, candidate), max) {
            Some(count) => {
                (fits, tokens) = (candidate, count);
                stride = stride.saturating_mul(2);
            }
            None => exceeds = candidate,
        }
    }
    fits
}
