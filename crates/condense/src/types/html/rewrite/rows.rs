//! Writes the rows of tables, with blank cells where a row has no text in a column of its table.
//!
//! Knows cells and their places; does not know how their words are written.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::{ReadablePage, Writer, runs};
use crate::types::html::outline::{Block, CellPlace};

/// A row with a longer cell is layout, not data.
const LONGEST_CELL: usize = 300;
/// What is between two cells.
const BLANK: &str = " | ";
/// What is below each cell of a row of headings.
const RULE: &str = "|---";

/// What is known of a page's tables while they are written.
#[derive(Default)]
pub(super) struct Tables {
    /// The columns that have text, by tables with a row of several cells.
    columns: BTreeMap<usize, Vec<usize>>,
    /// Bytes that blank cells and marks of items may still take.
    spare: usize,
    next_picture: usize,
    /// The tables of which a row is written.
    begun: BTreeSet<usize>,
    /// The row of the last cell.
    row: Option<usize>,
    /// The table of the last row that is written as one, and whether that has headings alone.
    above: Option<(usize, bool)>,
}

/// What is in a cell.
enum RowPart<'a> {
    Text(&'a [Block]),
    /// The alternative text of an image.
    Picture(&'a Range<usize>),
}

fn is_same_cell(one: &Block, next: &Block) -> bool {
    one.cell() == next.cell()
}

impl Tables {
    pub(super) fn of(page: &ReadablePage<'_>) -> Self {
        let mut columns: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        let mut is_data = BTreeSet::new();
        let mut last = None;
        for cell in page.outline.blocks.chunk_by(is_same_cell) {
            let shown = || page.is_kept(cell) && !page.is_long(cell);
            let Some(place) = cell[0].cell().filter(|_| shown()) else { continue };
            if last.replace(place.row) == Some(place.row) {
                is_data.insert(place.table);
            }
            columns.entry(place.table).or_default().insert(place.column);
        }
        for (place, _) in &page.outline.pictures {
            columns.entry(place.table).or_default().insert(place.column);
        }
        columns.retain(|table, _| is_data.contains(table));
        let columns = columns.into_iter().map(|(table, columns)| (table, columns.into_iter().collect()));
        Self { columns: columns.collect(), spare: page.page.len(), ..Self::default() }
    }

    /// Whether these bytes may still be written.
    pub(super) fn pays(&mut self, bytes: usize) -> bool {
        let left = self.spare.checked_sub(bytes);
        self.spare = left.unwrap_or(self.spare);
        left.is_some()
    }
}

impl ReadablePage<'_> {
    /// Whether a cell has so much text that its row is layout.
    fn is_long(&self, cell: &[Block]) -> bool {
        self.outline.runs[runs(cell)].iter().map(|run| run.range.len()).sum::<usize>() > LONGEST_CELL
    }
}

impl<'a> Writer<'a> {
    /// Writes the row that starts with block `first`, or the rest of a row; returns how many blocks it has.
    pub(super) fn row(&mut self, first: usize, place: CellPlace) -> usize {
        let outline = self.page.outline;
        let is_of_row = |block: &&Block| block.cell().is_some_and(|cell| cell.row == place.row);
        let blocks = &outline.blocks[first..];
        let blocks = &blocks[..blocks.iter().take_while(is_of_row).count()];
        let next = outline.blocks.get(first + blocks.len());
        let end = next.map_or(self.page.page.len(), |next| outline.runs[next.runs.start].range.start);
        let parts = self.parts(blocks, place, end);
        let is_rest = self.tables.row.replace(place.row) == Some(place.row);
        let is_head = parts.len() > 1 && outline.headings.contains(&place.row);
        let is_first = !self.tables.begun.contains(&place.table);
        let is_new_head = is_head && self.tables.above != Some((place.table, true));
        let has_rule = !is_rest && (is_first || is_new_head);
        let blank: usize = parts.iter().map(|(blank, _)| blank).sum();
        let needed = blank * (BLANK.len() + if has_rule { RULE.len() } else { 0 });
        if parts.len() + blank < 2
            || !self.tables.columns.contains_key(&place.table)
            || !self.page.is_kept(blocks)
            || blocks.chunk_by(is_same_cell).any(|cell| self.page.is_long(cell))
            || !self.tables.pays(needed)
        {
            blocks.iter().for_each(|block| self.block(block));
            return blocks.len();
        }
        self.tables.begun.insert(place.table);
        let above = self.tables.above.replace((place.table, is_head));
        self.new_line(has_rule || above.is_none_or(|(table, _)| table != place.table));
        self.out.starts.push((self.out.text.len(), runs(blocks)));
        self.write_row(&parts);
        if has_rule {
            self.out.text.push('\n');
            self.out.text.push_str(&RULE.repeat(parts.len() + blank));
            self.out.text.push('|');
        }
        blocks.len()
    }

    /// The parts of a row with these blocks, which ends before byte `end` of the page, each with the number of blank
    /// cells before it.
    fn parts(&mut self, blocks: &'a [Block], place: CellPlace, end: usize) -> Vec<(usize, RowPart<'a>)> {
        let cells = blocks.chunk_by(is_same_cell).filter(|cell| self.page.is_kept(cell));
        let mut parts: Vec<(usize, RowPart<'a>)> =
            cells.filter_map(|cell| Some((cell[0].cell()?.column, RowPart::Text(cell)))).collect();
        while let Some((cell, range)) = self.page.outline.pictures.get(self.tables.next_picture) {
            if range.start >= end || cell.row > place.row {
                break;
            }
            parts.extend((cell.row == place.row).then_some((cell.column, RowPart::Picture(range))));
            self.tables.next_picture += 1;
        }
        parts.sort_by_key(|(column, _)| *column);
        let columns = self.tables.columns.get(&place.table).map(Vec::as_slice).unwrap_or_default();
        let mut last = None;
        for (column, _) in &mut parts {
            let rank = columns.partition_point(|other| other < column);
            let next = last.replace(rank).map_or(0, |last| last + 1);
            *column = rank.saturating_sub(next);
        }
        parts
    }

    fn write_row(&mut self, parts: &[(usize, RowPart<'_>)]) {
        self.out.text.push_str("| ");
        for (index, (blank, part)) in parts.iter().enumerate() {
            self.out.text.push_str(&BLANK.repeat(blank + usize::from(index > 0)));
            if index > 0 {
                self.mark_at = self.out.text.len();
            }
            match part {
                RowPart::Text(cell) => {
                    let mut is_first = true;
                    for block in cell.iter().filter(|block| self.page.is_kept(std::slice::from_ref(*block))) {
                        self.out.text.push_str(if std::mem::take(&mut is_first) { "" } else { " " });
                        self.runs(block);
                    }
                }
                RowPart::Picture(range) => {
                    (self.block_start, self.space) = (self.out.text.len(), false);
                    self.words(range, false);
                }
            }
        }
        self.out.text.push_str(" |");
    }
}
