//! Finds spans that matter in themselves: error lines, URLs, prices, quantities, dates, addresses, paths, hashes, ids
//! and numbers.
//!
//! Finds and ranks spans; does not know targets, units or how a span is used. Words are runs of ASCII between white
//! space and non-ASCII characters, so the scan is linear and also works in text without spaces.

mod failures;
mod numbers;

use std::ops::Range;

use self::failures::error_lines;
pub use self::failures::reports_failure;
use self::numbers::classify_number;
use larder_text::names::{is_email, is_path, url_start};
use larder_text::pattern::byte_set;

/// Longer runs are data, not names: a data URI means nothing to a reader.
const LONGEST_SPAN: usize = 300;

/// The kind of a span, least significant first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpanKind {
    /// A number without a unit, a time of day, a timestamp. Counted in the probes, never pinned.
    Number,
    /// A calendar date.
    Date,
    /// A number with its unit.
    Quantity,
    /// An identifier or version made of letters and digits.
    Id,
    /// A hexadecimal digest.
    Hash,
    /// A file path.
    Path,
    /// An e-mail address.
    Email,
    /// A web address.
    Url,
    /// An amount of money.
    Price,
    /// A line that reports an error.
    Error,
}

impl SpanKind {
    /// Whether spans of this kind take precedence over text without salient spans.
    pub const fn is_salient(self) -> bool {
        !matches!(self, Self::Number)
    }

    /// The weight of a span of this kind when not all fit.
    pub const fn weight(self) -> f32 {
        match self {
            Self::Number => 0.0,
            Self::Date | Self::Quantity => 1.0,
            Self::Id | Self::Hash | Self::Path => 1.5,
            Self::Email | Self::Url | Self::Price => 2.0,
            Self::Error => 4.0,
        }
    }
}

/// A span that matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SalientSpan {
    /// The byte range in the text.
    pub range: Range<usize>,
    /// The matched kind.
    pub kind: SpanKind,
}

/// How readily a line counts as an error line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorSense {
    /// Only machine-written forms: `ERROR`, `ValueError:`, `fatal: …`. For texts in which people may write about
    /// errors.
    Strict,
    /// Any line with a word of failure. For tool output.
    Loose,
}

/// Every salient span of `text`, by start. An error line may contain other spans; apart from that, spans do not
/// overlap.
pub fn scan(text: &str, sense: ErrorSense) -> Vec<SalientSpan> {
    let mut spans = Vec::new();
    let mut from = 0;
    while let Some(word) = next_word_with_sign(text, from) {
        scan_word(text, &word, &mut spans);
        from = word.end;
    }
    spans.extend(error_lines(text, sense));
    spans.sort_by_key(|span| (span.range.start, std::cmp::Reverse(span.range.end)));
    spans
}

/// The bytes that make a word worth examining.
const SIGN: [bool; 256] = byte_set(b"0123456789/@\\.");

/// The next run of printable ASCII at or after `from` that contains a digit, slash, at sign or inner dot.
fn next_word_with_sign(text: &str, from: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = from;
    loop {
        at += bytes[at..].iter().position(|&byte| SIGN[usize::from(byte)])?;
        let ends_sentence = bytes[at] == b'.' && !bytes.get(at + 1).is_some_and(u8::is_ascii_alphanumeric);
        if !ends_sentence {
            break;
        }
        at += 1;
    }
    let start = at - bytes[from..at].iter().rev().take_while(|byte| byte.is_ascii_graphic()).count();
    let end = at + bytes[at..].iter().take_while(|byte| byte.is_ascii_graphic()).count();
    Some(start..end)
}

/// The run of printable ASCII before `at`, if separated by at most two spaces.
fn word_before(text: &str, at: usize) -> Range<usize> {
    let bytes = &text.as_bytes()[..at];
    let blanks = bytes.iter().rev().take(4).take_while(|byte| byte.is_ascii_whitespace()).count();
    let end = at - blanks;
    let len = bytes[..end].iter().rev().take(LONGEST_SPAN).take_while(|byte| byte.is_ascii_graphic()).count();
    if (1..=3).contains(&blanks) { end - len..end } else { at..at }
}

fn scan_word(text: &str, word: &Range<usize>, spans: &mut Vec<SalientSpan>) {
    let bytes = &text.as_bytes()[word.clone()];
    // `{"url":"https://x.org","price":12}` and `key=value` are several candidates in one run.
    let data = bytes.iter().filter(|b| matches!(b, b'"' | b'=' | b'{' | b'<' | b'|')).count();
    if data > 2 || word.len() > LONGEST_SPAN || data > 0 && !text[word.clone()].contains("://") {
        // Pieces of a data run have no preceding word that would qualify them.
        split_data(text, word)
            .filter(|piece| piece.len() <= LONGEST_SPAN)
            .for_each(|piece| classify(text, &(piece.start..piece.start), &piece, spans));
    } else {
        classify(text, &word_before(text, word.start), word, spans);
    }
}

fn split_data<'t>(text: &'t str, word: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<'t> {
    let start = word.start;
    let run = &text[word.clone()];
    run.split(['"', '=', '{', '}', '<', '>', '|', ';']).filter(|piece| !piece.is_empty()).map(move |piece| {
        // `split` yields slices of `run`, so the difference of their addresses is the offset.
        let at = start + (piece.as_ptr() as usize - run.as_ptr() as usize);
        at..at + piece.len()
    })
}

fn classify(text: &str, previous: &Range<usize>, word: &Range<usize>, spans: &mut Vec<SalientSpan>) {
    let range = trimmed(text, word);
    let token = &text[range.clone()];
    let mut push = |range: Range<usize>, kind| {
        let overlaps = |last: &SalientSpan| last.range.end > range.start;
        while spans.last().is_some_and(overlaps) {
            spans.pop();
        }
        spans.push(SalientSpan { range, kind });
    };
    if token.is_empty() {
    } else if let Some(at) = url_start(token) {
        push(range.start + at..range.end, SpanKind::Url);
    } else if is_email(token) {
        push(range, SpanKind::Email);
    } else if is_path(token, text[..range.start].ends_with('<')) {
        push(range, SpanKind::Path);
    } else if token.bytes().any(|b| b.is_ascii_digit()) {
        let (range, kind) = classify_number(text, previous, range);
        push(range, kind);
    }
}

/// The word without surrounding punctuation.
fn trimmed(text: &str, word: &Range<usize>) -> Range<usize> {
    let run = &text[word.clone()];
    let head =
        run.trim_start_matches(['(', '[', '{', '<', '>', '"', '\'', '`', '*', ',', ':', ';', '!', '?', '|']);
    let body = head
        .trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '}', '>', '<', '"', '\'', '`', '*', '|']);
    let start = word.end - head.len();
    start..start + body.len()
}

#[cfg(test)]
mod tests;
