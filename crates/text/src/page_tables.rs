//! The tables of a page as rows of cells. A nested table is text of its enclosing cell.

use serde_json::{Value, json};

use crate::elements::Struck;
use crate::entities::plain;
use crate::markup::{Token, TokenKind, attribute};

/// Limits on what is kept.
const MAX_TABLES: usize = 20;
const MAX_ROWS: usize = 200;
const MAX_CELLS: usize = 30;
const LONGEST_CELL: usize = 500;
/// Smaller tables are layout.
const FEWEST: usize = 2;

/// `{"headers": [...], "rows": [[...]]}` of every table with two rows and two columns or more.
pub fn tables(page: &str, tokens: &[Token], struck: &Struck) -> Vec<Value> {
    let mut reader = TableReader::default();
    for token in tokens {
        let name = page[token.name.clone()].to_ascii_lowercase();
        match (token.kind, name.as_str()) {
            (TokenKind::Open, "table") => reader.open(),
            (TokenKind::Close, "table") => reader.close(),
            (TokenKind::Open, "tr") if reader.depth == 1 => reader.row(),
            (TokenKind::Open, "td" | "th") if reader.depth == 1 => reader.cell(name == "th"),
            (TokenKind::Close, "td" | "th") if reader.depth == 1 => reader.in_cell = false,
            // The alternative text of an image is that of a cell without other text.
            (TokenKind::Open, "img") if reader.in_cell && reader.is_blank() => {
                reader.text(attribute(&page[token.range.clone()], "alt").unwrap_or_default(), false);
                reader.is_picture = true;
            }
            (TokenKind::Text, _) if reader.in_cell => {
                reader.text(&page[token.range.clone()], struck.contains(token.range.start));
            }
            _ => {}
        }
    }
    reader.depth = reader.depth.min(1);
    reader.close();
    reader.tables
}

#[derive(Default)]
struct TableReader {
    tables: Vec<Value>,
    /// The number of open tables.
    depth: usize,
    in_cell: bool,
    /// Whether the text of the cell is that of an image.
    is_picture: bool,
    rows: Vec<TableRow>,
}

#[derive(Default)]
struct TableRow {
    cells: Vec<String>,
    /// Cells that are headers.
    heads: usize,
}

impl TableReader {
    fn open(&mut self) {
        self.depth += 1;
        if self.depth == 1 {
            self.rows.clear();
            self.in_cell = false;
        }
    }

    fn row(&mut self) {
        self.in_cell = false;
        self.rows.push(TableRow::default());
    }

    fn cell(&mut self, head: bool) {
        if self.rows.is_empty() {
            self.row();
        }
        self.is_picture = false;
        // Rows and cells beyond the limits are skipped, so that a page cannot exhaust memory.
        self.in_cell = self.rows.len() <= MAX_ROWS + 1;
        if let Some(row) = self.rows.last_mut().filter(|row| row.cells.len() < MAX_CELLS) {
            row.cells.push(String::new());
            row.heads += usize::from(head);
        } else {
            self.in_cell = false;
        }
    }

    /// Whether the last cell has no text so far.
    fn is_blank(&self) -> bool {
        self.rows.last().and_then(|row| row.cells.last()).is_some_and(String::is_empty)
    }

    fn text(&mut self, raw: &str, is_struck: bool) {
        let text = plain(&raw[..raw.floor_char_boundary(LONGEST_CELL)]);
        if text.is_empty() {
            return;
        }
        let is_picture = std::mem::take(&mut self.is_picture);
        let Some(cell) = self.rows.last_mut().and_then(|row| row.cells.last_mut()) else { return };
        if is_picture {
            cell.clear();
        }
        if cell.len() < LONGEST_CELL {
            let mark = if is_struck { "~~" } else { "" };
            cell.extend([if cell.is_empty() { "" } else { " " }, mark, &text, mark]);
        }
    }

    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        if self.depth > 0 {
            return;
        }
        self.in_cell = false;
        let mut rows = std::mem::take(&mut self.rows);
        rows.retain(|row| row.cells.iter().any(|cell| !cell.trim().is_empty()));
        let wide = rows.iter().any(|row| row.cells.len() >= FEWEST);
        if rows.len() < FEWEST || !wide || self.tables.len() >= MAX_TABLES {
            return;
        }
        let headed = rows.first().is_some_and(|row| row.heads == row.cells.len());
        let headers = if headed { rows.remove(0).cells } else { Vec::new() };
        let rows: Vec<Value> = rows.into_iter().take(MAX_ROWS).map(|row| trimmed(&row.cells)).collect();
        self.tables.push(json!({"headers": trimmed(&headers), "rows": rows}));
    }
}

fn trimmed(cells: &[String]) -> Value {
    cells.iter().map(|cell| Value::String(cell.trim().to_owned())).collect()
}
