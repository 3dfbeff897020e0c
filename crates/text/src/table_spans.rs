//! Rewrites tables whose cells span columns or rows so that each row has a cell in every column, which is how the readers
//! of rows find a value's column.
//!
//! Knows markup only. Of a page that somebody else wrote, it adds a bounded number of cells and bytes; a table that would
//! need more, has text between its cells or contains another stays as it is.

use std::ops::Range;

use std::collections::BTreeMap;

use crate::elements::Struck;
use crate::markup::{Token, TokenKind, attribute};

/// More columns than this are not told apart.
const MOST_COLUMNS: usize = 100;
/// Cells of a table with more are not placed.
const MOST_CELLS: usize = 20_000;
/// Bytes that may be added to a page.
const MOST_ADDED: usize = 256 << 10;
/// Longer text of a cell is not repeated.
const LONGEST_REPEATED: usize = 300;
/// What an empty cell holds, since white space is none to readers of pages.
const EMPTY: &str = "&nbsp;";

/// The page with such tables rewritten; `None` if it has none. `tokens` tile it.
pub fn expanded(page: &str, tokens: &[Token]) -> Option<String> {
    let (mut out, mut done, mut left) = (String::new(), 0, MOST_ADDED);
    let struck = Struck::of(page, tokens);
    for table in outermost(page, tokens) {
        let tokens = &tokens[table];
        let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else { continue };
        let Some(table) = Table::read(page, tokens, &struck).filter(Table::has_spans) else { continue };
        let most = last.range.end - first.range.start + left;
        let Some(written) = table.written(most) else { continue };
        left = left.min(most - written.len());
        out.push_str(&page[done..first.range.start]);
        out.push_str(&written);
        done = last.range.end;
    }
    (done > 0).then(|| out + &page[done..])
}

/// The column of each cell of such tables, by the end of its start tag.
pub fn columns(page: &str, tokens: &[Token]) -> BTreeMap<usize, usize> {
    let mut found = BTreeMap::new();
    for table in outermost(page, tokens) {
        let Some(table) = Table::read(page, &tokens[table], &Struck::default()).filter(Table::has_spans)
        else {
            continue;
        };
        let rows = table.places().unwrap_or_default();
        for (column, place) in rows.into_iter().flat_map(|row| row.into_iter().enumerate()) {
            if let Place::First(cell) = place {
                found.insert(cell.inner.start, column);
            }
        }
    }
    found
}

/// The tokens of each table that is in no other and has no other in it.
fn outermost(page: &str, tokens: &[Token]) -> Vec<Range<usize>> {
    let (mut found, mut depth, mut start, mut has_other) = (Vec::new(), 0_usize, 0, false);
    for (at, token) in tokens.iter().enumerate() {
        let is_table = page[token.name.clone()].eq_ignore_ascii_case("table");
        match token.kind {
            TokenKind::Open if is_table => {
                (start, has_other) = if depth == 0 { (at, false) } else { (start, true) };
                depth += 1;
            }
            TokenKind::Close if is_table && depth > 0 => {
                depth -= 1;
                found.extend(Some(start..at + 1).filter(|_| depth == 0 && !has_other));
            }
            _ => {}
        }
    }
    found
}

struct Cell<'p> {
    tag: &'p str,
    is_head: bool,
    /// What is between its tags.
    inner: Range<usize>,
    /// The text that is shown of it, as markup, or that of its image.
    text: String,
    is_picture: bool,
    columns: usize,
    rows: usize,
}

impl Cell<'_> {
    /// Appends text; a repeated cell stays struck through.
    fn push(&mut self, text: &str, is_struck: bool) {
        if std::mem::take(&mut self.is_picture) {
            self.text.clear();
        }
        self.text.extend(if is_struck { ["<s>", text, "</s> "] } else { ["", text, " "] });
    }

    /// The alternative text of an image is that of a cell without other text.
    fn picture(&mut self, alt: &str) {
        if self.text.is_empty() && !alt.trim().is_empty() {
            self.text = alt.replace('<', "&lt;");
            self.is_picture = true;
        }
    }
}

struct Row<'p> {
    tag: &'p str,
    /// The number of its head, body or foot, which no cell spans beyond.
    group: usize,
    is_in_head: bool,
    cells: Vec<Cell<'p>>,
}

impl Row<'_> {
    fn is_head(&self) -> bool {
        !self.cells.is_empty() && (self.is_in_head || self.cells.iter().all(|cell| cell.is_head))
    }

    /// Whether it is a line across the table, which is above what it is about.
    fn is_title(&self) -> bool {
        matches!(self.cells.as_slice(), [cell] if cell.columns > 1)
    }
}

/// Whether nothing but the first cell of a row has text, such as the name of the rows below it: it is no heading of columns.
fn is_line(places: &[Place<'_>]) -> bool {
    let [Place::First(cell), rest @ ..] = places else { return false };
    let is_other = |place: &Place<'_>| !matches!(place, Place::Again(other) if std::ptr::eq(*other, *cell));
    !cell.text.is_empty() && !rest.iter().any(|place| is_other(place) && !place.text().is_empty())
}

/// What is in one place of a row.
#[derive(Clone, Copy)]
enum Place<'t> {
    /// The first place of a cell.
    First(&'t Cell<'t>),
    /// Another of its places.
    Again(&'t Cell<'t>),
    Nothing,
}

impl<'t> Place<'t> {
    fn text(self) -> &'t str {
        match self {
            Self::First(cell) | Self::Again(cell) => cell.text.trim(),
            Self::Nothing => "",
        }
    }
}

struct Table<'p> {
    page: &'p str,
    /// Its start tag and its caption.
    start: &'p str,
    rows: Vec<Row<'p>>,
}

impl<'p> Table<'p> {
    /// `None` if text is between its cells.
    fn read(page: &'p str, tokens: &[Token], struck: &Struck) -> Option<Self> {
        let mut table = Table { page, start: "", rows: Vec::new() };
        let (mut group, mut is_in_head, mut is_open) = (0, false, false);
        let (start, inner) = (tokens.first()?.range.start, tokens.get(1..tokens.len() - 1)?);
        for token in inner {
            let name = page[token.name.clone()].to_ascii_lowercase();
            let part = ["td", "th", "tr", "thead", "tbody", "tfoot"].into_iter().find(|part| *part == name);
            let is_tag = matches!(token.kind, TokenKind::Open | TokenKind::Close);
            if let Some(part) = part.filter(|_| is_tag) {
                table.end_cell(token.range.start, &mut is_open);
                let tag = &page[token.range.clone()];
                match part {
                    _ if token.kind == TokenKind::Close => {}
                    "tr" => table.rows.push(Row { tag, group, is_in_head, cells: Vec::new() }),
                    "td" | "th" => {
                        if table.rows.is_empty() {
                            table.rows.push(Row { tag: "<tr>", group, is_in_head, cells: Vec::new() });
                        }
                        table.rows.last_mut()?.cells.push(cell(tag, part == "th", token.range.end));
                        is_open = true;
                    }
                    _ => (group, is_in_head) = (group + 1, part == "thead"),
                }
                if table.start.is_empty() && !table.rows.is_empty() {
                    table.start = &page[start..token.range.start];
                }
            } else if is_open && token.kind == TokenKind::Open && name == "img" {
                let alt = attribute(&page[token.range.clone()], "alt").unwrap_or_default();
                table.rows.last_mut()?.cells.last_mut()?.picture(alt);
            } else if token.kind == TokenKind::Text && !page[token.range.clone()].trim().is_empty() {
                let (text, has_rows) = (page[token.range.clone()].trim(), !table.rows.is_empty());
                let cell = table.rows.last_mut().and_then(|row| row.cells.last_mut()).filter(|_| is_open);
                match cell {
                    Some(cell) => cell.push(text, struck.contains(token.range.start)),
                    None if has_rows => return None,
                    None => {}
                }
            }
        }
        table.end_cell(tokens.last()?.range.start, &mut is_open);
        Some(table)
    }

    fn end_cell(&mut self, at: usize, is_open: &mut bool) {
        let cell = self.rows.last_mut().and_then(|row| row.cells.last_mut());
        if let Some(cell) = cell.filter(|_| std::mem::take(is_open)) {
            cell.inner.end = at;
        }
    }

    fn has_spans(&self) -> bool {
        let mut cells = self.rows.iter().flat_map(|row| &row.cells);
        self.rows.len() > 1 && cells.any(|cell| cell.columns > 1 || cell.rows > 1)
    }

    /// As markup without spans; `None` if it is too large or takes more than `most` bytes.
    fn written(&self, most: usize) -> Option<String> {
        let titles = self.rows.iter().take_while(|row| row.is_title()).count();
        let rows = self.places()?;
        let below = self.rows.iter().zip(&rows).skip(titles);
        let heads = below.take_while(|(row, places)| row.is_head() && !is_line(places)).count();
        let mut out = self.start.to_owned();
        for title in self.rows[..titles].iter().flat_map(|row| &row.cells) {
            out.extend(["<caption>", &self.page[title.inner.clone()], "</caption>"]);
        }
        if heads > 0 {
            self.write_head(&mut out, &rows[titles..titles + heads]);
        }
        for (row, places) in self.rows.iter().zip(&rows).skip(titles + heads) {
            self.write_row(&mut out, row, places);
            if out.len() > most {
                return None;
            }
        }
        out.push_str("</table>");
        Some(out).filter(|out| out.len() <= most)
    }

    /// What is in each place of each row.
    fn places(&self) -> Option<Vec<Vec<Place<'_>>>> {
        let mut rows = Vec::new();
        // By column the cell that began in a row above, and in how many rows it still is.
        let mut above: Vec<Option<(&Cell<'_>, usize)>> = Vec::new();
        let (mut group, mut placed) = (0, 0);
        for row in &self.rows {
            if row.group != group {
                above.clear();
                group = row.group;
            }
            let mut places: Vec<Place<'_>> = Vec::new();
            let mut cells = row.cells.iter();
            let end = above.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
            loop {
                let column = places.len();
                if let Some((cell, left)) = above.get_mut(column).and_then(Option::take) {
                    places.push(Place::Again(cell));
                    above[column] = (left > 1).then(|| (cell, left - 1));
                } else if let Some(cell) = cells.next() {
                    place(cell, row, &mut places, &mut above);
                } else if column < end {
                    places.push(Place::Nothing);
                } else {
                    break;
                }
            }
            placed += places.len();
            rows.push(Some(places).filter(|places| places.len() <= MOST_COLUMNS && placed <= MOST_CELLS)?);
        }
        Some(rows)
    }

    /// One row of headings, each with those above it.
    fn write_head(&self, out: &mut String, rows: &[Vec<Place<'_>>]) {
        out.push_str("<tr>");
        for column in 0..rows.iter().map(Vec::len).max().unwrap_or_default() {
            let mut texts: Vec<&str> = Vec::new();
            for text in rows.iter().filter_map(|row| row.get(column)).map(|place| place.text()) {
                if !text.is_empty() && texts.last() != Some(&text) {
                    texts.push(text);
                }
            }
            let text = texts.join(" ");
            out.extend(["<th>", if text.is_empty() { EMPTY } else { &text }, "</th>"]);
        }
        out.push_str("</tr>");
    }

    /// A row of its cells alone if its text is in the first place: it may be layout.
    fn write_row(&self, out: &mut String, row: &Row<'_>, places: &[Place<'_>]) {
        let is_aligned = places.iter().skip(1).any(|place| !place.text().is_empty()) && !is_line(places);
        let fill = if row.is_head() { ["<th>", "</th>"] } else { ["<td>", "</td>"] };
        out.push_str(row.tag);
        for place in places {
            match place {
                Place::First(cell) => {
                    out.extend([cell.tag, &self.page[cell.inner.clone()]]);
                    out.push_str(if is_aligned && cell.text.is_empty() { EMPTY } else { "" });
                    out.push_str(if cell.is_head { "</th>" } else { "</td>" });
                }
                _ if !is_aligned => {}
                place => {
                    let text = place.text();
                    let is_shown = !text.is_empty() && text.len() <= LONGEST_REPEATED;
                    out.extend([fill[0], if is_shown { text } else { EMPTY }, fill[1]]);
                }
            }
        }
        out.push_str("</tr>");
    }
}

/// Puts a cell into its columns. The label of a row is in the first alone.
fn place<'t>(
    cell: &'t Cell<'t>,
    row: &Row<'_>,
    places: &mut Vec<Place<'t>>,
    above: &mut Vec<Option<(&'t Cell<'t>, usize)>>,
) {
    let is_label = places.is_empty() && !row.is_head();
    let first = places.len();
    places.push(Place::First(cell));
    let again = if is_label { Place::Nothing } else { Place::Again(cell) };
    places.extend(std::iter::repeat_n(again, cell.columns - 1));
    if cell.rows > 1 {
        above.resize(above.len().max(places.len()), None);
        above[first..places.len()].fill(Some((cell, cell.rows - 1)));
    }
}

/// A cell whose content starts at a byte.
fn cell(tag: &str, is_head: bool, start: usize) -> Cell<'_> {
    let span = |name: &str| attribute(tag, name).and_then(|value| value.trim().parse::<usize>().ok());
    Cell {
        tag,
        is_head,
        inner: start..start,
        text: String::new(),
        is_picture: false,
        columns: span("colspan").unwrap_or(1).clamp(1, MOST_COLUMNS),
        // 0 is the rest of the group.
        rows: span("rowspan").map_or(1, |rows| if rows == 0 { usize::MAX } else { rows }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::markup::tokens;

    fn rows(page: &str) -> String {
        let written = expanded(page, &tokens(page)).unwrap_or_default();
        let written = written.replace("</tr>", "\n").replace("</caption>", "\n").replace(EMPTY, "-");
        let cells = written.replace("</td>", "|").replace("</th>", "|");
        let kept = tokens(&cells);
        kept.iter()
            .filter(|token| token.kind == TokenKind::Text)
            .map(|token| &cells[token.range.clone()])
            .collect()
    }

    #[test]
    fn every_place_of_a_table_has_its_cell() {
        for (page, wanted) in [
            (
                "<table><tr><th rowspan=2>Plan<th colspan=2>Price</tr><tr><th>Monthly<th>Yearly</tr>\
                 <tr><td>Pro<td>$19<td>$190</tr></table>",
                "Plan|Price Monthly|Price Yearly|\nPro|$19|$190|\n",
            ),
            (
                "<table><thead><tr><td>Lift</td><td>Season</td><td>Price</td></tr></thead><tbody>\
                 <tr><td rowspan='2'>Day</td><td>High</td><td>$90</td></tr><tr><td>Low</td><td>$60</td></tr>\
                 <tr><td>Week</td><td colspan=\"2\">closed</td></tr></tbody></table>",
                "Lift|Season|Price|\nDay|High|$90|\nDay|Low|$60|\nWeek|closed|closed|\n",
            ),
            (
                "<table><tr><td colspan=3>Prices 2026</td></tr><tr><th>A</th><th>B</th><th>C</th></tr>\
                 <tr><td>x</td><td></td><td>1</td></tr><tr><td colspan=2>Total</td><td>1</td></tr>\
                 <tr><td colspan=3>Later</td></tr></table>",
                "Prices 2026\nA|B|C|\nx|-|1|\nTotal|-|1|\nLater|\n",
            ),
            // The name of the rows below it is no heading of columns, wherever it is.
            (
                "<table><tr><th>Plan</th><th>Price</th></tr><tr><th colspan=2>Personal</th></tr><tr><td>Basic</td><td>$5</td></tr>\
                 <tr><th colspan=2>Business</th></tr><tr><td>Team</td><td>$15</td></tr></table>",
                "Plan|Price|\nPersonal|\nBasic|$5|\nBusiness|\nTeam|$15|\n",
            ),
            (
                "<table><tr><th rowspan=2>Plan</th><th colspan=2>Price</th></tr><tr><th>Monthly</th><th>Yearly</th></tr>\
                 <tr><th>Personal</th></tr><tr><td>Basic</td><td>$5</td><td>$50</td></tr></table>",
                "Plan|Price Monthly|Price Yearly|\nPersonal|\nBasic|$5|$50|\n",
            ),
            (
                "<table><tr><th>Plan</th><th>Price</th></tr><tr><th>Personal</th><th></th></tr><tr><td>Basic</td><td>$5</td></tr>\
                 <tr><td colspan=2>closed</td></tr></table>",
                "Plan|Price|\nPersonal||\nBasic|$5|\nclosed|\n",
            ),
            // Text alone in its row keeps its place, and a heading stays one.
            (
                "<table><tr><td colspan=2></td><td>Price</td></tr><tr><td>Sauna</td><td>60</td><td>21</td></tr>\
                 <tr><td rowspan=2></td><td>1</td><td>2</td></tr><tr><td></td><td>3</td></tr></table>",
                "-|-|Price|\nSauna|60|21|\n-|1|2|\n-|-|3|\n",
            ),
            // The text of an image is that of a cell without other text.
            (
                "<table><tr><td rowspan=2><img alt=a>$12<td>x<tr><td>y<tr><td rowspan=2><img alt=\"<script>\"><td>x<tr><td>y</table>",
                "$12|x|\n$12|y|\n|x|\n&lt;script>|y|\n",
            ),
            (
                "<table><tr><th rowspan=2>For<th colspan=2><img alt=Basic></tr><tr><th>Month<th>Year<tr><td>a<td>1<td>2\
                 <tr><th>For<th colspan=2>Pro</table>",
                "For|Basic Month|Basic Year|\na|1|2|\nFor|Pro|Pro|\n",
            ),
            // A cell spans no group, and a wide or a tall one is bounded.
            (
                "<table><tbody><tr><td rowspan=0>a</td><td>b</td></tr></tbody><tbody><tr><td>c</td><td>d</td></tr></table>",
                "a|b|\nc|d|\n",
            ),
            ("<table><tr><td colspan=99999999999999999999>a</td><td>b</td></tr></table>", ""),
            ("<table><tr><td>a</td></tr></table>", ""),
            ("<table><tr><td colspan=2><table><tr><td>a</td></tr></table></td></tr><tr><td>b</table>", ""),
            ("<table><tr><td colspan=2>a</td><td>b</td></tr>text<tr><td>c</td></tr></table>", ""),
            ("<table><tr><td colspan=2>a", ""),
        ] {
            assert_eq!(rows(page), wanted, "{page}");
        }
    }

    #[test]
    fn hostile_tables_stay_as_they_are() {
        let tall = format!(
            "<table>{}</table>",
            "<tr><td rowspan=99999 colspan=99>word</td><td>x</td>".repeat(5_000)
        );
        let wide = format!("<table><tr>{}</tr><tr></tr></table>", "<td colspan=100>w</td>".repeat(5_000));
        let many = "<table><tr><td>w</td><td colspan=99>x</td></tr><tr><td>y</td></tr></table>".repeat(5_000);
        for page in [tall, wide] {
            assert_eq!(expanded(&page, &tokens(&page)), None);
        }
        let written = expanded(&many, &tokens(&many)).unwrap_or_default();
        assert!((many.len()..=many.len() + MOST_ADDED).contains(&written.len()), "{}", written.len());
        assert!(written.ends_with(&many[many.len() / 2..]), "the tables beyond the limit");
    }
}
