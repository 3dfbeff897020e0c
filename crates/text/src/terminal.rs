//! Text as a terminal shows it: without the codes for colours and for the cursor that programs write into it. Links stay:
//! their addresses are shown nowhere else.
//!
//! Knows codes and positions; does not know what a text is.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::pattern::pattern;

/// The byte that begins every code.
const ESCAPE: u8 = 0x1B;

/// Control sequences and short escapes of ECMA-48 and ECMA-35, such as those of `tput sgr0`.
static CODE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\x1B(?:\[[0-?]*[ -/]*[@-~]|[()*+][0-9A-Z]|[78=>DEHMNOZc])"));

/// A text without terminal codes, and where they were.
#[derive(Debug)]
pub struct PlainText {
    /// The text.
    pub text: String,
    codes: Vec<Code>,
}

/// A code that was left out.
#[derive(Debug)]
struct Code {
    /// Where it was, in the plain text.
    at: usize,
    /// The bytes of all codes up to the end of this one.
    bytes: usize,
}

impl PlainText {
    /// The text without its codes; `None` if it has none.
    pub fn of(text: &str) -> Option<Self> {
        memchr::memchr(ESCAPE, text.as_bytes())?;
        let mut plain = Self { text: String::new(), codes: Vec::new() };
        let mut from = 0;
        for code in CODE.find_iter(text) {
            plain.text.push_str(&text[from..code.start()]);
            from = code.end();
            plain.codes.push(Code { at: plain.text.len(), bytes: from - plain.text.len() });
        }
        if plain.codes.is_empty() {
            return None;
        }
        plain.text.push_str(&text[from..]);
        Some(plain)
    }

    /// The position in the original of `at`, before the codes that stand there. Those at the end belong to the last line.
    pub fn in_original(&self, at: usize) -> usize {
        let is_end = at == self.text.len() && !self.text.ends_with('\n');
        let codes = self.codes.partition_point(|code| code.at < at || is_end);
        at + self.bytes_of(codes)
    }

    /// The plain bytes of a range of the original.
    pub fn in_plain(&self, original: &Range<usize>) -> Range<usize> {
        let plain = |at: usize| {
            let codes = self.codes.partition_point(|code| code.at + code.bytes <= at);
            let next = self.codes.get(codes).map_or(self.text.len(), |code| code.at);
            (at - self.bytes_of(codes)).min(next)
        };
        plain(original.start)..plain(original.end)
    }

    /// The bytes of the first `codes` codes.
    fn bytes_of(&self, codes: usize) -> usize {
        codes.checked_sub(1).map_or(0, |last| self.codes[last].bytes)
    }
}

/// `text` as a terminal shows it, without codes for colours and the cursor.
pub fn without_terminal_codes(text: &str) -> Cow<'_, str> {
    PlainText::of(text).map_or(Cow::Borrowed(text), |plain| Cow::Owned(plain.text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn codes_for_colours_and_the_cursor_are_left_out() {
        for (text, plain) in [
            ("\x1B[1;31mFAILED\x1B[0m x", "FAILED x"),
            ("\x1B[2K\x1B[1Gdone", "done"),
            ("\x1B(B\x1B[mok\x1B7", "ok"),
            (
                "\x1B]8;;https://example.org\x07here\x1B]8;;\x07.",
                "\x1B]8;;https://example.org\x07here\x1B]8;;\x07.",
            ),
            ("a[31m b", "a[31m b"),
            ("\x1B[31", "\x1B[31"),
        ] {
            assert_eq!(without_terminal_codes(text), plain);
        }
    }

    proptest! {
        #[test]
        fn positions_are_those_of_the_same_characters(pieces in prop::collection::vec((any::<bool>(), "[a-zé]{0,3}"), 0..12)) {
            let piece = |(code, text): &(bool, String)| if *code { format!("\x1B[3{}m{text}", text.len()) } else { text.clone() };
            let text: String = pieces.iter().map(piece).collect();
            let Some(plain) = PlainText::of(&text) else { return Ok(()) };
            prop_assert_eq!((plain.in_original(0) == 0 || plain.text.is_empty(), plain.in_original(plain.text.len())), (true, text.len()));
            for (at, c) in plain.text.char_indices() {
                let end = plain.in_original(at + c.len_utf8());
                prop_assert!(text[..end].ends_with(c) || end == text.len());
                prop_assert_eq!(plain.in_plain(&(plain.in_original(at)..end)), at..at + c.len_utf8());
            }
            for at in 0..=text.len() {
                let range = plain.in_plain(&(at..text.len()));
                prop_assert!(range.start <= range.end && range.end == plain.text.len());
            }
        }
    }
}
