//! The lines of a source text with their roles, and the units they form.
//!
//! Knows roles and weights; does not know any language or how roles were found.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::engine::units::{TextPiece, Tier, split_long};
use larder_text::pattern::pattern;

/// Longer units are divided at line ends, longer lines at punctuation, in bytes.
const LONGEST_UNIT: usize = 480;
const LONGEST_LINE: usize = 320;
/// Comments of up to this many lines and bytes are shown with what they explain; of longer ones, the first line is
/// shown by itself.
const GLUED_ROWS: usize = 2;
const GLUED_BYTES: usize = 200;
/// Weights of units relative to a plain statement.
const PUBLIC: f32 = 2.5;
const PRIVATE: f32 = 1.2;
const DOC: f32 = 2.0;
const FIELD: f32 = 1.5;
const IMPORT: f32 = 1.2;
const COMMENT: f32 = 0.5;
const ATTRIBUTE: f32 = 0.4;
const CLOSE: f32 = 0.7;
const LICENSE: f32 = 0.1;
/// Extra weight of a unit that fails, handles a failure, or says what remains to be done.
const FAILURE: f32 = 1.7;
const TASK: f32 = 4.0;

/// How common languages fail and handle failures.
static FAILS: LazyLock<Regex> = LazyLock::new(|| {
    let words = r"\b(?:raise|throws?|catch|except|rescue|panic|abort|assert|bail|ensure)\b|Err\(|[Ee]rror|[Ee]xception|!= nil";
    pattern(words)
});
static TASKS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b(?:TODO|FIXME|XXX|HACK|BUG|SAFETY|WARNING|DEPRECATED)\b"));
static LICENSES: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)\b(?:copyright|licen[cs]e|SPDX)\b"));

/// The role of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineRole {
    Import,
    Public,
    Private,
    /// The first line of a definition's documentation.
    Doc,
    Comment,
    Attribute,
    Field,
    Statement,
    Close,
}

impl LineRole {
    pub(super) const fn is_signature(self) -> bool {
        matches!(self, Self::Public | Self::Private)
    }
}

#[derive(Debug, Clone, Copy)]
struct CodeRow {
    role: LineRole,
    /// Whether it is the first line of its unit.
    begins: bool,
    /// The row of the enclosing signature or statement.
    under: Option<usize>,
    blank: bool,
}

pub(super) struct CodeOutline<'t> {
    text: &'t str,
    /// The start of each row, and the end of the text.
    starts: Vec<usize>,
    rows: Vec<CodeRow>,
}

impl<'t> CodeOutline<'t> {
    /// Treats every row as a statement of a single unit.
    pub(super) fn of(text: &'t str) -> Self {
        let mut starts = vec![0];
        let mut rows = Vec::new();
        for line in text.split_inclusive('\n') {
            starts.push(starts[rows.len()] + line.len());
            let blank = line.bytes().all(|b| b.is_ascii_whitespace());
            rows.push(CodeRow { role: LineRole::Statement, begins: rows.is_empty(), under: None, blank });
        }
        Self { text, starts, rows }
    }

    /// The same roles for a text with the same lines.
    pub(super) fn of_lines_in<'s>(self, text: &'s str) -> CodeOutline<'s> {
        let mut outline = CodeOutline::of(text);
        outline.rows.iter_mut().zip(self.rows).for_each(|(row, known)| *row = known);
        outline
    }

    pub(super) fn rows(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn line(&self, row: usize) -> &'t str {
        &self.text[self.starts[row]..self.starts[row + 1]]
    }

    pub(super) fn role(&self, row: usize) -> LineRole {
        self.rows[row].role
    }

    pub(super) fn is_blank(&self, row: usize) -> bool {
        self.rows[row].blank
    }

    /// Makes `rows` one unit and starts another after it. Rows beyond the end are ignored.
    pub(super) fn unit(&mut self, rows: Range<usize>, role: LineRole, under: Option<usize>) {
        let end = rows.end.min(self.rows.len());
        for row in rows.start..end {
            self.rows[row] = CodeRow { role, begins: row == rows.start, under, ..self.rows[row] };
        }
        self.begin(end);
    }

    /// Makes the row start a unit, whatever its role.
    pub(super) fn begin(&mut self, row: usize) {
        if let Some(row) = self.rows.get_mut(row) {
            row.begins = true;
        }
    }

    /// Shows the row only together with its header.
    pub(super) fn put_under(&mut self, row: usize, header: usize) {
        if let Some(row) = self.rows.get_mut(row) {
            row.under = Some(header);
        }
    }

    /// The units with their weights and needs.
    pub(super) fn pieces(mut self) -> Vec<TextPiece> {
        self.attach_comments();
        let mut pieces: Vec<TextPiece> = Vec::new();
        let mut first_of_row = vec![0; self.rows.len()];
        let mut under = Vec::new();
        let mut row = 0;
        while row < self.rows.len() {
            let next = |&next: &usize| self.rows[next].begins && !self.rows[next].blank;
            let end = (row + 1..self.rows.len()).find(next).unwrap_or(self.rows.len());
            first_of_row[row..end].fill(pieces.len());
            let (tier, prior) = self.worth(row, end);
            for (index, range) in self.parts(row, end).into_iter().enumerate() {
                // Only the first part of a signature is treated as one.
                let tier = if index == 0 { tier } else { Tier::Plain };
                pieces.push(TextPiece { tier, ..TextPiece::plain(range, prior) });
                under.push(self.rows[row].under.filter(|header| !(row..end).contains(header)));
            }
            row = end;
        }
        for (piece, under) in pieces.iter_mut().zip(under) {
            piece.needs = [under.map(|row| first_of_row[row]), None];
        }
        pieces
    }

    /// Byte ranges that tile the rows, none too long.
    fn parts(&self, row: usize, end: usize) -> Vec<Range<usize>> {
        let mut parts: Vec<Range<usize>> = Vec::new();
        for row in row..end {
            let line = self.starts[row]..self.starts[row + 1];
            match parts.last_mut() {
                Some(last) if line.end - last.start <= LONGEST_UNIT || self.rows[row].blank => {
                    last.end = line.end
                }
                _ => parts.extend(split_long(self.text, line, LONGEST_LINE)),
            }
        }
        parts
    }

    fn worth(&self, row: usize, end: usize) -> (Tier, f32) {
        let text = &self.text[self.starts[row]..self.starts[end]];
        let says = |words: &Regex| words.is_match(text);
        let base = match self.rows[row].role {
            LineRole::Public => return (Tier::Salient, PUBLIC),
            LineRole::Private => return (Tier::Salient, PRIVATE),
            LineRole::Import => return (Tier::Plain, IMPORT),
            LineRole::Close => return (Tier::Plain, CLOSE),
            LineRole::Attribute => return (Tier::Plain, ATTRIBUTE),
            LineRole::Comment | LineRole::Doc if says(&LICENSES) => return (Tier::Plain, LICENSE),
            LineRole::Doc => DOC,
            LineRole::Comment => COMMENT,
            LineRole::Field => FIELD,
            LineRole::Statement if says(&FAILS) => FAILURE,
            LineRole::Statement => 1.0,
        };
        (Tier::Plain, if says(&TASKS) { base * TASK } else { base })
    }

    /// Attaches comments and attributes directly above a signature to it: short ones are shown with it; of a long
    /// one, the first line has a higher weight than the rest. A comment at the top of a file describes the file.
    fn attach_comments(&mut self) {
        let above = |role: LineRole| matches!(role, LineRole::Comment | LineRole::Attribute);
        let mut top = 0;
        for row in 0..self.rows.len() {
            let CodeRow { role, begins, .. } = self.rows[row];
            if above(role) && !self.rows[row].blank {
                continue;
            }
            if role.is_signature() && begins && top < row {
                self.attach(top, row);
            }
            top = row + 1;
        }
        let first = self.rows.iter().position(|row| !row.blank);
        if let Some(first) = first.filter(|&first| self.rows[first].role == LineRole::Comment) {
            self.unit(first..first + 1, LineRole::Doc, self.rows[first].under);
        }
    }

    fn attach(&mut self, top: usize, signature: usize) {
        let bytes = self.starts[signature] - self.starts[top];
        let CodeRow { role, under, .. } = self.rows[signature];
        if signature - top <= GLUED_ROWS && bytes <= GLUED_BYTES {
            self.unit(top..signature, role, under);
            self.rows[signature].begins = false;
            return;
        }
        for row in &mut self.rows[top..signature] {
            row.under = Some(signature);
        }
        if self.rows[top].role == LineRole::Comment {
            self.unit(top..top + 1, LineRole::Doc, Some(signature));
        }
        self.begin(top);
    }
}

#[cfg(test)]
pub(super) fn compile_patterns() {
    for pattern in [&FAILS, &TASKS, &LICENSES] {
        LazyLock::force(pattern);
    }
}
