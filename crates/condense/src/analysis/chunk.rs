//! Chunks: a text of any size divided into parts that tile it, each small enough and cut where a reader would.
//!
//! Knows boundaries of headings, paragraphs, sentences and lines, and counts tokens; does not know what chunks are
//! for, nor how a content type is condensed.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use larder_text::tokens::Counter;

/// Smaller chunks than this many tokens are refused: a single character may need most of them.
pub const SMALLEST_CHUNK: usize = 16;
/// The first guess of bytes per token, in hundredths; afterwards the last chunk's own.
const FIRST_DENSITY: usize = 300;
/// The share of the tokens that a guess aims at, in hundredths, so that it rarely has to be made again.
const AIM: usize = 94;
/// The share of a guess that a next one keeps, in hundredths, when it did not fit.
const SHRINK: usize = 80;
/// A chunk that uses less of its tokens than this, in hundredths, is guessed once more.
const ROOMY: usize = 60;
/// A guess is at most this many bytes per token, so that one odd chunk does not make the next guess absurd.
const LARGEST_DENSITY: usize = 1600;
/// Spaces at the start of a line that make it code, where a full stop in the middle ends nothing.
const INDENT: &str = "    ";

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// Where it appears, in bytes. Chunks of a text follow each other without gap or overlap.
    pub bytes: Range<usize>,
    /// The lines it touches, from 1, the last one included.
    pub lines: (usize, usize),
    /// Its tokens, as charged.
    pub tokens: usize,
}

/// Why a text cannot be divided as asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("chunks of {max} tokens are too small to hold text; ask for at least {SMALLEST_CHUNK}")]
pub struct ChunkError {
    /// The tokens per chunk that were asked for.
    pub max: usize,
}

/// How good a place is to cut, worst first.
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
/// [`ChunkError`] when `max` is below [`SMALLEST_CHUNK`].
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

/// The end of the chunk that begins at `start`, and its tokens. `density` is a guess of bytes per token.
fn next_end(text: &str, start: usize, max: usize, density: usize, counter: &Counter) -> (usize, usize) {
    let rest = &text[start..];
    let reach_at = |density: usize| (max.saturating_mul(density) / 100).saturating_mul(AIM) / 100;
    let (mut reach, mut short) = (reach_at(density), None);
    loop {
        let end = if reach >= rest.len() { rest.len() } else { best_end(rest, reach.max(1)) };
        match counter.count_up_to(&rest[..end], max) {
            // Much room is left: the text here is denser than guessed, so one more guess is worth it.
            Some(tokens) if short.is_none() && end < rest.len() && tokens < max * ROOMY / 100 => {
                short = Some((start + end, tokens));
                reach = reach_at(density_of(end, tokens)).max(reach);
            }
            Some(tokens) => return (start + end, tokens),
            None => match short {
                Some(found) => return found,
                // One character over the limit can only come from a tokenizer that expands it.
                None if rest[..end].chars().nth(1).is_none() => {
                    return (start + end, counter.count(&rest[..end]));
                }
                None => reach = end.min(reach) * SHRINK / 100,
            },
        }
    }
}

/// Bytes per token, in hundredths, within what makes a sane guess.
fn density_of(bytes: usize, tokens: usize) -> usize {
    (bytes.saturating_mul(100) / tokens.max(1)).clamp(50, LARGEST_DENSITY)
}

/// The best place to cut in the second half of the first `reach` bytes; of equals the last. Never 0.
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

/// What kind of boundary lies before byte `end`, which is a character boundary.
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

/// A sentence ends before a space only in prose: indented lines and comments are code, which is cut by lines.
fn after_space(text: &str, end: usize) -> Boundary {
    if !ends_sentence(&text[..end - 1]) {
        return Boundary::Word;
    }
    // Looking back further than this would cost more than the difference is worth.
    let near = text.ceil_char_boundary(end.saturating_sub(200));
    let line = text[near..end].rsplit('\n').next().unwrap_or_default();
    let is_code =
        line.starts_with(INDENT) || line.starts_with(['\t', '#', '*']) || line.trim_start().starts_with("//");
    if is_code { Boundary::Word } else { Boundary::Sentence }
}

fn after_wide(text: &str, end: usize) -> Boundary {
    match text[..end].chars().next_back() {
        Some('。' | '！' | '？' | '」' | '』' | '…') if ends_sentence(&text[..end]) => {
            // Closing quotation marks belong to the sentence before.
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
    // A few closing marks at most, so that a run of them is not read from each of its places.
    let mut signs = text.chars().rev().take(4).skip_while(|c| closers.contains(c));
    signs.next().is_some_and(|c| matches!(c, '.' | '!' | '?' | '…' | '。' | '！' | '？'))
}

#[cfg(test)]
#[path = "chunk_tests.rs"]
mod tests;
