//! Where sentences end. Knows only text, not where it comes from.

use std::ops::Range;

use larder_text::abbreviation::is_abbreviation;

/// The sentences of a text, without the white space around them. Empty lines and line breaks after a full stop end a
/// sentence too.
pub(crate) fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut push = |range: Range<usize>| {
        let part = &text[range.clone()];
        let from = range.start + (part.len() - part.trim_start().len());
        let range = from..from + part.trim().len();
        if text[range.clone()].chars().any(char::is_alphanumeric) {
            found.push(range);
        }
    };
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        let ends = match c {
            '.' | '!' | '?' | '…' => terminates(text, start, at, end),
            '。' | '！' | '？' => true,
            '\n' => text[end..].is_empty() || text[end..].starts_with('\n'),
            _ => false,
        };
        // The punctuation may be followed by quotation marks and brackets that belong to the sentence.
        let end = if ends { end + closing(&text[end..]) } else { end };
        if ends && end > start {
            push(start..end);
            start = end;
        }
    }
    push(start..text.len());
    found
}

/// Whether the ASCII punctuation at `at..end` ends the sentence that begins at `start`.
fn terminates(text: &str, start: usize, at: usize, end: usize) -> bool {
    let after = &text[end + closing(&text[end..])..];
    if !after.is_empty() && !after.starts_with(char::is_whitespace) || at < start {
        return false;
    }
    let next = after.trim_start().chars().next();
    let goes_on = next.is_some_and(char::is_lowercase) && !after.starts_with('\n');
    let is_stop = text[at..].starts_with('.');
    !(goes_on || is_stop && is_abbreviation(&text[start..at], &text[end..]))
}

/// Bytes of the closing punctuation at the beginning of a text.
fn closing(text: &str) -> usize {
    let is_closing = |c: char| matches!(c, '"' | '\'' | ')' | ']' | '”' | '’' | '»' | '“' | '*' | '_' | '`');
    text.len() - text.trim_start_matches(is_closing).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<&str> {
        sentences(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn sentences_end_at_their_signs_and_keep_numbers_whole() {
        let text = "It costs 2.50 today. Ask Ann!\n\nNo sign here\n\n彼は来た。帰った。 ... ";
        let whole = ["It costs 2.50 today.", "Ask Ann!", "No sign here", "彼は来た。", "帰った。"];
        assert_eq!(split(text), whole);
        assert!(sentences("").is_empty() && sentences(" \n . ").is_empty());
        assert_eq!(
            split("He said \"Go.\" She went (slowly.) Then?"),
            ["He said \"Go.\"", "She went (slowly.)", "Then?"]
        );
    }

    #[test]
    fn ordinals_and_abbreviations_do_not_end_sentences() {
        let german = "Der Termin wurde auf den 14. März verlegt. Das gilt z. B. für Dr. Smith. Ende des 19. Jahrhunderts.";
        assert_eq!(
            split(german),
            [
                "Der Termin wurde auf den 14. März verlegt.",
                "Das gilt z. B. für Dr. Smith.",
                "Ende des 19. Jahrhunderts.",
            ]
        );
        let english = "Use a tool, e.g. This one. Mr. Brown paid 14. It was 2019. Then he left.";
        assert_eq!(
            split(english),
            ["Use a tool, e.g. This one.", "Mr. Brown paid 14.", "It was 2019.", "Then he left.",]
        );
    }
}
