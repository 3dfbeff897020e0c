//! What can be quoted from a text: sentences of prose and of comments, items of lists, rows of tables, lines of code,
//! each with its headings.
//!
//! Knows how Markdown and common languages write headings, tables and comments; does not know the question.

use std::ops::Range;

use larder_text::words::STOP_WORDS;

use super::pages::{is_page, page_units};
use super::sentences::sentences;

/// How many bytes before a passage are searched for its headings, and after it for the end of its last sentence.
pub(super) const BEFORE: usize = 16 << 10;
pub(super) const AFTER: usize = 1 << 10;
/// Bytes beyond which a unit is divided.
const LONGEST: usize = 500;
/// Bytes below which a line of prose was not wrapped: the next line starts a new sentence.
const UNBROKEN: usize = 60;
/// Extensions of prose files.
const PROSE: [&str; 8] = ["md", "markdown", "txt", "text", "rst", "adoc", "org", "log"];
/// Extensions of files whose comments begin with `#`, and with `--`.
const HASH: [&str; 12] = ["py", "sh", "bash", "zsh", "toml", "yaml", "yml", "rb", "pl", "r", "ini", "conf"];
const DASHES: [&str; 4] = ["sql", "lua", "hs", "elm"];
/// Extensions of files whose lines are rows of one table.
const TABLES: [&str; 2] = ["csv", "tsv"];
/// Comment markers in other files, longer ones first.
const SLASHES: [&str; 7] = ["///", "//!", "//", "/**", "/*", "*/", "* "];

/// What a unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnitKind {
    /// A sentence of a text.
    Prose,
    /// A sentence of a comment.
    Comment,
    /// A row of a table.
    Row,
    /// A line of code or data.
    Code,
}

/// A piece of text that can be quoted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QuotableUnit {
    /// The text without line breaks, comment markers and table borders.
    pub text: String,
    /// Where it is in its file, markers within it included.
    pub bytes: Range<usize>,
    pub kind: UnitKind,
    /// The headings above it, the header of its table, the item that its comment describes.
    pub context: String,
    /// Its paragraph: units of one paragraph follow each other.
    pub paragraph: usize,
}

/// The units of the file called `name` that touch `wanted`, in order.
pub(super) fn units(name: &str, text: &str, wanted: &Range<usize>) -> Vec<QuotableUnit> {
    if is_page(name) {
        return page_units(text, wanted);
    }
    let from = text.floor_char_boundary(wanted.start.saturating_sub(BEFORE));
    let from = if from == 0 { 0 } else { text[from..].find('\n').map_or(wanted.start, |at| from + at + 1) };
    let from = from.min(wanted.start);
    let to = text.floor_char_boundary(wanted.end.saturating_add(AFTER).min(text.len()));
    let to = text[wanted.end..to].find("\n\n").map_or(to, |at| wanted.end + at);
    let mut reader = UnitReader::new(name, text);
    let mut at = from;
    for line in text[from..to].split_inclusive('\n') {
        reader.line(at..at + line.trim_end().len());
        at += line.len();
    }
    reader.end_paragraph();
    reader.units.retain(|unit| unit.bytes.start < wanted.end && unit.bytes.end > wanted.start);
    reader.units
}

/// How a file writes comments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommentStyle {
    /// It is prose.
    None,
    Marked(&'static [&'static str]),
    /// It is a table, and has none.
    Table,
}

impl CommentStyle {
    fn of(name: &str) -> Self {
        let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
        let extension = file.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
        match extension.as_deref() {
            None => Self::None,
            Some(known) if PROSE.contains(&known) => Self::None,
            Some(known) if TABLES.contains(&known) => Self::Table,
            Some(known) if HASH.contains(&known) => Self::Marked(&["#"]),
            Some(known) if DASHES.contains(&known) => Self::Marked(&["--"]),
            Some(_) => Self::Marked(&SLASHES),
        }
    }
}

struct UnitReader<'t> {
    text: &'t str,
    style: CommentStyle,
    /// Within a fence of Markdown.
    fenced: bool,
    headings: Vec<(usize, &'t str)>,
    /// The first row of the table.
    header: Option<&'t str>,
    /// The lines of the paragraph, without markers.
    lines: Vec<Range<usize>>,
    marker: &'static str,
    paragraph: usize,
    /// Comments waiting for the line they describe.
    waiting: usize,
    /// The comment just before a line of code.
    comment: String,
    units: Vec<QuotableUnit>,
}

impl<'t> UnitReader<'t> {
    fn new(name: &str, text: &'t str) -> Self {
        Self {
            text,
            style: CommentStyle::of(name),
            fenced: false,
            headings: Vec::new(),
            header: None,
            lines: Vec::new(),
            marker: "",
            paragraph: 0,
            waiting: 0,
            comment: String::new(),
            units: Vec::new(),
        }
    }

    fn line(&mut self, range: Range<usize>) {
        let line = &self.text[range.clone()];
        let trimmed = line.trim_start();
        let range = range.end - trimmed.len()..range.end;
        if trimmed.is_empty() {
            self.end_paragraph();
            self.header = None;
            return self.comment.clear();
        }
        match self.style {
            CommentStyle::None => self.prose(range, trimmed),
            CommentStyle::Table => self.record(range, trimmed),
            CommentStyle::Marked(markers) => match markers.iter().find(|marker| trimmed.starts_with(*marker))
            {
                Some(_) if trimmed.starts_with("#!") || trimmed.starts_with("#[") => {}
                Some(marker) => self.comment_line(range, trimmed, marker),
                None => self.code(range),
            },
        }
    }

    fn prose(&mut self, range: Range<usize>, line: &'t str) {
        if line.starts_with("```") || line.starts_with("~~~") {
            self.end_paragraph();
            self.fenced = !self.fenced;
            return;
        }
        if self.fenced {
            return self.code(range);
        }
        if let Some((level, heading)) = heading(line) {
            self.end_paragraph();
            self.headings.retain(|(above, _)| *above < level);
            return self.headings.push((level, heading));
        }
        if line.starts_with('|') {
            return self.row(range, line);
        }
        let marker = item(line);
        if marker > 0 || self.begins_anew(line) {
            self.end_paragraph();
        }
        self.lines.push(range.start + marker..range.end);
    }

    /// Whether a line starts a new unit even though no empty line precedes it.
    fn begins_anew(&self, line: &str) -> bool {
        let Some(before) = self.lines.last().filter(|before| before.len() < UNBROKEN || is_entry(line))
        else {
            return false;
        };
        let starts = line.starts_with(|c: char| !c.is_lowercase());
        let before = &self.text[before.clone()];
        // No sentence ends with `on` or `the`.
        let last = before.rsplit(' ').next().unwrap_or(before).to_lowercase();
        starts && !before.ends_with([',', ';', '-']) && !STOP_WORDS.contains(&last.as_str())
    }

    fn row(&mut self, range: Range<usize>, line: &'t str) {
        self.end_paragraph();
        let is_border = line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' ' | '+'));
        let Some(header) = self.header.filter(|_| !is_border) else {
            self.header.get_or_insert(line);
            return;
        };
        let text = line.trim_matches(['|', ' ']).to_owned();
        self.push(text, range, UnitKind::Row, header);
    }

    /// A row of a file that is one table, whose first line names the columns unless it has numbers.
    fn record(&mut self, range: Range<usize>, line: &str) {
        let first = self.text.lines().next().unwrap_or_default();
        let is_value = |field: &str| field.trim_matches(['"', ' ']).starts_with(|c: char| c.is_ascii_digit());
        let header = if first.split([',', ';', '\t']).any(is_value) { "" } else { first };
        if range.start > 0 || header.is_empty() {
            self.push(line.to_owned(), range, UnitKind::Row, header);
        }
    }

    fn comment_line(&mut self, range: Range<usize>, line: &str, marker: &'static str) {
        if marker != self.marker {
            self.end_paragraph();
        }
        let content = line[marker.len()..].trim_start();
        self.marker = marker;
        let start = range.end - content.len();
        if content.is_empty() {
            return self.end_paragraph();
        }
        let item = item(content);
        if item > 0 || heading(content).is_some() {
            self.end_paragraph();
        }
        self.lines.push(start + item..range.end);
    }

    fn code(&mut self, range: Range<usize>) {
        self.end_paragraph();
        let line = &self.text[range.clone()];
        for unit in self.units.iter_mut().rev().take(self.waiting) {
            unit.context.push(' ');
            unit.context.push_str(line);
        }
        self.waiting = 0;
        let comment = std::mem::take(&mut self.comment);
        if line.chars().any(char::is_alphanumeric) {
            self.push(line.to_owned(), range, UnitKind::Code, &comment);
        }
    }

    /// Divides the lines that were collected into sentences.
    fn end_paragraph(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        if lines.is_empty() {
            return;
        }
        let mut joined = String::new();
        let mut places = Vec::new();
        for line in &lines {
            if !joined.is_empty() {
                joined.push(' ');
            }
            places.push((joined.len(), line.start));
            joined.push_str(&self.text[line.clone()]);
        }
        let place = |at: usize| {
            let line = places.partition_point(|(start, _)| *start <= at).saturating_sub(1);
            places.get(line).map_or(0, |(start, source)| source + at.saturating_sub(*start))
        };
        let kind = if self.style == CommentStyle::None { UnitKind::Prose } else { UnitKind::Comment };
        let before = self.units.len();
        for range in sentences(&joined) {
            for range in pieces(&joined, range) {
                let bytes = place(range.start)..place(range.end - 1) + 1;
                self.push(joined[range].to_owned(), bytes, kind, "");
            }
        }
        if kind == UnitKind::Comment {
            self.waiting = self.units.len() - before;
            self.comment = joined;
        }
        self.paragraph += 1;
    }

    fn push(&mut self, text: String, bytes: Range<usize>, kind: UnitKind, under: &str) {
        let mut context: Vec<&str> = self.headings.iter().map(|(_, heading)| *heading).collect();
        context.push(under);
        let (context, paragraph) = (context.join(" "), self.paragraph);
        // A line of code or data may be too long to read.
        if kind == UnitKind::Prose || kind == UnitKind::Comment || text.len() <= LONGEST {
            return self.units.push(QuotableUnit { text, bytes, kind, context, paragraph });
        }
        for piece in pieces(&self.text[bytes.clone()], 0..bytes.len()) {
            let place = bytes.start + piece.start..bytes.start + piece.end;
            let text = self.text[place.clone()].to_owned();
            self.units.push(QuotableUnit { text, bytes: place, kind, context: context.clone(), paragraph });
        }
    }
}

/// A range in pieces of readable length, cut at spaces where there are any.
pub(super) fn pieces(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let mut start = range.start;
    while range.end - start > LONGEST {
        let most = text.floor_char_boundary(start + LONGEST);
        let end = text[start..most].rfind(' ').filter(|&at| at > 0).map_or(most, |at| start + at);
        pieces.push(start..end);
        start = end + (text[end..].len() - text[end..].trim_start().len());
    }
    if start < range.end {
        pieces.push(start..range.end);
    }
    pieces
}

/// The level and the text of a heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    ((1..=6).contains(&level) && text.starts_with(' ')).then(|| (level, text.trim()))
}

/// Bytes of the marker that begins an item of a list or a quotation.
fn item(line: &str) -> usize {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = line.len() - number.len();
    if (1..=3).contains(&digits) && (number.starts_with(". ") || number.starts_with(") ")) {
        return digits + 2;
    }
    let mark = ["- [ ] ", "- [x] ", "- ", "* ", "+ ", "• ", "> "];
    mark.into_iter().find(|mark| line.starts_with(mark)).map_or(0, str::len)
}

/// Whether a line looks like an entry of a log or a field: `2026-01-01 …`, `[12:00] …`, `Name: …`.
fn is_entry(line: &str) -> bool {
    line.starts_with(|c: char| c.is_ascii_digit() || c == '[')
        || line.split_once(": ").is_some_and(|(field, _)| field.split(' ').count() <= 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> Vec<(String, UnitKind)> {
        let units = units(name, text, &(0..text.len()));
        units.into_iter().map(|unit| (unit.text, unit.kind)).collect()
    }

    #[test]
    fn sentences_cross_lines_and_lists_tables_and_code_come_apart() {
        let text = "# Notes\n\nWe ship on\n14 March. Tom owns it.\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```sh\nrun it\n```\n";
        let prose = |text: &str| (text.to_owned(), UnitKind::Prose);
        assert_eq!(
            read("a.md", text),
            [
                prose("We ship on 14 March."),
                prose("Tom owns it."),
                prose("one"),
                prose("two"),
                ("1 | 2".to_owned(), UnitKind::Row),
                ("run it".to_owned(), UnitKind::Code),
            ]
        );
        let found = units("a.md", text, &(0..text.len()));
        assert_eq!(&text[found[0].bytes.clone()], "We ship on\n14 March.");
        assert_eq!((found[0].context.trim(), found[4].context.trim()), ("Notes", "Notes | a | b |"));
    }

    #[test]
    fn comments_read_without_their_markers_and_know_what_they_describe() {
        let text = "//! Owns\n//! it.\n\n/// Tokens at\n/// most.\nconst MOST: usize = 220;\n";
        let found = units("a.rs", text, &(0..text.len()));
        let texts: Vec<&str> = found.iter().map(|unit| unit.text.as_str()).collect();
        assert_eq!(texts, ["Owns it.", "Tokens at most.", "const MOST: usize = 220;"]);
        assert_eq!(&text[found[1].bytes.clone()], "Tokens at\n/// most.");
        assert!(found[1].context.contains("MOST") && found[2].context.contains("Tokens at most."));
    }

    #[test]
    fn lines_of_a_table_are_rows_under_its_first() {
        let text = "id,status\nO-1,ok\nO-2,FAILED\n";
        let found = units("a.csv", text, &(16..text.len()));
        assert_eq!(
            (found.len(), found[0].text.as_str(), found[0].context.as_str()),
            (1, "O-2,FAILED", "id,status")
        );
        assert_eq!(found[0].kind, UnitKind::Row);
        assert_eq!(read("a.tsv", "1\t2\n3\t4\n").len(), 2, "no header");
    }

    #[test]
    fn fields_and_entries_are_units_of_their_own_and_long_lines_are_divided() {
        let fields = read(
            "a.txt",
            "Name: Ann\nAge: 5\nA long line that was broken by hand goes on in the next one,\nas this does.",
        );
        assert_eq!(fields.len(), 3, "{fields:?}");
        let long = units("a.json", &"\"word\", ".repeat(500), &(0..4000));
        assert!(long.len() > 7 && long.iter().all(|unit| unit.text.len() <= LONGEST));
    }
}
