//! Character references: `&amp;`, `&#8217;`, `&#x2019;`.
//!
//! Knows the tables of the HTML standard. An unknown reference stays unchanged, which loses nothing.

use markup5ever::data::{C1_REPLACEMENTS, NAMED_ENTITIES};

/// The longest name of the standard, in bytes.
const MAX_NAME: usize = 32;
/// Names that are valid without a semicolon; with others, `&copy=1` in an address is more likely than a character.
const UNCLOSED: [&str; 5] = ["amp", "lt", "gt", "quot", "nbsp"];

/// The character for the reference at the start of `text`, and the reference's length in bytes.
fn reference(text: &str) -> Option<(char, usize)> {
    let body = text.strip_prefix('&')?;
    let in_name = |b: &u8| b.is_ascii_alphanumeric() || *b == b'#';
    let name_end = body.bytes().take(MAX_NAME).take_while(in_name).count();
    let name = &body[..name_end];
    let closed = body[name_end..].starts_with(';');
    let end = name_end + usize::from(closed);
    let c = match name.strip_prefix('#') {
        Some(number) => numeric(number)?,
        // The table lists names with their semicolon.
        None if closed || UNCLOSED.contains(&name) => named(&body[..end])?,
        None => return None,
    };
    Some((c, 1 + end))
}

fn numeric(number: &str) -> Option<char> {
    let code = match number.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => number.parse(),
    };
    let code = code.ok()?;
    // Browsers read 128 to 159 as Windows-1252.
    let replaced = code.checked_sub(0x80).and_then(|at| *C1_REPLACEMENTS.get(at as usize)?);
    replaced.or_else(|| char::from_u32(code)).filter(|c| !c.is_control() || c.is_whitespace())
}

/// The character for a name. The few names that represent two characters are left as written.
fn named(name: &str) -> Option<char> {
    match NAMED_ENTITIES.get(name) {
        // Prefixes of names are listed without a character.
        Some(&(code @ 1.., 0)) => char::from_u32(code),
        _ => None,
    }
}

/// `text` with references resolved and white space collapsed.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for_each_char(text, |_, c| {
        if !c.is_whitespace() {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
    });
    out.truncate(out.trim_end().len());
    out
}

/// Calls `each` with every decoded character and its position in `text`.
pub fn for_each_char(text: &str, mut each: impl FnMut(std::ops::Range<usize>, char)) {
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let (c, len) = match c {
            '&' => reference(&text[at..]).unwrap_or((c, 1)),
            _ => (c, c.len_utf8()),
        };
        each(at..at + len, c);
        at += len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved_and_unknown_ones_stay() {
        for (text, expected) in [
            ("Q&amp;A &lt;b&gt;", "Q&A <b>"),
            ("it&#8217;s &#x2014; &#146;so", "it’s — ’so"),
            ("a&nbsp;\n b", "a b"),
            ("R&D, AT&T; &unknown; &", "R&D, AT&T; &unknown; &"),
            ("&#0; &#xFFFFFFFF; &#55555;", "&#0; &#xFFFFFFFF; &#55555;"),
            ("a&ampb &copy &amp", "a&ampb &copy &"),
            ("&Zcaron;&rarr;&hellip; &CounterClockwiseContourIntegral;", "Ž→… ∳"),
            ("&fjlig; &am; &;", "&fjlig; &am; &;"),
        ] {
            assert_eq!(plain(text), expected, "{text:?}");
        }
    }
}
