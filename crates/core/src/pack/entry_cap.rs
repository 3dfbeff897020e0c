//! How many tokens a tool result may have when it enters, by what it is.
//!
//! In recorded agent runs nearly everything that a later step needs and a small cap would hide is source code or the
//! report of an error; of listings, logs of builds and records, the condensed form holds what is needed.

use super::items::LinkedItem;
use larder_text::lines::lines;
use larder_text::pointer::PointerKey;

/// How many times the cap source code, errors and texts with pointers may have.
const ROOMY: usize = 4;
/// How many times the cap a result may have that the client has cut itself. What is left is what the client wants the
/// model to see, and still bounded.
const CUT: usize = 32;
/// A text is source code if at least this share of its lines reads like it, in percent.
const CODE_SHARE: usize = 50;
/// The bytes of a text of which every line is read to find out whether it is source code; of one with n times as many, every
/// n-th line.
const SAMPLE: usize = 1 << 16;
/// The longest line, in bytes, that can be a note on what a client has cut.
const LONGEST_NOTE: usize = 200;

/// The most tokens of a result when it enters, given the cap for ordinary ones.
pub(super) fn entry_cap(entry: &LinkedItem<'_>, cap: usize, key: &PointerKey) -> usize {
    let text = entry.item.text;
    let factor = if is_cut(text) {
        CUT
    } else if entry.is_error() || !key.find_in(text).is_empty() || is_code(text) || reports_error(text) {
        ROOMY
    } else {
        1
    };
    cap.saturating_mul(factor)
}

/// Whether the text holds the report of an error with its place in the code.
fn reports_error(text: &str) -> bool {
    ["Traceback (most recent", "panicked at", "\n    at "].iter().any(|sign| text.contains(sign))
}

/// Whether most lines read like source code, whatever the language and with or without line numbers.
fn is_code(text: &str) -> bool {
    // Of a long text a sample of the lines says as much.
    let step = 1 + text.len() / SAMPLE;
    let (mut code, mut all) = (0_usize, 0_usize);
    for line in lines(text).step_by(step).map(without_number).filter(|line| !line.is_empty()) {
        all += 1;
        code += usize::from(is_code_line(line));
    }
    code * 100 >= all * CODE_SHARE && all > 0
}

fn is_code_line(line: &str) -> bool {
    const ENDS: [char; 9] = ['{', '}', ';', ',', '(', '[', ']', '\\', ':'];
    const STARTS: [&str; 8] = ["#", "//", "/*", "* ", "*/", "\"\"\"", "'''", "@"];
    const SIGNS: [&str; 7] = [" = ", "==", "+=", "->", "=>", "::", ":="];
    line.ends_with(ENDS)
        || STARTS.iter().any(|start| line.starts_with(start))
        || SIGNS.iter().any(|sign| line.contains(sign))
        || is_call(line)
        || line.chars().all(|c| c.is_ascii_punctuation())
        || is_instruction(line)
}

/// Whether the line shows machine code: an address and bytes.
fn is_instruction(line: &str) -> bool {
    const ADDRESS: usize = 6;
    let is_hex = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut words = line.split([' ', '\t', ':']).filter(is_hex);
    words.next().is_some_and(|address| address.len() >= ADDRESS)
        && words.next().is_some_and(|bytes| bytes.len() % 2 == 0)
}

/// Whether a name is followed by an opening parenthesis.
fn is_call(line: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    line.as_bytes().windows(2).any(|pair| pair[1] == b'(' && is_name(pair[0]))
}

/// A line without the number, or file name and number, that editors and searches put before it.
fn without_number(line: &str) -> &str {
    let line = line.trim();
    let numbered = |line: &'_ str| {
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        (digits > 0 && line[digits..].starts_with([':', '\t', '|', '-', ' '])).then_some(digits + 1)
    };
    let after_name = || {
        let name = line.find(':')? + 1;
        Some(name + numbered(&line[name..])?)
    };
    numbered(line).or_else(after_name).map_or(line, |at| line[at..].trim_start())
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
    fn source_code_is_recognised_with_and_without_line_numbers() {
        let code = "def area(shape):\n    # The usual formula.\n    width = shape.width\n    return width * shape.height\n";
        let numbered: String =
            code.lines().enumerate().map(|(at, line)| format!("{:>6}\t{line}\n", at + 1)).collect();
        let found: String =
            code.lines().enumerate().map(|(at, line)| format!("src/shape.py:{}:{line}\n", at + 1)).collect();
        for text in [code, &numbered, &found] {
            assert!(is_code(text), "{text}");
        }
        let listing = "README.md\nsrc\nsrc/main.rs\ntests\n";
        let log =
            "Collecting requests\n  Downloading requests-2.32.3\nInstalling collected packages: requests\n";
        for text in [listing, log, "", "\n\n"] {
            assert!(!is_code(text), "{text}");
        }
    }

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
