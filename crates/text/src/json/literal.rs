//! String literals: where they end, decoding and encoding. Knows no other values.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use super::blocks::{BLOCK, Block};

/// The text of a string literal, quotes included. Half of a surrogate pair, which no text can hold, stays as its escape,
/// spelled out: tools that cut text by UTF-16 units leave such halves behind, and nothing of the text may get lost.
pub fn decode(literal: &str) -> Cow<'_, str> {
    let inner = literal.get(1..literal.len().saturating_sub(1)).unwrap_or_default();
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Cow::Borrowed(inner);
    }
    // No escape is shorter than the text it encodes, so writing never overtakes reading.
    let mut text = vec![0; inner.len()];
    let length = unescaped(inner, &mut text);
    text.truncate(length);
    // Only whole characters are copied or written, so no byte is replaced here.
    Cow::Owned(
        String::from_utf8(text).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into()),
    )
}

/// Decodes the content of a literal into `text`, which is as long, and returns the number of bytes written.
fn unescaped(inner: &str, text: &mut [u8]) -> usize {
    let bytes = inner.as_bytes();
    // Up to where is read, and written.
    let (mut at, mut to) = (0, 0);
    let mut start = 0;
    while let Some(block) = bytes.get(start..).and_then(<[u8]>::first_chunk) {
        let mut backslashes = Block::new(block).equal(b'\\');
        while backslashes != 0 {
            let backslash = start + backslashes.trailing_zeros() as usize;
            // Without the lowest bit.
            backslashes &= backslashes - 1;
            // The one before has escaped this one.
            if backslash < at {
                continue;
            }
            to = copy_run(bytes, at..backslash, text, to);
            (at, to) = unescape_at(inner, backslash, text, to);
        }
        start += BLOCK;
    }
    while let Some(run) = memchr::memchr(b'\\', &bytes[at..]) {
        to = copy_run(bytes, at..at + run, text, to);
        (at, to) = unescape_at(inner, at + run, text, to);
    }
    copy_run(bytes, at..bytes.len(), text, to)
}

/// Copies a range of `bytes` to `text` and returns the offset after it. Most runs are short, and copying a fixed number of
/// bytes takes no call.
fn copy_run(bytes: &[u8], run: Range<usize>, text: &mut [u8], to: usize) -> usize {
    const SHORT: usize = 16;
    let end = to + run.len();
    match (bytes[run.start..].first_chunk::<SHORT>(), text[to..].first_chunk_mut::<SHORT>()) {
        (Some(from), Some(to)) if run.len() <= SHORT => *to = *from,
        _ => text[to..end].copy_from_slice(&bytes[run]),
    }
    end
}

/// Decodes the escape at `at` and returns the offsets after it in both texts.
fn unescape_at(inner: &str, at: usize, text: &mut [u8], to: usize) -> (usize, usize) {
    // By far the most common escape.
    if inner.as_bytes().get(at + 1) == Some(&b'"') {
        text[to] = b'"';
        return (at + 2, to + 1);
    }
    let (length, char) = unescape(&inner[at..]);
    let written = match char {
        Some(char) => char.encode_utf8(&mut text[to..]).len(),
        None => {
            text[to..to + length].copy_from_slice(&inner.as_bytes()[at..at + length]);
            length
        }
    };
    (at + length, to + written)
}

const LOWEST_BITS: u64 = u64::from_ne_bytes([1; 8]);
const HIGHEST_BITS: u64 = LOWEST_BITS << 7;

/// Non-zero if one of eight bytes equals `byte`.
const fn equal(eight: [u8; 8], byte: u8) -> u64 {
    let zeros = u64::from_le_bytes(eight) ^ (LOWEST_BITS * byte as u64);
    zeros.wrapping_sub(LOWEST_BITS) & !zeros & HIGHEST_BITS
}

/// The offset after the quote that closes a string, if there is one; escapes are skipped without validation. Most
/// strings are short, so eight bytes are examined at once.
pub(super) fn end_of_string(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let signs = equal(*eight, b'"') | equal(*eight, b'\\');
        if signs == 0 {
            at += eight.len();
            continue;
        }
        at += before(signs) + 1;
        if bytes[at - 1] == b'"' {
            return Some(at);
        }
        at += 1;
    }
    while let Some(&byte) = bytes.get(at) {
        at += if byte == b'\\' { 2 } else { 1 };
        if byte == b'"' {
            return Some(at);
        }
    }
    None
}

/// The number of bytes before the first match; later matches may be false positives.
pub(super) const fn before(found: u64) -> usize {
    found.trailing_zeros() as usize / 8
}

/// Non-zero if one of eight bytes ends a string literal, starts an escape, or is a control character.
pub(super) const fn special(eight: [u8; 8]) -> u64 {
    let bytes = u64::from_le_bytes(eight);
    let control = bytes.wrapping_sub(LOWEST_BITS * b' ' as u64) & !bytes & HIGHEST_BITS;
    equal(eight, b'"') | equal(eight, b'\\') | control
}

/// The length of the escape at the start of `text` and the character it encodes; `None` for an unpaired surrogate.
fn unescape(text: &str) -> (usize, Option<char>) {
    let plain = match text.as_bytes().get(1) {
        Some(byte @ (b'"' | b'\\' | b'/')) => char::from(*byte),
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'u') => {
            return match (unit(text), text.get(6..).and_then(unit)) {
                (Some(high @ 0xd800..0xdc00), Some(low @ 0xdc00..0xe000)) => {
                    (12, char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)))
                }
                (Some(unit), _) => (6, char::from_u32(unit)),
                (None, _) => (1, None),
            };
        }
        _ => return (1, None),
    };
    (2, Some(plain))
}

/// The UTF-16 code unit that `\uXXXX` at the start of `text` encodes.
fn unit(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

/// Whether a literal, quotes included, decodes to this text.
pub(super) fn literal_is(literal: &str, text: &str) -> bool {
    let inner = literal.as_bytes().get(1..literal.len().saturating_sub(1)).unwrap_or_default();
    inner == text.as_bytes() || memchr::memchr(b'\\', inner).is_some() && decode(literal) == text
}

/// Where the longest string literal of a JSON text is, quotes included.
pub fn longest_literal(json: &str) -> Option<Range<usize>> {
    let mut longest: Option<Range<usize>> = None;
    let mut at = 0;
    while let Some(quote) = memchr::memchr(b'"', json.as_bytes().get(at..)?) {
        let Some(end) = end_of_string(json.as_bytes(), at + quote + 1) else { break };
        if longest.as_ref().is_none_or(|longest| longest.len() < end - (at + quote)) {
            longest = Some(at + quote..end);
        }
        at = end;
    }
    longest
}

/// Whether a literal is as short as its text can be written, with the escapes that `serde_json` and `JSON.stringify` use:
/// encoding its text as they do gives the literal again.
pub fn is_shortest(literal: &str) -> bool {
    let bytes = literal.get(1..literal.len().saturating_sub(1)).unwrap_or_default().as_bytes();
    // After the last escape, and after the last block.
    let (mut at, mut start) = (0, 0);
    while let Some(block) = bytes.get(start..).and_then(<[u8]>::first_chunk) {
        let block = Block::new(block);
        if block.controls() != 0 {
            return false;
        }
        let mut backslashes = block.equal(b'\\');
        while backslashes != 0 {
            let backslash = start + backslashes.trailing_zeros() as usize;
            // Without the lowest bit.
            backslashes &= backslashes - 1;
            // The one before has escaped this one.
            if backslash < at {
                continue;
            }
            match shortest_escape(&bytes[backslash + 1..]) {
                Some(length) => at = backslash + length,
                None => return false,
            }
        }
        start += BLOCK;
    }
    at = at.max(start);
    while let Some(byte) = bytes.get(at) {
        at += match byte {
            b'\\' => match shortest_escape(&bytes[at + 1..]) {
                Some(length) => length,
                None => return false,
            },
            0..b' ' => return false,
            _ => 1,
        };
    }
    true
}

/// The length of an escape whose backslash has been read, if no other is as short.
fn shortest_escape(rest: &[u8]) -> Option<usize> {
    match rest {
        [b'"' | b'\\' | b'n' | b'r' | b't' | b'b' | b'f', ..] => Some(2),
        [b'u', b'0', b'0', b'0', b'0'..=b'7' | b'b' | b'e' | b'f', ..]
        | [b'u', b'0', b'0', b'1', b'0'..=b'9' | b'a'..=b'f', ..] => Some(6),
        _ => None,
    }
}

/// `raw` without its surrounding quotes, if it has both.
pub fn unquoted(raw: &str) -> &str {
    raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(raw)
}

/// Appends `text` as a string literal, quotes included.
pub fn encode(text: &str, out: &mut String) {
    out.push('"');
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..b' ' => "",
            _ => continue,
        };
        out.push_str(&text[from..at]);
        out.push_str(escape);
        if escape.is_empty() {
            // Writing into a string cannot fail.
            let _ = write!(out, "\\u{byte:04x}");
        }
        from = at + 1;
    }
    out.push_str(&text[from..]);
    out.push('"');
}

/// `text` as a string literal.
pub fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    encode(text, &mut out);
    out
}

/// The text, and after it the same with what JSON escapes in a string written out.
pub fn with_escapes_written_out(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() * 2 + 1);
    out.extend([text, "\n"]);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some(other) => out.push(other),
                None => {}
            },
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}
