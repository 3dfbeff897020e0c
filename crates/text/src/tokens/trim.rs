//! The longest prefix or suffix of a text that fits into a number of tokens. Knows counts of parts and safe cuts.

use super::{CachedEngine, cuts};

/// The first pass advances in parts of this many bytes; the rest is a search within one part.
const PART: usize = 512;
/// In parts without cuts that are at least this large, the search ends near the limit instead of at it.
const LARGE_PART: usize = 16 * 1024;

/// Whether a text is kept from its start or from its end.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Start,
    End,
}

impl Side {
    /// About `bytes` bytes of `text` from this side, cut at a character boundary; never more than requested.
    fn keep(self, text: &str, bytes: usize) -> &str {
        match self {
            Self::Start => &text[..text.floor_char_boundary(bytes)],
            Self::End => &text[text.ceil_char_boundary(text.len().saturating_sub(bytes))..],
        }
    }

    /// Splits off a part on this side that can be counted alone: (the part, the rest).
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

/// The longest stretch of `text` from `side` with at most `max` tokens, without the margin of an estimate.
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

/// How many bytes of `part`, which exceeds `max` tokens, fit from `side`.
///
/// Counts grow with the text except for a token or two at its end, so the search alternates between interpolation and
/// bisection; the result has itself been counted.
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
        // A character of four bytes may start before the target offset and end after it.
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
