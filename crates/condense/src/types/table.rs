//! Rows of fields, such as CSV, separated by commas, semicolons, tabs or vertical bars.
//!
//! Knows what makes rows a table with column names; rows and columns are then chosen as for JSON.

use std::ops::Range;

use crate::analysis::template;
use crate::condensed::CondenseError;
use crate::engine::condenser::Condenser;
use crate::engine::draft::CondensedDraft;
use crate::engine::extractive::Extractive;
use crate::engine::job::Job;
use crate::types::{json, plain};
use larder_text::fields::fields;
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
        draft.map_or_else(|| Extractive(plain::Plain).condense(job), Ok)
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
    let regular = names.len() > 1 && rows.len() >= enough && ragged * RAGGED <= rows.len();
    regular && named && distinct && !is_row(text, names, rest)
}

/// Whether what should be names are values like those below them, as `host1` is above `host2` but `host` is not.
fn is_row(text: &str, names: &[Range<usize>], rest: &[Vec<Range<usize>>]) -> bool {
    let kind = |field: &Range<usize>| {
        let field = &text[field.clone()];
        (template(field), field.contains(|c: char| c.is_ascii_digit()))
    };
    names.iter().enumerate().any(|(column, name)| {
        let alike = rest.iter().filter_map(|row| row.get(column));
        alike.filter(|field| kind(field) == kind(name)).count() * RAGGED > rest.len()
    })
}

fn is_name(field: &str) -> bool {
    let name = field.trim_matches('"');
    name.len() <= LONGEST_NAME
        && name.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '#' | '%' | '$'))
        && name.split_whitespace().count() <= MAX_WORDS
        && !name.ends_with(['.', '!', '?', ':', '{', '}', '>', '\\'])
        && !name.contains(['=', '<', '`', '\0'])
        && !name.split_once(':').is_some_and(is_place)
}

/// Whether this is a place in a file, which searches write before each line that they find.
fn is_place((before, after): (&str, &str)) -> bool {
    before.contains(['/', '.', '\\']) || after.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_quoted_field_does_not_hide_a_table() {
        let row = |n: usize| format!("{n},\"{}\"\n", "a line, and\nanother ".repeat(900));
        let text = format!("id,body\n{}", (0..14).map(row).collect::<String>());
        assert_eq!(delimiter(&text), Some(b','));
    }

    #[test]
    fn hits_and_rows_without_names_are_not_tables() {
        let numbered = |line: &dyn Fn(usize) -> String| (0..40).map(line).collect::<String>();
        for text in [
            numbered(&|n| format!("src/m{n}/f{n}.py:{n}:    logger.info('request %s handled', req_{n})\n")),
            numbered(&|n| format!("src/m{n}.py:from typing import Any, Optional\n")),
            numbered(&|n| format!("Makefile:{n}:a, b\n")),
            numbered(&|n| format!("user{n},paid,{}\n", n * 7)),
            numbered(&|n| format!("{},paid,{n}\n", ["Oslo", "Kyiv", "Lyon"][n % 3])),
            numbered(&|n| format!("user{n},paid,order{n}\n")),
            numbered(&|n| format!("user{n},{}\n", ["Oslo", "Kyiv", "Lyon"][n % 3])),
            numbered(&|n| format!("{},paid,card\n", ["Oslo", "Kyiv", "Lyon"][n % 3])),
        ] {
            assert!(!looks_like(&text), "{text}");
        }
    }

    #[test]
    fn names_may_be_those_of_the_values_without_their_numbers() {
        let rows = |row: &dyn Fn(usize) -> String| (0..80).map(row).collect::<String>();
        for text in [
            format!("host,cpu,mem,state\n{}", rows(&|n| format!("host{n},{},{},up\n", n % 7, n * 3))),
            format!("user,test,pod\n{}", rows(&|n| format!("user{},test{n},pod{}\n", n % 9, n % 4))),
        ] {
            assert!(looks_like(&text), "{text}");
        }
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
