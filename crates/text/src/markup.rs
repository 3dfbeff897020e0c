//! A page's markup as a flat list of tokens with their byte ranges.
//!
//! Knows HTML's lexical rules; builds no tree, so nesting of any depth costs nothing, and knows nothing of a page's
//! meaning. Every byte is read a bounded number of times: once a closing quote or tag is known to be missing, it is
//! not searched for again.

use std::ops::Range;

use memchr::{memchr, memchr2, memmem};

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A start tag.
    Open,
    /// An end tag.
    Close,
    /// Text between tags.
    Text,
    /// The content of a script, style sheet, drawing and the like; for a caller also other text that is not shown.
    Hidden,
    /// A comment, a declaration.
    Comment,
}

/// A byte range of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Its bytes in the page.
    pub range: Range<usize>,
    /// The element's name, for tags and for hidden text.
    pub name: Range<usize>,
}

/// Elements whose content is not shown as text. In the first group, everything after an unclosed one is hidden too,
/// as in browsers.
const RAW: [&str; 9] =
    ["script", "style", "title", "textarea", "iframe", "noscript", "noembed", "noframes", "xmp"];
const NOT_TEXT: [&str; 7] = ["svg", "math", "template", "object", "audio", "video", "canvas"];

/// Tokens that tile `page`.
pub fn tokens(page: &str) -> Vec<Token> {
    let mut scanner =
        Scanner { page, at: 0, tokens: Vec::new(), unquoted: [false; 2], unclosed: [false; 16] };
    while let Some(start) = scanner.next_markup() {
        scanner.push(TokenKind::Text, scanner.at..start, start..start);
        if !scanner.markup(start) {
            break;
        }
    }
    scanner.push(TokenKind::Text, scanner.at..page.len(), page.len()..page.len());
    scanner.tokens
}

struct Scanner<'a> {
    page: &'a str,
    at: usize,
    tokens: Vec<Token>,
    /// No `"` follows; no `'` follows.
    unquoted: [bool; 2],
    /// No end tag follows for this element of [`RAW`] and [`NOT_TEXT`].
    unclosed: [bool; 16],
}

impl Scanner<'_> {
    fn push(&mut self, kind: TokenKind, range: Range<usize>, name: Range<usize>) {
        self.at = range.end;
        if !range.is_empty() {
            self.tokens.push(Token { kind, range, name });
        }
    }

    /// The next `<` that starts a tag, a comment or a declaration.
    fn next_markup(&self) -> Option<usize> {
        let bytes = self.page.as_bytes();
        let mut at = self.at;
        loop {
            at += memchr(b'<', &bytes[at..])?;
            let begins = match bytes.get(at + 1) {
                Some(b'/') => bytes.get(at + 2).is_some_and(|&b| b != b'<'),
                Some(byte) => byte.is_ascii_alphabetic() || matches!(byte, b'!' | b'?'),
                None => false,
            };
            if begins {
                return Some(at);
            }
            at += 1;
        }
    }

    /// Consumes the markup at `start`; false if it is unterminated and therefore text.
    fn markup(&mut self, start: usize) -> bool {
        let bytes = self.page.as_bytes();
        let close = bytes[start + 1] == b'/';
        let name_start = start + 1 + usize::from(close);
        let named = bytes.get(name_start).is_some_and(u8::is_ascii_alphabetic);
        if !named {
            let Some(end) = self.declaration_end(start) else { return false };
            self.push(TokenKind::Comment, start..end, start..start);
            return true;
        }
        let Some(end) = self.tag_end(name_start) else { return false };
        let in_name = |b: &&u8| !b.is_ascii_whitespace() && !matches!(b, b'/' | b'>');
        let name = name_start..name_start + bytes[name_start..end].iter().take_while(in_name).count();
        self.push(if close { TokenKind::Close } else { TokenKind::Open }, start..end, name.clone());
        if !close && !bytes[..end].ends_with(b"/>") {
            self.hidden(name);
        }
        true
    }

    /// Consumes the hidden content of the element `name`, which has just been opened.
    fn hidden(&mut self, name: Range<usize>) {
        let tag = &self.page[name.clone()];
        let known = RAW.iter().chain(&NOT_TEXT).position(|known| known.eq_ignore_ascii_case(tag));
        let Some(index) = known.filter(|&index| !self.unclosed[index]) else { return };
        let end = match self.closing_tag(tag) {
            Some(end) => end,
            None => {
                self.unclosed[index] = true;
                if index >= RAW.len() {
                    return;
                }
                self.page.len()
            }
        };
        self.push(TokenKind::Hidden, self.at..end, name);
    }

    /// The start of the next end tag of `name`.
    fn closing_tag(&self, name: &str) -> Option<usize> {
        let rest = &self.page.as_bytes()[self.at..];
        let closes = |at: &usize| {
            let after = &rest[at + 2..];
            let same = after.get(..name.len()).is_some_and(|tag| tag.eq_ignore_ascii_case(name.as_bytes()));
            same && !after.get(name.len()).is_some_and(u8::is_ascii_alphanumeric)
        };
        memmem::find_iter(rest, b"</").find(closes).map(|at| self.at + at)
    }

    fn declaration_end(&self, start: usize) -> Option<usize> {
        let rest = &self.page.as_bytes()[start..];
        if !rest.starts_with(b"<!--") {
            return memchr(b'>', rest).map(|at| start + at + 1);
        }
        let end = match rest {
            [_, _, _, _, b'>', ..] => 5,
            _ => memmem::find(&rest[4..], b"-->").map_or(rest.len(), |at| at + 7),
        };
        Some(start + end)
    }

    /// The end of the tag whose name starts at `name`. A quoted `>` does not end the tag, unless the quote is never
    /// closed.
    fn tag_end(&mut self, name: usize) -> Option<usize> {
        let bytes = self.page.as_bytes();
        let mut at = name;
        loop {
            at += memchr2(b'>', b'=', &bytes[at..])?;
            if bytes[at] == b'>' {
                return Some(at + 1);
            }
            at += 1;
            at += bytes[at..].iter().take_while(|b| b.is_ascii_whitespace()).count();
            let Some(&quote @ (b'"' | b'\'')) = bytes.get(at) else { continue };
            at += 1;
            let absent = &mut self.unquoted[usize::from(quote == b'\'')];
            let end = if *absent { None } else { memchr(quote, &bytes[at..]) };
            match end {
                Some(len) => at += len + 1,
                None => *absent = true,
            }
        }
    }
}

/// The attributes of a start tag: name and raw value, which is empty if there is none.
pub fn attributes(tag: &str) -> impl Iterator<Item = (&str, &str)> {
    let body = tag.strip_prefix('<').unwrap_or(tag);
    let body = body.strip_suffix('>').unwrap_or(body);
    let white = |c: char| c.is_ascii_whitespace() || c == '/';
    let mut rest = body.find(white).map_or("", |at| &body[at..]);
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(white);
        if rest.is_empty() {
            return None;
        }
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let len = first + rest[first..].find(|c| white(c) || c == '=').unwrap_or(rest.len() - first);
        let name = &rest[..len];
        rest = rest[len..].trim_start();
        let Some(value) = rest.strip_prefix('=').map(str::trim_start) else { return Some((name, "")) };
        let quoted = ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.split_once(quote));
        let (value, after) = match quoted {
            Some(split) => split,
            None => value.split_at(value.find(|c: char| c.is_ascii_whitespace()).unwrap_or(value.len())),
        };
        rest = after;
        Some((name, value))
    })
}

/// The value of the attribute `name`, raw.
pub fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    attributes(tag).find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

#[cfg(test)]
#[path = "markup_tests.rs"]
mod tests;
