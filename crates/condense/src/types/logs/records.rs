//! Records: a line and its continuation lines, such as a stack trace.
//!
//! Knows lines; all it knows of their content is how a continuation starts.

use std::ops::Range;

use super::blocks::{Block, is_reason};

/// Maximum lines and bytes of a record; what follows is a new record.
const MAX_LINES: usize = 200;
const MAX_BYTES: usize = 16_384;
/// If at least this share of heads has a time, in per cent, a line without one is a continuation.
const SHARE_OF_STAMPED: usize = 90;
/// If at least this share of lines is indented, in per cent, indentation means nothing.
const SHARE_OF_INDENTED: usize = 75;
/// How early in a line a time or level must appear, in bytes.
const STAMP_WITHIN: usize = 64;
/// How a record longer than `EXCERPT_LINES` lines is shown: its first and last lines and the causes in between.
const EXCERPT_LINES: usize = 12;
const EXCERPT_HEAD: usize = 7;
const EXCERPT_TAIL: usize = 3;
const EXCERPT_CAUSES: usize = 4;
/// Longer lines are shown up to this length, in bytes.
const LONGEST_LINE: usize = 4_096;

/// Ranges of whole lines that tile the text.
pub(super) fn records(text: &str) -> Vec<Range<usize>> {
    let rule = Rule::of(text);
    let mut records: Vec<Range<usize>> = Vec::new();
    let (mut at, mut lines, mut block) = (0, 0, Block::None);
    for line in text.split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        let within = |last: &Range<usize>| lines < MAX_LINES && range.end - last.start <= MAX_BYTES;
        let continued = records.last_mut().filter(|last| within(last)).and_then(|last| {
            let next = block.continued_by(line).or_else(|| rule.continues(line).then_some(block))?;
            Some((last, next))
        });
        if let Some((last, next)) = continued {
            last.end = range.end;
            lines += 1;
            block = next;
        } else {
            records.push(range);
            lines = 1;
            block = Block::begun_by(line);
        }
    }
    records
}

/// What marks a continuation in this text.
struct Rule {
    /// Nearly all heads have a time, so a line without one is not a head.
    stamped: bool,
    indented: bool,
}

impl Rule {
    fn of(text: &str) -> Self {
        let (mut all, mut indented, mut heads, mut stamped) = (0_usize, 0_usize, 0_usize, 0_usize);
        for line in text.lines().filter(|line| !line.trim_ascii_start().is_empty()) {
            all += 1;
            if is_indented(line) {
                indented += 1;
            } else {
                heads += 1;
                stamped += usize::from(has_clock(line));
            }
        }
        Self {
            stamped: stamped * 100 >= heads.max(1) * SHARE_OF_STAMPED,
            indented: indented * 100 < all.max(1) * SHARE_OF_INDENTED,
        }
    }

    /// A message of a program that writes no time begins a record: compilers and linkers write their errors so into the
    /// log of a build that has times.
    fn continues(&self, line: &str) -> bool {
        line.trim_ascii_start().is_empty()
            || (self.stamped && !has_clock(line) && !begins_with_severity(line))
            || (self.indented && is_continuation(line) && !(self.stamped && has_clock(line)))
    }
}

pub(super) fn is_indented(line: &str) -> bool {
    line.starts_with([' ', '\t'])
}

/// Whether a line by itself shows that it continues another.
pub(super) fn is_continuation(line: &str) -> bool {
    is_indented(line) || line.starts_with("Caused by:")
}

/// Whether a line begins with how bad its message is: `error: …`, `[WARN] …`, `E/Tag: …`, or the same after a place in a
/// file, such as `src/x.rs:10:5: error …` and `x.ts(10,5): error …`.
pub(super) fn begins_with_severity(line: &str) -> bool {
    const MARKERS: [&str; 6] = ["E/", "W/", "F/", "E:", "W:", "F:"];
    let is_place = |place: &str| {
        let mut bytes = place.bytes().zip(place.bytes().skip(1));
        !place.contains(char::is_whitespace)
            && bytes.any(|(sign, next)| matches!(sign, b':' | b'(') && next.is_ascii_digit())
    };
    MARKERS.iter().any(|marker| line.starts_with(marker))
        || is_severity(line.strip_prefix(['[', '<', '(']).unwrap_or(line))
        || [": ", " - "].iter().any(|sign| {
            line.split_once(sign).is_some_and(|(place, message)| is_place(place) && is_severity(message))
        })
}

/// Whether the first word says that something failed or may.
fn is_severity(text: &str) -> bool {
    const SEVERITIES: [&str; 10] =
        ["error", "warning", "warn", "fatal", "panic", "fail", "failed", "failure", "critical", "severe"];
    let end = text.bytes().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(text.len());
    let (word, next) = text.split_at(end);
    SEVERITIES.iter().any(|severity| word.eq_ignore_ascii_case(severity))
        && !next.starts_with(['_', '-', '.', '=', '/', '\''])
}

/// Whether a time of day (`4:05`, `04:05:06`) appears at the beginning.
pub(super) fn has_clock(line: &str) -> bool {
    let head = &line.as_bytes()[..line.len().min(STAMP_WITHIN)];
    head.windows(3).any(|w| w[1] == b':' && w[0].is_ascii_digit() && w[2].is_ascii_digit())
}

/// Whether a level appears at the beginning.
pub(super) fn has_level(line: &str) -> bool {
    const LEVELS: [&str; 9] =
        ["TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "ERROR", "CRITICAL", "FATAL", "SEVERE"];
    let head = &line[..line.floor_char_boundary(STAMP_WITHIN)];
    let first = head.split(|c: char| !c.is_ascii_alphabetic()).find(|word| !word.is_empty());
    first.is_some_and(|word| LEVELS.iter().any(|level| word.trim_end_matches("ING") == *level))
}

/// The parts of a record shown where one example represents all, in order, each ending with a line or at the cut of
/// an overlong line.
pub(super) fn excerpt(text: &str, record: &Range<usize>) -> Vec<Range<usize>> {
    let mut at = record.start;
    let lines: Vec<Range<usize>> = text[record.clone()]
        .split_inclusive('\n')
        .map(|line| {
            at += line.len();
            at - line.len()..at
        })
        .collect();
    let used =
        lines.len() - lines.iter().rev().take_while(|line| text[(*line).clone()].trim().is_empty()).count();
    let lines = &lines[..used.max(1)];
    let mut causes = 0;
    let mut parts: Vec<Range<usize>> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let edge = index < EXCERPT_HEAD || index + EXCERPT_TAIL >= lines.len();
        let cause = !edge && causes < EXCERPT_CAUSES && is_reason(&text[line.clone()]);
        causes += usize::from(cause);
        if lines.len() > EXCERPT_LINES && !edge && !cause {
            continue;
        }
        let end = cut(text, line);
        match parts.last_mut() {
            Some(last) if last.end == line.start => last.end = end,
            _ => parts.push(line.start..end),
        }
    }
    parts
}

fn cut(text: &str, line: &Range<usize>) -> usize {
    if line.len() <= LONGEST_LINE {
        return line.end;
    }
    let limit = text.floor_char_boundary(line.start + LONGEST_LINE);
    let floor = text.ceil_char_boundary(line.start + LONGEST_LINE / 2);
    text[floor..limit].rfind([' ', ',']).map_or(limit, |at| floor + at + 1)
}
