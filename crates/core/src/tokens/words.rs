//! Counting by words: a text is divided wherever that is safe, and the short parts, which repeat all the time, are
//! looked up. Knows where cuts are safe; a vocabulary counts what is not known yet.
//!
//! The tables belong to the process, so that a thread that is started to help counting knows the words, and their
//! number is fixed. What a table holds never changes a count, only its cost.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, TryLockError};

use super::bridges::Bridges;
use super::cuts;

/// Words up to this many bytes are remembered; the table's key is the word itself.
const LONGEST: usize = 30;
/// Two words up to this many bytes share a bucket.
const SHORT: usize = 14;
/// Buckets of a table; half a megabyte in all, which stays in the cache of a processor's core.
const BUCKETS_LOG2: u32 = 14;
/// Vocabularies with tables.
const VOCABULARIES: usize = 2;
/// Tables per vocabulary: as many threads look up words at once, any more count without.
const TABLES: usize = 8;

/// Two short words, the one used last first, or a long one. A word's bytes come first; its length stands in byte 14
/// of the half where it ends, its count in byte 15.
type Bucket = [u128; 2];

static KNOWN: [[Mutex<Vec<Bucket>>; TABLES]; VOCABULARIES] =
    [const { [const { Mutex::new(Vec::new()) }; TABLES] }; VOCABULARIES];

thread_local! {
    /// The table that this thread used last, which its processor is likely to have at hand.
    static LAST_USED: Cell<usize> = const { Cell::new(0) };
}

/// The sum of `count` over the words of `text`, which is the count of `text`. `vocabulary` picks the tables; with
/// `bridges`, long words of scripts without spaces are divided too.
pub(super) fn count(
    text: &str,
    vocabulary: usize,
    bridges: Option<&Bridges<'_>>,
    count: impl Fn(&str) -> usize,
) -> usize {
    let Some(mut known) = KNOWN.get(vocabulary).and_then(free_table) else { return count(text) };
    known.resize(1 << BUCKETS_LOG2, [0; 2]);
    let bytes = text.as_bytes();
    let (mut total, mut start) = (0, 0);
    let mut before = b' ';
    for (at, &after) in bytes.iter().enumerate() {
        let cut = if before.is_ascii() {
            cuts::is_safe_between(before, after)
        } else {
            after & 0xC0 != 0x80 && is_cut_after_wide(text, at, after, bridges)
        };
        if cut && start < at {
            total += look_up(&mut known, text, start, at, &count);
            start = at;
        }
        before = after;
    }
    if start < bytes.len() {
        total += look_up(&mut known, text, start, bytes.len(), &count);
    }
    total
}

/// A table that no other thread uses just now.
fn free_table(tables: &'static [Mutex<Vec<Bucket>>; TABLES]) -> Option<MutexGuard<'static, Vec<Bucket>>> {
    let first = LAST_USED.get();
    (first..first + TABLES).map(|at| at % TABLES).find_map(|at| {
        let table = match tables[at].try_lock() {
            Ok(table) => table,
            // A panic elsewhere leaves every bucket whole.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        LAST_USED.set(at);
        Some(table)
    })
}

/// Whether a text may be cut at `at`, where a character starts and the one before is not ASCII.
#[inline]
fn is_cut_after_wide(text: &str, at: usize, after: u8, bridges: Option<&Bridges<'_>>) -> bool {
    let bytes = text.as_bytes();
    if let Some((left, right)) = three_byte_letters(bytes, at) {
        return bridges.is_some_and(|bridges| !bridges.may_join(&left, &right));
    }
    let has_four_bytes = |from: usize| bytes.get(from).is_some_and(|&byte| byte >= 0xF0);
    let is_rare = has_four_bytes(at) || at.checked_sub(4).is_some_and(has_four_bytes);
    cuts::is_safe(text, at) || (after >= 0xE3 && is_rare && is_divisible(text, at, bridges))
}

/// The characters that meet at `at`, if both are letters of scripts without spaces in three bytes, as nearly all are.
#[inline]
fn three_byte_letters(bytes: &[u8], at: usize) -> Option<([u8; 3], [u8; 3])> {
    let left = <[u8; 3]>::try_from(bytes.get(at.checked_sub(3)?..at)?).ok()?;
    let right = <[u8; 3]>::try_from(bytes.get(at..at + 3)?).ok()?;
    let is_letter = |[a, b, c]: [u8; 3]| {
        let code = u32::from(a & 0x0F) << 12 | u32::from(b & 0x3F) << 6 | u32::from(c & 0x3F);
        matches!(a, 0xE3..=0xED) && char::from_u32(code).is_some_and(cuts::is_east_asian_letter)
    };
    (is_letter(left) && is_letter(right)).then_some((left, right))
}

/// Whether two letters of scripts without spaces meet at `at` that no token joins.
fn is_divisible(text: &str, at: usize, bridges: Option<&Bridges<'_>>) -> bool {
    let Some((left, right)) = text.split_at_checked(at) else { return false };
    let (Some(a), Some(b)) = (left.chars().next_back(), right.chars().next()) else { return false };
    let (left, right) = (&text.as_bytes()[at - a.len_utf8()..at], &text.as_bytes()[at..at + b.len_utf8()]);
    let are_letters = cuts::is_east_asian_letter(a) && cuts::is_east_asian_letter(b);
    are_letters && bridges.is_some_and(|bridges| !bridges.may_join(left, right))
}

/// The count of `text[start..end]`, which is not empty; remembered if it is short.
#[inline]
fn look_up(
    known: &mut [Bucket],
    text: &str,
    start: usize,
    end: usize,
    count: &impl Fn(&str) -> usize,
) -> usize {
    let length = end - start;
    let miss = || count(&text[start..end]);
    if length > LONGEST {
        return miss();
    }
    let word = word(text.as_bytes(), start, length);
    let Some(bucket) = known.get_mut(place(word)) else { return miss() };
    let holds_long = (bucket[1] >> 112) as u8 > SHORT as u8;
    let is = |entry: u128, word: u128| entry << 8 == word << 8;
    if length > SHORT {
        if holds_long && bucket[0] == word[0] && is(bucket[1], word[1]) {
            return (bucket[1] >> 120) as usize;
        }
    } else if !holds_long {
        if is(bucket[0], word[0]) {
            return (bucket[0] >> 120) as usize;
        }
        if is(bucket[1], word[0]) {
            bucket.swap(0, 1);
            return (bucket[0] >> 120) as usize;
        }
    }
    let tokens = miss();
    if let Ok(small) = u8::try_from(tokens) {
        let counted = u128::from(small) << 120;
        *bucket = match (length > SHORT, holds_long) {
            (true, _) => [word[0], word[1] | counted],
            (false, true) => [word[0] | counted, 0],
            (false, false) => [word[0] | counted, bucket[0]],
        };
    }
    tokens
}

/// What a bucket holds of a word, without the count; the second half is 0 for a short one.
#[inline]
fn word(bytes: &[u8], start: usize, length: usize) -> Bucket {
    let [low, high] = match bytes.get(start..start + 32).and_then(|wide| <[u8; 32]>::try_from(wide).ok()) {
        Some(wide) => halves(wide),
        None => {
            let mut padded = [0; 32];
            padded[..length].copy_from_slice(&bytes[start..start + length]);
            halves(padded)
        }
    };
    let first = |half: u128, kept: usize| half & ((1 << (8 * kept)) - 1);
    let tag = (length as u128) << 112;
    match length {
        0..=SHORT => [first(low, length) | tag, 0],
        15 => [first(low, 15), tag],
        _ => [low, first(high, length - 16) | tag],
    }
}

#[inline]
fn halves(bytes: [u8; 32]) -> Bucket {
    let wide = |from: usize| {
        let mut half = [0; 16];
        half.copy_from_slice(&bytes[from..from + 16]);
        u128::from_le_bytes(half)
    };
    [wide(0), wide(16)]
}

#[inline]
fn place([low, high]: Bucket) -> usize {
    let hash = (low as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        ^ ((low >> 64) as u64).wrapping_mul(0xD6E8_FEB8_6659_FD93)
        ^ (high as u64).wrapping_mul(0xC2B2_AE3D_27D4_EB4F)
        ^ ((high >> 64) as u64).wrapping_mul(0x1656_67B1_9E37_79F9);
    (hash >> (64 - BUCKETS_LOG2)) as usize
}
