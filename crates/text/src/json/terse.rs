//! JSON written tersely, with every value kept: no indentation, quotes only where they are needed, and objects of one
//! shape as a table that states their names once.
//!
//! Knows the form and nothing of tokens or targets. A string without quotes cannot be taken for a number, for `true`,
//! `false` or `null`, or for its neighbours. In a table, an empty cell is a member that the object lacks.

use std::collections::HashMap;

use super::{Document, Kind, decode, encode};

/// Minimum number of objects, and of columns, of a table.
const MIN_TABLE: usize = 2;
/// Minimum share, in per cent, of cells that are not empty.
const FILLED: usize = 60;
/// Objects nested deeper inside the objects of a table are written in one cell.
const DEEPEST: usize = 4;

/// The JSON of `text` in a form that takes fewer tokens and from which the same value can be read; only white space,
/// the order of members in tables, and escapes of characters that need none are lost. `None` if `text` is not one
/// valid object or array, or would not become shorter.
///
/// ```
/// let found = r#"{"total": 2, "users": [{"id": "7", "name": "Ada"}, {"id": "8", "name": "Émile"}]}"#;
/// let terse = larder_text::json::terse(found).unwrap();
/// assert_eq!(terse, "{total:2, users:[id|name\n\"7\"|Ada\n\"8\"|Émile\n]}");
/// ```
pub fn terse(text: &str) -> Option<String> {
    let tree = Document::parse_request(text).ok()?;
    let mut out = String::with_capacity(text.len() / 2);
    value(&tree, 0, true, &mut out);
    (tree.is_container(0) && out.len() < text.len()).then_some(out)
}

/// Writes a value; `tabular` unless it is inside a table.
fn value(tree: &Document<'_>, node: usize, tabular: bool, out: &mut String) {
    let (open, close) = match tree.kind(node) {
        Kind::Object => ('{', '}'),
        Kind::Array => ('[', ']'),
        Kind::String => return string(tree.raw(node), &[',', '{', '}', '[', ']', '|'], out),
        _ => return out.push_str(tree.raw(node)),
    };
    out.push(open);
    let columns = if tabular && open == '[' { columns(tree, node) } else { None };
    match columns {
        Some(columns) => table(tree, &columns, tree.children(node).count(), out),
        None => {
            for (index, child) in tree.children(node).enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                if open == '{' {
                    name(&tree.text()[tree.name_span(child)], out);
                    out.push(':');
                }
                value(tree, child, tabular, out);
            }
        }
    }
    out.push(close);
}

fn name(literal: &str, out: &mut String) {
    string(literal, &[',', '{', '}', '[', ']', '|', ':', '.'], out);
}

/// Writes a string, without quotes if it is not empty, clashes with nothing and cannot be taken for another value.
fn string(literal: &str, clashes: &[char], out: &mut String) {
    let text = decode(literal);
    let is_apart = |c: char| c.is_control() || matches!(c, '"' | '\\') || clashes.contains(&c);
    let is_bare = text.trim() == text
        && !matches!(&*text, "" | "true" | "false" | "null")
        && !text.starts_with(['{', '[', ']'])
        && !text.contains(is_apart)
        && text.parse::<f64>().is_err();
    if is_bare {
        out.push_str(&text);
    } else if text.contains("\\u") {
        // Half of a surrogate pair can only be written as its escape, and is spelled out in the decoded text.
        out.push_str(literal);
    } else {
        encode(&text, out);
    }
}

/// A column of a table: its name, and the row and value of each cell, sorted by row.
struct TerseColumn {
    name: String,
    cells: Vec<(usize, usize)>,
}

/// The columns of the objects in `list`, if they are of one shape.
fn columns(tree: &Document<'_>, list: usize) -> Option<Vec<TerseColumn>> {
    let rows: Vec<(usize, usize)> = tree.children(list).enumerate().collect();
    let mut columns = Vec::new();
    let is_table = rows.len() >= MIN_TABLE && expand(tree, "", &rows, DEEPEST, &mut columns);
    (is_table && columns.len() >= MIN_TABLE).then_some(columns)
}

/// Adds the columns of these rows' values; false, and nothing is added, if they are not objects of one shape.
fn expand(
    tree: &Document<'_>,
    prefix: &str,
    rows: &[(usize, usize)],
    depth: usize,
    columns: &mut Vec<TerseColumn>,
) -> bool {
    if depth == 0 || !rows.iter().all(|&(_, node)| tree.kind(node) == Kind::Object && tree.has_children(node))
    {
        return false;
    }
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut members: Vec<(&str, Vec<(usize, usize)>)> = Vec::new();
    let mut filled = 0;
    for &(row, object) in rows {
        let mut expected = 0;
        for cell in tree.children(object) {
            let literal = &tree.text()[tree.name_span(cell)];
            // Most objects have the same names as the first, in the same order.
            let place = match members.get(expected) {
                Some((known, _)) if *known == literal => expected,
                _ => *places.entry(literal).or_insert_with(|| {
                    members.push((literal, Vec::new()));
                    members.len() - 1
                }),
            };
            expected = place + 1;
            let is_again = members[place].1.last().is_some_and(|&(last, _)| last == row);
            if is_again || literal.contains('\\') {
                return false; // a name that appears twice, or may do so with other escapes
            }
            members[place].1.push((row, cell));
            filled += 1;
        }
    }
    if filled * 100 < rows.len() * members.len() * FILLED {
        return false;
    }
    for (literal, cells) in members {
        let mut path = prefix.to_owned();
        name(literal, &mut path);
        if !expand(tree, &format!("{path}."), &cells, depth - 1, columns) {
            columns.push(TerseColumn { name: path, cells });
        }
    }
    true
}

/// Writes the names of the columns and then the rows, one a line.
fn table(tree: &Document<'_>, columns: &[TerseColumn], rows: usize, out: &mut String) {
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    out.push_str(&names.join("|"));
    out.push('\n');
    let mut left: Vec<_> = columns.iter().map(|column| column.cells.iter().peekable()).collect();
    for row in 0..rows {
        for (index, cells) in left.iter_mut().enumerate() {
            if index > 0 {
                out.push('|');
            }
            match cells.next_if(|(of, _)| *of == row) {
                Some(&(_, cell)) if tree.kind(cell) == Kind::String => string(tree.raw(cell), &['|'], out),
                Some(&(_, cell)) => value(tree, cell, false, out),
                None => {}
            }
        }
        out.push('\n');
    }
}
