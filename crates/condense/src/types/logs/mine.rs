//! Mines templates: which records differ only in values.
//!
//! Every line becomes a sequence of words and signs in which all values are one sign: words with a digit, paths,
//! dotted names, hexadecimal bytes. Records with the same sequence share a template, as do those that differ in a
//! single plain word that takes many forms. Different failures never do (`blocks::identity`). Knows bytes; does not know any
//! log format. One pass over the text and one over the words of distinct templates.

use std::ops::Range;

use hashbrown::HashMap;
use xxhash_rust::xxh3::xxh3_64;

use super::blocks::identity;
use larder_text::pattern::byte_set;

/// From this many forms on, a word at one position of otherwise equal lines counts as a value.
const FORMS_OF_A_VALUE: usize = 12;
/// Maximum number of leading words examined for that.
const MAX_PLACES: usize = 96;
/// Maximum words and signs of an aside such as `(1.2 KB)`, and maximum letters of its words.
const LONGEST_ASIDE: usize = 5;
const LONGEST_UNIT_NAME: usize = 3;

/// The signs for any value, for white space, and for a word with many forms.
const VALUE: u64 = 0x9e37_79b9_7f4a_7c15;
const SPACE: u64 = 32;
const HOLE: u64 = 0xc2b2_ae3d_27d4_eb4f;

/// The templates of a text, in order of first appearance.
#[derive(Debug)]
pub(super) struct Templates {
    /// The template of each record.
    pub(super) of: Vec<usize>,
    /// The number of records of each template.
    pub(super) counts: Vec<usize>,
    /// The hashed plain words of each template.
    pub(super) words: Vec<Vec<u64>>,
}

impl Templates {
    /// The templates of `records`, of which those that `failed` contain an error line.
    pub(super) fn mine(text: &str, records: &[Range<usize>], failed: &[bool]) -> Self {
        let mut ids: HashMap<u64, usize> = HashMap::new();
        let mut shapes: Vec<Vec<Word>> = Vec::new();
        let mut shape = Vec::new();
        let of: Vec<usize> = records
            .iter()
            .zip(failed)
            .map(|(record, &failed)| {
                let mut key = shape_of(&text.as_bytes()[record.clone()], &mut shape);
                if failed && let Some(identity) = identity(&text[record.clone()]) {
                    key = (key ^ identity).wrapping_mul(VALUE).rotate_left(23);
                    shape.push(Word::sign(identity));
                }
                *ids.entry(key).or_insert_with(|| {
                    shapes.push(shape.clone());
                    shapes.len() - 1
                })
            })
            .collect();
        Self::renumbered(&of, &merged(&shapes), &shapes)
    }

    /// Numbers templates by first appearance after merging shapes according to `merged`.
    fn renumbered(of: &[usize], merged: &[usize], shapes: &[Vec<Word>]) -> Self {
        let mut numbers = vec![usize::MAX; shapes.len()];
        let (mut counts, mut words) = (Vec::new(), Vec::new());
        let of = of
            .iter()
            .map(|&shape| {
                let number = &mut numbers[merged[shape]];
                if *number == usize::MAX {
                    *number = counts.len();
                    counts.push(0);
                    words
                        .push(shapes[shape].iter().filter(|word| word.plain).map(|word| word.hash).collect());
                }
                counts[*number] += 1;
                *number
            })
            .collect();
        Self { of, counts, words }
    }
}

/// A word or sign of a template.
#[derive(Debug, Clone, Copy)]
struct Word {
    hash: u64,
    /// Consists of letters and is not a value.
    plain: bool,
    /// Short enough to be a unit.
    short: bool,
}

impl Word {
    const fn sign(hash: u64) -> Self {
        Self { hash, plain: false, short: false }
    }
}

/// Fills `shape` with the words of the first line and returns the key of the whole record, in which lines that repeat
/// the shape of the previous line, such as stack frames, count once.
fn shape_of(record: &[u8], shape: &mut Vec<Word>) -> u64 {
    let mut lines = record.split(|&byte| byte == b'\n');
    read_line(lines.next().unwrap_or_default(), shape);
    let mut key = hash_of(shape);
    let (mut rest, mut last) = (Vec::new(), 0);
    for line in lines.map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()) {
        read_line(line, &mut rest);
        let next = hash_of(&rest);
        if next != last {
            key = (key ^ next).wrapping_mul(VALUE).rotate_left(23);
        }
        last = next;
    }
    if last != 0 {
        shape.push(Word::sign(key));
    }
    key
}

fn hash_of(shape: &[Word]) -> u64 {
    shape.iter().enumerate().fold(1, |sum: u64, (at, word)| sum.wrapping_add(placed(word.hash, at)))
}

/// A word's contribution to the hash of its template. Contributions are summed, so one can be exchanged without
/// rehashing.
fn placed(hash: u64, at: usize) -> u64 {
    let mixed = (hash ^ (at as u64).wrapping_mul(VALUE)).wrapping_mul(HOLE);
    (mixed ^ mixed >> 29).wrapping_mul(VALUE)
}

fn read_line(line: &[u8], shape: &mut Vec<Word>) {
    shape.clear();
    let line = line.trim_ascii_end();
    let mut at = 0;
    while at < line.len() {
        let run = |of: fn(u8) -> bool| line[at..].iter().take_while(|&&byte| of(byte)).count();
        match line[at] {
            byte if is_space(byte) => {
                at += run(is_space);
                if shape.last().is_none_or(|last| last.hash != SPACE) {
                    shape.push(Word::sign(SPACE));
                }
            }
            byte if is_sign(byte) => {
                at += 1;
                shape.push(Word::sign(u64::from(byte)));
                if byte == b')' {
                    drop_aside(shape);
                }
            }
            _ => {
                let len = run(|byte| !is_space(byte) && !is_sign(byte));
                push_word(line, at..at + len, shape);
                at += len;
            }
        }
    }
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0
}

fn is_sign(byte: u8) -> bool {
    const SIGN: [bool; 256] = byte_set(b"=:,;()[]{}<>\"'|");
    SIGN[usize::from(byte)]
}

fn push_word(line: &[u8], range: Range<usize>, shape: &mut Vec<Word>) {
    let word = &line[range.clone()];
    if !is_value(word) && !is_hex_byte(line, &range) {
        let short = word.len() <= LONGEST_UNIT_NAME && word.iter().all(u8::is_ascii_alphabetic);
        let plain =
            word[0].is_ascii_alphabetic() || !word[0].is_ascii() || matches!(word[0], b'_' | b'-' | b'*');
        return shape.push(Word { hash: xxh3_64(word), plain, short });
    }
    // Any number of consecutive values is one: `1 2 3`, `10:20:30`.
    if let [.., before, between] = shape[..]
        && before.hash == VALUE
        && joins_values(between.hash)
    {
        shape.pop();
    } else if shape.last().is_none_or(|last| last.hash != VALUE) {
        shape.push(Word::sign(VALUE));
    }
}

fn joins_values(sign: u64) -> bool {
    [SPACE, u64::from(b','), u64::from(b':'), u64::from(b'|'), u64::from(b'=')].contains(&sign)
}

/// A digit anywhere, a path, or a dotted name.
fn is_value(word: &[u8]) -> bool {
    let mut before = b' ';
    let mut dotted = false;
    for &byte in word {
        if byte.is_ascii_digit() || matches!(byte, b'/' | b'\\') && word.len() > 1 {
            return true;
        }
        dotted |= before == b'.' && is_name(byte);
        before = if byte == b'.' && !is_name(before) && before != b'.' { b' ' } else { byte };
    }
    dotted && is_name(word[0])
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii() || byte == b'_'
}

/// Two hexadecimal digits next to a colon, as in hardware addresses.
fn is_hex_byte(line: &[u8], range: &Range<usize>) -> bool {
    let colon = |at: Option<usize>| at.and_then(|at| line.get(at)) == Some(&b':');
    range.len() == 2
        && line[range.clone()].iter().all(u8::is_ascii_hexdigit)
        && (colon(range.start.checked_sub(1)) || colon(Some(range.end)))
}

/// Removes a trailing bracketed value with its unit, which is optional.
fn drop_aside(shape: &mut Vec<Word>) {
    let inner = shape.len() - 1;
    let from = inner.saturating_sub(LONGEST_ASIDE - 1);
    let Some(open) = shape[from..inner].iter().rposition(|word| word.hash == u64::from(b'(')) else { return };
    let open = from + open;
    let aside = &shape[open + 1..inner];
    let value = aside.iter().position(|word| word.hash == VALUE);
    let is_aside = value.is_some_and(|value| {
        aside
            .iter()
            .enumerate()
            .all(|(at, word)| word.hash == VALUE || word.hash == SPACE || word.short && at > value)
    });
    if is_aside {
        shape.truncate(open);
    }
}

/// For every distinct shape, the shape it is merged into, which may be itself.
fn merged(shapes: &[Vec<Word>]) -> Vec<usize> {
    let own = || (0..shapes.len()).collect();
    if shapes.len() < FORMS_OF_A_VALUE {
        return own();
    }
    let mut forms: HashMap<u64, (usize, usize)> = HashMap::new();
    for (index, shape) in shapes.iter().enumerate() {
        for key in holes(shape) {
            forms.entry(key).or_insert((0, index)).0 += 1;
        }
    }
    let mut merged: Vec<usize> = own();
    for (index, shape) in shapes.iter().enumerate() {
        let most = holes(shape)
            .map(|key| forms[&key])
            .reduce(|best, next| if next.0 > best.0 { next } else { best });
        if let Some((count, first)) = most
            && count >= FORMS_OF_A_VALUE
        {
            // The first may have joined another group already, which then becomes this one's too.
            merged[index] = merged[first];
        }
    }
    merged
}

/// The keys of the shape with one plain word removed at a time.
fn holes(shape: &[Word]) -> impl Iterator<Item = u64> + use<'_> {
    let whole = hash_of(shape);
    let plain = |&(_, word): &(usize, &Word)| word.plain;
    shape
        .iter()
        .enumerate()
        .take(MAX_PLACES)
        .filter(plain)
        .map(move |(at, word)| whole.wrapping_sub(placed(word.hash, at)).wrapping_add(placed(HOLE, at)))
}
