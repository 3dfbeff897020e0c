//! What can be quoted from a page: sentences of its text, and the rows of its tables as lines. Knows HTML's elements; does
//! not know the question.

use std::ops::Range;

use larder_text::entities::plain;
use larder_text::markup::{TokenKind, tokens};

use super::sentences::sentences;
use super::units::{AFTER, BEFORE, QuotableUnit, UnitKind, pieces};

/// Elements within a line of text.
const INLINE: [&str; 27] = [
    "a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "dfn", "em", "font", "i", "img", "kbd", "label",
    "mark", "q", "s", "samp", "small", "span", "strong", "sub", "sup", "time", "u", "wbr",
];

/// Whether a file of this name is a page.
pub(super) fn is_page(name: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    matches!(extension.as_deref(), Some("html" | "htm" | "xhtml"))
}

/// The units of a page that touch `wanted`, in order.
pub(super) fn page_units(page: &str, wanted: &Range<usize>) -> Vec<QuotableUnit> {
    let from = page.floor_char_boundary(wanted.start.saturating_sub(BEFORE));
    let from = if from == 0 { 0 } else { page[from..].find('<').map_or(wanted.start, |at| from + at) };
    let from = from.min(wanted.start);
    let to = page.floor_char_boundary(wanted.end.saturating_add(AFTER).min(page.len()));
    let mut reader = PageReader { page, ..PageReader::default() };
    for token in tokens(&page[from..to]) {
        let name = page[from + token.name.start..from + token.name.end].to_ascii_lowercase();
        match token.kind {
            TokenKind::Open => reader.open(&name),
            TokenKind::Close => reader.close(&name),
            TokenKind::Text => reader.text(from + token.range.start..from + token.range.end),
            TokenKind::Hidden | TokenKind::Comment => {}
        }
    }
    reader.end_row();
    reader.end_block();
    reader.units.retain(|unit| unit.bytes.start < wanted.end && unit.bytes.end > wanted.start);
    reader.units
}

/// A row of a table as far as it was read.
#[derive(Default)]
struct RowReader {
    cells: Vec<String>,
    bytes: Option<Range<usize>>,
    /// Whether none of its cells is data.
    is_header: bool,
}

#[derive(Default)]
struct PageReader<'p> {
    page: &'p str,
    headings: Vec<(u8, String)>,
    /// The level of the heading under way.
    heading: Option<u8>,
    /// The header of the table.
    header: String,
    row: Option<RowReader>,
    /// The pieces of text of the block or the cell.
    block: Vec<Range<usize>>,
    paragraph: usize,
    units: Vec<QuotableUnit>,
}

impl PageReader<'_> {
    fn text(&mut self, range: Range<usize>) {
        let text = &self.page[range.clone()];
        let start = range.start + (text.len() - text.trim_start().len());
        let end = start + text.trim().len();
        if start < end {
            self.block.push(start..end);
        }
    }

    fn open(&mut self, name: &str) {
        match name {
            "tr" => {
                self.end_row();
                self.end_block();
                self.row = Some(RowReader { is_header: true, ..RowReader::default() });
            }
            "td" | "th" => {
                self.end_cell();
                if let Some(row) = &mut self.row {
                    row.is_header &= name == "th";
                }
            }
            "table" => {
                self.end_row();
                self.end_block();
                self.header.clear();
            }
            name if INLINE.contains(&name) || self.row.is_some() => {}
            name => {
                self.end_block();
                self.heading = level(name);
            }
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "tr" | "table" => {
                self.end_row();
                if name == "table" {
                    self.header.clear();
                }
            }
            name if INLINE.contains(&name) || self.row.is_some() => {}
            _ => self.end_block(),
        }
    }

    fn end_cell(&mut self) {
        let Some(row) = &mut self.row else { return };
        let block = std::mem::take(&mut self.block);
        let (Some(first), Some(last)) = (block.first(), block.last()) else { return };
        row.bytes = Some(row.bytes.as_ref().map_or(first.start, |bytes| bytes.start)..last.end);
        let text: Vec<&str> = block.iter().map(|piece| &self.page[piece.clone()]).collect();
        row.cells.push(plain(&text.join(" ")));
    }

    fn end_row(&mut self) {
        self.end_cell();
        let Some(RowReader { cells, bytes: Some(bytes), is_header }) = self.row.take() else { return };
        let text = cells.join(" | ");
        if is_header {
            self.header = text;
        } else {
            self.push(text, bytes, UnitKind::Row);
            self.paragraph += 1;
        }
    }

    /// Divides the text that was collected into sentences, or adds it to the headings.
    fn end_block(&mut self) {
        let block = std::mem::take(&mut self.block);
        if block.is_empty() {
            return;
        }
        let mut joined = String::new();
        let mut places = Vec::new();
        for piece in &block {
            if !joined.is_empty() {
                joined.push(' ');
            }
            places.push((joined.len(), piece.start));
            joined.push_str(&self.page[piece.clone()]);
        }
        if let Some(level) = self.heading.take() {
            self.headings.retain(|(above, _)| *above < level);
            return self.headings.push((level, plain(&joined)));
        }
        let place = |at: usize| {
            let piece = places.partition_point(|(start, _)| *start <= at).saturating_sub(1);
            places.get(piece).map_or(0, |(start, source)| source + at.saturating_sub(*start))
        };
        for range in sentences(&joined) {
            for range in pieces(&joined, range) {
                let bytes = place(range.start)..place(range.end - 1) + 1;
                self.push(plain(&joined[range]), bytes, UnitKind::Prose);
            }
        }
        self.paragraph += 1;
    }

    fn push(&mut self, text: String, bytes: Range<usize>, kind: UnitKind) {
        let mut context: Vec<&str> = self.headings.iter().map(|(_, heading)| heading.as_str()).collect();
        if kind == UnitKind::Row {
            context.push(&self.header);
        }
        let (context, paragraph) = (context.join(" "), self.paragraph);
        self.units.push(QuotableUnit { text, bytes, kind, context, paragraph });
    }
}

/// The level of a heading's element.
fn level(name: &str) -> Option<u8> {
    let level = name.strip_prefix('h')?.parse().ok()?;
    (1..=6).contains(&level).then_some(level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_lines_and_sentences_cross_elements() {
        let page = "<html><head><title>T</title><script>var x = 1;</script></head><body><h2>Prices &amp; more</h2>\
                    <p>We <b>ship</b> on Monday. Ask Tom.</p><table><tr><th>Article</th><th>Price</th></tr>\
                    <tr><td>Lamp 1</td><td>2&nbsp;EUR</td></tr></table></body></html>";
        let found = page_units(page, &(0..page.len()));
        let texts: Vec<&str> = found.iter().map(|unit| unit.text.as_str()).collect();
        assert_eq!(texts, ["We ship on Monday.", "Ask Tom.", "Lamp 1 | 2 EUR"]);
        assert_eq!(&page[found[2].bytes.clone()], "Lamp 1</td><td>2&nbsp;EUR");
        assert_eq!(found[2].context, "Prices & more Article | Price");
    }
}
