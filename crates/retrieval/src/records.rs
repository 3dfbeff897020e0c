//! Dividing documents into the records that are ranked: paragraphs with their headings, messages with author and day,
//! entries with the id that their heading gives them.
//!
//! Pure. Knows the forms of texts; does not know documents or queries.

use std::ops::Range;

use chrono::NaiveDate;

use crate::index::{day_of, is_id};

/// A longer paragraph is divided between lines, in bytes, and a longer line within it.
const MAX_BYTES: usize = 1_200;
/// A longer name before a colon is not an author's.
const MAX_AUTHOR: usize = 40;
/// A longer stamp before a message is not one.
const MAX_STAMP: usize = 64;

/// A stretch of a text that is ranked and shown as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RecordStretch<'t> {
    /// Where it is in the text, with the blank lines after it.
    pub(super) bytes: Range<usize>,
    /// The author of a message such as `[8 May 2023] Ann: Hello.` or `**Ann**: Hello.`
    pub(super) author: Option<&'t str>,
    /// The day it was written, if stated.
    pub(super) day: Option<NaiveDate>,
    /// The id of an entry: `pers-1` of `### Ann Lee (ID: pers-1)` and of `### pers-1 (Ann)`.
    pub(super) id: Option<&'t str>,
}

/// The stretches that tile a text, in order.
pub(super) fn divide(text: &str) -> Vec<RecordStretch<'_>> {
    let mut stretches = Vec::new();
    let (mut start, mut at) = (0, 0);
    // Whether the paragraph from `start` on has more than headings, and whether a blank line has ended it.
    let (mut has_text, mut ended) = (false, false);
    for line in text.split_inclusive('\n') {
        let (blank, heading) = (line.trim().is_empty(), is_heading(line));
        let ends = has_text && (ended || heading);
        if at > start && !blank && (ends || at + line.len() - start > MAX_BYTES) {
            stretches.push(stretch(text, start..at));
            (start, has_text) = (at, false);
        }
        has_text |= !blank && !heading;
        ended = blank;
        at += line.len();
        while at - start > MAX_BYTES && !blank {
            let end = start + text[start..at].floor_char_boundary(MAX_BYTES);
            stretches.push(stretch(text, start..end));
            start = end;
        }
    }
    if start < text.len() {
        stretches.push(stretch(text, start..text.len()));
    }
    stretches
}

fn is_heading(line: &str) -> bool {
    let hashes = line.bytes().take_while(|&byte| byte == b'#').count();
    (1..=6).contains(&hashes) && line[hashes..].starts_with(' ')
}

fn stretch(text: &str, bytes: Range<usize>) -> RecordStretch<'_> {
    let own = &text[bytes.clone()];
    let first = own.lines().next().unwrap_or_default();
    let (day, rest) = stamp(first);
    let id = is_heading(first).then(|| entry_id(first)).flatten();
    RecordStretch { bytes, author: author(rest, day.is_some()), day, id }
}

/// The bracketed day before a message, and the rest of the line.
fn stamp(line: &str) -> (Option<NaiveDate>, &str) {
    let stamped = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    let day = stamped.filter(|(stamp, _)| stamp.len() <= MAX_STAMP).and_then(|(stamp, _)| day_of(stamp));
    match (day, stamped) {
        (Some(day), Some((_, rest))) => (Some(day), rest),
        _ => (None, line),
    }
}

/// The author of a message: the name before its colon, in bold unless a stamp precedes it.
fn author(line: &str, stamped: bool) -> Option<&str> {
    let bold = line.strip_prefix("**").and_then(|rest| rest.split_once("**"));
    let name = match bold {
        Some((name, rest)) if rest.starts_with(':') => name,
        Some((name, _)) => name.strip_suffix(':')?,
        None if stamped => line.split_once(": ")?.0,
        None => return None,
    };
    (!name.is_empty() && name.len() <= MAX_AUTHOR).then_some(name)
}

/// The id that a heading names as `(ID: …)` or begins with.
fn entry_id(heading: &str) -> Option<&str> {
    let heading = heading.trim_start_matches('#').trim();
    let named = heading.split_once("(ID: ").and_then(|(_, rest)| rest.split_once(')'));
    match named {
        Some((id, _)) => is_id(id).then_some(id),
        // Words with a hyphen begin headings of prose, too.
        None => heading
            .split(' ')
            .next()
            .filter(|word| is_id(word) && word.contains(|c: char| c.is_ascii_digit())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        let stretches = divide(text);
        let tiles: String = stretches.iter().map(|it| &text[it.bytes.clone()]).collect();
        assert_eq!(tiles, text, "stretches tile the text");
        stretches.into_iter().map(|it| text[it.bytes].trim_end()).collect()
    }

    #[test]
    fn paragraphs_are_stretches_and_headings_belong_to_the_next() {
        assert_eq!(
            texts("# Title\n\nFirst\nparagraph.\n\n\nSecond.\n## Part\n### Deeper\nThird.\n"),
            ["# Title\n\nFirst\nparagraph.", "Second.", "## Part\n### Deeper\nThird."]
        );
        assert_eq!(texts("#tag is text\n\nnext"), ["#tag is text", "next"]);
        assert!(texts("").is_empty());
        assert_eq!(texts("\n\nx"), ["\n\nx"]);
    }

    #[test]
    fn long_paragraphs_are_divided_between_lines_and_long_lines_within() {
        let lines = "a line of some words\n".repeat(100);
        let divided = texts(&lines);
        assert!(divided.len() == 2 && divided[0].ends_with("words"), "{divided:?}");
        let divided = texts(&"猫".repeat(1_000)).iter().map(|part| part.len()).collect::<Vec<_>>();
        assert_eq!(divided, [1_200, 1_200, 600]);
    }

    #[test]
    fn messages_have_an_author_and_a_day() {
        let message = |text| {
            let first = divide(text).remove(0);
            (first.author, first.day.map(|day| day.to_string()))
        };
        let day = || Some("2023-05-08".to_owned());
        assert_eq!(message("[1:56 pm on 8 May, 2023] Ann Lee: Hi."), (Some("Ann Lee"), day()));
        assert_eq!(message("[2023-05-08] **Ann**: Hi."), (Some("Ann"), day()));
        assert_eq!(message("**Ann:** Hi."), (Some("Ann"), None));
        for plain in ["city: Oslo", "[see note] Ann: Hi.", "**Bold** words: yes", "Note: it rains."] {
            assert_eq!(message(plain), (None, None), "{plain}");
        }
    }

    #[test]
    fn headings_with_ids_begin_entries() {
        let id = |text| divide(text).remove(0).id;
        assert_eq!(id("### pet-1 (owner: pers-1)\nname: Rex"), Some("pet-1"));
        assert_eq!(id("### Ann Lee (ID: pers-1)\nborn: 1980"), Some("pers-1"));
        for none in ["## Budget\n5,000", "## Pre-flight checks\nx", "pet-1 is a dog", "## 0. User Query\nx"] {
            assert_eq!(id(none), None, "{none}");
        }
    }
}
