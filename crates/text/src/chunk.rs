//! Chunks: divides a text of any size into parts that tile it, each below a size limit and cut where a reader would.
//!
//! Knows heading, paragraph, sentence and line boundaries, and counts tokens; does not know what chunks are for, nor
//! how a content type is condensed.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::tokens::Counter;

/// The minimum chunk size in tokens; smaller sizes are rejected because a single character can need nearly this many.
pub const SMALLEST_CHUNK: usize = 16;
/// The initial estimate of bytes per token, in hundredths; afterwards the density of the last chunk is used.
const FIRST_DENSITY: usize = 300;
/// The share of the token limit that an estimate aims for, in hundredths, so that it rarely has to be repeated.
const AIM: usize = 94;
/// The share of an estimate that is kept, in hundredths, after it turned out too large.
const SHRINK: usize = 80;
/// A chunk that uses less than this share of its tokens, in hundredths, is estimated once more.
const ROOMY: usize = 60;
/// Maximum density of an estimate, in hundredths of bytes per token, so that an odd chunk does not distort the next
/// estimate.
const LARGEST_DENSITY: usize = 1600;
/// Indentation that marks a line as code, where a full stop does not end a sentence.
const INDENT: &str = "    ";

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// Its byte range. The chunks of a text follow each other without gap or overlap.
    pub bytes: Range<usize>,
    /// The first and last line it touches, from 1.
    pub lines: (usize, usize),
    /// Its tokens as charged.
    pub tokens: usize,
}

/// Why a text cannot be divided as requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("chunks of {max} tokens are too small to hold text; ask for at least {SMALLEST_CHUNK}")]
pub struct ChunkError {
    /// The requested tokens per chunk.
    pub max: usize,
}

/// How good a place is for a cut, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Boundary {
    /// Between two characters.
    Character,
    /// After white space or a sign of punctuation.
    Word,
    /// After a line break.
    Line,
    /// After a sentence.
    Sentence,
    /// After an empty line.
    Paragraph,
    /// Before a Markdown heading.
    Heading,
}

/// Divides `text` into chunks of at most `max` tokens that tile it exactly. Each is cut at the best boundary in the
/// second half of what fits. Deterministic, and linear in the length of the text.
///
/// # Errors
/// [`ChunkError`] if `max` is below [`SMALLEST_CHUNK`].
pub fn chunks(text: &str, max: usize, counter: &Counter) -> Result<Vec<Chunk>, ChunkError> {
    if max < SMALLEST_CHUNK {
        return Err(ChunkError { max });
    }
    let (mut chunks, mut start, mut line, mut density) = (Vec::new(), 0, 1, FIRST_DENSITY);
    while start < text.len() {
        let (end, tokens) = next_end(text, start, max, density, counter);
        let chunk = &text[start..end];
        density = density_of(chunk.len(), tokens);
        let breaks = chunk.bytes().filter(|&byte| byte == b'\n').count();
        let last = line + breaks - usize::from(chunk.ends_with('\n'));
        chunks.push(Chunk { bytes: start..end, lines: (line, last), tokens });
        line += breaks;
        start = end;
    }
    Ok(chunks)
}

/// The end of the chunk that starts at `start`, and its tokens. `density` is the estimated bytes per token.
fn next_end(text: &str, start: usize, max: usize, density: usize, counter: &Counter) -> (usize, usize) {
    let rest = &text[start..];
    let reach_at = |density: usize| (max.saturating_mul(density) / 100).saturating_mul(AIM) / 100;
    let (mut reach, mut short) = (reach_at(density), None);
    loop {
        let end = if reach >= rest.len() { rest.len() } else { best_end(rest, reach.max(1)) };
        match counter.count_up_to(&rest[..end], max) {
            // Much room is left: the text is less dense than estimated, so another attempt is worthwhile.
            Some(tokens) if short.is_none() && end < rest.len() && tokens < max * ROOMY / 100 => {
                short = Some((start + end, tokens));
                reach = reach_at(density_of(end, tokens)).max(reach);
            }
            Some(tokens) => return (start + end, tokens),
            None => match short {
                Some(found) => return found,
                // A single character exceeds the limit only if the tokenizer expands it.
                None if rest[..end].chars().nth(1).is_none() => {
                    return (start + end, counter.count(&rest[..end]));
                }
                None => reach = end.min(reach) * SHRINK / 100,
            },
        }
    }
}

/// Bytes per token, in hundredths, clamped to a sane range.
fn density_of(bytes: usize, tokens: usize) -> usize {
    (bytes.saturating_mul(100) / tokens.max(1)).clamp(50, LARGEST_DENSITY)
}

/// The best place to cut in the second half of the first `reach` bytes; the last one if several are equal. Never 0.
fn best_end(rest: &str, reach: usize) -> usize {
    let first = rest.chars().next().map_or(0, char::len_utf8);
    let limit = rest.floor_char_boundary(reach).max(first);
    let floor = rest.ceil_char_boundary(limit / 2).max(first);
    let mut best = (Boundary::Character, limit);
    for (at, _) in rest[floor..limit].char_indices().rev() {
        let end = floor + at + rest[floor + at..].chars().next().map_or(0, char::len_utf8);
        let boundary = boundary(rest, end);
        if boundary > best.0 {
            best = (boundary, end);
            if boundary == Boundary::Heading {
                break;
            }
        }
    }
    best.1
}

/// The kind of boundary just before byte `end`, which must be a character boundary.
fn boundary(text: &str, end: usize) -> Boundary {
    let bytes = text.as_bytes();
    match end.checked_sub(1).and_then(|last| bytes.get(last)) {
        Some(b'\n') => after_line(text, end),
        Some(b' ' | b'\t') => after_space(text, end),
        Some(byte) if byte.is_ascii_punctuation() => Boundary::Word,
        Some(0x80..) => after_wide(text, end),
        _ => Boundary::Character,
    }
}

fn after_line(text: &str, end: usize) -> Boundary {
    let before = text[..end - 1].trim_end_matches('\r');
    if text[end..].starts_with('#') && is_heading(&text[end..]) {
        Boundary::Heading
    } else if before.trim_end_matches([' ', '\t']).ends_with('\n') {
        Boundary::Paragraph
    } else if ends_sentence(before) {
        Boundary::Sentence
    } else {
        Boundary::Line
    }
}

fn is_heading(line: &str) -> bool {
    let signs = line.bytes().take_while(|&byte| byte == b'#').count();
    signs <= 6 && line.as_bytes().get(signs) == Some(&b' ')
}

/// Only prose has sentence ends before spaces: indented lines and comments are code, which is cut at lines.
fn after_space(text: &str, end: usize) -> Boundary {
    if !ends_sentence(&text[..end - 1]) {
        return Boundary::Word;
    }
    // Looking back further would cost more than the difference is worth.
    let near = text.ceil_char_boundary(end.saturating_sub(200));
    let line = text[near..end].rsplit('\n').next().unwrap_or_default();
    let is_code =
        line.starts_with(INDENT) || line.starts_with(['\t', '#', '*']) || line.trim_start().starts_with("//");
    if is_code { Boundary::Word } else { Boundary::Sentence }
}

fn after_wide(text: &str, end: usize) -> Boundary {
    match text[..end].chars().next_back() {
        Some('。' | '！' | '？' | '」' | '』' | '…') if ends_sentence(&text[..end]) => {
            // Closing quotation marks belong to the preceding sentence.
            if text[end..].starts_with(['」', '』', '）', '。', '！', '？', '…']) {
                Boundary::Word
            } else {
                Boundary::Sentence
            }
        }
        Some('、' | '，' | '；' | '：' | '\u{3000}' | '）' | '」' | '』') => Boundary::Word,
        _ => Boundary::Character,
    }
}

fn ends_sentence(text: &str) -> bool {
    let closers = ['"', '\'', ')', ']', '*', '_', '”', '’', '»', '」', '』', '）'];
    // Only a few closing marks, so that a long run of them is not read again from each position.
    let mut signs = text.chars().rev().take(4).skip_while(|c| closers.contains(c));
    signs.next().is_some_and(|c| matches!(c, '.' | '!' | '?' | '…' | '。' | '！' | '？'))
}

#[cfg(test)]
#[path = "chunk_tests.rs"]
mod tests;
