//! Blocks: a failure with the lines that locate and explain it, as compilers, interpreters and test runners write them.
//!
//! Knows how they write; does not know templates, or what is shown.

use std::sync::LazyLock;

use regex::Regex;
use xxhash_rust::xxh3::Xxh3Default;

use super::records::{begins_with_severity, has_clock, is_indented};
use crate::analysis::salience::reports_failure;
use larder_text::pattern::pattern;

/// Maximum number of places by which failures of one shape are told apart.
const MAX_PLACES: usize = 8;

/// A time before a message, with one space.
static STAMP: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^(?:\[[\d:T.Z+ -]{5,40}\]|\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*|\d{1,2}:\d\d:\d\d\S*) ")
});

/// A line that explains the failure before it, even where indentation means nothing.
static DETAIL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r#"^\s*(?:-->|:::|\d*\s*\||= ?(?:note|help)|\.\.\.|[\^~]+\s*$|File "|note:|help:|Caused by:|goroutine \d)"#,
        r"|^\s+(?:at |(?:symbol|location|required|found):|\S*\.[A-Za-z]\w{0,4}:\d+)",
        r"|^\S+:\d+: note:|^\[ERROR\]\s{2,}|^[\w./*]+\(\S*\)\s*$",
    ))
});

/// A line with which only a compiler, an interpreter, a test runner or a build reports a failure.
static REPORT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?m)^(?:\S+[:(]\d+(?:[:,]\d+)?\)?: (?:fatal )?(?:error|warning)\b|(?:error|warning)(?:\[\w+\]: |: .*\n\s*--> )",
        r"|Traceback \(most recent call last\):|thread '.*' panicked at |--- FAIL: |\w+ ERR! |\S+: \*\*\* ",
        r"|(?:FAIL|FAILED|ERROR|not ok)[: \t]+\S*[./:]\S|\[ERROR\] |test \S+ \.\.\. FAILED|=+ FAILURES =+$)",
    ))
});

/// Where a failure is, or what pytest says of it.
static PLACE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?m)[\w@+~.:\\/-]*\.[A-Za-z]\w{0,5}(?::\d+(?::\d+)?|:?[\[(]\d+(?:,\d+)?[\])])",
        r#"|"[^"\n]+", line \d+|^E {3}.*$"#,
    ))
});

/// A time with seconds, which no place in a file looks like.
static CLOCK: LazyLock<Regex> = LazyLock::new(|| pattern(r"\d:\d\d:\d\d"));

/// What the lines after the head of a record belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Block {
    /// Nothing in particular.
    None,
    /// An error or a warning.
    Diagnostic,
    /// A panic, whose message follows on the next line.
    Panic,
    /// A Python trace: everything up to the first line that is not indented, the exception.
    Trace,
    /// A failure of pytest: everything up to the next.
    Section,
}

impl Block {
    /// The block that begins with a line.
    pub(super) fn begun_by(line: &str) -> Self {
        let said = message(line);
        if said.starts_with("Traceback (most recent call last)") {
            Self::Trace
        } else if is_title(said) {
            Self::Section
        } else if said.contains("panicked at ") && said.trim_end().ends_with(':') {
            Self::Panic
        } else if begins_with_severity(said) || said.starts_with("--- FAIL") || reports_failure(said) {
            Self::Diagnostic
        } else {
            Self::None
        }
    }

    /// What the block is after the next line, if that belongs to it.
    pub(super) fn continued_by(self, line: &str) -> Option<Self> {
        let said = message(line);
        if self != Self::None && said.trim().is_empty() {
            return Some(self);
        }
        let (belongs, then) = match self {
            Self::None => (false, self),
            Self::Diagnostic => (!begins_with_severity(said) && explains(said), self),
            Self::Panic => (true, Self::Diagnostic),
            Self::Trace => (true, if is_indented(said) { self } else { Self::Diagnostic }),
            Self::Section => {
                (!is_title(said) && !said.starts_with("===") && !begins_with_severity(said), self)
            }
        };
        belongs.then_some(then)
    }
}

/// Whether a line explains the failure before it.
pub(crate) fn explains(line: &str) -> bool {
    DETAIL.is_match(line)
}

/// Whether a program reports a failure in a line of `text`.
pub(super) fn reports(text: &str) -> bool {
    REPORT.is_match(text)
}

/// The line without a time before it.
fn message(line: &str) -> &str {
    if !line.starts_with(|c: char| c.is_ascii_digit() || c == '[') {
        return line;
    }
    STAMP.find(line).map_or(line, |stamp| &line[stamp.end()..])
}

/// Whether a record is, or a line begins, a failure as pytest writes it.
pub(super) fn is_title(text: &str) -> bool {
    let line = text.lines().next().unwrap_or_default().trim_end();
    line.starts_with("___") && line.ends_with("___") && line.contains(' ')
}

/// Whether a line of an excerpt must not be left out: it says where or why.
pub(super) fn is_reason(line: &str) -> bool {
    let said = line.trim_start();
    said.starts_with("Caused by:")
        || said.starts_with("-->")
        || said.starts_with("E   ")
        || said.starts_with("> ")
}

/// A hash of what tells the record of a failure from others of its shape, if anything: the places that it begins with
/// or continues with and, in the output of a program that writes no times, its first line. Services write the same failure with other values
/// again and again, whereas a compiler repeats none.
pub(super) fn identity(record: &str) -> Option<u64> {
    let head = record.lines().next().unwrap_or_default();
    let stamped = CLOCK.is_match(head) || has_clock(head) && !begins_with_severity(head);
    let mut hash = Xxh3Default::new();
    let place = PLACE.find(message(head)).filter(|place| place.start() == 0);
    let own = if stamped { place.map(|place| place.as_str()) } else { Some(head) };
    let places = PLACE.find_iter(&record[head.len()..]).take(MAX_PLACES).map(|place| place.as_str());
    let mut any = false;
    for said in own.into_iter().chain(places) {
        hash.update(said.trim().as_bytes());
        any = true;
    }
    any.then(|| hash.digest())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for pattern in [&STAMP, &DETAIL, &REPORT, &PLACE, &CLOCK] {
            LazyLock::force(pattern);
        }
    }
}
