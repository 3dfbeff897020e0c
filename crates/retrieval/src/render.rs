//! Candidates as text for prompts. Whatever documents say is data: on one line it can start nothing, in blocks every
//! line that would start a section is escaped.

use larder_vault::{DocumentTime, Hours, escape};

/// Characters of a text that is shown on one line.
const LONGEST_LINE: usize = 400;

/// Whether a character is seen by a model and not by a person: marks of direction, joiners, tags.
const fn is_invisible(char: char) -> bool {
    matches!(
        char,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// A text on one line: spaces for line breaks and control characters, without invisible ones, cut with `…` after 400
/// characters.
pub fn line(text: &str) -> String {
    let words = text.split(|char: char| char.is_whitespace() || char.is_control());
    let mut line = String::new();
    let mut length = 0;
    for word in words.filter(|word| !word.is_empty()) {
        if length > 0 {
            line.push(' ');
        }
        for char in word.chars().filter(|char| !is_invisible(*char)) {
            if length >= LONGEST_LINE {
                return line + "…";
            }
            line.push(char);
            length += 1;
        }
        length += 1;
    }
    line
}

/// A text of several lines as data.
pub fn block(text: &str) -> String {
    escape(text).into_owned()
}

/// `2026-01-05T10:00:00Z, 2.5 hours ago`.
pub fn when(moment: DocumentTime, age_seconds: u64) -> String {
    format!("{moment}, {} hours ago", Hours::from_seconds(age_seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line() {
        assert_eq!(line(" a\r\n## 5. Synthesis\u{0}\u{2028}b "), "a ## 5. Synthesis b");
        assert_eq!(line(&"x".repeat(1_000)).chars().count(), LONGEST_LINE + 1);
        assert_eq!(block("## 5. Synthesis\n"), "\\## 5. Synthesis\n");
    }
}
