//! The visible text of a page as runs of text in blocks: paragraphs, headings, list items, table cells, code.
//!
//! Knows how elements affect layout; does not know which part of a page is its main content. Nesting is counted, not
//! followed, so malformed or deep nesting is harmless.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use larder_text::elements::{Element, Lists, Struck, element};
use larder_text::entities::plain;
use larder_text::markup::{Token, TokenKind, attribute};

/// The form of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    /// With its level, 1 to 6.
    Heading(u8),
    /// With the depth of its list, from 1, and its number where the list has some.
    Item(u8, Option<u16>),
    Cell(CellPlace),
    Code,
}

/// Where a cell is: its table, its row among those of the page that have text, and its column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CellPlace {
    pub(super) table: usize,
    pub(super) row: usize,
    pub(super) column: usize,
}

/// Text between two tags that is not just white space.
#[derive(Debug, Clone)]
pub(super) struct TextRun {
    pub(super) range: Range<usize>,
    /// The white space before it, if other tags are between; nothing at the start of a block.
    pub(super) before: String,
    /// The raw target of the link it is in.
    pub(super) link: Option<Range<usize>>,
    /// Whether it contains a letter or a digit.
    pub(super) wordy: bool,
    /// Whether it is struck through.
    pub(super) struck: bool,
}

/// A block-level part of the page.
#[derive(Debug, Clone)]
pub(super) struct Block {
    pub(super) form: Form,
    /// Begins on a new line of the same paragraph.
    pub(super) tight: bool,
    /// Whether it is outside the article: navigation, footers, forms.
    pub(super) furniture: bool,
    pub(super) runs: Range<usize>,
}

/// A page's blocks and runs, in order.
#[derive(Debug, Default)]
pub(super) struct PageOutline {
    pub(super) blocks: Vec<Block>,
    pub(super) runs: Vec<TextRun>,
    /// The alternative texts of images in cells without other text.
    pub(super) pictures: Vec<(CellPlace, Range<usize>)>,
    /// The rows whose cells are all `<th>`, except the last row of the page.
    pub(super) headings: BTreeSet<usize>,
    pub(super) struck: Struck,
}

impl Block {
    /// Where it is, if it is a cell.
    pub(super) const fn cell(&self) -> Option<CellPlace> {
        if let Form::Cell(place) = self.form { Some(place) } else { None }
    }
}

/// Longer text of a picture is a caption.
const LONGEST_PICTURE: usize = 100;
/// Deeper lists are shown at this depth.
const DEEPEST_LIST: usize = 6;

/// The runs and blocks of `page`; `tokens` must tile it.
///
/// `columns` are those of cells next to others that span several, by the end of their start tags.
pub(super) fn outline(page: &str, tokens: &[Token], columns: BTreeMap<usize, usize>) -> PageOutline {
    let outline = PageOutline { struck: Struck::of(page, tokens), ..PageOutline::default() };
    let mut state = State { page, outline, columns, ..State::default() };
    for token in tokens {
        match token.kind {
            TokenKind::Open => state.open(token),
            TokenKind::Close => state.close(&page[token.name.clone()]),
            TokenKind::Text => state.text(&token.range),
            TokenKind::Hidden | TokenKind::Comment => {}
        }
    }
    state.outline
}

#[derive(Default)]
struct State<'a> {
    page: &'a str,
    outline: PageOutline,
    /// The form of the next block to start.
    next: Option<(Form, bool)>,
    lists: Lists,
    /// The columns of cells next to those that span several.
    columns: BTreeMap<usize, usize>,
    /// The number of tables so far.
    tables: usize,
    /// The places of the next cells of the tables around the open one.
    around: Vec<CellPlace>,
    /// The place of the next cell.
    place: CellPlace,
    /// The cell that is open, until it has text in a list, a heading and the like.
    cell: Option<CellPlace>,
    /// Whether a cell is open that has no text so far, and the text of its picture.
    is_blank: bool,
    picture: Option<Range<usize>>,
    /// Whether the current row has text.
    has_row: bool,
    /// Whether the current row has a cell that is no heading.
    has_data: bool,
    code: usize,
    main: usize,
    headers: usize,
    furniture: usize,
    link: Option<Range<usize>>,
    /// White space since the last run.
    before: String,
}

impl State<'_> {
    fn open(&mut self, token: &Token) {
        let element = element(&self.page[token.name.clone()]);
        match element {
            Element::Block => self.fresh(Form::Text, false),
            Element::Table => {
                // A cell with a table in it is layout.
                self.picture = None;
                self.around.push(self.place);
                self.end_row();
                self.tables += 1;
                self.place.table = self.tables;
                self.fresh(Form::Text, false);
            }
            Element::Break => self.fresh(Form::Text, true),
            Element::Heading(level) => self.next = Some((Form::Heading(level), false)),
            Element::List => {
                self.fresh(Form::Text, false);
                self.lists.open(&self.page[token.range.clone()]);
            }
            Element::Main | Element::Header | Element::Furniture => {
                self.fresh(Form::Text, false);
                self.depth(element).into_iter().for_each(|depth| *depth += 1);
            }
            Element::Item => self.next = Some((self.item(token), true)),
            Element::Row => {
                self.end_row();
                self.fresh(Form::Text, true);
            }
            Element::Cell => {
                self.end_cell();
                let column = self.columns.get(&token.range.end).copied();
                self.place.column = column.unwrap_or(self.place.column);
                (self.cell, self.is_blank) = (Some(self.place), true);
                self.has_data |= self.page[token.name.clone()].eq_ignore_ascii_case("td");
                self.next = Some((Form::Cell(self.place), true));
                self.place.column += 1;
            }
            Element::Code => {
                self.code += 1;
                self.next = Some((Form::Code, false));
            }
            Element::Link => self.link = self.attribute(token, "href"),
            Element::Inline => {
                if self.is_blank && self.page[token.name.clone()].eq_ignore_ascii_case("img") {
                    self.picture = self.picture.take().or_else(|| self.attribute(token, "alt"));
                }
            }
        }
    }

    /// The place of an attribute's value that is not blank.
    fn attribute(&self, token: &Token, name: &str) -> Option<Range<usize>> {
        let value =
            attribute(&self.page[token.range.clone()], name).filter(|value| !value.trim().is_empty())?;
        // It is a slice of the page, so the difference of their addresses is its offset.
        let at = value.as_ptr() as usize - self.page.as_ptr() as usize;
        Some(at..at + value.len())
    }

    fn end_cell(&mut self) {
        let picture = self.picture.take().filter(|picture| picture.len() <= LONGEST_PICTURE);
        self.outline.pictures.extend(self.cell.take().zip(picture));
        self.is_blank = false;
        // Text that follows an empty cell is not in it.
        self.next = self.next.filter(|(form, _)| !matches!(form, Form::Cell(_))).or(Some((Form::Text, true)));
    }

    /// Ends a row. One without text is not counted, and its pictures are left out.
    fn end_row(&mut self) {
        self.end_cell();
        let is_heading = !std::mem::take(&mut self.has_data);
        if std::mem::take(&mut self.has_row) {
            self.outline.headings.extend(is_heading.then_some(self.place.row));
            self.place.row += 1;
        }
        while self.outline.pictures.pop_if(|(place, _)| place.row == self.place.row).is_some() {}
        self.place.column = 0;
    }

    fn close(&mut self, name: &str) {
        let element = element(name);
        match element {
            Element::Inline => return,
            Element::Link => {
                self.link = None;
                return;
            }
            Element::Row | Element::Cell => self.end_cell(),
            Element::Table => {
                self.end_row();
                let around = self.around.pop().unwrap_or_default();
                self.place = CellPlace { row: self.place.row, ..around };
            }
            Element::List => self.lists.close(),
            _ => {}
        }
        self.depth(element).into_iter().for_each(|depth| *depth = depth.saturating_sub(1));
        self.next = Some((Form::Text, false));
    }

    /// How many elements of a kind are open, where that matters.
    fn depth(&mut self, element: Element) -> Option<&mut usize> {
        match element {
            Element::Code => Some(&mut self.code),
            Element::Main => Some(&mut self.main),
            Element::Header => Some(&mut self.headers),
            Element::Furniture => Some(&mut self.furniture),
            _ => None,
        }
    }

    fn item(&mut self, token: &Token) -> Form {
        let (depth, number) = self.lists.item(&self.page[token.range.clone()]);
        Form::Item(depth.clamp(1, DEEPEST_LIST) as u8, number)
    }

    /// Starts a new block; the form announced by `<li>`, `<td>` and the like is kept.
    fn fresh(&mut self, form: Form, tight: bool) {
        let announced = self.next.is_some_and(|(form, _)| form != Form::Text);
        if !announced {
            let tight = tight && self.next.is_none_or(|(_, tight)| tight);
            self.next = Some((form, tight));
        }
    }

    fn text(&mut self, range: &Range<usize>) {
        let text = &self.page[range.clone()];
        if text.trim().is_empty() {
            self.before.push_str(text);
            return;
        }
        if self.is_blank && plain(text).trim().is_empty() {
            return;
        }
        if let Some(place) = self.cell {
            (self.is_blank, self.picture, self.has_row) = (false, None, true);
            match &mut self.next {
                // A paragraph or a line of the cell.
                Some((form @ Form::Text, _)) => *form = Form::Cell(place),
                Some((form, _)) if *form != Form::Cell(place) => self.cell = None,
                _ => {}
            }
        }
        let mut before = std::mem::take(&mut self.before);
        let wordy = text.contains(char::is_alphanumeric);
        let struck = self.outline.struck.contains(range.start);
        let runs = self.outline.runs.len();
        if let Some((form, tight)) =
            self.next.take().or(self.outline.blocks.is_empty().then_some((Form::Text, false)))
        {
            let form = if self.code > 0 { Form::Code } else { form };
            let furniture = self.furniture > 0 || self.headers > 0 && self.main == 0;
            before.clear();
            self.outline.blocks.push(Block { form, tight, furniture, runs: runs..runs });
        }
        if let Some(block) = self.outline.blocks.last_mut() {
            block.runs.end = runs + 1;
        }
        self.outline.runs.push(TextRun {
            range: range.clone(),
            before,
            link: self.link.clone(),
            wordy,
            struck,
        });
    }
}
