//! Texts as their values are read: without markers of citations and the markup of links, and with the digits of a number
//! together that spaces or apostrophes group.

use std::ops::Range;

use super::amounts;

/// Digits between brackets that name a reference rather than a number.
const REFERENCE: usize = 2;

/// An answer whose markers of citations, such as `[1, 2]`, `[^1]` and `[context.md§2]`, and the brackets of whose links are
/// spaces.
pub(super) fn without_markup(answer: &str) -> String {
    let mut text = answer.to_owned();
    let mut from = 0;
    while let Some(start) = text[from..].find('[').map(|at| from + at) {
        let Some(end) = text[start..].find(']').map(|at| start + at + 1) else { break };
        let inner = &text[start + 1..end - 1];
        let is_link = text[end..].starts_with('(');
        let is_numbers = |char: char| char.is_ascii_digit() || matches!(char, ',' | ' ' | 'p' | '-');
        let is_citation = inner.starts_with('^')
            || inner.chars().all(is_numbers) && (!is_link || inner.len() <= REFERENCE)
            || !is_link && inner.contains('§');
        let blank = |text: &mut String, range: Range<usize>| {
            let spaces = " ".repeat(range.len());
            text.replace_range(range, &spaces);
        };
        from = start + 1;
        if is_citation {
            blank(&mut text, start..end);
            from = end;
        }
        if is_link {
            // The address is read by itself.
            blank(&mut text, start..start + 1);
            blank(&mut text, end - 1..end + 1);
            if let Some(close) = text[end + 1..].find([')', '\n']).map(|at| end + 1 + at) {
                blank(&mut text, close..close + 1);
            }
        }
    }
    text
}

/// A text with the groups of each number together: `1 299,00 €` becomes `1299,00 €`. Narrow and protected spaces and
/// apostrophes group digits by themselves; plain spaces do in an amount of money, and where `is_number` knows the whole.
pub(super) fn with_joined_groups(text: &str, is_number: impl Fn(&str) -> bool) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut done = 0;
    let mut at = 0;
    while let Some(start) = text[at..].find(|char: char| char.is_ascii_digit()).map(|found| at + found) {
        let first = start + digits(&text[start..]);
        at = first;
        let Some(groups) = groups(text, start, first) else { continue };
        let end = groups.last().map_or(first, |group| group.end);
        let is_plain = text[first..].starts_with(' ');
        let whole: String = text[start..end].chars().filter(char::is_ascii_digit).collect();
        if !is_plain || amounts::is_money(text, start, end) || is_number(&whole) {
            joined.push_str(&text[done..start]);
            joined.push_str(&whole);
            (done, at) = (end, end);
        }
    }
    joined.push_str(&text[done..]);
    joined
}

/// The groups of three digits after the first digits of a number, all with the same separator.
fn groups(text: &str, start: usize, first: usize) -> Option<Vec<Range<usize>>> {
    let joins =
        |char: char| char.is_alphanumeric() || matches!(char, '+' | '.' | ',' | '-' | '/' | ':' | '×');
    let is_part = text[..start].chars().next_back().is_some_and(joins);
    let separator = text[first..]
        .chars()
        .next()
        .filter(|char| matches!(char, ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}' | '\'' | '’'))?;
    if is_part || first - start > 3 || text[start..].starts_with('0') {
        return None;
    }
    let mut groups = Vec::new();
    let mut at = first;
    while let Some(after) = text[at..].strip_prefix(separator) {
        let length = digits(after);
        if length == 0 {
            break;
        }
        // A longer or shorter group makes a telephone number or the like of it.
        if length != 3 {
            return None;
        }
        let start = at + separator.len_utf8();
        groups.push(start..start + length);
        at = start + length;
    }
    (!groups.is_empty()).then_some(groups)
}

fn digits(text: &str) -> usize {
    text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len())
}
