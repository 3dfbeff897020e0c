//! Splits a text into the pieces that are encoded separately, as the patterns of cl100k_base and o200k_base do. Knows
//! character classes, no tokens.
//!
//! Both patterns are written out by hand: compiling and warming up an automaton for them takes longer than counting a
//! book.

/// In the classes [`Lu`, `Lt`, `Lm`, `Lo`, `M`], with which a word of o200k_base starts.
pub(super) const HEAD: u8 = 1;
/// In the classes [`Ll`, `Lm`, `Lo`, `M`], with which it continues.
pub(super) const TAIL: u8 = 2;
/// `\p{L}`.
pub(super) const LETTER: u8 = 4;
/// `\p{N}`.
pub(super) const NUMBER: u8 = 8;
/// `\s`.
pub(super) const SPACE: u8 = 16;
/// `[\r\n]`.
pub(super) const BREAK: u8 = 32;

/// Characters per block of the class table.
pub(super) const BLOCK: usize = 128;
/// Blocks of the class table, each stored as the number of a distinct block.
pub(super) const BLOCKS: usize = 0x11_0000 / BLOCK;

/// The class of each character, as written by this crate's build script.
#[derive(Clone, Copy)]
pub(super) struct Classes<'a> {
    blocks: &'a [u8],
    classes: &'a [u8],
}

/// The pattern of a vocabulary.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pattern {
    /// `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*`, then white space.
    Cl100k,
    /// Words restart at a capital, a contraction belongs to its word, and `/` may follow punctuation as line breaks
    /// do.
    O200k,
}

impl<'a> Classes<'a> {
    /// Reads the build script's output.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (blocks, classes) = bytes.split_at_checked(BLOCKS)?;
        Some(Self { blocks, classes })
    }

    /// Class and length of the character at `at`; both 0 at the end.
    #[inline]
    fn at(self, text: &[u8], at: usize) -> (u8, usize) {
        let Some(&first) = text.get(at) else { return (0, 0) };
        if first < 0x80 {
            return (self.of(u32::from(first)), 1);
        }
        let next = |n: usize| u32::from(text.get(at + n).copied().unwrap_or(0) & 0x3F);
        let first = u32::from(first);
        match first {
            0xF0.. => (self.of((first & 7) << 18 | next(1) << 12 | next(2) << 6 | next(3)), 4),
            0xE0.. => (self.of((first & 15) << 12 | next(1) << 6 | next(2)), 3),
            _ => (self.of((first & 31) << 6 | next(1)), 2),
        }
    }

    #[inline]
    fn of(self, code: u32) -> u8 {
        let code = code as usize;
        let block = self.blocks.get(code / BLOCK).map_or(0, |&block| usize::from(block));
        self.classes.get(block * BLOCK + code % BLOCK).copied().unwrap_or(0)
    }

    /// The end of the run of characters from `at` that have any of the classes `any`.
    #[inline]
    fn run(self, text: &[u8], mut at: usize, any: u8) -> usize {
        loop {
            let (class, length) = self.at(text, at);
            if class & any == 0 {
                return at;
            }
            at += length;
        }
    }

    /// The end of the first piece of `text`, which must not be empty.
    #[inline]
    pub(super) fn first_piece(self, text: &str, pattern: Pattern) -> usize {
        let text = text.as_bytes();
        let (first, length) = self.at(text, 0);
        let may_lead = first & (BREAK | LETTER | NUMBER) == 0;
        let word = match pattern {
            Pattern::Cl100k => {
                if let Some(end) = contraction(text, 0) {
                    return end;
                }
                let start = if may_lead { length } else { 0 };
                Some(self.run(text, start, LETTER)).filter(|&end| end > start)
            }
            Pattern::O200k => self
                .cased_word(text, first, if may_lead { length } else { 0 })
                .map(|end| contraction(text, end).unwrap_or(end)),
        };
        word.unwrap_or_else(|| self.other(text, first, length, pattern))
    }

    /// The end of a word of o200k_base whose letters start at `start`, which is 0 or follows a character of class
    /// `lead`: capitals followed by small letters, or capitals alone. Caseless letters and marks count as either.
    #[inline]
    fn cased_word(self, text: &[u8], lead: u8, start: usize) -> Option<usize> {
        let (mut at, mut last_tail) = (start, None);
        loop {
            let (class, length) = self.at(text, at);
            if class & HEAD == 0 {
                if class & TAIL != 0 {
                    return Some(self.run(text, at, TAIL));
                }
                break;
            }
            at += length;
            if class & TAIL != 0 {
                last_tail = Some(at);
            }
        }
        // A mark that is not followed by a small letter is a word of its own.
        let mark = (start > 0 && lead & TAIL != 0).then_some(start);
        last_tail.or(mark).or((at > start).then_some(at))
    }

    /// The end of a piece that is not a word: up to three digits, punctuation and the breaks after it, or white
    /// space.
    fn other(self, text: &[u8], first: u8, length: usize, pattern: Pattern) -> usize {
        if first & NUMBER != 0 {
            let mut end = length;
            for _ in 0..2 {
                let (class, length) = self.at(text, end);
                end += if class & NUMBER != 0 { length } else { 0 };
            }
            return end;
        }
        let signs = if text.first() == Some(&b' ') { 1 } else { 0 };
        let mut end = signs;
        loop {
            let (class, length) = self.at(text, end);
            if length == 0 || class & (SPACE | LETTER | NUMBER) != 0 {
                break;
            }
            end += length;
        }
        if end > signs {
            let follows = |&&byte: &&u8| {
                matches!(byte, b'\r' | b'\n') || (byte == b'/' && matches!(pattern, Pattern::O200k))
            };
            return end + text.iter().skip(end).take_while(follows).count();
        }
        self.white(text, first, length)
    }

    /// The end of white space: after its last break, otherwise before its last character if anything follows.
    fn white(self, text: &[u8], first: u8, length: usize) -> usize {
        let mut after_break = (first & BREAK != 0).then_some(length);
        let (mut last, mut end) = (0, length);
        loop {
            let (class, length) = self.at(text, end);
            if class & SPACE == 0 {
                break;
            }
            (last, end) = (end, end + length);
            if class & BREAK != 0 {
                after_break = Some(end);
            }
        }
        after_break.unwrap_or(if last > 0 && end < text.len() { last } else { end })
    }
}

/// The end of `'s`, `'t`, `'re`, `'ve`, `'m`, `'ll` or `'d` in either case at `at`. The long s counts as an s.
#[inline]
fn contraction(text: &[u8], at: usize) -> Option<usize> {
    if text.get(at) != Some(&b'\'') {
        return None;
    }
    let next = |n: usize| text.get(at + n).copied().unwrap_or(0);
    match (next(1).to_ascii_lowercase(), next(2).to_ascii_lowercase()) {
        (b's' | b't' | b'm' | b'd', _) => Some(at + 2),
        (b'r' | b'v', b'e') | (b'l', b'l') => Some(at + 3),
        (0xC5, _) if next(2) == 0xBF => Some(at + 3),
        _ => None,
    }
}
