//! How many tokens a tool result may have when it enters, by what it is.
//!
//! In recorded agent runs nearly everything that a later step needs and a small cap would hide is source code or the
//! report of an error; of listings, logs of builds and records, the condensed form holds what is needed.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::items::LinkedItem;
use larder_condense::{ContentType, structure_of};
use larder_text::file_calls::file_read;
use larder_text::pattern::pattern;
use larder_text::pointer::PointerKey;
use larder_text::source::is_code;
use larder_text::terminal::without_terminal_codes;

/// How many times the cap source code, errors and texts with pointers may have.
const ROOMY: usize = 4;
/// How many times the cap the text of a file may have that is no data, and a result that the client has cut itself: both
/// are what the agent asked to see, and what is not seen of a file cannot be edited. Still bounded.
const WHOLE: usize = 8;
/// The longest line, in bytes, that can be a note on what a client has cut.
const LONGEST_NOTE: usize = 200;

/// The most tokens of a result when it enters, given the cap for ordinary ones.
pub(super) fn entry_cap(entry: &LinkedItem<'_>, cap: usize, key: &PointerKey) -> usize {
    let text = &*without_terminal_codes(entry.item.text);
    let signs = Signs::of(text);
    let is_read = || file_of(entry).is_some() && !is_data(text);
    let factor = if signs.is_cut || is_read() {
        WHOLE
    } else if entry.is_error() || signs.reports_error || !key.find_in(text).is_empty() || is_source(text) {
        ROOMY
    } else {
        1
    };
    cap.saturating_mul(factor)
}

/// The path of the file whose text the result is.
pub(super) fn file_of(entry: &LinkedItem<'_>) -> Option<String> {
    let call = entry.answers?.call;
    file_read(&call.name, &call.arguments)
}

/// Whether the text is source code. JSON over many lines reads like code line by line.
fn is_source(text: &str) -> bool {
    is_code(text) && structure_of(text) != Some(ContentType::Json)
}

/// Whether the text is a log or a table: nobody edits these by hand, and condensed they hold what is needed.
fn is_data(text: &str) -> bool {
    matches!(structure_of(text), Some(ContentType::Log | ContentType::Table))
}

/// What words and phrases of a text tell, found in one pass.
#[derive(Debug, Default, PartialEq, Eq)]
struct Signs {
    /// A client has left out a part of the text and says so on a line of its own.
    is_cut: bool,
    /// The text holds the report of an error with its place in the code.
    reports_error: bool,
}

impl Signs {
    fn of(text: &str) -> Self {
        static SIGNS: LazyLock<Regex> = LazyLock::new(|| {
            let words = "truncated|omitted|clipped|elided|not shown|more lines";
            pattern(&format!(r"Traceback \(most recent|panicked at|\n    at |{words}"))
        });
        const ERRORS: [&str; 3] = ["Traceback", "panicked", "\n"];
        let mut signs = Self::default();
        for found in SIGNS.find_iter(text) {
            if ERRORS.iter().any(|error| found.as_str().starts_with(error)) {
                signs.reports_error = true;
            } else if line_around(text, &found.range()).is_some_and(is_note) {
                signs.is_cut = true;
                break;
            }
        }
        signs
    }
}

/// Whether a line with such a word says that something is left out.
fn is_note(line: &str) -> bool {
    const MARKS: [&str; 5] = ["[", "(", "<", "…", "..."];
    let line = line.trim();
    line.len() <= LONGEST_NOTE && MARKS.iter().any(|mark| line.starts_with(mark))
}

/// The line that contains a range, unless it is much longer than a note.
fn line_around<'t>(text: &'t str, range: &Range<usize>) -> Option<&'t str> {
    let from = text.floor_char_boundary(range.start.saturating_sub(LONGEST_NOTE));
    let start = match text[from..range.start].rfind('\n') {
        Some(at) => from + at + 1,
        None if from == 0 => from,
        None => return None,
    };
    let until = text.ceil_char_boundary(range.end + LONGEST_NOTE);
    let end = match text[range.end..until].find('\n') {
        Some(at) => range.end + at,
        None if until == text.len() => until,
        None => return None,
    };
    Some(&text[start..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_on_what_was_cut_is_recognised_on_its_own_line() {
        for note in
            ["[12 lines truncated]", "... 300 more lines ...", "<response clipped>", "(output omitted)"]
        {
            assert!(Signs::of(&format!("first\n{note}\nlast")).is_cut, "{note}");
        }
        for text in ["the table was truncated", "let x = truncated(y);", ""] {
            assert_eq!(Signs::of(text), Signs::default(), "{text}");
        }
        let long = format!("[{}omitted]", "é".repeat(LONGEST_NOTE));
        let padded = format!("[omitted{}| no", " ".repeat(LONGEST_NOTE));
        assert!(!Signs::of(&padded).is_cut);
        assert!(!Signs::of(&long).is_cut && !Signs::of(&format!("{long}\nno omitted line")).is_cut);
    }

    #[test]
    fn reports_of_errors_are_recognised_wherever_they_stand() {
        for report in [
            "Traceback (most recent call last):",
            "thread 'main' panicked at src/main.rs:1",
            "TypeError\n    at f (a.js:1)",
        ] {
            let signs = Signs::of(&format!("some omitted words\n{report}\nmore lines"));
            assert_eq!(signs, Signs { is_cut: false, reports_error: true }, "{report}");
        }
    }
}
