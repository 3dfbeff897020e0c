//! Writes values as in the original, without white space between them, and without quotes where nothing is lost.
//! Bytes inside values are always copied.
//!
//! Knows values; does not know which of them are shown.

use larder_text::json::{Document, Kind, unquoted};
use larder_text::words::separator;

/// Longer strings keep their quotes, which show where they end.
const LONGEST_BARE: usize = 64;

/// Writes `node`, at most about `most` bytes of it; returns whether all of it was written.
pub(super) fn value(tree: &Document<'_>, node: usize, most: usize, out: &mut String) -> bool {
    if tree.is_irregular(node) || !tree.is_container(node) {
        let raw = if tree.is_container(node) { tree.raw(node) } else { scalar(tree, node) };
        if raw.len() > most {
            return false;
        }
        out.push_str(raw);
        return true;
    }
    let limit = out.len() + most;
    let cells = || (node + 1..tree.after(node)).map(|inner| scalar(tree, inner));
    // JSON has quotes around a comma; a field of a table may have one of its own.
    let between = if tree.is_table() { separator(cells()) } else { ", " };
    let mut open: Vec<(usize, char)> = Vec::new();
    for inner in node..tree.after(node) {
        close(&mut open, inner, out);
        if inner > node {
            if !out.ends_with(['{', '[']) {
                out.push_str(between);
            }
            let key = tree.name_span(inner);
            if !key.is_empty() {
                out.push_str(bare(&tree.text()[key]));
                out.push(':');
            }
        }
        match tree.kind(inner) {
            Kind::Object => {
                out.push('{');
                open.push((tree.after(inner), '}'));
            }
            Kind::Array | Kind::Stream => {
                out.push('[');
                open.push((tree.after(inner), ']'));
            }
            _ => out.push_str(scalar(tree, inner)),
        }
        if out.len() > limit {
            return false;
        }
    }
    close(&mut open, usize::MAX, out);
    true
}

fn close(open: &mut Vec<(usize, char)>, at: usize, out: &mut String) {
    while let Some((_, sign)) = open.pop_if(|(end, _)| *end <= at) {
        out.push(sign);
    }
}

/// Writes a string, number or word; strings are unquoted where they are unambiguous.
pub(super) fn scalar<'t>(tree: &Document<'t>, node: usize) -> &'t str {
    let raw = tree.raw(node);
    if tree.kind(node) == Kind::String { bare(raw) } else { raw }
}

fn bare(raw: &str) -> &str {
    let inner = unquoted(raw);
    let wordlike = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '@' | ' ' | '+');
    let is_bare = inner.len() <= LONGEST_BARE
        && inner.starts_with(|c: char| c.is_alphabetic())
        && !inner.ends_with(' ')
        && inner.chars().all(wordlike)
        && !matches!(inner, "true" | "false" | "null");
    if is_bare { inner } else { raw }
}

/// Writes a cell of a string column: unquoted unless it would run into its neighbours.
pub(super) fn cell<'t>(tree: &Document<'t>, node: usize, all_text: bool) -> &'t str {
    let raw = tree.raw(node);
    if tree.kind(node) != Kind::String || !all_text {
        return scalar(tree, node);
    }
    let inner = unquoted(raw);
    let clashes = |c: char| c.is_control() || matches!(c, '|' | ';' | '"' | '\\' | '[' | '{' | '…');
    let clear = !inner.is_empty() && !inner.starts_with(' ') && !inner.ends_with(' ');
    if clear && !inner.contains(clashes) && !matches!(inner, "true" | "false" | "null") { inner } else { raw }
}
