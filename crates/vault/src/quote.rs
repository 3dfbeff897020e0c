//! Untrusted text in Larder's documents: written so that it cannot open a section, imitate a field, create a link or
//! affect what follows it; read back byte for byte.
//!
//! A text is written unchanged if that is safe. Lines that would start something get a backslash. Anything else that
//! could have effects outside its place (links into the vault, block ids, unclosed fences, other kinds of line
//! breaks) puts the whole text inside a fence.

use std::borrow::Cow;
use std::fmt::Write as _;

use pulldown_cmark::{Event, Parser, Tag};

use super::links::{Dialect, LinkKind, is_external, scan};
use super::write::{escape_lines, unescape_lines};

/// The info string of Larder's fences.
const INFO: &str = "text";
/// Longer texts, in bytes, are fenced without being examined.
const LONGEST_PLAIN: usize = 256 * 1024;
/// Characters that a backslash may escape inside a line.
const SPECIAL: [char; 8] = ['\\', '|', '[', '(', ':', '<', '&', '^'];

/// Writes `text` as a block of lines, without a trailing line break. `special` tests whether a line would start
/// something.
pub(super) fn block(text: &str, special: impl Fn(&str) -> bool) -> String {
    let text = if stands_alone(text) { Cow::Borrowed(text) } else { Cow::Owned(fenced(text)) };
    escape_lines(&text, special).into_owned()
}

/// Decodes what [`block`] wrote; surrounding blank lines are layout.
pub(super) fn unblock(raw: &str, special: impl Fn(&str) -> bool) -> String {
    let text = unescape_lines(raw.trim(), special);
    unfenced(&text).unwrap_or(&text).to_owned()
}

/// Puts `text` inside a fence longer than any in it.
pub(super) fn fenced(text: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    format!("{fence}{INFO}\n{text}\n{fence}")
}

/// The text inside one of Larder's fences, if `text` is exactly one.
pub(super) fn unfenced(text: &str) -> Option<&str> {
    let (opening, rest) = text.split_once('\n')?;
    let fence = opening.strip_suffix(INFO)?;
    let is_fence = fence.len() >= 3 && fence.bytes().all(|byte| byte == b'`');
    // An empty line between the fences is the line break that every text gets.
    let inner = rest.strip_suffix(fence).filter(|_| is_fence)?.strip_suffix('\n')?;
    (longest_run(inner) < fence.len()).then_some(inner)
}

fn longest_run(text: &str) -> usize {
    text.split(|char: char| char != '`').map(str::len).max().unwrap_or(0)
}

/// Whether `text` can be embedded as Markdown: trimming loses nothing, and nothing in it links into the vault or
/// affects what follows.
pub(super) fn stands_alone(text: &str) -> bool {
    let odd = |mark: &str| text.matches(mark).count() % 2 == 1;
    let control = |char: char| char.is_control() && !matches!(char, '\n' | '\t');
    text.len() <= LONGEST_PLAIN
        && !text.is_empty()
        && text.trim() == text
        && !text.contains(control)
        && unfenced(text).is_none()
        && !odd("%%")
        && !odd("$$")
        && !text.lines().any(|line| block_id_at_end(line).is_some())
        && ends_by_itself(text)
        && scan(text, Dialect::Vault)
            .iter()
            .all(|link| link.kind != LinkKind::Wiki && is_external(&link.path))
}

/// Whether a heading after `text` belongs to the document: no fence, comment or list is left open.
fn ends_by_itself(text: &str) -> bool {
    let with_heading = format!("{text}\n\n# x\n");
    let events = Parser::new_ext(&with_heading, Dialect::Vault.options()).into_offset_iter();
    // A definition is invisible, and turns words elsewhere into links.
    if events.reference_definitions().iter().next().is_some() {
        return false;
    }
    let mut depth = 0_usize;
    for (event, range) in events {
        match event {
            Event::Html(html) | Event::InlineHtml(html) if opens_raw_text(&html) => return false,
            Event::Start(Tag::Heading { .. }) if depth == 0 && range.start == text.len() + 2 => return true,
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// Whether a browser may treat text after this tag or comment as part of it.
fn opens_raw_text(html: &str) -> bool {
    const RAW: [&str; 10] = [
        "<!--",
        "<script",
        "<style",
        "<textarea",
        "<title",
        "<xmp",
        "<iframe",
        "<noembed",
        "<noframes",
        "<plaintext",
    ];
    let html = html.to_ascii_lowercase();
    RAW.iter().any(|tag| html.contains(tag))
}

/// Whether `text`, which [`stands_alone`], can also follow a label on its line. Next to other texts its code and
/// mathematics marks may pair differently, so it must contain no links even without them.
pub(super) fn stands_in_line(text: &str) -> bool {
    let tag = |at: usize| {
        text[at + 1..].starts_with(|char: char| char.is_ascii_alphabetic() || "/!?".contains(char))
    };
    !text.contains('\n')
        && !["[[", "](", "][", "]:"].iter().any(|mark| text.contains(mark))
        && !text.match_indices('<').any(|(at, _)| tag(at))
}

/// The start and name of the block id at the end of `line`. Untrusted text is escaped so that it has none.
pub(super) fn block_id_at_end(line: &str) -> Option<(usize, &str)> {
    let line = line.trim_end();
    let (before, name) = line.rsplit_once('^')?;
    let named = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (named && (before.is_empty() || before.ends_with([' ', '\t', '|']))).then_some((before.len(), name))
}

/// Writes `text` as part of one line, such as a list item or field. Line breaks become `<br>`; control characters and
/// outer spaces become character references; nothing in it creates links, block ids or cell ends.
pub(super) fn inline(text: &str) -> String {
    inline_without(text, &[])
}

/// As [`inline`], for places where `signs` have a meaning: they become character references too.
pub(super) fn inline_without(text: &str, signs: &[char]) -> String {
    let mut written = String::with_capacity(text.len());
    let mut before = '\n';
    let mut chars = text.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        let at_end = next.is_none();
        let escaped = match char {
            '\\' => next.is_none_or(|next| {
                SPECIAL.contains(&next) || next.is_control() || next.is_whitespace() || signs.contains(&next)
            }),
            '[' => matches!(before, '[' | '\n'),
            '(' | ':' => before == ']',
            '|' => true,
            '<' => next.is_some_and(|next| next.is_ascii_alphabetic() || "/!?".contains(next)),
            '&' => text[at..].starts_with("&#"),
            '^' => block_id_at_end(text).is_some_and(|(id, _)| id == at),
            _ => false,
        };
        match char {
            '\n' => written.push_str("<br>"),
            char if char.is_control()
                || signs.contains(&char)
                || char.is_whitespace() && (at == 0 || at_end) =>
            {
                // Writing to a string cannot fail.
                let _ = write!(written, "&#{};", u32::from(char));
            }
            char => {
                if escaped {
                    written.push('\\');
                }
                written.push(char);
            }
        }
        before = char;
    }
    written
}

/// Decodes what [`inline`] wrote; surrounding spaces are layout.
pub(super) fn uninline(raw: &str) -> String {
    let mut read = String::with_capacity(raw.len());
    let mut rest = raw.trim();
    while let Some(char) = rest.chars().next() {
        let after = &rest[char.len_utf8()..];
        rest = match char {
            '\\' if after.starts_with(SPECIAL) => {
                read.extend(after.chars().next());
                &after[1..]
            }
            '<' if after.starts_with("br>") => {
                read.push('\n');
                &after[3..]
            }
            '&' => match reference(after) {
                Some((referred, length)) => {
                    read.push(referred);
                    &after[length..]
                }
                None => {
                    read.push('&');
                    after
                }
            },
            char => {
                read.push(char);
                after
            }
        };
    }
    read
}

/// The character encoded by `#10;`, and the length of the reference.
fn reference(text: &str) -> Option<(char, usize)> {
    let end = text.bytes().take(9).position(|byte| byte == b';')?;
    let number = text[..end].strip_prefix('#')?;
    let char = number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok())??;
    Some((char::from_u32(char)?, end + 1))
}

#[cfg(test)]
#[path = "quote_tests.rs"]
pub(super) mod tests;
