//! Turns indentation, or braces in unindented text, into lines with roles: for languages without a grammar, for
//! source that does not parse, and for texts too large to parse.
//!
//! Knows words that many languages share; single pass, no recursion.

use super::outline::{CodeOutline, LineRole};
use super::signs::Language;

/// Deeper nesting is not distinguished.
const DEEPEST: usize = 24;
/// At least one line in this many is indented in indented source.
const INDENTED_SHARE: usize = 10;
const TAB: usize = 4;

const IMPORTS: [&str; 12] = [
    "import",
    "use",
    "using",
    "#include",
    "include",
    "require",
    "require_once",
    "from",
    "package",
    "open",
    "extern",
    "library",
];
const CONTAINERS: [&str; 21] = [
    "class",
    "struct",
    "interface",
    "trait",
    "impl",
    "module",
    "namespace",
    "enum",
    "object",
    "extension",
    "protocol",
    "mod",
    "record",
    "union",
    "defmodule",
    "contract",
    "actor",
    "service",
    "message",
    "instance",
    "package",
];
const DEFINITIONS: [&str; 22] = [
    "fn",
    "func",
    "function",
    "def",
    "fun",
    "sub",
    "proc",
    "procedure",
    "type",
    "typedef",
    "macro",
    "defn",
    "defp",
    "defmacro",
    "const",
    "static",
    "macro_rules!",
    "#define",
    "data",
    "CREATE",
    "create",
    "rpc",
];
/// Words that may precede a defining keyword.
const MODIFIERS: [&str; 27] = [
    "pub",
    "pub(crate)",
    "pub(super)",
    "public",
    "private",
    "protected",
    "internal",
    "static",
    "final",
    "abstract",
    "sealed",
    "open",
    "override",
    "virtual",
    "async",
    "export",
    "default",
    "unsafe",
    "extern",
    "inline",
    "const",
    "data",
    "partial",
    "local",
    "suspend",
    "declare",
    "readonly",
];
const CONTROL: [&str; 27] = [
    "if", "else", "elif", "elsif", "elseif", "for", "foreach", "while", "loop", "switch", "case", "match",
    "when", "try", "catch", "except", "finally", "rescue", "ensure", "with", "do", "return", "unless",
    "until", "begin", "then", "default",
];

/// A line that contains the deeper lines after it.
#[derive(Debug, Clone, Copy)]
struct OpenBlock {
    width: usize,
    row: usize,
    /// The line that started the block: `if` for each of its `else`.
    head: usize,
    /// Whether lines inside that open a block are signatures.
    members: bool,
}

/// Assigns a role to every row of the outline.
pub(super) fn annotate(language: Option<Language>, outline: &mut CodeOutline<'_>) {
    let widths = widths(outline);
    let mut open: Vec<OpenBlock> = Vec::new();
    let mut comment_until: Option<&str> = None;
    for (index, &(row, width)) in widths.iter().enumerate() {
        let line = outline.line(row).trim();
        let mut closed = None;
        while let Some(top) = open.pop_if(|top| top.width >= width) {
            closed = Some(top);
        }
        let under = open.last().map(|top| top.row);
        if let Some(role) = comment(line, &mut comment_until) {
            outline.unit(row..row + 1, role, under);
            continue;
        }
        let opens = widths.get(index + 1).is_some_and(|&(_, next)| next > width);
        let members = open.last().is_none_or(|top| top.members);
        let mut inside = OpenBlock { width, row, head: row, members: false };
        let continued = closed
            .filter(|closed| closed.width == width && (line.starts_with(['}', ')', ']']) || line == "end"));
        if let Some(header) = continued {
            // `}`, `) -> T {`, `} else {`
            let signature = opens && line.starts_with(')') && outline.role(header.row).is_signature();
            let role = match outline.role(header.row) {
                role if signature => role,
                _ if opens => LineRole::Statement,
                _ => LineRole::Close,
            };
            outline.unit(row..row + 1, role, Some(header.head));
            (inside.members, inside.head) = (header.members, header.head);
        } else {
            let (role, holds) = role(line, opens, members, language);
            outline.unit(row..row + 1, role, under);
            inside.members = holds;
        }
        if opens && open.len() < DEEPEST {
            open.push(inside);
        }
    }
}

/// The non-blank rows and their indentation.
fn widths(outline: &CodeOutline<'_>) -> Vec<(usize, usize)> {
    let rows = || (0..outline.rows()).filter(|&row| !outline.is_blank(row));
    let indent = |row: usize| {
        let white = outline.line(row).bytes().take_while(|b| matches!(b, b' ' | b'\t'));
        white.map(|b| if b == b'\t' { TAB } else { 1 }).sum::<usize>()
    };
    let indented: Vec<(usize, usize)> = rows().map(|row| (row, indent(row))).collect();
    let deep = indented.iter().filter(|(_, width)| *width > 0).count();
    if deep * INDENTED_SHARE >= indented.len() {
        return indented;
    }
    let mut depth = 0_usize;
    let by_braces = |row: usize| {
        let line = outline.line(row).trim();
        let closing = line.bytes().take_while(|&b| b == b'}').count();
        let width = depth.saturating_sub(closing);
        let count = |sign: u8| line.bytes().filter(|&b| b == sign).count();
        depth = (depth + count(b'{')).saturating_sub(count(b'}'));
        (row, width)
    };
    rows().map(by_braces).collect()
}

/// The role of a comment line; `until` ends a multi-line comment.
fn comment<'t>(line: &'t str, until: &mut Option<&'t str>) -> Option<LineRole> {
    if let Some(end) = *until {
        if line.contains(end) {
            *until = None;
        }
        return Some(LineRole::Comment);
    }
    for (start, end) in [("/*", "*/"), ("\"\"\"", "\"\"\""), ("'''", "'''"), ("<!--", "-->"), ("{-", "-}")] {
        if let Some(rest) = line.strip_prefix(start) {
            if !rest.contains(end) {
                *until = Some(end);
            }
            return Some(if start.starts_with(['"', '\'']) { LineRole::Doc } else { LineRole::Comment });
        }
    }
    if line.starts_with("#[") || line.starts_with('@') {
        return Some(LineRole::Attribute);
    }
    let hash = line.starts_with('#')
        && !["#include", "#define", "#if", "#e", "#pragma", "#undef"].iter().any(|d| line.starts_with(d));
    (line.starts_with("//") || line.starts_with("--") || line.starts_with(";;") || hash)
        .then_some(LineRole::Comment)
}

/// The role of a line, and whether the block it opens contains members.
fn role(line: &str, opens: bool, members: bool, language: Option<Language>) -> (LineRole, bool) {
    let words = || {
        line.split(|c: char| c.is_whitespace() || matches!(c, '(' | ':' | '{' | '<'))
            .filter(|word| !word.is_empty())
    };
    let first = words().next().unwrap_or_default();
    if CONTROL.contains(&first) && !line.starts_with("default:") || !members {
        return (LineRole::Statement, false);
    }
    let word = words().find(|word| !MODIFIERS.contains(word)).unwrap_or(first);
    let container = CONTAINERS.contains(&word) && !line.ends_with(';');
    let defines = DEFINITIONS.contains(&word) || words().take(2).any(|word| DEFINITIONS.contains(&word));
    if IMPORTS.contains(&first) && !container && !opens {
        return (LineRole::Import, false);
    }
    // A block without a keyword is a function in languages that do not require one.
    let bare = opens && (line.contains('(') || line.ends_with(['{', ':']));
    if container || defines || bare {
        let public = match language {
            Some(language) => language.is_public(line),
            None => !["private", "static", "local", "internal"].contains(&first) && !first.starts_with('_'),
        };
        return (if public { LineRole::Public } else { LineRole::Private }, container);
    }
    (LineRole::Field, false)
}
