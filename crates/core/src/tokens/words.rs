//! Counting by words: a text is divided wherever that is safe, and the short parts, which repeat all the time, are
//! looked up. Knows where cuts are safe; a vocabulary counts what is not known yet.

use std::cell::RefCell;

use super::bridges::Bridges;
use super::cuts;

/// Words up to this many bytes are remembered; the table's key is the word itself.
const LONGEST: usize = 14;
/// Slots of a table; 16 bytes each, half a megabyte per thread and vocabulary.
const SLOTS: usize = 1 << 15;
/// Vocabularies with tables.
const VOCABULARIES: usize = 2;

thread_local! {
    static KNOWN: RefCell<[Vec<u128>; VOCABULARIES]> = const { RefCell::new([const { Vec::new() }; VOCABULARIES]) };
}

/// The sum of `count` over the words of `text`, which is the count of `text`. `vocabulary` picks the table.
pub(super) fn count(
    text: &str,
    vocabulary: usize,
    bridges: impl Fn() -> &'static Bridges,
    count: impl Fn(&str) -> usize,
) -> usize {
    KNOWN.with_borrow_mut(|known| {
        let Some(known) = known.get_mut(vocabulary) else { return count(text) };
        known.resize(SLOTS, 0);
        let (mut total, mut start) = (0, 0);
        let is_inside = |at: usize| text.as_bytes()[at] & 0xC0 == 0x80;
        for at in (1..text.len()).filter(|&at| !is_inside(at)) {
            if cuts::is_safe(text, at) || is_divisible(text, at, &bridges) {
                total += look_up(known, text, start, at, &count);
                start = at;
            }
        }
        total + look_up(known, text, start, text.len(), &count)
    })
}

/// Whether two letters of a script without spaces meet at `at` that no token joins.
fn is_divisible(text: &str, at: usize, bridges: &impl Fn() -> &'static Bridges) -> bool {
    let bytes = text.as_bytes();
    // Their UTF-8 starts with 0xE3 or more, and ends with a byte that is not ASCII.
    if bytes[at] < 0xE3 || bytes[at - 1] < 0x80 {
        return false;
    }
    let Some((left, right)) = text.split_at_checked(at) else { return false };
    let (Some(a), Some(b)) = (left.chars().next_back(), right.chars().next()) else { return false };
    cuts::is_east_asian_letter(a)
        && cuts::is_east_asian_letter(b)
        && !bridges().may_join(&bytes[at - a.len_utf8()..at], &bytes[at..at + b.len_utf8()])
}

/// The count of `text[start..end]`, remembered in the slot of its hash if it is short.
#[inline]
fn look_up(
    known: &mut [u128],
    text: &str,
    start: usize,
    end: usize,
    count: &impl Fn(&str) -> usize,
) -> usize {
    let length = end - start;
    if length > LONGEST {
        return count(&text[start..end]);
    }
    let key = key(text.as_bytes(), start, length);
    let slot = &mut known[slot(key)];
    // Key: the word's bytes, its length in byte 14. Byte 15, the count, is not part of the key.
    if *slot << 8 == key << 8 && length > 0 {
        return (*slot >> 120) as usize;
    }
    let tokens = count(&text[start..end]);
    if let Ok(small) = u8::try_from(tokens) {
        *slot = key | u128::from(small) << 120;
    }
    tokens
}

#[inline]
fn key(bytes: &[u8], start: usize, length: usize) -> u128 {
    let word = match bytes.get(start..start + 16).and_then(|wide| <[u8; 16]>::try_from(wide).ok()) {
        Some(wide) => u128::from_le_bytes(wide) & ((1 << (8 * length)) - 1),
        None => {
            let mut padded = [0; 16];
            padded[..length].copy_from_slice(&bytes[start..start + length]);
            u128::from_le_bytes(padded)
        }
    };
    word | (length as u128) << 112
}

#[inline]
fn slot(key: u128) -> usize {
    let folded = (key as u64 ^ ((key >> 64) as u64).wrapping_mul(0xD6E8_FEB8_6659_FD93))
        .wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (folded >> 40) as usize % SLOTS
}
