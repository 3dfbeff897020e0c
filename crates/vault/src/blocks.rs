//! The layout of Larder's Markdown: reads and writes headings, labels such as `**Goal:**`, tables and lists.
//!
//! Knows the notation, not its content. Each kind of document has its [`Grammar`]: only that grammar's headings and
//! labels start a block or field; any other line belongs to the surrounding text.

use std::str::FromStr;

use super::VaultPath;
use super::links;
use super::problem::ParseProblem;
use super::quote;
use super::value::ValueError;
use super::write::escape_lines;
use larder_text::sections::SectionId;

/// The label of the link from a file of a turn to its `context.md`.
pub(super) const LINKED_TURN: &str = "Linked turn";

/// The headings and labels of one kind of document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grammar {
    /// Whole heading lines; one that ends in a space or full stop matches the start of a line.
    pub heads: &'static [&'static str],
    /// Labels without asterisks and colon.
    pub labels: &'static [&'static str],
}

impl Grammar {
    /// The heading in `line`, and the rest of the line.
    fn head(&self, line: &str) -> Option<(&'static str, String)> {
        let line = line.trim_end();
        self.heads.iter().find_map(|head| match line.strip_prefix(*head) {
            None if line == head.trim_end() => Some((*head, String::new())),
            Some(rest) if rest.is_empty() || head.ends_with([' ', '.']) => Some((*head, rest.to_owned())),
            _ => None,
        })
    }

    /// The label at the start of `line`, and the start of its value.
    pub fn label(&self, line: &str) -> Option<(&'static str, usize)> {
        let rest = line.strip_prefix("**")?;
        let (name, _) = rest.split_once(":**")?;
        let label = self.labels.iter().find(|label| **label == name)?;
        Some((label, label.len() + 5))
    }

    /// Whether `line` would start a block or field.
    pub fn starts(&self, line: &str) -> bool {
        self.head(line).is_some() || self.label(line).is_some()
    }
}

/// Builds the text of a document or of a section.
pub(super) struct BlockWriter {
    grammar: &'static Grammar,
    text: String,
}

impl BlockWriter {
    pub fn new(grammar: &'static Grammar) -> Self {
        Self { grammar, text: String::new() }
    }

    /// The text, ending with one line break.
    pub fn finish(mut self) -> String {
        let kept = self.text.trim_end_matches('\n').len();
        self.text.truncate(kept);
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text
    }

    /// Writes a trusted line unchanged.
    pub fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Writes a blank line, unless the text is empty or ends with one.
    pub fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// Writes a heading between blank lines.
    pub fn head(&mut self, head: &str) {
        self.gap();
        self.line(head);
        self.gap();
    }

    /// Writes `**Label:** value` with a trusted value.
    pub fn field(&mut self, label: &'static str, value: &str) {
        debug_assert!(self.grammar.labels.contains(&label), "{label} is in the grammar");
        let space = if value.is_empty() { "" } else { " " };
        self.line(&format!("**{label}:**{space}{value}"));
    }

    /// Writes the link from a file of a turn, at path `at`, to the section of its `context.md` that is about it
    /// (R1-8.1); nothing for a file outside turns.
    pub fn linked_turn(&mut self, at: &VaultPath, section: SectionId, attempt: u32) {
        let Some(link) = links::section_of_turn(at, section, attempt) else { return };
        self.gap();
        self.field(LINKED_TURN, &link);
        self.gap();
    }

    /// Writes a label that is followed by a list or table.
    pub fn label(&mut self, label: &'static str) {
        self.field(label, "");
    }

    /// Writes a field with untrusted text: on the label's line if it is a single line, otherwise below it.
    pub fn text_field(&mut self, label: &'static str, text: &str) {
        if text.is_empty() {
            return self.label(label);
        }
        let block = self.quoted(text);
        if !quote::stands_in_line(&block) {
            self.label(label);
            self.gap();
            self.line(&block);
            self.gap();
        } else {
            self.field(label, &block);
        }
    }

    /// Writes free text as a separate block; empty text writes nothing.
    pub fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let block = self.quoted(text);
        self.gap();
        self.line(&block);
        self.gap();
    }

    /// Writes any text inside a fence.
    pub fn fenced(&mut self, text: &str) {
        let block = escape_lines(&quote::fenced(text), |line| self.grammar.starts(line)).into_owned();
        self.gap();
        self.line(&block);
        self.gap();
    }

    fn quoted(&self, text: &str) -> String {
        quote::block(text, |line| self.grammar.starts(line))
    }

    /// Writes a table; its cells may contain untrusted text.
    pub fn table<const N: usize>(&mut self, head: [&str; N], rows: impl Iterator<Item = [String; N]>) {
        self.written_table(head, rows.map(|row| row.map(|cell| quote::inline(&cell))));
    }

    /// Writes a table whose cells are already safe.
    pub fn written_table<const N: usize>(
        &mut self,
        head: [&str; N],
        rows: impl Iterator<Item = [String; N]>,
    ) {
        self.gap();
        self.line(&format!("| {} |", head.join(" | ")));
        self.line(&format!("|{}", "---|".repeat(N)));
        for row in rows {
            self.line(&format!("| {} |", row.join(" | ")));
        }
        self.gap();
    }

    /// Writes list items that are already safe, each after its marker.
    pub fn list(&mut self, items: impl Iterator<Item = String>) {
        items.for_each(|item| self.line(&format!("- {item}")));
        self.gap();
    }

    /// Writes a numbered list of untrusted texts.
    pub fn numbered<'a>(&mut self, items: impl Iterator<Item = &'a String>) {
        items.enumerate().for_each(|(at, item)| {
            let line = format!("{}. {}", at + 1, quote::inline(item));
            self.line(&line);
        });
        self.gap();
    }
}

/// A label with its value, or the text directly under a heading.
#[derive(Debug, Clone, Copy)]
struct Field<'t> {
    label: &'static str,
    line: usize,
    value: &'t str,
}

/// The content under one heading.
#[derive(Debug)]
pub(super) struct HeadedBlock<'t> {
    grammar: &'static Grammar,
    /// The heading as listed in the grammar; empty for the text before the first heading.
    pub head: &'static str,
    /// The rest of the heading's line.
    pub rest: String,
    /// The line number of the heading, from 1.
    pub line: usize,
    fields: Vec<Field<'t>>,
}

/// Divides `text`, whose first line has number `first_line`, into blocks. The first block has no heading and always
/// exists.
pub(super) fn blocks<'t>(
    text: &'t str,
    grammar: &'static Grammar,
    first_line: usize,
) -> Vec<HeadedBlock<'t>> {
    let block = |head, rest, line| HeadedBlock { grammar, head, rest, line, fields: Vec::new() };
    let mut blocks = vec![block("", String::new(), first_line)];
    let mut open = Field { label: "", line: first_line, value: "" };
    let (mut from, mut at) = (0, 0);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let (number, start) = (first_line + number, at);
        at += line.len();
        let head = grammar.head(line);
        let label = grammar.label(line);
        if head.is_none() && label.is_none() {
            continue;
        }
        close(&mut blocks, open, &text[from..start]);
        (open, from) = match label {
            Some((label, length)) => (Field { label, line: number, value: "" }, start + length),
            None => (Field { label: "", line: number + 1, value: "" }, at),
        };
        if let Some((head, rest)) = head {
            blocks.push(block(head, rest, number));
        }
    }
    close(&mut blocks, open, &text[from..]);
    blocks
}

fn close<'t>(blocks: &mut [HeadedBlock<'t>], field: Field<'t>, value: &'t str) {
    if let Some(block) = blocks.last_mut()
        && !(field.label.is_empty() && value.trim().is_empty())
    {
        block.fields.push(Field { value, ..field });
    }
}

impl<'t> HeadedBlock<'t> {
    fn field(&self, label: &str) -> Option<&Field<'t>> {
        self.fields.iter().find(|field| field.label == label)
    }

    /// Whether the block has the label.
    pub fn has(&self, label: &str) -> bool {
        self.field(label).is_some()
    }

    /// The free text after a label, or directly under the heading if the label is empty.
    pub fn text(&self, label: &str) -> Option<String> {
        self.texts().find(|(found, _)| *found == label).map(|(_, text)| text)
    }

    /// The free text after a label, without the name of the block that it is.
    pub fn text_of_block(&self, label: &str) -> Option<String> {
        let value = self.field(label)?.value.trim_end();
        let named = value.rsplit_once('\n').filter(|(_, last)| last.starts_with('^'));
        let value = named.map_or(value, |(before, _)| before);
        Some(quote::unblock(value, |line| self.grammar.starts(line)))
    }

    /// Every label with the free text after it, in order; the label of text directly under the heading is empty.
    pub fn texts(&self) -> impl Iterator<Item = (&'static str, String)> {
        let text = |field: &Field<'_>| quote::unblock(field.value, |line| self.grammar.starts(line));
        self.fields.iter().map(move |field| (field.label, text(field)))
    }

    /// The value on the label's line.
    pub fn line(&self, label: &str) -> Option<(usize, &'t str)> {
        let field = self.field(label)?;
        Some((field.line, field.value.lines().next().unwrap_or_default().trim()))
    }

    /// The parsed value on the label's line; an invalid one is reported.
    pub fn value<T>(&self, label: &str, problems: &mut Vec<ParseProblem>) -> Option<T>
    where
        T: FromStr<Err = ValueError>,
    {
        let (line, value) = self.line(label)?;
        parsed(value, line, label, problems)
    }

    /// As [`value`](Self::value), and reports a missing value.
    pub fn required<T>(&self, label: &str, problems: &mut Vec<ParseProblem>) -> Option<T>
    where
        T: FromStr<Err = ValueError>,
    {
        if !self.has(label) {
            problems.push(ParseProblem::new(self.line, format!("**{label}:** is missing")));
        }
        self.value(label, problems)
    }

    /// Every non-blank line after a label with its number; if the label is empty, those directly under the heading.
    pub fn lines(&self, label: &str) -> impl Iterator<Item = (usize, &'t str)> {
        let field = self.field(label).copied();
        field.into_iter().flat_map(|field| {
            let lines = field.value.lines().enumerate().map(move |(at, line)| (field.line + at, line.trim()));
            lines.filter(|(_, line)| !line.is_empty())
        })
    }

    /// The list items after a label, without markers.
    pub fn items(&self, label: &str) -> Vec<(usize, &'t str)> {
        self.lines(label).filter_map(|(number, line)| Some((number, item(line)?))).collect()
    }

    /// The rows of the first table after a label, in the order of `head`. Columns are found by name, in any order;
    /// missing cells are empty.
    pub fn rows<const N: usize>(&self, label: &str, head: [&str; N]) -> Vec<(usize, [String; N])> {
        let mut lines = self.lines(label).skip_while(|(_, line)| !line.starts_with('|'));
        let Some((_, names)) = lines.next() else { return Vec::new() };
        let names: Vec<String> = cells(names).collect();
        let places = head.map(|name| names.iter().position(|found| found.eq_ignore_ascii_case(name)));
        let rows = lines.take_while(|(_, line)| line.starts_with('|')).enumerate();
        let rows = rows.filter(|(at, (_, line))| *at > 0 || !is_rule(line));
        rows.map(|(_, (number, line))| {
            let cells: Vec<String> = cells(line).collect();
            (number, places.map(|place| place.and_then(|at| cells.get(at)).cloned().unwrap_or_default()))
        })
        .collect()
    }
}

/// Parses a value, or reports a problem in its line.
pub(super) fn parsed<T>(text: &str, line: usize, name: &str, problems: &mut Vec<ParseProblem>) -> Option<T>
where
    T: FromStr<Err = ValueError>,
{
    text.parse().map_err(|error| problems.push(ParseProblem::new(line, format!("{name}: {error}")))).ok()
}

/// The text after a list marker: `- `, `* `, `+ `, `1. `.
pub(super) fn item(line: &str) -> Option<&str> {
    let numbered = || {
        let rest = line.trim_start_matches(|char: char| char.is_ascii_digit());
        let digits = line.len() - rest.len();
        rest.strip_prefix(['.', ')']).filter(|_| digits > 0)
    };
    let rest = line.strip_prefix(['-', '*', '+']).or_else(numbered)?;
    (rest.is_empty() || rest.starts_with(' ')).then(|| rest.trim())
}

fn is_rule(line: &str) -> bool {
    line.contains('-') && line.chars().all(|char| matches!(char, '|' | '-' | ':' | ' '))
}

/// The decoded cells of a row.
fn cells(line: &str) -> impl Iterator<Item = String> {
    let line = line.trim().strip_prefix('|').unwrap_or(line);
    let mut cells = Vec::new();
    let (mut from, mut escaped) = (0, false);
    for (at, char) in line.char_indices() {
        match char {
            '|' if !escaped => {
                cells.push(&line[from..at]);
                from = at + 1;
            }
            _ => {}
        }
        escaped = char == '\\' && !escaped;
    }
    if !line[from..].trim().is_empty() {
        cells.push(&line[from..]);
    }
    cells.into_iter().map(quote::uninline)
}

#[cfg(test)]
mod tests {
    use super::*;

    static GRAMMAR: Grammar =
        Grammar { heads: &["### Checks", "### Iteration "], labels: &["Goal", "Results"] };

    #[test]
    fn only_own_headings_and_labels_divide_a_text() {
        let text = "lead\n**Goal:** a\n**Mood:** b\n### Other\n\n### Iteration 3  \r\n**Results:**\n- x\n\n* y\n### Iteration\n";
        let blocks = blocks(text, &GRAMMAR, 10);
        assert_eq!(blocks.len(), 3);
        assert_eq!(blocks[0].text("Goal").unwrap(), "a\n**Mood:** b\n### Other");
        assert_eq!(blocks[0].line("Goal"), Some((11, "a")));
        assert_eq!(blocks[0].text("").unwrap(), "lead");
        assert_eq!((blocks[1].head, blocks[1].rest.as_str(), blocks[1].line), ("### Iteration ", "3", 15));
        assert_eq!(blocks[1].items("Results"), [(17, "x"), (19, "y")]);
    }

    #[test]
    fn tables_are_read_by_the_names_of_their_columns() {
        let text = "### Checks\n\n| Result | note | CHECK |\n|:--|--|---|\n| PASS | a \\| b | one |\n| FAIL |\nend\n";
        let blocks = blocks(text, &GRAMMAR, 1);
        let rows = blocks[1].rows("", ["Check", "Result", "Note", "Absent"]);
        let [(5, first), (6, second)] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!(first, &["one", "PASS", "a | b", ""].map(str::to_owned));
        assert_eq!(second, &["", "FAIL", "", ""].map(str::to_owned));
    }
}
