//! Safe cuts: places where a text can be split so that token counts add up. Knows bytes and characters, no
//! vocabulary.
//!
//! A tokenizer first splits text into pieces by a pattern, then encodes each piece alone. Two kinds of places are
//! never inside a piece of any pattern for which [`CountShape::cuts`](super::engine::CountShape) is set, and no
//! normalisation acts across them:
//!
//! - after a letter or a digit, before a character other than a letter, number, mark or apostrophe;
//! - after anything but white space, before a space or a tab.

/// A segment, the unit of counting and caching, has at least this many bytes …
const SEGMENT_MIN: usize = 2 * 1024;
/// … ends where a hash of the words before it has this many leading zero bits, so that cuts do not depend on the
/// distance from the start: after an edit the same cuts recur …
const SEGMENT_SPREAD: u32 = 7;
/// … and at most this many, wherever safe cuts exist.
pub(super) const SEGMENT_MAX: usize = 16 * 1024;

/// Kinds of bytes before which a cut is safe: after anything but white space, a space or tab …
const GAP: u8 = 1;
/// … and after a letter or digit, any other ASCII character but letters, digits and the apostrophe, with which
/// contractions begin.
const SIGN: u8 = 2;
/// A non-ASCII character, around which the decision needs a closer look.
const WIDE: u8 = 4;

/// The kinds of bytes before which a cut is safe, given the byte before the cut.
const AFTER: [u8; 256] = {
    let mut table = [WIDE; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => GAP | SIGN,
            b'\t'..=b'\r' | b' ' => 0,
            _ => GAP,
        };
        byte += 1;
    }
    table
};

/// The kind of each byte; none for continuation bytes.
const BEFORE: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b' ' | b'\t' => GAP | WIDE,
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'\'' | 0xC0.. => WIDE,
            0x80..0xC0 => 0,
            _ => SIGN | WIDE,
        };
        byte += 1;
    }
    table
};

/// Whether counts add up when `text` is cut before byte `at`. A place inside a character is not safe.
#[inline]
pub(super) fn is_safe(text: &str, at: usize) -> bool {
    let bytes = text.as_bytes();
    let (Some(&before), Some(&after)) = (at.checked_sub(1).and_then(|i| bytes.get(i)), bytes.get(at)) else {
        return false;
    };
    if before.is_ascii() {
        return is_safe_between(before, after);
    }
    is_safe_after_wide(text, at, after)
}

/// Whether counts add up when a text is cut between an ASCII character and the byte after it; after a non-ASCII
/// character, whether a character starts there.
#[inline]
pub(super) fn is_safe_between(before: u8, after: u8) -> bool {
    AFTER[usize::from(before)] & BEFORE[usize::from(after)] != 0
}

/// As above, for a cut after a non-ASCII character.
fn is_safe_after_wide(text: &str, at: usize, after: u8) -> bool {
    let kind = BEFORE[usize::from(after)] & !WIDE;
    if kind == 0 && !matches!(after, 0xE3 | 0xEF) {
        return false;
    }
    // One of `、。「」，！？`.
    let is_sign = kind != 0
        || matches!(
            text.as_bytes().get(at..at + 3),
            Some([0xE3, 0x80, 0x81 | 0x82 | 0x8C | 0x8D] | [0xEF, 0xBC, 0x81 | 0x8C | 0x9F])
        );
    let left = || text.get(..at).and_then(|left| left.chars().next_back());
    match kind {
        GAP => left().is_some_and(|c| !c.is_whitespace()),
        _ => is_sign && left().is_some_and(is_east_asian_letter),
    }
}

/// Hiragana, Katakana, Han, Yi and Hangul letters, which every pattern treats like any other letter.
pub(super) const fn is_east_asian_letter(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{3096}' | '\u{30A1}'..='\u{30FA}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}'
        | '\u{A000}'..='\u{A48C}' | '\u{AC00}'..='\u{D7A3}' | '\u{20000}'..='\u{2A6DF}')
}

/// The first safe cut at or after byte `from`.
fn next_cut(text: &str, from: usize) -> Option<usize> {
    (from..text.len()).find(|&at| is_safe(text, at))
}

/// The last safe cut at or before byte `from`.
fn previous_cut(text: &str, from: usize) -> Option<usize> {
    (1..=from.min(text.len())).rev().find(|&at| is_safe(text, at))
}

/// Whether the eight bytes before a cut mark the end of a segment; this depends on the words alone.
fn is_marked(bytes: &[u8], at: usize) -> bool {
    let window = at.checked_sub(8).and_then(|start| bytes.get(start..at)).and_then(|w| w.try_into().ok());
    window.is_some_and(|w| {
        u64::from_le_bytes(w).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - SEGMENT_SPREAD) == 0
    })
}

/// Splits a text at safe cuts; the parts joined are the text. A part exceeds 16 KiB only where there is no safe cut.
pub(super) fn segments(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (segment, tail) = rest.split_at(segment_end(rest));
        rest = tail;
        Some(segment)
    })
}

fn segment_end(text: &str) -> usize {
    if text.len() <= SEGMENT_MIN {
        return text.len();
    }
    let mut at = SEGMENT_MIN;
    while let Some(cut) = next_cut(text, at) {
        if cut >= SEGMENT_MAX || is_marked(text.as_bytes(), cut) {
            return cut;
        }
        at = cut + 1;
    }
    text.len()
}

/// Splits a text into parts of about `size` bytes that can be counted alone; the parts joined are the text.
pub(super) fn shares(text: &str, size: usize) -> Vec<&str> {
    let (mut rest, mut shares) = (text, Vec::new());
    while !rest.is_empty() {
        let (share, tail) = rest.split_at(head_end(rest, size));
        shares.push(share);
        rest = tail;
    }
    shares
}

/// The end of the shortest head of `text` that has at least `least` bytes and can be counted alone.
pub(super) fn head_end(text: &str, least: usize) -> usize {
    next_cut(text, least.max(1)).unwrap_or(text.len())
}

/// The start of the shortest tail of `text` that has at least `least` bytes and can be counted alone.
pub(super) fn tail_start(text: &str, least: usize) -> usize {
    text.len().checked_sub(least.max(1)).and_then(|from| previous_cut(text, from)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_and_gaps_are_cut() {
        for (left, right, safe) in [
            ("word", " next", true),
            ("word", ", next", true),
            ("don", "'t", false),
            ("word", "s", false),
            ("!", "\n", false),
            ("x\n", " y", false),
            ("\u{3000}", " ", false),
            ("7", " up", true),
            ("7", ",", true),
            ("7", "8", false),
            (",", "8", false),
            ("です", "。次", true),
            ("か", "\u{3099}", false),
            ("です", "ね", false),
            ("\0", "\0", false),
        ] {
            assert_eq!(is_safe(&format!("{left}{right}"), left.len()), safe, "{left:?}|{right:?}");
        }
    }

    #[test]
    fn segments_tile_and_come_back_after_an_edit() {
        let text: String = (0..40_000).map(|n| format!("word{} ", n * 7919 % 10_007)).collect();
        let edited = format!("{}inserted {}", &text[..1000], &text[1000..]);
        let before: Vec<&str> = segments(&text).collect();
        assert_eq!(before.concat(), text);
        assert!(before.iter().all(|s| s.len() <= SEGMENT_MAX + 64));
        let fresh = segments(&edited).filter(|s| !before.contains(s)).count();
        assert!(fresh <= 3, "{fresh} of {} segments are new", before.len());
    }
}
