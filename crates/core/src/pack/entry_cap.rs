//! How many tokens a tool result may have when it enters, by what it is.
//!
//! In recorded agent runs nearly everything that a later step needs and a small cap would hide is source code or the
//! report of an error; of listings, logs of builds and records, the condensed form holds what is needed.

use super::items::LinkedItem;
use larder_condense::{ContentType, structure_of};
use larder_text::file_calls::file_read;
use larder_text::lines::lines;
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
    let is_read = || file_of(entry).is_some() && !is_data(text);
    let factor = if is_cut(text) || is_read() {
        WHOLE
    } else if entry.is_error() || !key.find_in(text).is_empty() || reports_error(text) || is_source(text) {
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

/// Whether the text holds the report of an error with its place in the code.
fn reports_error(text: &str) -> bool {
    ["Traceback (most recent", "panicked at", "\n    at "].iter().any(|sign| text.contains(sign))
}

/// Whether a client has left out a part of the text and says so on a line of its own.
fn is_cut(text: &str) -> bool {
    const WORDS: [&str; 6] = ["truncated", "omitted", "clipped", "elided", "not shown", "more lines"];
    const MARKS: [&str; 5] = ["[", "(", "<", "…", "..."];
    let is_note = |line: &str| {
        let line = line.trim();
        line.len() <= LONGEST_NOTE
            && MARKS.iter().any(|mark| line.starts_with(mark))
            && WORDS.iter().any(|word| line.contains(word))
    };
    lines(text).any(is_note)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_on_what_was_cut_is_recognised_on_its_own_line() {
        for note in
            ["[12 lines truncated]", "... 300 more lines ...", "<response clipped>", "(output omitted)"]
        {
            assert!(is_cut(&format!("first\n{note}\nlast")), "{note}");
        }
        for text in ["the table was truncated", "let x = truncated(y);", ""] {
            assert!(!is_cut(text), "{text}");
        }
    }
}
