//! Renders Markdown as HTML: CommonMark with tables and wikilinks, parsed by the parser that also finds links. A
//! document's content stays text: HTML in it is displayed rather than interpreted, pictures are named rather than
//! loaded, and links point where the vault says. Knows no document.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use maud::{Escaper, Markup, PreEscaped};
use pulldown_cmark::{Alignment, CodeBlockKind, Event, LinkType, Options, Parser, Tag, TagEnd};

use super::links::{Href, Links, block_id, heading_id};
use super::ui::verbatim;

/// Bytes of one block of code that a page shows.
const SHOWN_CODE: usize = 16 * 1024;

/// The page that texts are rendered on: its ids, and the depth of its headings.
#[derive(Debug)]
pub struct MarkdownPage<'l> {
    links: &'l Links,
    ids: BTreeSet<String>,
    /// The level under which headings stand.
    under: u8,
    /// The level of the last heading.
    last: u8,
}

impl<'l> MarkdownPage<'l> {
    /// A page whose texts are below headings of level `under`.
    pub const fn new(links: &'l Links, under: u8) -> Self {
        Self { links, ids: BTreeSet::new(), under, last: under }
    }

    /// From here on, texts are below a heading of this level.
    pub fn stand_under(&mut self, level: u8) {
        (self.under, self.last) = (level, level);
    }

    /// Reserves an id, unless it is taken.
    pub fn take(&mut self, id: String) -> Option<String> {
        self.ids.insert(id.clone()).then_some(id)
    }

    /// A text as HTML.
    pub fn show(&mut self, text: &str) -> Markup {
        let options = Options::ENABLE_TABLES
            | Options::ENABLE_STRIKETHROUGH
            | Options::ENABLE_TASKLISTS
            | Options::ENABLE_WIKILINKS;
        let mut writer =
            HtmlWriter { sheet: self, out: String::new(), open: Vec::new(), state: OpenMarkup::default() };
        for event in Parser::new_ext(text, options) {
            writer.event(event);
        }
        PreEscaped(writer.out)
    }
}

/// What a writer is inside of.
#[derive(Debug, Default)]
struct OpenMarkup {
    /// The text of a heading, which makes its id, and where its tag is to stand.
    heading: Option<(u8, usize, String)>,
    /// The content of a code block, written at its end.
    code: Option<String>,
    /// The table's columns, and the next one.
    columns: Vec<Alignment>,
    column: usize,
    in_head: bool,
}

struct HtmlWriter<'s, 'l> {
    sheet: &'s mut MarkdownPage<'l>,
    out: String,
    /// What ends each open link.
    open: Vec<&'static str>,
    state: OpenMarkup,
}

impl HtmlWriter<'_, '_> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.heard(&text);
                self.around("<code>", &text, "</code>");
            }
            Event::Html(text) | Event::InlineHtml(text) => {
                self.around("<code class=\"html\">", &text, "</code>")
            }
            Event::FootnoteReference(text) => self.escaped(&text),
            Event::SoftBreak => {
                self.heard(" ");
                self.out.push('\n');
            }
            Event::HardBreak => self.out.push_str("<br>"),
            Event::Rule => self.out.push_str("<hr>"),
            Event::TaskListMarker(done) => self.out.push_str(if done { "☑ " } else { "☐ " }),
        }
    }

    fn escaped(&mut self, text: &str) {
        // Writing to a string cannot fail.
        let _ = Escaper::new(&mut self.out).write_str(&text.replace('\0', "\u{fffd}"));
    }

    fn around(&mut self, before: &str, text: &str, after: &str) {
        self.out.push_str(before);
        self.escaped(text);
        self.out.push_str(after);
    }

    /// A heading's id is derived from its text.
    fn heard(&mut self, text: &str) {
        if let Some((_, _, heard)) = &mut self.state.heading {
            heard.push_str(text);
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(code) = &mut self.state.code {
            return code.push_str(text);
        }
        self.heard(text);
        let Some((before, name)) = block_at_end(text) else { return self.escaped(text) };
        self.escaped(before);
        match self.sheet.take(block_id(name)) {
            Some(id) => self.out.push_str(&format!("<span class=\"block\" id=\"{id}\">")),
            None => self.out.push_str("<span class=\"block\">"),
        }
        self.around("^", name, "</span>");
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.out.push_str("<p>"),
            Tag::Heading { level, .. } => {
                let least = self.sheet.under.saturating_add(1);
                let level = (level as u8).clamp(least.min(6), self.sheet.last.saturating_add(1).min(6));
                self.sheet.last = level;
                self.state.heading = Some((level, self.out.len(), String::new()));
            }
            Tag::BlockQuote(_) => self.out.push_str("<blockquote>"),
            Tag::CodeBlock(kind) => {
                if let CodeBlockKind::Fenced(info) = &kind
                    && !info.is_empty()
                {
                    self.around("<p class=\"info muted\">", info, "</p>");
                }
                self.state.code = Some(String::new());
            }
            Tag::List(Some(first)) => self.out.push_str(&format!("<ol start=\"{first}\">")),
            Tag::List(None) => self.out.push_str("<ul>"),
            Tag::Item => self.out.push_str("<li>"),
            Tag::Table(columns) => {
                self.state.columns = columns;
                self.out.push_str(
                    "<div class=\"scroll\" role=\"group\" aria-label=\"Table\" tabindex=\"0\"><table>",
                );
            }
            Tag::TableHead => {
                (self.state.in_head, self.state.column) = (true, 0);
                self.out.push_str("<thead><tr>");
            }
            Tag::TableRow => {
                self.state.column = 0;
                self.out.push_str("<tr>");
            }
            Tag::TableCell => self.cell(),
            Tag::Emphasis => self.out.push_str("<em>"),
            Tag::Strong => self.out.push_str("<strong>"),
            Tag::Strikethrough => self.out.push_str("<s>"),
            Tag::Link { link_type, dest_url, .. } => self.link(link_type, &dest_url, false),
            Tag::Image { link_type, dest_url, .. } => self.link(link_type, &dest_url, true),
            _ => {}
        }
    }

    fn cell(&mut self) {
        let right = self.state.columns.get(self.state.column) == Some(&Alignment::Right);
        self.state.column += 1;
        self.out.push_str(match (self.state.in_head, right) {
            (true, true) => "<th scope=\"col\" class=\"numeric\">",
            (true, false) => "<th scope=\"col\">",
            (false, true) => "<td class=\"numeric\">",
            (false, false) => "<td>",
        });
    }

    fn link(&mut self, kind: LinkType, destination: &str, is_picture: bool) {
        let is_wiki = matches!(kind, LinkType::WikiLink { .. });
        let leads = match kind {
            LinkType::Email => Href::Outside(format!("mailto:{destination}")),
            _ => self.sheet.links.lead(is_wiki, destination),
        };
        let end = match leads {
            Href::Page(address) => {
                self.around("<a href=\"", &address, "\">");
                "</a>"
            }
            Href::Outside(address) => {
                self.around(
                    "<a class=\"external\" rel=\"noopener noreferrer nofollow\" href=\"",
                    &address,
                    "\">",
                );
                "</a>"
            }
            Href::Nowhere => {
                self.out.push_str("<span class=\"broken\" title=\"leads to no document\">");
                "</span>"
            }
        };
        if is_picture {
            self.out.push_str("picture: ");
        }
        self.open.push(end);
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.out.push_str("</p>"),
            TagEnd::Heading(_) => self.end_heading(),
            TagEnd::BlockQuote(_) => self.out.push_str("</blockquote>"),
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(true) => self.out.push_str("</ol>"),
            TagEnd::List(false) => self.out.push_str("</ul>"),
            TagEnd::Item => self.out.push_str("</li>"),
            TagEnd::Table => self.out.push_str("</tbody></table></div>"),
            TagEnd::TableHead => {
                self.state.in_head = false;
                self.out.push_str("</tr></thead><tbody>");
            }
            TagEnd::TableRow => self.out.push_str("</tr>"),
            TagEnd::TableCell => self.out.push_str(if self.state.in_head { "</th>" } else { "</td>" }),
            TagEnd::Emphasis => self.out.push_str("</em>"),
            TagEnd::Strong => self.out.push_str("</strong>"),
            TagEnd::Strikethrough => self.out.push_str("</s>"),
            TagEnd::Link | TagEnd::Image => self.out.push_str(self.open.pop().unwrap_or_default()),
            _ => {}
        }
    }

    fn end_heading(&mut self) {
        let Some((level, at, heard)) = self.state.heading.take() else { return };
        let tag = match self.sheet.take(heading_id(&heard)) {
            Some(id) => format!("<h{level} id=\"{id}\">"),
            None => format!("<h{level}>"),
        };
        self.out.insert_str(at, &tag);
        self.out.push_str(&format!("</h{level}>"));
    }

    fn end_code(&mut self) {
        let Some(code) = self.state.code.take() else { return };
        let end = code.floor_char_boundary(SHOWN_CODE);
        let (shown, more) = code.split_at(end);
        self.out.push_str(
            "<pre class=\"payload\" tabindex=\"0\" role=\"group\" aria-label=\"Verbatim text\" dir=\"auto\">",
        );
        self.out.push_str(&verbatim(shown).into_string());
        self.out.push_str("</pre>");
        if !more.is_empty() {
            self.out.push_str(&format!("<p class=\"muted\">and {} bytes more</p>", more.len()));
        }
    }
}

/// A text that ends with the name of its block, and that name.
fn block_at_end(text: &str) -> Option<(&str, &str)> {
    let (before, name) = text.rsplit_once('^')?;
    let plain = name.trim_end();
    let is_name = !plain.is_empty() && plain.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (is_name && (before.is_empty() || before.ends_with(' '))).then_some((before, plain))
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
