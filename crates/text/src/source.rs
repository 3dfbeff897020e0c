//! Source code as tools show it: what reads like code, and the line numbers that tools put before it.
//!
//! Knows lines; does not know languages.

use crate::lines::lines;

/// A text is source code if at least this share of its lines reads like it, in percent.
const CODE_SHARE: usize = 50;
/// The bytes of a text that are read to find out whether it is source code.
const SAMPLE: usize = 1 << 16;
/// The stretches that are read of a longer text, spread evenly.
const STRETCHES: usize = 16;
/// A text has line numbers if at least this share of its lines begins with one, in percent.
const NUMBERED_SHARE: usize = 75;

/// Whether most lines read like source code, whatever the language and with or without line numbers.
pub fn is_code(text: &str) -> bool {
    let (mut code, mut all) = (0_usize, 0_usize);
    for line in sample(text).flat_map(lines).map(without_number).filter(|line| !line.is_empty()) {
        all += 1;
        code += usize::from(is_code_line(line));
    }
    code * 100 >= all * CODE_SHARE && all > 0
}

/// The stretches of a text that are read, in whole lines.
fn sample(text: &str) -> impl Iterator<Item = &str> {
    let (stretches, bytes) =
        if text.len() > SAMPLE { (STRETCHES, SAMPLE / STRETCHES) } else { (1, text.len()) };
    let line_end =
        |at: usize| memchr::memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |end| at + end + 1);
    let mut done = 0;
    (0..stretches).map(move |at| {
        let from = text.len() / stretches * at;
        let start = if at == 0 { 0 } else { line_end(from) };
        // Behind a long line, which the stretch before has reached.
        if start < done {
            return "";
        }
        done = line_end((start + bytes).min(text.len())).max(start);
        &text[start..done]
    })
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
        let sign =
            line[digits..].chars().next().filter(|sign| [':', '\t', '→', '|', '-', ' '].contains(sign));
        sign.filter(|_| digits > 0).map(|sign| digits + sign.len_utf8())
    };
    let after_name = || {
        let name = line.find(':')? + 1;
        Some(name + numbered(&line[name..])?)
    };
    numbered(line).or_else(after_name).map_or(line, |at| line[at..].trim_start())
}

/// The text without the number before each line, as `cat -n`, `grep -n` and editors write it; `None` if most lines have
/// none. It has the same lines, and their indentation.
pub fn without_line_numbers(text: &str) -> Option<String> {
    let (mut numbered, mut all) = (0_usize, 0_usize);
    let mut plain = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let rest = after_number(line);
        all += 1;
        numbered += usize::from(rest.is_some());
        plain.push_str(rest.unwrap_or(line));
    }
    (numbered * 100 >= all * NUMBERED_SHARE && all > 0).then_some(plain)
}

/// What follows a line's number and the sign after it.
fn after_number(line: &str) -> Option<&str> {
    let line = line.trim_start_matches(' ');
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = Some(rest).filter(|rest| rest.len() < line.len())?;
    rest.strip_prefix(" | ").or_else(|| rest.strip_prefix([':', '\t', '→', '|']))
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
    fn of_a_long_text_every_part_counts_once() {
        let (code, prose) = ("    total = total + one;\n", "The crane lifts one crate after the other\n");
        assert!(is_code(&code.repeat(SAMPLE)) && !is_code(&prose.repeat(SAMPLE)));
        let mixed = |first: &str, last: &str| is_code(&[first.repeat(9_000), last.repeat(4_000)].concat());
        assert!(mixed(code, prose) && !mixed(prose, code));
        let lines = [code.repeat(100), prose.repeat(4_000)].concat();
        let behind = format!("{}\n{lines}", "x".repeat(16 * SAMPLE));
        assert_eq!(sample(&behind).filter(|stretch| stretch.contains(code)).count(), 1);
        assert!(!is_code(&behind));
    }

    #[test]
    fn line_numbers_are_taken_off_and_indentation_stays() {
        let code = "def area(shape):\n    width = 12\n\n    return width: 3\n";
        for sign in ["\t", "→", ":", "|", " | "] {
            for width in [1, 6] {
                let number = |(at, line): (usize, &str)| format!("{:>width$}{sign}{line}", at + 1);
                let numbered: String = code.split_inclusive('\n').enumerate().map(number).collect();
                assert_eq!(without_line_numbers(&numbered).as_deref(), Some(code), "{numbered}");
            }
        }
        for text in [code, "", "12 apples\n13 pears\n", "1: one\ntwo\nthree\n"] {
            assert_eq!(without_line_numbers(text), None, "{text}");
        }
    }
}
