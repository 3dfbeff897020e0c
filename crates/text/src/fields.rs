//! Rows of fields, such as CSV and the tables that database shells print. Knows where fields start and end in a text; does
//! not know which texts are tables, or what fields mean.

use std::ops::Range;

/// The ranges of the fields of every row, with quotes and without padding; empty lines and rules are skipped. If the text
/// is cut off, so may be the quotes of its last field.
pub fn fields(text: &str, delimiter: u8, is_cut: bool) -> Vec<Vec<Range<usize>>> {
    let bytes = text.as_bytes();
    let mut at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let (mut rows, mut row) = (Vec::new(), Vec::new());
    while at < bytes.len() {
        let end = field_end(bytes, at, delimiter, is_cut);
        let is_last = bytes.get(end) != Some(&delimiter);
        let trimmed = if is_last && end > at && bytes[end - 1] == b'\r' { end - 1 } else { end };
        let field = unpadded(text, at..trimmed);
        if !(is_last && row.is_empty() && field.is_empty()) {
            row.push(field);
        }
        at = end + 1;
        if is_last && !row.is_empty() {
            rows.push(std::mem::take(&mut row));
            rows.pop_if(|row| is_rule(text, row));
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

/// Whether a row is only a line drawn between others.
fn is_rule(text: &str, row: &[Range<usize>]) -> bool {
    let drawn = |field: &Range<usize>| text[field.clone()].bytes().all(|byte| b"-+=:".contains(&byte));
    row.iter().all(drawn) && text[row[0].start..row[row.len() - 1].end].contains("---")
}

/// The field without the spaces that align it with others.
fn unpadded(text: &str, field: Range<usize>) -> Range<usize> {
    let start = field.end - text[field.clone()].trim_start_matches(' ').len();
    start..start + text[start..field.end].trim_end_matches(' ').len()
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
    fn padding_and_rules_are_no_values() {
        let rows: String = (0..20).map(|n| format!(" {n:3} | user{n:<5} | {:7}.50\n", n * 31)).collect();
        let text = format!(" id  |   name    | balance \n-----+-----------+---------\n{rows}");
        let rows = fields(&text, b'|', false);
        let row = |at: usize| rows[at].iter().map(|field| &text[field.clone()]).collect::<Vec<_>>();
        assert_eq!(
            (row(0), row(1), rows.len()),
            (vec!["id", "name", "balance"], vec!["0", "user0", "0.50"], 21)
        );
    }
}
