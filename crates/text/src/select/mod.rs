//! Selects parts of a content: lines, bytes, matching lines, JSON values. Pure; knows nothing of where the bytes are
//! stored.

mod cut;
mod json;

use std::ops::Range;

use crate::pointer::Fragment;
use crate::terminal::without_terminal_codes;
pub use cut::Cutter;
use cut::cut;
use regex::bytes::{Regex, RegexBuilder};

use json::JsonQuery;

/// The longest pattern or path, in bytes.
const MAX_QUERY_BYTES: usize = 1_024;
/// The bytes above which a line that matches is shown in passages.
const LONG_LINE: usize = 2_000;
/// The bytes of a passage on each side of a match.
const AROUND: usize = 200;
/// Maximum size of a compiled pattern in bytes, which bounds the cost per byte of content.
const MAX_PATTERN_SIZE: usize = 1 << 20;

/// Why a part of a content cannot be returned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectError {
    /// The requested lines are outside the content.
    #[error(
        "lines {first} to {last}: outside the content, which has {lines} lines; ask for lines within 1:{lines}"
    )]
    LinesOutOfRange {
        /// The first requested line, from 1.
        first: usize,
        /// The last requested line.
        last: usize,
        /// How many there are.
        lines: usize,
    },
    /// The requested bytes are outside the content.
    #[error(
        "bytes {start} to {end}: outside the content, which has {bytes} bytes; ask for bytes within 0:{bytes}"
    )]
    BytesOutOfRange {
        /// The first requested byte, from 0.
        start: usize,
        /// One past the last byte asked for.
        end: usize,
        /// How many there are.
        bytes: usize,
    },
    /// The text is not a range.
    #[error("range {text:?}: expected {expected}")]
    BadRange {
        /// The text, shortened.
        text: String,
        /// The expected form of a range.
        expected: &'static str,
    },
    /// The pattern cannot be searched for.
    #[error("pattern: {reason}")]
    BadPattern {
        /// What is wrong with it.
        reason: String,
    },
    /// The path cannot be followed.
    #[error("path {path:?}: {reason}")]
    BadPath {
        /// The path, shortened.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A path was given, but the content is not JSON.
    #[error("the content cannot be read as JSON ({reason}); use lines, bytes or a pattern instead of a path")]
    NotJson {
        /// What is wrong with it, and where.
        reason: String,
    },
    /// Nothing matches the path.
    #[error("path {path:?}: nothing in the content matches")]
    NothingThere {
        /// The path, shortened.
        path: String,
    },
}

/// A validated request, from a person or a model, for a part of a content.
#[derive(Debug, Clone)]
pub struct Selection(SelectionKind);

#[derive(Debug, Clone)]
enum SelectionKind {
    Part(Fragment),
    Grep(Regex),
    Path(JsonQuery),
}

impl Selection {
    /// Lines `a:b` or `a-b`, counted from 1, both included, or line `a` alone; each with its line break.
    pub fn lines(range: &str) -> Result<Self, SelectError> {
        match parse_range(range).or_else(|| parse_number(range).map(|line| (line, line))) {
            Some((first, last)) if 1 <= first && first <= last => {
                Ok(Self(SelectionKind::Part(Fragment::Lines { first, last })))
            }
            _ => Err(bad_range(
                range,
                "first:last, such as 1:40 or 1-40, or a line, such as 7 (lines counted from 1, both included)",
            )),
        }
    }

    /// Bytes `a:b` or `a-b`, counted from 0, the end excluded.
    pub fn bytes(range: &str) -> Result<Self, SelectError> {
        match parse_range(range) {
            Some((start, end)) if start <= end => {
                Ok(Self(SelectionKind::Part(Fragment::Bytes { start, end })))
            }
            _ => Err(bad_range(
                range,
                "start:end, such as 0:1024 or 0-1024 (bytes counted from 0, the end excluded)",
            )),
        }
    }

    /// The lines that a regular expression (syntax of the crate `regex`) matches; may be none. Takes time linear in
    /// the content.
    pub fn grep(pattern: &str) -> Result<Self, SelectError> {
        if pattern.len() > MAX_QUERY_BYTES {
            let reason = format!("{} bytes long, and at most {MAX_QUERY_BYTES} are taken", pattern.len());
            return Err(SelectError::BadPattern { reason });
        }
        let built = RegexBuilder::new(pattern).size_limit(MAX_PATTERN_SIZE).build();
        built
            .map(|regex| Self(SelectionKind::Grep(regex)))
            .map_err(|error| SelectError::BadPattern { reason: error.to_string() })
    }

    /// The value at a JSON pointer (if it starts with `/`) or a JSONPath (RFC 9535), as its original bytes; if a path
    /// matches several values, a JSON array of them. The content is JSON, JSON Lines, or text of which some lines are the
    /// only object or array.
    pub fn path(path: &str) -> Result<Self, SelectError> {
        JsonQuery::parse(path).map(|query| Self(SelectionKind::Path(query)))
    }

    /// The ranges of the part in a content in memory: one for a fragment, one for each matching line or value of a path.
    pub fn find(&self, content: &[u8]) -> Result<Vec<Range<usize>>, SelectError> {
        match &self.0 {
            SelectionKind::Part(Fragment::Bytes { start, end }) => {
                cut(content, Fragment::Bytes { start: *start, end: *end })?;
                Ok(std::iter::once(*start..*end).collect())
            }
            SelectionKind::Part(fragment @ Fragment::Lines { first, .. }) => {
                let len = cut(content, *fragment)?.len();
                let before = lines(content).take(first.saturating_sub(1)).last();
                let start = before.map_or(0, |line| line.end);
                Ok(std::iter::once(start..start + len).collect())
            }
            SelectionKind::Grep(regex) => {
                let fits =
                    |line: &Range<usize>| content.get(line.clone()).is_some_and(|line| matches(line, regex));
                Ok(lines(content).filter(fits).collect())
            }
            SelectionKind::Path(query) => query.find(content),
        }
    }

    /// For a pattern that matches in very long lines, such as those of JSON without line breaks: the passages around its
    /// matches, and the other matching lines whole; `None` if all matching lines are short, or no pattern was requested.
    pub fn passages(&self, content: &[u8]) -> Option<Vec<Range<usize>>> {
        let SelectionKind::Grep(regex) = &self.0 else { return None };
        let found = self.find(content).ok()?;
        if found.iter().all(|line| line.len() <= LONG_LINE) {
            return None;
        }
        let mut passages: Vec<Range<usize>> = Vec::new();
        for line in found {
            if line.len() <= LONG_LINE {
                passages.push(line);
                continue;
            }
            let from = passages.len();
            let text = without_break(content.get(line.clone())?);
            let mut hits = regex.find_iter(text).filter(|hit| !hit.is_empty()).peekable();
            // `x*` also matches nothing at every byte; where it matches nothing else, the first place represents the line.
            let empty = if hits.peek().is_none() { regex.find(text) } else { None };
            for hit in hits.chain(empty) {
                let start = (line.start + hit.start()).saturating_sub(AROUND).max(line.start);
                let start = (start..).find(|&at| is_boundary(content, at))?;
                let end = (line.start + hit.end() + AROUND).min(line.end);
                let end = (end..).find(|&at| is_boundary(content, at))?;
                match passages.get_mut(from..).and_then(<[_]>::last_mut).filter(|last| start <= last.end) {
                    Some(last) => last.end = last.end.max(end),
                    None => passages.push(start..end),
                }
            }
        }
        Some(passages)
    }

    /// The fragment, if that was requested.
    pub const fn fragment(&self) -> Option<Fragment> {
        match self.0 {
            SelectionKind::Part(fragment) => Some(fragment),
            _ => None,
        }
    }

    /// The part of a content that is in memory.
    pub fn apply(&self, content: &[u8]) -> Result<Vec<u8>, SelectError> {
        match &self.0 {
            SelectionKind::Part(fragment) => cut(content, *fragment),
            SelectionKind::Grep(regex) => Ok(grep(content, regex)),
            SelectionKind::Path(query) => query.select(content),
        }
    }
}

/// The lines that match, each with its line break.
fn grep(content: &[u8], regex: &Regex) -> Vec<u8> {
    let found = content.split_inclusive(|&byte| byte == b'\n').filter(|line| matches(line, regex));
    found.collect::<Vec<_>>().concat()
}

/// Whether a line matches.
fn matches(line: &[u8], regex: &Regex) -> bool {
    let line = without_break(line);
    // The reader of a condensed text knows its lines without codes.
    let plain = || std::str::from_utf8(line).map(without_terminal_codes);
    regex.is_match(line)
        || line.contains(&0x1B) && plain().is_ok_and(|plain| regex.is_match(plain.as_bytes()))
}

/// The line without its break, which patterns are not matched against.
fn without_break(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The range of each line, its break included.
fn lines(content: &[u8]) -> impl Iterator<Item = Range<usize>> {
    content.split_inclusive(|&byte| byte == b'\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len();
        Some(start..*at)
    })
}

/// Whether no character of UTF-8 text continues at this byte.
fn is_boundary(content: &[u8], at: usize) -> bool {
    content.get(at).is_none_or(|byte| byte & 0b1100_0000 != 0b1000_0000)
}

/// The two numbers of `a:b`, which may also be written as in the fragment of a pointer: `a-b`.
fn parse_range(text: &str) -> Option<(usize, usize)> {
    let (from, to) = text.split_once([':', '-'])?;
    Some((parse_number(from)?, parse_number(to)?))
}

fn parse_number(text: &str) -> Option<usize> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn bad_range(text: &str, expected: &'static str) -> SelectError {
    SelectError::BadRange { text: shorten(text), expected }
}

/// Enough of a hostile text to recognise it by.
fn shorten(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
#[path = "select_tests.rs"]
mod tests;
