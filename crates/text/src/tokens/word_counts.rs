//! Counting by words: a text is divided wherever that is safe, and the counts of short parts, which repeat all the
//! time, are looked up. Knows where cuts are safe; a vocabulary counts parts seen for the first time.
//!
//! The tables belong to one vocabulary and are shared by the threads that count with it. What a table holds never
//! changes a count, only its cost.

use std::sync::{Mutex, MutexGuard, TryLockError};

use super::bridges::Bridges;
use super::cuts;

/// Words up to this many bytes are remembered; the table's key is the word itself.
const LONGEST: usize = 30;
/// Two words up to this many bytes share a bucket.
const SHORT: usize = 14;
/// Buckets of a table; a quarter of a megabyte in all, which stays in the cache of a processor's core.
const BUCKETS_LOG2: u32 = 13;
/// Tables of a vocabulary: so many threads look up words at once; any more count without.
const TABLES: usize = 8;

/// About the bytes of a thread's stack.
const STACK: usize = 1 << 21;

/// Two short words, the one used last first, or a long one. A word's bytes come first; its length appears in byte 14
/// of the half where it ends, its count in byte 15.
type WordBucket = [u128; 2];

/// The counts of the words that a vocabulary counted lately. Takes memory from the first count on.
#[derive(Debug, Default)]
pub(super) struct WordCounts([Mutex<Vec<WordBucket>>; TABLES]);

impl WordCounts {
    /// The sum of `count` over the words of `text`, which is the count of `text`. With `bridges`, long words of scripts
    /// without spaces are divided too.
    pub(super) fn count(
        &self,
        text: &str,
        bridges: Option<Bridges<'_>>,
        count: impl Fn(&str) -> usize,
    ) -> usize {
        match self.free_table() {
            Some(mut known) => sum(&mut known, text, bridges, count),
            None => count(text),
        }
    }

    /// A table that no other thread uses at the moment, the one that this thread used before if possible, since its
    /// processor is likely to have that in its cache.
    fn free_table(&self) -> Option<MutexGuard<'_, Vec<WordBucket>>> {
        // Every thread has a stack of its own, so an address on it distinguishes threads without shared state.
        let on_stack = 0_u8;
        let first = (&raw const on_stack).addr() / STACK;
        (first..first + TABLES).find_map(|at| match self.0[at % TABLES].try_lock() {
            Ok(table) => Some(table),
            // A panic elsewhere leaves every bucket whole.
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        })
    }
}

fn sum(
    known: &mut Vec<WordBucket>,
    text: &str,
    bridges: Option<Bridges<'_>>,
    count: impl Fn(&str) -> usize,
) -> usize {
    if known.is_empty() {
        // Pages of it come into being when a word falls there.
        *known = vec![[0; 2]; 1 << BUCKETS_LOG2];
    }
    let bytes = text.as_bytes();
    let (mut total, mut start) = (0, 0);
    let mut before = b' ';
    for (at, &after) in bytes.iter().enumerate() {
        // Nothing is cut before the first byte: what is taken to appear before it is a space.
        let may_cut = cuts::is_safe_between(before, after);
        if may_cut && (before.is_ascii() || is_cut_after_wide(text, at, after, bridges)) {
            total += look_up(known, text, start, at, &count);
            start = at;
        }
        before = after;
    }
    if start < bytes.len() {
        total += look_up(known, text, start, bytes.len(), &count);
    }
    total
}

/// Whether a text may be cut at `at`, where a character starts and the one before is not ASCII.
#[inline]
fn is_cut_after_wide(text: &str, at: usize, after: u8, bridges: Option<Bridges<'_>>) -> bool {
    let bytes = text.as_bytes();
    let has_four_bytes = |from: usize| bytes.get(from).is_some_and(|&byte| byte >= 0xF0);
    let four_before = || at.checked_sub(4).is_some_and(has_four_bytes);
    if let Some(right) = letter_of_three(bytes, at) {
        return match at.checked_sub(3).and_then(|before| letter_of_three(bytes, before)) {
            Some(left) => bridges.is_some_and(|bridges| !bridges.may_join(&left, &right)),
            None => four_before() && is_divisible(text, at, bridges),
        };
    }
    cuts::is_safe(text, at)
        || (after >= 0xE3 && (has_four_bytes(at) || four_before()) && is_divisible(text, at, bridges))
}

/// The letter at `at` if its script has no spaces and it has three bytes, as nearly all of them have.
#[inline]
fn letter_of_three(bytes: &[u8], at: usize) -> Option<[u8; 3]> {
    let letter @ [a, b, c] = <[u8; 3]>::try_from(bytes.get(at..at + 3)?).ok()?;
    let block = usize::from(a & 0x0F) << 6 | usize::from(b & 0x3F);
    (a >= 0xE0 && LETTERS_OF_THREE[block] >> (c & 0x3F) & 1 == 1).then_some(letter)
}

/// For each block of 64 characters of up to three bytes, a bit for each that is a letter of a script without spaces.
static LETTERS_OF_THREE: [u64; 1024] = {
    let mut blocks = [0; 1024];
    let mut code = 0x3000;
    while code < 0xD800 {
        if let Some(c) = char::from_u32(code)
            && cuts::is_east_asian_letter(c)
        {
            blocks[code as usize / 64] |= 1 << (code % 64);
        }
        code += 1;
    }
    blocks
};

/// Whether two letters of scripts without spaces meet at `at` that no token joins.
fn is_divisible(text: &str, at: usize, bridges: Option<Bridges<'_>>) -> bool {
    let Some((left, right)) = text.split_at_checked(at) else { return false };
    let (Some(a), Some(b)) = (left.chars().next_back(), right.chars().next()) else { return false };
    let (left, right) = (&text.as_bytes()[at - a.len_utf8()..at], &text.as_bytes()[at..at + b.len_utf8()]);
    let are_letters = cuts::is_east_asian_letter(a) && cuts::is_east_asian_letter(b);
    are_letters && bridges.is_some_and(|bridges| !bridges.may_join(left, right))
}

/// The count of `text[start..end]`, which is not empty; remembered if it is short.
#[inline]
fn look_up(
    known: &mut [WordBucket],
    text: &str,
    start: usize,
    end: usize,
    count: &impl Fn(&str) -> usize,
) -> usize {
    let length = end - start;
    let miss = || count(&text[start..end]);
    if length > SHORT {
        return look_up_long(known, text.as_bytes(), start, length, miss);
    }
    let word = short_word(text.as_bytes(), start, length);
    let Some(bucket) = known.get_mut(place([word, 0])) else { return miss() };
    let is = |entry: u128| entry << 8 == word << 8;
    let holds_long = holds_long(bucket);
    if !holds_long {
        if is(bucket[0]) {
            return (bucket[0] >> 120) as usize;
        }
        if is(bucket[1]) {
            bucket.swap(0, 1);
            return (bucket[0] >> 120) as usize;
        }
    }
    let tokens = miss();
    if let Ok(small) = u8::try_from(tokens) {
        *bucket = [word | u128::from(small) << 120, if holds_long { 0 } else { bucket[0] }];
    }
    tokens
}

/// The same for a word that takes a bucket for itself, or is too long for that.
fn look_up_long(
    known: &mut [WordBucket],
    bytes: &[u8],
    start: usize,
    length: usize,
    miss: impl FnOnce() -> usize,
) -> usize {
    if length > LONGEST {
        return miss();
    }
    let word = long_word(bytes, start, length);
    let Some(bucket) = known.get_mut(place(word)) else { return miss() };
    if holds_long(bucket) && bucket[0] == word[0] && bucket[1] << 8 == word[1] << 8 {
        return (bucket[1] >> 120) as usize;
    }
    let tokens = miss();
    if let Ok(small) = u8::try_from(tokens) {
        *bucket = [word[0], word[1] | u128::from(small) << 120];
    }
    tokens
}

#[inline]
fn holds_long(bucket: &WordBucket) -> bool {
    (bucket[1] >> 112) as u8 > SHORT as u8
}

/// The bytes of a half up to a length, and that length; by length.
static SHORT_WORDS: [(u128, u128); SHORT + 1] = {
    let mut words = [(0, 0); SHORT + 1];
    let mut length = 0;
    while length <= SHORT {
        words[length] = ((1 << (8 * length)) - 1, (length as u128) << 112);
        length += 1;
    }
    words
};

/// What a bucket holds of a short word, without the count.
#[inline]
fn short_word(bytes: &[u8], start: usize, length: usize) -> u128 {
    let half = match bytes.get(start..start + 16).and_then(|half| <[u8; 16]>::try_from(half).ok()) {
        Some(half) => u128::from_le_bytes(half),
        None => long_word(bytes, start, length)[0],
    };
    let (mask, tag) = SHORT_WORDS[length];
    half & mask | tag
}

/// What a bucket holds of a longer word, without the count.
fn long_word(bytes: &[u8], start: usize, length: usize) -> WordBucket {
    let mut padded = [0; 32];
    padded[..length].copy_from_slice(&bytes[start..start + length]);
    let [low, high] = halves(padded);
    [low, high | (length as u128) << 112]
}

#[inline]
fn halves(bytes: [u8; 32]) -> WordBucket {
    let wide = |from: usize| {
        let mut half = [0; 16];
        half.copy_from_slice(&bytes[from..from + 16]);
        u128::from_le_bytes(half)
    };
    [wide(0), wide(16)]
}

#[inline]
fn place([low, high]: WordBucket) -> usize {
    let hash = (low as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        ^ ((low >> 64) as u64).wrapping_mul(0xD6E8_FEB8_6659_FD93)
        ^ (high as u64).wrapping_mul(0xC2B2_AE3D_27D4_EB4F)
        ^ ((high >> 64) as u64).wrapping_mul(0x1656_67B1_9E37_79F9);
    (hash >> (64 - BUCKETS_LOG2)) as usize
}
