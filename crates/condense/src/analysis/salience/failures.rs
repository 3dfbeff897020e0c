//! Recognises lines that report an error, by words of failure.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::{ErrorSense, SalientSpan, SpanKind};
use larder_text::pattern::pattern;
use larder_text::terminal::without_terminal_codes;

/// Maximum bytes of an error line that are recognised and kept.
const LONGEST_ERROR: usize = 240;
/// Bytes at the beginning of a coloured text that say whether it reports a failure.
const LONGEST_HEAD: usize = 1_024;

static STRICT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?-u)\b(?:ERROR|FATAL|FAIL|FAILED|FAILURE|CRITICAL|PANIC|EXCEPTION)\b|\bERR[\]!:]",
        r"|(?-u)[A-Za-z](?:Error|Exception)\b",
        r"|(?-u)\b(?:[Ee]rror|[Ff]atal|[Ff]ailed|[Pp]anic|[Ee]xception)(?:\[\w+\])?(?: \w+)?:",
        r"|Traceback \(most recent|panicked at|(?-u)\bexit(?:ed with)? (?:code|status) [1-9]",
    ))
});

static LOOSE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?i-u:error|exception|\bfatal|\bfail(?:ed|ure|ing)|\bpanic|traceback|\bcritical\b|\babort(?:ed|ing)|segfault",
        r"|\bdenied\b|\brefused\b|timed out|\btimeout\b|unreachable|\bcannot\b|unable to|not found|\bcorrupt)",
        r"|(?-u)\bexit(?:ed with)? (?:code|status) [1-9]|\bERR[\]!:]",
    ))
});

static BEGINS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r#"^\s*(?:\{\s*"errors?"\s*:\s*(?:"[^"]|[{1-9t]|\[\s*[^\]\s])"#,
        r"|[\[(<*]*(?:(?:[\w.]*[a-z](?:Error|Exception)|ERROR|FATAL|FAILED|FAILURE|CRITICAL|PANIC|EXCEPTION)(?:[\s:\])>*]|$)",
        // These are words of prose too, so a colon must follow before the line ends.
        r"|(?:[Ee]rror|[Ff]atal|[Pp]anic)(?: [^\n:]{0,80})?:|[Ff]ailed to |Traceback \(most))",
    ))
});

/// Whether the first word of `text`, or its first name if it is JSON, reports a failure. Some wire formats have no
/// other way to indicate it.
pub fn reports_failure(text: &str) -> bool {
    let begin = text.len() - text.trim_start().len();
    let head = &text[begin..text.floor_char_boundary(begin + LONGEST_HEAD)];
    if head.contains('\x1B') { BEGINS.is_match(&without_terminal_codes(head)) } else { BEGINS.is_match(text) }
}

/// The lines of `text` that report an error, trimmed.
pub(super) fn error_lines(text: &str, sense: ErrorSense) -> Vec<SalientSpan> {
    let pattern: &Regex = if sense == ErrorSense::Strict { &STRICT } else { &LOOSE };
    let mut spans = Vec::new();
    let mut from = 0;
    while let Some(found) = pattern.find_at(text, from) {
        let start = text[from..found.start()].rfind('\n').map_or(from, |at| from + at + 1);
        let end = text[found.start()..].find('\n').map_or(text.len(), |at| found.start() + at);
        spans
            .push(SalientSpan { range: error_range(text, start..end, found.start()), kind: SpanKind::Error });
        from = end;
        if from >= text.len() {
            break;
        }
    }
    spans
}

/// The trimmed line; in an overlong line, the part starting shortly before the word of failure.
fn error_range(text: &str, line: Range<usize>, word: usize) -> Range<usize> {
    let start = line.end - text[line.clone()].trim_start().len();
    let end = start + text[start..line.end].trim_end().len();
    if end - start <= LONGEST_ERROR {
        return start..end;
    }
    let first = text.ceil_char_boundary(word.saturating_sub(LONGEST_ERROR / 4).max(start));
    first..text.floor_char_boundary((first + LONGEST_ERROR).min(end))
}
