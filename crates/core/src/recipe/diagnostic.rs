//! Problems with a stable code, a span and help, collected rather than raised; and how they are printed.
//!
//! Knows source texts by path. Does not know what a recipe is.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use serde::{Serialize, Serializer};

use super::code::DiagnosticCode;

/// Whether a problem prevents a recipe from being used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The recipe cannot be used.
    Error,
    /// The recipe can be used, but is probably not what was meant.
    Warning,
}

/// A problem in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Diagnostic {
    /// The path inside the project, with `/`.
    pub file: String,
    /// The line, from 1; 1 if the problem concerns the whole file.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// Line and column just after the last character concerned.
    pub end: SpanEnd,
    /// Stable across versions.
    #[serde(serialize_with = "code_as_text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub code: DiagnosticCode,
    /// Error or warning.
    pub severity: Severity,
    /// What is wrong, and what was expected.
    pub message: String,
    /// How to fix it; empty if the message says enough.
    pub help: String,
}

/// Where a span ends: just after its last character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SpanEnd {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

fn code_as_text<S: Serializer>(code: &DiagnosticCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(code.as_str())
}

impl Diagnostic {
    /// A problem with a whole file, such as one that is not text.
    pub fn whole_file(
        code: DiagnosticCode,
        file: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self {
            file: file.to_owned(),
            line: 1,
            column: 1,
            end: SpanEnd { line: 1, column: 1 },
            code,
            severity: code.severity(),
            message: message.into(),
            help: help.into(),
        }
    }

    /// Whether it prevents a recipe from being used.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Byte range in a source.
pub(crate) type Span = Range<usize>;

/// A value and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spanned<T> {
    pub value: T,
    pub span: Span,
}

/// Collects the problems of one file.
pub(crate) struct DiagnosticSink<'s> {
    file: &'s str,
    source: &'s str,
    line_starts: Vec<usize>,
    /// The number of characters before every [`STRIDE`]th byte, so that columns in very long lines are as cheap as
    /// any other.
    chars_before: Vec<usize>,
    found: Vec<Diagnostic>,
}

/// Bytes between two remembered character counts.
const STRIDE: usize = 1024;

impl<'s> DiagnosticSink<'s> {
    pub fn new(file: &'s str, source: &'s str) -> Self {
        let line_starts =
            std::iter::once(0).chain(source.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let mut chars_before = Vec::with_capacity(source.len() / STRIDE + 1);
        let mut chars = 0;
        for block in source.as_bytes().chunks(STRIDE) {
            chars_before.push(chars);
            chars += characters(block);
        }
        chars_before.push(chars);
        Self { file, source, line_starts, chars_before, found: Vec::new() }
    }

    pub fn source(&self) -> &'s str {
        self.source
    }

    pub fn report(
        &mut self,
        code: DiagnosticCode,
        span: &Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        let found = self.diagnostic(code, span, message, help);
        self.found.push(found);
    }

    /// The diagnostic of a problem at `span`, which is not reported.
    pub fn diagnostic(
        &self,
        code: DiagnosticCode,
        span: &Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Diagnostic {
        let (line, column) = self.position(span.start);
        let (end_line, end_column) = self.position(span.end.max(span.start));
        let help: String = help.into();
        let help = if help.is_empty() { code.usual_fix().to_owned() } else { help };
        Diagnostic {
            file: self.file.to_owned(),
            line,
            column,
            end: SpanEnd { line: end_line, column: end_column },
            code,
            severity: code.severity(),
            message: message.into(),
            help,
        }
    }

    pub fn has_errors(&self) -> bool {
        self.found.iter().any(Diagnostic::is_error)
    }

    pub fn into_found(self) -> Vec<Diagnostic> {
        self.found
    }

    /// The line, from 1, that contains byte `offset`.
    fn line_of(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|&start| start <= offset).max(1)
    }

    fn position(&self, offset: usize) -> (usize, usize) {
        let offset = self.source.floor_char_boundary(offset.min(self.source.len()));
        let line = self.line_of(offset);
        let start = self.line_starts.get(line - 1).copied().unwrap_or(0);
        (line, self.chars_to(offset).saturating_sub(self.chars_to(start)) + 1)
    }

    /// The number of characters before byte `offset`.
    fn chars_to(&self, offset: usize) -> usize {
        let block = offset / STRIDE;
        let rest = self.source.as_bytes().get(block * STRIDE..offset).unwrap_or_default();
        self.chars_before.get(block).copied().unwrap_or(0) + characters(rest)
    }
}

/// The number of characters that start within `bytes` of UTF-8.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count()
}

/// Names beyond this are not typos of known ones, and comparing them is expensive.
const LONGEST: usize = 100;
/// Names that a hint lists.
const LISTED: usize = 8;

/// The entry of `valid` nearest to `name`, if it is near enough to suggest a typo.
pub fn nearest<'v>(name: &str, valid: impl IntoIterator<Item = &'v str>) -> Option<&'v str> {
    if name.len() > LONGEST {
        return None;
    }
    let folded = name.to_lowercase();
    valid
        .into_iter()
        .filter(|candidate| candidate.len().abs_diff(folded.len()) <= 3)
        .map(|candidate| (strsim::damerau_levenshtein(&folded, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count().max(3) / 3).min(3))
        .min()
        .map(|(_, candidate)| candidate)
}

/// A hint: `did you mean …?`, or else the valid names; of more than eight the most similar ones, and how many there
/// are besides.
pub fn suggest<'v>(name: &str, valid: impl IntoIterator<Item = &'v str> + Clone) -> String {
    if let Some(candidate) = nearest(name, valid.clone()) {
        return format!("did you mean `{candidate}`?");
    }
    let mut names: Vec<&str> = valid.into_iter().collect();
    let more = names.len().saturating_sub(LISTED);
    if more > 0 {
        let head: String = name.chars().take(LONGEST).collect();
        names.sort_by_cached_key(|known| strsim::damerau_levenshtein(&head, known));
        names.truncate(LISTED);
    }
    let listed = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    match (names.is_empty(), more) {
        (true, _) => String::new(),
        (false, 0) => format!("one of {listed}"),
        (false, more) => format!("one of {listed}, or {more} more"),
    }
}

/// Lines longer than this, in bytes, are not shown.
const LONGEST_EXCERPT: usize = 10_000;
/// Maximum characters printed of a source line; longer lines show a window around the problem.
const EXCERPT_CHARS: usize = 120;

/// Formats diagnostics for people: message, location, the line with a caret under the problem, and help.
///
/// `sources` are the files by the path that diagnostics name; a missing one only costs the excerpt. Control
/// characters in the source are not passed on to the terminal.
pub fn render_plain<'a>(diagnostics: &[Diagnostic], sources: impl Fn(&str) -> Option<&'a [u8]>) -> String {
    let mut texts: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut out = String::new();
    for diagnostic in diagnostics {
        let lines = texts.entry(&diagnostic.file).or_insert_with(|| source_lines(sources(&diagnostic.file)));
        render_one(&mut out, diagnostic, lines);
        out.push('\n');
    }
    out
}

fn source_lines(bytes: Option<&[u8]>) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes.unwrap_or_default());
    text.trim_start_matches('\u{feff}').lines().map(str::to_owned).collect()
}

fn render_one(out: &mut String, diagnostic: &Diagnostic, lines: &[String]) {
    let Diagnostic { file, line, column, end, code, message, help, .. } = diagnostic;
    let severity = if diagnostic.is_error() { "error" } else { "warning" };
    let _ = writeln!(out, "{severity}[{}]: {}", code.as_str(), printable(message));
    let _ = writeln!(out, "  --> {}:{line}:{column}", printable(file));
    let gutter = line.to_string().len();
    if let Some(text) = lines.get(line.saturating_sub(1)).filter(|text| text.len() <= LONGEST_EXCERPT) {
        let chars: Vec<char> = text.chars().collect();
        let first = column.saturating_sub(1).saturating_sub(EXCERPT_CHARS / 2);
        let first = if chars.len() <= EXCERPT_CHARS { 0 } else { first };
        let shown: String = chars.iter().skip(first).take(EXCERPT_CHARS).collect();
        let before: String = chars.iter().skip(first).take(column.saturating_sub(1 + first)).collect();
        let pad: String = printable(&before).chars().map(|c| if c == '\t' { c } else { ' ' }).collect();
        let last = if end.line == *line { end.column } else { chars.len() + 1 };
        let width = last.saturating_sub(*column).clamp(1, EXCERPT_CHARS / 2);
        let _ = writeln!(out, "{:gutter$} |", "");
        let _ = writeln!(out, "{line} | {}", printable(&shown).trim_end());
        let _ = writeln!(out, "{:gutter$} | {pad}{}", "", "^".repeat(width));
    }
    if !help.is_empty() {
        let _ = writeln!(out, "{:gutter$} = help: {}", "", printable(help));
    }
}

/// Replaces control characters, which could manipulate a terminal, with U+FFFD.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\t' { char::REPLACEMENT_CHARACTER } else { c }).collect()
}
