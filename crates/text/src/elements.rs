//! Elements of a page: how they affect its layout, where they end, which hide their content and which strike their text
//! through.
//!
//! Knows names and attributes only, no style sheets and no scripts. An element whose end is not found has no content.

use std::ops::Range;

use crate::markup::{self, Token, TokenKind, attribute};

/// Names of elements without an end that are looked for; more of them are not a page that somebody wrote.
const MOST_UNCLOSED: usize = 16;
/// Elements without content.
const VOID: [&str; 13] =
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"];
/// Pages hide these only until a script has run.
const ALWAYS_SHOWN: [&str; 4] = ["html", "body", "main", "article"];

/// Elements that end where the next of their kind starts, and those around them.
const CLOSING_THEMSELVES: [&str; 13] =
    ["p", "li", "dt", "dd", "option", "param", "tr", "td", "th", "tbody", "thead", "html", "body"];

/// Whether elements of this name need no end tag.
pub fn closes_itself(name: &str) -> bool {
    VOID.iter().chain(&CLOSING_THEMSELVES).any(|known| known.eq_ignore_ascii_case(name))
}

/// The effect of an element on the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "named after the elements")]
pub enum Element {
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

/// The effect of the elements of this name.
pub fn element(name: &str) -> Element {
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

/// The lists that are open at a place of a page.
#[derive(Debug, Default)]
pub struct Lists(Vec<Option<u16>>);

impl Lists {
    /// A list begins with this start tag; those of `<ol>` count their items, unless in letters or backwards.
    pub fn open(&mut self, tag: &str) {
        let counts = tag.get(1..3).is_some_and(|name| name.eq_ignore_ascii_case("ol"))
            && attribute(tag, "type").is_none_or(|kind| kind == "1")
            && attribute(tag, "reversed").is_none();
        self.0.push(counts.then(|| number(tag, "start").unwrap_or(1)));
    }

    /// The innermost list ends.
    pub fn close(&mut self) {
        self.0.pop();
    }

    /// In how many lists the item with this start tag is, and its number.
    pub fn item(&mut self, tag: &str) -> (usize, Option<u16>) {
        let next = self.0.last_mut().and_then(Option::as_mut);
        let number = next.map(|next| {
            let number = number(tag, "value").unwrap_or(*next);
            *next = number.saturating_add(1);
            number
        });
        (self.0.len(), number)
    }
}

fn number(tag: &str, name: &str) -> Option<u16> {
    attribute(tag, name)?.trim().parse().ok()
}

/// The tokens of the content of each element that is sought by its name and start tag and is in no other such element.
/// Linear in the length of the page.
fn outermost(page: &str, tokens: &[Token], is_sought: impl Fn(&str, &str) -> bool) -> Vec<Range<usize>> {
    let (mut found, mut unclosed): (Vec<Range<usize>>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        let name = &page[token.name.clone()];
        let is_one_of = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
        if token.kind != TokenKind::Open
            || !is_sought(name, &page[token.range.clone()])
            || is_one_of(&VOID)
            || is_one_of(&unclosed)
        {
            continue;
        }
        let Some(len) = content(page, name, &tokens[at..]) else {
            unclosed.push(name);
            if unclosed.len() == MOST_UNCLOSED {
                break;
            }
            continue;
        };
        found.push(at..at + len);
        at += len;
    }
    found
}

/// The tokens that tile `page`, in which text and pictures that it does not show are hidden.
pub fn tokens(page: &str) -> Vec<Token> {
    let mut tokens = markup::tokens(page);
    hide(page, &mut tokens);
    tokens
}

/// Linear in the length of the page. A page that would show nothing shows everything: a script would show it.
fn hide(page: &str, tokens: &mut [Token]) {
    let inside = outermost(page, tokens, hides).into_iter().flatten();
    // An image has no content to look into.
    let is_own = |token: &Token| is_picture(page, token) && hides("img", &page[token.range.clone()]);
    let own = (0..tokens.len()).filter(|number| is_own(&tokens[*number]));
    let mut kinds = Vec::new();
    for number in inside.chain(own).collect::<Vec<usize>>() {
        let token = &mut tokens[number];
        if shows(page, token) || is_picture(page, token) {
            kinds.push((number, std::mem::replace(&mut token.kind, TokenKind::Hidden)));
        }
    }
    if !tokens.iter().any(|token| shows(page, token)) {
        kinds.into_iter().for_each(|(number, kind)| tokens[number].kind = kind);
    }
}

/// Whether it is an image with an alternative text.
fn is_picture(page: &str, token: &Token) -> bool {
    token.kind == TokenKind::Open
        && page[token.name.clone()].eq_ignore_ascii_case("img")
        && attribute(&page[token.range.clone()], "alt").is_some_and(|text| !text.trim().is_empty())
}

fn shows(page: &str, token: &Token) -> bool {
    token.kind == TokenKind::Text && !page[token.range.clone()].trim().is_empty()
}

/// Whether the start tag `tag` of an element `name` hides its content.
fn hides(name: &str, tag: &str) -> bool {
    if ALWAYS_SHOWN.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        return false;
    }
    let hidden = attribute(tag, "hidden").is_some_and(|value| !value.eq_ignore_ascii_case("until-found"));
    hidden || has_style(tag, is_invisible)
}

/// Whether a declaration of a style is `display: none` or `visibility: hidden`.
fn is_invisible(property: &str, value: &str) -> bool {
    let value = value.split('!').next().unwrap_or_default().trim();
    let is = |known: &str, hidden: &str| {
        property.eq_ignore_ascii_case(known) && value.eq_ignore_ascii_case(hidden)
    };
    is("display", "none") || is("visibility", "hidden") || is("visibility", "collapse")
}

/// The bytes of a page whose text is struck through, such as a price that no longer holds, in order.
#[derive(Debug, Default)]
pub struct Struck(Vec<Range<usize>>);

impl Struck {
    /// Those of `page`, which `tokens` tile.
    pub fn of(page: &str, tokens: &[Token]) -> Self {
        let elements = outermost(page, tokens, |name, tag| is_strike(name) || has_style(tag, strikes));
        let bytes = |content: Range<usize>| {
            Some(tokens.get(content.start)?.range.start..tokens.get(content.end)?.range.start)
        };
        Self(elements.into_iter().filter_map(bytes).collect())
    }

    /// Whether the text at a byte is struck through.
    pub fn contains(&self, at: usize) -> bool {
        let next = self.0.partition_point(|struck| struck.end <= at);
        self.0.get(next).is_some_and(|struck| struck.start <= at)
    }
}

/// Whether elements of this name strike their text through.
fn is_strike(name: &str) -> bool {
    ["del", "s", "strike"].iter().any(|known| known.eq_ignore_ascii_case(name))
}

fn strikes(property: &str, value: &str) -> bool {
    let is_decoration =
        ["text-decoration", "text-decoration-line"].iter().any(|known| known.eq_ignore_ascii_case(property));
    is_decoration && value.to_ascii_lowercase().contains("line-through")
}

/// Whether the style of a start tag has a declaration, by its property and value.
fn has_style(tag: &str, is_sought: impl Fn(&str, &str) -> bool) -> bool {
    let declarations = attribute(tag, "style").into_iter().flat_map(|style| style.split(';'));
    declarations
        .filter_map(|one| one.split_once(':'))
        .any(|(property, value)| is_sought(property.trim(), value))
}

/// How many of `tokens`, which follow its start tag, are the content of the element `name`; `None` if nothing ends it.
fn content(page: &str, name: &str, tokens: &[Token]) -> Option<usize> {
    let own = element(name);
    let paragraph = name.eq_ignore_ascii_case("p");
    // Elements that also end where the next of their kind starts, unless inside another list or table.
    let around = match own {
        Element::Item => Some(Element::List),
        Element::Row | Element::Cell => Some(Element::Table),
        _ => None,
    };
    let mut depth = 0_usize;
    tokens.iter().position(|token| {
        let (open, close) = (token.kind == TokenKind::Open, token.kind == TokenKind::Close);
        if !open && !close {
            return false;
        }
        let other_name = &page[token.name.clone()];
        let other = element(other_name);
        let same = other_name.eq_ignore_ascii_case(name);
        if paragraph {
            return same || !matches!(other, Element::Inline | Element::Link | Element::Break);
        }
        if around.map_or(same, |around| other == around) {
            let ends = close && depth == 0;
            depth = if open { depth + 1 } else { depth.saturating_sub(1) };
            return ends;
        }
        let ends = other == own || own == Element::Cell && other == Element::Row;
        around.is_some() && depth == 0 && ends
    })
}
