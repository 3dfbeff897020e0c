//! Prose: sentences, in any script.
//!
//! Knows where sentences end. Hard line breaks inside a paragraph do not end one, which is why the Unicode sentence
//! rules are not used directly (they end a sentence at every line break); neither do common abbreviations and
//! initials.

use std::ops::Range;

use crate::engine::condenser::Divide;
use crate::engine::draft::ExtractionOptions;
use crate::engine::job::Job;
use crate::engine::units::{LONGEST_UNIT, TextPiece, split_long};
use larder_text::abbreviation::is_abbreviation;
use larder_text::pattern::byte_set;

/// A line of at least this many bytes was not wrapped by hand, so its end is the end of a paragraph.
const UNBROKEN_LINE: usize = 160;
/// Shorter sentences are joined with the next: `"Oh!" he said.` is one unit.
const SHORTEST_SENTENCE: usize = 24;
/// Factors for the first sentence of the text, for the first of a paragraph, and for the last of the text.
const OPENING: [f32; 4] = [4.0, 2.0, 1.5, 1.25];
const PARAGRAPH_START: f32 = 1.2;
const CLOSING: f32 = 1.5;

/// A text of more than so many times the target is not shortened but summarized: what is left has to read as prose, so
/// that a date or a price is shown with its sentence (R3-4.22). In longer parts of a text such details come first.
const SUMMARY: usize = 8;
/// In a summary, a sentence of at most one part in this many of the target is shown whole or not at all.
const SENTENCES: usize = 12;
/// Bytes of a token, about.
const TOKEN_BYTES: usize = 4;

pub(crate) struct Prose;

impl Divide for Prose {
    fn options(&self, job: &Job<'_>) -> ExtractionOptions {
        let target = job.request.target;
        let is_summary = job.original_tokens / SUMMARY > target;
        let whole_up_to = is_summary.then_some(target.saturating_mul(TOKEN_BYTES) / SENTENCES);
        ExtractionOptions { whole_up_to, ..ExtractionOptions::default() }
    }

    fn units(&self, job: &Job<'_>) -> Vec<TextPiece> {
        let text = job.request.text;
        let sentences = sentences(text, 0..text.len());
        let last = sentences.len().saturating_sub(1);
        let weigh = |(index, range): (usize, Range<usize>)| {
            let opening = OPENING.get(index).copied().unwrap_or(1.0);
            let paragraph = if text[..range.start].ends_with('\n') { PARAGRAPH_START } else { 1.0 };
            let closing = if index == last { CLOSING } else { 1.0 };
            TextPiece::plain(range, opening * paragraph * closing)
        };
        sentences.into_iter().enumerate().map(weigh).collect()
    }
}

/// Sentences that tile `range`, each with the white space after it.
pub(crate) fn sentences(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let mut units = Vec::new();
    let (mut start, mut line, mut at) = (range.start, range.start, range.start);
    while let Some((found, c)) = next_candidate(text, at, range.end) {
        let end = if c == '\n' {
            at = found + 1;
            let end = line_end(text, line, found, range.end);
            line = at;
            end
        } else {
            // All signs at once, so that a run of them is read once.
            let rest = &text[found..range.end];
            at +=
                found - at + rest.len() - rest.trim_start_matches(|c| is_terminator(c) || is_closer(c)).len();
            sentence_end(text, start, found..at, c, range.end)
        };
        let Some(end) = end else { continue };
        if let Some(newline) = text[at.min(end)..end].rfind('\n') {
            line = at.min(end) + newline + 1;
        }
        at = at.max(end);
        if end - start >= SHORTEST_SENTENCE || text[start..end].ends_with('\n') {
            units.extend(split_long(text, start..end, LONGEST_UNIT));
            start = end;
        }
    }
    if start < range.end {
        units.extend(split_long(text, start..range.end, LONGEST_UNIT));
    }
    units
}

/// The bytes that start a line break or a possible end of a sentence.
const CANDIDATE: [bool; 256] = byte_set(b".!?\n\xe3\xef\xe2\xe0\xd8\xdb");

/// The next line break or possible end of a sentence.
fn next_candidate(text: &str, from: usize, end: usize) -> Option<(usize, char)> {
    let mut at = from;
    while let Some(skipped) = text.as_bytes()[at..end].iter().position(|&byte| CANDIDATE[usize::from(byte)]) {
        at += skipped;
        let c = text[at..].chars().next()?;
        if c == '\n' || is_terminator(c) {
            return Some((at, c));
        }
        at += c.len_utf8();
    }
    None
}

fn is_terminator(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '…' | '。' | '！' | '？' | '｡' | '।' | '॥' | '؟' | '۔')
}

fn is_closer(c: char) -> bool {
    "\"')]}”’»」』）】〉》*_`".contains(c)
}

/// The end, white space included, of the sentence with these closing signs; `None` if it continues.
fn sentence_end(
    text: &str,
    start: usize,
    signs: Range<usize>,
    terminator: char,
    limit: usize,
) -> Option<usize> {
    let tail = &text[signs.end..limit];
    let spaces = tail.len() - tail.trim_start().len();
    let full_width = !terminator.is_ascii() && terminator != '…';
    if spaces == 0 {
        return (full_width || tail.is_empty()).then_some(signs.end);
    }
    let next = tail.trim_start().chars().next();
    let goes_on = next.is_some_and(char::is_lowercase) && !full_width;
    if goes_on || terminator == '.' && signs.len() == 1 && is_abbreviation(&text[start..signs.start], tail) {
        return None;
    }
    Some(signs.end + spaces)
}

/// The end of the paragraph if the line break at `found`, in the line that starts at `line`, ends one.
fn line_end(text: &str, line: usize, found: usize, limit: usize) -> Option<usize> {
    let rest = &text[found..limit];
    let spaces = rest.len() - rest.trim_start().len();
    let white = &rest[..spaces];
    let blank_line = white.bytes().filter(|&b| b == b'\n').count() > 1;
    let indent = white.len() - white.rfind('\n').map_or(0, |at| at + 1);
    let next = &rest[spaces..];
    let bullet = next.starts_with(['-', '*', '+', '•', '#', '|', '>', '=', '·', '['])
        || next.starts_with(|c: char| c.is_ascii_digit())
            && next[..next.floor_char_boundary(5)].contains(['.', ')']);
    let ends =
        blank_line || indent >= 2 || bullet || found.saturating_sub(line) >= UNBROKEN_LINE || next.is_empty();
    // The indentation belongs to the line it indents.
    ends.then(|| found + white.rfind('\n').map_or(spaces, |at| at + 1))
}
