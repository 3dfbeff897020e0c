//! Texts as their values are read: without markers of citations and the markup of links, and with the digits of a number
//! together that spaces or apostrophes group; tables of data as those of text.

use std::borrow::Cow;
use std::ops::Range;

use larder_text::json::{self, Document, Edit, Kind, Value};

use super::{BOUNDARY, amounts, currencies, digits};

/// Digits between brackets that name a reference rather than a number.
const REFERENCE: usize = 2;

/// An answer whose markers of citations, such as `[1, 2]`, `[^1]` and `[context.md§2]`, and the brackets of whose links are
/// spaces.
pub(super) fn without_markup(answer: &str) -> String {
    let mut text = answer.to_owned();
    let mut from = 0;
    // The next of each mark, which may be far away.
    let (mut end, mut close, mut sign) = (0, 0, 0);
    // Before these places, none is left.
    let (mut ended, mut closed) = (0, 0);
    while let Some(start) = text[from..].find('[').map(|at| from + at) {
        if end <= start {
            let Some(at) = text[start.max(ended)..].find(']') else { break };
            end = start.max(ended) + at + 1;
        }
        if sign <= start {
            sign = text[start..].find('§').map_or(text.len(), |at| start + at);
        }
        let inner = &text[start + 1..end - 1];
        let is_link = text[end..].starts_with('(');
        if is_link && close < end.max(closed) {
            let from = end.max(closed);
            close = text[from..].find([')', '\n']).map_or(text.len(), |at| from + at);
        }
        let is_numbers = |char: char| char.is_ascii_digit() || matches!(char, ',' | ' ' | 'p' | '-');
        let ends = || text[close..].trim_start_matches([')', '*', '_', ' ']);
        let is_reference = || inner.len() <= REFERENCE && !ends().starts_with(char::is_alphanumeric);
        let is_citation = inner.starts_with('^')
            || inner.chars().all(is_numbers) && (!is_link || is_reference())
            || !is_link && sign < end;
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
            if text[close..].starts_with(')') {
                blank(&mut text, close..close + 1);
                closed = close + 1;
            }
            (ended, end) = (end, 0);
        }
    }
    text
}

/// Documents with the tables of data in JSON, `{"headers": […], "rows": [[…]]}`, as tables of Markdown, in which a number is
/// one of a row and a column. What is in the tables and around them is spelled as it was.
pub(super) fn with_tables(documents: &str) -> Cow<'_, str> {
    const ROWS: &str = "\"rows\"";
    if !documents.contains(ROWS) {
        return Cow::Borrowed(documents);
    }
    let read = |document: &str| {
        let is_data = document.contains(ROWS) && document.trim_start().starts_with(['{', '[']);
        let json = is_data.then(|| Document::parse(document).ok()).flatten()?;
        let (mut taken, mut tables) = (Vec::new(), String::new());
        take_tables(json.root(), &mut taken, &mut tables);
        Some(format!("{}\n{tables}", json::apply(document, taken).ok()?))
    };
    let read =
        documents.split(BOUNDARY).map(|document| read(document).unwrap_or_else(|| document.to_owned()));
    Cow::Owned(read.collect::<Vec<_>>().join(BOUNDARY))
}

/// Moves the tables of a value to a text.
fn take_tables(value: Value<'_, '_>, taken: &mut Vec<Edit>, tables: &mut String) {
    let rows = value.get("headers").and_then(|headers| {
        let rows = value.get("rows").filter(|rows| rows.kind() == Kind::Array)?;
        tables.extend(std::iter::once(headers).chain(rows.items()).map(row));
        tables.push('\n');
        taken.push(Edit::replace(rows.span(), "[]"));
        Some(rows.id())
    });
    let inside = value.items().chain(value.members().map(|(_, value)| value));
    inside.filter(|value| Some(value.id()) != rows).for_each(|value| take_tables(value, taken, tables));
}

fn row(cells: Value<'_, '_>) -> String {
    let text =
        |cell: Value<'_, '_>| cell.text().unwrap_or(Cow::Borrowed(cell.raw())).replace(['|', '\n'], " ");
    let cells: Vec<String> = cells.items().map(text).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// A text with the groups of each number together: `1 299,00 €` becomes `1299,00 €`. Narrow and protected spaces and
/// apostrophes group digits by themselves; plain spaces do in an amount of money that follows no name, and where
/// `is_number` knows the whole.
pub(super) fn with_joined_groups(text: &str, is_number: impl Fn(&str) -> bool) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut done = 0;
    let mut at = 0;
    while let Some(start) = text[at..].find(|char: char| char.is_ascii_digit()).map(|found| at + found) {
        let first = start + digits(&text[start..]);
        let groups = Groups::of(text, start, first);
        at = groups.end;
        if !groups.are_one_number {
            continue;
        }
        let whole: String = text[start..at].chars().filter(char::is_ascii_digit).collect();
        let is_plain = text[first..].starts_with(' ');
        if !is_plain || is_amount(text, start, at) || is_number(&whole) {
            joined.push_str(&text[done..start]);
            joined.push_str(&whole);
            done = at;
        }
    }
    joined.push_str(&text[done..]);
    joined
}

/// Whether digits with plain spaces between them are an amount of money: not `Pixel 9 799 €` or `$25 200 seats`.
fn is_amount(text: &str, start: usize, end: usize) -> bool {
    let word = text[..start].strip_suffix(' ').and_then(|before| before.split([' ', '\n', '|']).next_back());
    let follows_name = word.is_some_and(|word| {
        word.starts_with(char::is_uppercase)
            && word.ends_with(char::is_alphanumeric)
            && !currencies::is_currency(word)
    });
    let counts = text[end..].strip_prefix(' ').is_some_and(|after| after.starts_with(char::is_lowercase));
    !follows_name && (amounts::is_money_to(text, end) || !counts && amounts::is_money_from(text, start))
}

/// Groups of three digits after the first digits of a number, all with the same separator.
struct Groups {
    end: usize,
    are_one_number: bool,
}

impl Groups {
    /// More of them are a list of numbers.
    const MOST: usize = 4;

    fn of(text: &str, start: usize, first: usize) -> Self {
        let none = Self { end: first, are_one_number: false };
        let joins =
            |char: char| char.is_alphanumeric() || matches!(char, '+' | '.' | ',' | '-' | '/' | ':' | '×');
        let separators = [' ', '\u{a0}', '\u{202f}', '\u{2009}', '\'', '’'];
        let Some(separator) = text[first..].chars().next().filter(|char| separators.contains(char)) else {
            return none;
        };
        let is_part = text[..start].chars().next_back().is_some_and(joins);
        let mut are_one_number = !is_part && first - start <= 3 && !text[start..].starts_with('0');
        let (mut count, mut end) = (0, first);
        while let Some(after) = text[end..].strip_prefix(separator) {
            let length = digits(after);
            if length == 0 {
                break;
            }
            // A longer or shorter group makes a telephone number or the like of it.
            are_one_number &= length == 3;
            end += separator.len_utf8() + length;
            count += 1;
        }
        Self { end, are_one_number: are_one_number && (1..=Self::MOST).contains(&count) }
    }
}
