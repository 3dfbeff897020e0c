//! The visible text of a page as runs of text in blocks: paragraphs, headings, list items, table cells, code.
//!
//! Knows how elements affect layout; does not know which part of a page is its main content. Nesting is counted, not
//! followed, so malformed or deep nesting is harmless.

use std::ops::Range;

use larder_text::markup::{Token, TokenKind, attribute};

/// The form of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    /// With its level, 1 to 6.
    Heading(u8),
    /// With the depth of its list, from 1.
    Item(u8),
    /// A cell of the row with this number.
    Cell(usize),
    Code,
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
}

/// Deeper lists are shown at this depth.
const DEEPEST_LIST: usize = 6;

/// The effect of an element on the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    Block,
    Table,
    Break,
    Heading(u8),
    List,
    Item,
    Row,
    Cell,
    Code,
    Link,
    Main,
    Header,
    Furniture,
    Inline,
}

pub(super) fn element(name: &str) -> Element {
    let mut lower = [0_u8; 12];
    let Some(lower) = lower.get_mut(..name.len()) else { return Element::Inline };
    lower.copy_from_slice(name.as_bytes());
    lower.make_ascii_lowercase();
    match &*lower {
        b"p" | b"div" | b"section" | b"body" | b"html" | b"head" | b"thead" | b"tbody" | b"tfoot"
        | b"caption" | b"blockquote" | b"figure" | b"figcaption" | b"fieldset" | b"address" | b"details"
        | b"summary" | b"hr" | b"center" | b"hgroup" | b"legend" | b"title" => Element::Block,
        b"table" => Element::Table,
        b"br" => Element::Break,
        b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" => Element::Heading(lower[1] - b'0'),
        b"ul" | b"ol" | b"dl" => Element::List,
        b"li" | b"dd" | b"dt" => Element::Item,
        b"tr" => Element::Row,
        b"td" | b"th" => Element::Cell,
        b"pre" | b"listing" => Element::Code,
        b"a" => Element::Link,
        b"article" | b"main" => Element::Main,
        b"header" => Element::Header,
        b"nav" | b"footer" | b"aside" | b"form" | b"button" | b"select" | b"option" | b"menu" | b"dialog"
        | b"label" => Element::Furniture,
        _ => Element::Inline,
    }
}

/// The runs and blocks of `page`; `tokens` must tile it.
pub(super) fn outline(page: &str, tokens: &[Token]) -> PageOutline {
    let mut state = State { page, outline: PageOutline::default(), ..State::default() };
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
    lists: usize,
    rows: usize,
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
        match element(&self.page[token.name.clone()]) {
            Element::Block | Element::Table => self.fresh(Form::Text, false),
            Element::Break => self.fresh(Form::Text, true),
            Element::Heading(level) => self.next = Some((Form::Heading(level), false)),
            Element::List => {
                self.fresh(Form::Text, false);
                self.lists += 1;
            }
            Element::Item => self.next = Some((self.item(), true)),
            Element::Row => {
                self.rows += 1;
                self.fresh(Form::Text, true);
            }
            Element::Cell => self.next = Some((Form::Cell(self.rows), true)),
            Element::Code => {
                self.code += 1;
                self.next = Some((Form::Code, false));
            }
            Element::Link => {
                let tag = &self.page[token.range.clone()];
                let place = |target: &str| {
                    // `target` is a slice of the page, so the difference of their addresses is its offset.
                    let at = target.as_ptr() as usize - self.page.as_ptr() as usize;
                    at..at + target.len()
                };
                self.link = attribute(tag, "href").filter(|target| !target.is_empty()).map(place);
            }
            Element::Main => {
                self.main += 1;
                self.fresh(Form::Text, false);
            }
            Element::Header => {
                self.headers += 1;
                self.fresh(Form::Text, false);
            }
            Element::Furniture => {
                self.furniture += 1;
                self.fresh(Form::Text, false);
            }
            Element::Inline => {}
        }
    }

    fn close(&mut self, name: &str) {
        let count = match element(name) {
            Element::Inline => return,
            Element::Link => {
                self.link = None;
                return;
            }
            Element::List => &mut self.lists,
            Element::Code => &mut self.code,
            Element::Main => &mut self.main,
            Element::Header => &mut self.headers,
            Element::Furniture => &mut self.furniture,
            _ => &mut 0,
        };
        *count = count.saturating_sub(1);
        self.next = Some((Form::Text, false));
    }

    fn item(&self) -> Form {
        Form::Item(self.lists.clamp(1, DEEPEST_LIST) as u8)
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
        let mut before = std::mem::take(&mut self.before);
        let wordy = text.contains(char::is_alphanumeric);
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
        self.outline.runs.push(TextRun { range: range.clone(), before, link: self.link.clone(), wordy });
    }
}
