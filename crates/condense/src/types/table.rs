//! Rows of fields, such as CSV, separated by commas, semicolons, tabs or vertical bars.
//!
//! Knows where fields start and end in the original, which is why it parses them itself; rows and columns are then
//! chosen as for JSON.

use std::ops::Range;

use crate::condensed::CondenseError;
use crate::engine::condenser::Condenser;
use crate::engine::draft::CondensedDraft;
use crate::engine::extractive::Extractive;
use crate::engine::job::Job;
use crate::types::{json, plain};
use larder_text::json::Document;

/// The condenser of tables.
pub(crate) const CONDENSER: &dyn Condenser = &Table;

/// Bytes of a text that are sampled to find the delimiter, and how many if that is less than a few rows.
const SAMPLES: [usize; 2] = [32 << 10, 1 << 20];
/// Possible delimiters.
const DELIMITERS: [u8; 4] = [b'\t', b',', b';', b'|'];
/// Minimum number of rows, header included.
const MIN_ROWS: usize = 4;
/// Lines of two fields are common in any text, so at least this many must agree.
const MIN_PAIRS: usize = 12;
/// One row in this many may have a different number of fields.
const RAGGED: usize = 20;
/// Maximum bytes and words of a column name.
const LONGEST_NAME: usize = 64;
const MAX_WORDS: usize = 4;

/// Whether the rows of `text` are divided by one delimiter.
pub(crate) fn looks_like(text: &str) -> bool {
    delimiter(text).is_some()
}

struct Table;

impl Condenser for Table {
    fn condense(&self, job: &Job<'_>) -> Result<CondensedDraft, CondenseError> {
        let text = job.request.text;
        let draft = delimiter(text).and_then(|delimiter| {
            json::rewrite(job, || Document::from_rows(text, &fields(text, delimiter, false)))
        });
        match draft {
            Some(draft) => Ok(draft),
            None => Extractive(plain::Plain).condense(job),
        }
    }
}

/// The delimiter of `text`, if it is a table with column names.
fn delimiter(text: &str) -> Option<u8> {
    DELIMITERS.into_iter().find(|&delimiter| {
        for size in SAMPLES {
            let sample = &text[..text.floor_char_boundary(size)];
            let is_cut = sample.len() < text.len();
            let mut rows = fields(sample, delimiter, is_cut);
            if is_cut {
                rows.pop();
            }
            if !is_cut || rows.len() >= MIN_PAIRS {
                return is_table(sample, &rows);
            }
        }
        false
    })
}

fn is_table(text: &str, rows: &[Vec<Range<usize>>]) -> bool {
    let Some((names, rest)) = rows.split_first() else { return false };
    let ragged = rest.iter().filter(|row| row.len() != names.len()).count();
    let enough = if names.len() == 2 { MIN_PAIRS } else { MIN_ROWS };
    let mut seen: Vec<&str> = names.iter().map(|name| text[name.clone()].trim()).collect();
    let named = seen.iter().all(|name| is_name(name));
    seen.sort_unstable();
    let distinct = seen.windows(2).all(|pair| pair[0] != pair[1]);
    names.len() > 1 && rows.len() >= enough && ragged * RAGGED <= rows.len() && named && distinct
}

fn is_name(field: &str) -> bool {
    let name = field.trim_matches('"');
    name.len() <= LONGEST_NAME
        && name.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '#' | '%' | '$'))
        && name.split_whitespace().count() <= MAX_WORDS
        && !name.ends_with(['.', '!', '?', ':', '{', '}', '>', '\\'])
        && !name.contains(['=', '<', '`', '\0'])
}

/// The ranges of the fields of every row, quotes included; empty lines are skipped. If the text is cut off, so may be
/// the quotes of its last field.
fn fields(text: &str, delimiter: u8, is_cut: bool) -> Vec<Vec<Range<usize>>> {
    let bytes = text.as_bytes();
    let mut at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let (mut rows, mut row) = (Vec::new(), Vec::new());
    while at < bytes.len() {
        let end = field_end(bytes, at, delimiter, is_cut);
        let is_last = bytes.get(end) != Some(&delimiter);
        let trimmed = if is_last && end > at && bytes[end - 1] == b'\r' { end - 1 } else { end };
        if !(is_last && row.is_empty() && trimmed == at) {
            row.push(at..trimmed);
        }
        at = end + 1;
        if is_last && !row.is_empty() {
            rows.push(std::mem::take(&mut row));
        }
    }
    if !row.is_empty() {
        row.push(bytes.len()..bytes.len());
        rows.push(row);
    }
    rows
}

/// The end of the field at `from`: before a delimiter or line break outside quotes, or at the end.
fn field_end(bytes: &[u8], from: usize, delimiter: u8, is_cut: bool) -> usize {
    let mut at = from;
    if bytes.get(at) == Some(&b'"') {
        at += 1;
        let mut closed = false;
        while !closed && let Some(found) = memchr::memchr(b'"', &bytes[at..]) {
            at += found + 1;
            closed = bytes.get(at) != Some(&b'"');
            at += usize::from(!closed); // two quotes represent one
        }
        if !closed && is_cut {
            return bytes.len();
        }
        if !closed {
            at = from; // a quote that nothing closes is a sign like any other
        }
    }
    at + memchr::memchr2(delimiter, b'\n', &bytes[at..]).unwrap_or(bytes.len() - at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields of every row as parsed by another reader of the format.
    fn read(text: &str, delimiter: u8) -> Vec<Vec<String>> {
        let mut reader = csv::ReaderBuilder::new();
        let reader = reader.delimiter(delimiter).has_headers(false).flexible(true);
        let rows = reader.from_reader(text.as_bytes()).into_records();
        rows.map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect()
    }

    fn ours(text: &str, delimiter: u8) -> Vec<Vec<String>> {
        let value = |field: &Range<usize>| {
            let raw = &text[field.clone()];
            let inner = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"'));
            inner.map_or(raw.to_owned(), |inner| inner.replace("\"\"", "\""))
        };
        fields(text, delimiter, false).iter().map(|row| row.iter().map(value).collect()).collect()
    }

    #[test]
    fn fields_are_those_that_another_reader_sees() {
        for (delimiter, text) in [
            (b',', "a,b,c\n1,2,3\n"),
            (b',', "a,b\r\n\"x,\"\"y\",2\r\n\r\n\"two\nlines\",\n"),
            (b';', ";;\n1;;3"),
            (b'|', "é|ü\n\"猫\"|x\n"),
            (b'\t', "a\tb\n1\t2"),
        ] {
            assert_eq!(ours(text, delimiter), read(text, delimiter), "{text:?}");
        }
    }

    #[test]
    fn a_quote_that_nothing_closes_swallows_no_rows() {
        assert_eq!(fields("a,b\n\"x,1\ny,2\n", b',', false).len(), 3);
        assert_eq!(fields("a,b\n\"x\"\",1\ny,2\n", b',', false).len(), 3);
    }

    #[test]
    fn a_long_quoted_field_does_not_hide_a_table() {
        let row = |n: usize| format!("{n},\"{}\"\n", "a line, and\nanother ".repeat(900));
        let text = format!("id,body\n{}", (0..14).map(row).collect::<String>());
        assert_eq!(delimiter(&text), Some(b','));
    }

    #[test]
    fn prose_logs_and_code_are_not_tables() {
        let prose = "It was late, and nobody came.\nThe train, which was old, had gone.\n".repeat(20);
        let log = "2024-05-01 12:00:00,123 INFO request served, ok\n".repeat(20);
        let code = "    let x = f(a, b);\n    g(x, y);\n".repeat(20);
        let options = "usage: x [-a] | y\n  -a, --all  show all\n".repeat(20);
        for text in [&prose, &log, &code, &options] {
            assert!(!looks_like(text), "{text}");
        }
        assert!(looks_like("id,name,price\n1,lamp,2.5\n2,desk,90\n3,chair,45\n"));
    }
}
