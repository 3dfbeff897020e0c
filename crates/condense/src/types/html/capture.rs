//! A page as stored by a capture: its readable text, simple facts about it, and its structured data.
//!
//! Knows the page's markup only. The content of a page is data: every value here is text that the page states,
//! bounded in number and length, and never interpreted.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::facts::PageFacts;
use super::linked_data::LinkedData;
use super::outline::{Block, Form, PageOutline, outline};
use super::rewrite::ReadablePage;
use crate::analysis::salience::{ErrorSense, SalientSpan, SpanKind, scan};
use larder_text::attribute_price::{self, PageBars};
use larder_text::elements::tokens;
use larder_text::entities::plain;
use larder_text::markup::{Token, TokenKind, attribute};
use larder_text::page_counters::{comments_in, page_of};
use larder_text::page_tables::tables;
use larder_text::table_spans;

/// Maximum entries of `open_graph` and of `meta`.
const MAX_META: usize = 60;
/// Longer attribute values are text rather than data.
const LONGEST_VALUE: usize = 600;
/// A counter such as `8 comments` is a short line of its own, not prose.
const LONGEST_COUNTER: usize = 60;
/// A longer block with a price is text.
const LONGEST_PRICE: usize = 60;
/// How many blocks after a page's heading may be its price.
const BELOW_HEADING: usize = 4;

/// What a capture stores of a web page.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WebPage {
    /// Its title; empty where it has none.
    pub title: String,
    /// Its kind, such as `forum_thread`, `product`, `article`, `web_page`.
    pub kind: &'static str,
    /// The name its site gives itself.
    pub site: Option<String>,
    /// Its whole visible text as Markdown, in the order of the page.
    pub text: Vec<PageText>,
    /// Elements visible on it, such as `title`, `comments`, `pagination`.
    pub elements: Vec<&'static str>,
    /// Whether it links to a next page.
    pub continues: bool,
    /// Its page number and the total number of pages.
    pub pagination: Option<(u64, u64)>,
    /// The number of comments.
    pub comments: Option<u64>,
    /// Machine-readable data: JSON-LD, OpenGraph, meta, tables.
    pub data: Map<String, Value>,
}

/// A stretch of a page's visible text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageText {
    /// Whether it is main content, and not navigation, a sidebar, a footer or the like.
    pub main: bool,
    /// As Markdown.
    pub text: String,
}

/// Extracts a page from its markup. Linear in its length; accepts any markup.
pub fn web_page(page: &str) -> WebPage {
    let written = tokens(page);
    match table_spans::expanded(page, &written) {
        // Cells that span several columns are written once for each.
        Some(page) => extracted(&page, &tokens(&page), BTreeMap::new()),
        None => extracted(page, &written, table_spans::columns(page, &written)),
    }
}

fn extracted(page: &str, tokens: &[Token], columns: BTreeMap<usize, usize>) -> WebPage {
    let outline = outline(page, tokens, columns);
    let facts = PageFacts::of(page, tokens);
    let linked = LinkedData::of(page, tokens);
    let (open_graph, meta) = metas(page, tokens);
    let tables = tables(page, tokens, &outline.struck);
    let seen = Seen::of(page, tokens, &outline);
    let comments = linked.comment_count().or(seen.comments);
    let kind = linked.kind().or_else(|| open_graph_kind(&open_graph)).unwrap_or("web_page");
    let mut data = Map::new();
    data.extend(facts.known().map(|(name, value)| (name.to_owned(), json!(value))));
    add_hidden_price(page, tokens, &outline, &mut data);
    let text = visible_text(page, tokens, &outline, data.contains_key("price"));
    let pages = |(current, total)| json!({"current_page": current, "total_pages": total});
    data.extend(seen.pagination.map(pages).map(|pages| ("pagination".to_owned(), pages)));
    data.extend(comments.map(|count| ("comment_count".to_owned(), json!(count))));
    let lists = [
        ("top_comments", linked.comments()),
        ("products", linked.products()),
        ("tables", tables),
        ("json_ld", linked.values),
    ];
    for (name, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
        data.insert(name.to_owned(), Value::Array(list));
    }
    for (name, map) in [("open_graph", open_graph), ("meta", meta)] {
        if !map.is_empty() {
            data.insert(name.to_owned(), Value::Object(map));
        }
    }
    let mut elements = seen.elements;
    if comments.is_some() {
        elements.insert("comments");
    }
    if seen.pagination.is_some() || seen.continues {
        elements.insert("pagination");
    }
    WebPage {
        title: facts.title().unwrap_or_default().to_owned(),
        kind,
        site: facts.site().map(str::to_owned),
        text,
        elements: elements.into_iter().collect(),
        continues: seen.continues,
        pagination: seen.pagination,
        comments,
        data,
    }
}

/// All visible text, divided where main content starts and ends.
fn visible_text(page: &str, tokens: &[Token], outline: &PageOutline, has_price: bool) -> Vec<PageText> {
    let mut main = super::main_content(page, tokens, outline);
    add_price(page, outline, &mut main, has_price);
    let (kept, facts) = (vec![true; outline.runs.len()], PageFacts::default());
    let readable = ReadablePage { page, tokens, outline, kept: &kept, facts: &facts }.readable(&[]);
    let mut stretches: Vec<(usize, bool)> = Vec::new();
    for (start, runs) in &readable.starts {
        let main = main[runs.clone()].contains(&true);
        if stretches.last().is_none_or(|(_, last)| *last != main) {
            stretches.push((*start, main));
        }
    }
    let ends = stretches.iter().skip(1).map(|(start, _)| *start).chain([readable.text.len()]);
    let texts = stretches.iter().zip(ends).map(|((start, main), end)| PageText {
        main: *main,
        text: readable.text[*start..end].trim_matches('\n').to_owned(),
    });
    texts.collect()
}

/// Adds the price in the attributes of a page that states none as data or in its text: beside another, it may be that of
/// something else.
fn add_hidden_price(page: &str, tokens: &[Token], outline: &PageOutline, data: &mut Map<String, Value>) {
    let bars = PageBars::of(page, tokens);
    let mut is_heading = false;
    let is_stated = |block: &Block| {
        let is_below = std::mem::replace(&mut is_heading, block.form == Form::Heading(1));
        let (text, prices) = prices(page, outline, block);
        let is_bar = bars.contains(outline.runs[block.runs.start].range.start);
        let is_product = |at: usize| !attribute_price::is_threshold(&text[..at]);
        (is_below || !is_bar) && prices.iter().any(|price| is_product(price.range.start))
    };
    if data.contains_key("price") || outline.blocks.iter().any(is_stated) {
        return;
    }
    let Some(found) = attribute_price::in_attributes(page, tokens) else { return };
    data.insert("price".to_owned(), json!(found.price));
    if let Some(currency) = found.currency {
        data.entry("currency").or_insert(json!(currency));
    }
}

/// The text of a block and its prices, without what is struck through.
fn prices(page: &str, outline: &PageOutline, block: &Block) -> (String, Vec<SalientSpan>) {
    let runs = outline.runs[block.runs.clone()].iter().filter(|run| !run.struck);
    let text: String = runs.map(|run| plain(&page[run.range.clone()])).collect();
    let text = attribute_price::with_joined_signs(&text);
    let mut found = scan(&text, ErrorSense::Strict);
    found.retain(|span| span.kind == SpanKind::Price);
    (text, found)
}

/// Adds the heading of a page with a price, and the price below it, to its main content: a line with nothing but a price
/// looks like no part of an article.
fn add_price(page: &str, outline: &PageOutline, main: &mut [bool], has_price: bool) {
    let blocks = &outline.blocks;
    for at in (0..blocks.len()).filter(|at| blocks[*at].form == Form::Heading(1) && !blocks[*at].furniture) {
        let is_below = |block: &&Block| !block.furniture && !matches!(block.form, Form::Heading(_));
        let mut below = blocks[at + 1..].iter().take(BELOW_HEADING).take_while(is_below);
        let is_price = |block: &&Block| {
            let (text, prices) = prices(page, outline, block);
            text.len() <= LONGEST_PRICE && !prices.is_empty()
        };
        let price = below.find(is_price);
        price.into_iter().for_each(|price| main[price.runs.clone()].fill(true));
        if has_price || price.is_some() {
            main[blocks[at].runs.clone()].fill(true);
        }
    }
}

/// OpenGraph properties and other meta elements.
fn metas(page: &str, tokens: &[Token]) -> (Map<String, Value>, Map<String, Value>) {
    let (mut graph, mut others) = (Map::new(), Map::new());
    for token in tokens.iter().filter(|token| token.kind == TokenKind::Open) {
        if !page[token.name.clone()].eq_ignore_ascii_case("meta") {
            continue;
        }
        let tag = &page[token.range.clone()];
        let key = ["property", "name", "itemprop"].into_iter().find_map(|name| attribute(tag, name));
        let (Some(key), Some(value)) = (key, attribute(tag, "content")) else { continue };
        if key.is_empty() || key.len() > LONGEST_VALUE || value.len() > LONGEST_VALUE {
            continue;
        }
        let key = plain(key).to_lowercase();
        let map = if key.starts_with("og:") || key.starts_with("product:") || key.starts_with("article:") {
            &mut graph
        } else {
            &mut others
        };
        // The first value wins.
        if map.len() < MAX_META && !map.contains_key(&key) {
            map.insert(key, Value::String(plain(value)));
        }
    }
    (graph, others)
}

fn open_graph_kind(graph: &Map<String, Value>) -> Option<&'static str> {
    let kind = graph.get("og:type")?.as_str()?;
    match kind.split(['.', ':']).next()? {
        "article" => Some("article"),
        "product" => Some("product"),
        "video" => Some("video"),
        "profile" => Some("profile"),
        _ => None,
    }
}

/// What a reader of the whole page sees, including navigation.
#[derive(Default)]
struct Seen {
    elements: BTreeSet<&'static str>,
    continues: bool,
    pagination: Option<(u64, u64)>,
    comments: Option<u64>,
}

impl Seen {
    fn of(page: &str, tokens: &[Token], outline: &PageOutline) -> Self {
        let mut seen = Self::default();
        for token in tokens {
            match token.kind {
                TokenKind::Open => seen.open(page, token),
                TokenKind::Hidden if page[token.name.clone()].eq_ignore_ascii_case("title") => {
                    seen.elements.insert("title");
                }
                _ => {}
            }
        }
        for block in &outline.blocks {
            seen.elements.insert(match block.form {
                Form::Text => "text",
                Form::Heading(_) => "headings",
                Form::Item(..) => "lists",
                Form::Cell(_) => "tables",
                Form::Code => "code",
            });
        }
        for run in &outline.runs {
            let text = plain(&page[run.range.clone()]).to_lowercase();
            seen.pagination = seen.pagination.or_else(|| page_of(&text));
            if text.len() <= LONGEST_COUNTER {
                seen.comments = seen.comments.or_else(|| comments_in(&text));
            }
        }
        seen
    }

    fn open(&mut self, page: &str, token: &Token) {
        let tag = &page[token.range.clone()];
        let name = page[token.name.clone()].to_ascii_lowercase();
        let element = match name.as_str() {
            "nav" => "navigation",
            "aside" => "sidebar",
            "form" => "forms",
            "img" | "picture" => "images",
            "video" => "video",
            _ => "",
        };
        if !element.is_empty() {
            self.elements.insert(element);
        }
        if matches!(name.as_str(), "a" | "link")
            && attribute(tag, "rel")
                .is_some_and(|rel| rel.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case("next")))
        {
            self.continues = true;
        }
    }
}

#[cfg(test)]
#[path = "capture_tests.rs"]
mod tests;
