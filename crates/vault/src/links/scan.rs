//! Finds links: CommonMark links through its parser, wikilinks in a layer above it. Code is ignored.

use std::ops::Range;

use pulldown_cmark::{CowStr, Event, LinkType, OffsetIter, Options, Parser, Tag, TagEnd};

use super::{html, wiki};
use larder_text::sections::Sections;

/// The Markdown dialect of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Pure CommonMark.
    CommonMark,
    /// The dialect of vaults: with wikilinks, tables, footnotes, task lists and mathematics.
    Vault,
}

impl Dialect {
    pub(crate) fn options(self) -> Options {
        match self {
            Self::CommonMark => Options::empty(),
            Self::Vault => {
                Options::ENABLE_TABLES
                    | Options::ENABLE_FOOTNOTES
                    | Options::ENABLE_STRIKETHROUGH
                    | Options::ENABLE_TASKLISTS
                    | Options::ENABLE_MATH
            }
        }
    }
}

/// The syntax of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkKind {
    /// `[[path#fragment|text]]`.
    Wiki,
    /// `[text](destination)`.
    Inline,
    /// `[text][label]`, `[label][]` or `[label]`, with a definition elsewhere.
    Reference,
    /// `<https://…>` or `<name@host>`.
    Autolink,
    /// `href` or `src` in an HTML tag.
    Html,
}

/// A link or an embed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its syntax.
    pub kind: LinkKind,
    /// Whether its target is embedded: `![…](…)`, `![[…]]`, `src`.
    pub embed: bool,
    /// The byte range of the whole link.
    pub range: Range<usize>,
    /// The destination up to `#`: with escapes decoded, percent-encoding as written.
    pub path: String,
    /// What follows `#`: a heading, or `^` and a block id.
    pub fragment: Option<String>,
    /// The range of the destination: in a wikilink the path alone, in a reference link the one in its definition.
    /// `None` if it could not be located reliably; such a link can be followed but not rewritten.
    pub target: Option<Range<usize>>,
    /// For a reference link: the range of the label in its definition.
    pub label: Option<Range<usize>>,
}

impl Link {
    pub(super) fn new(
        kind: LinkKind,
        embed: bool,
        range: Range<usize>,
        destination: &str,
        target: Option<Range<usize>>,
    ) -> Self {
        let (path, fragment) = match destination.split_once('#') {
            Some((path, fragment)) => (path, Some(fragment.to_owned())),
            None => (destination, None),
        };
        Self { kind, embed, range, path: path.to_owned(), fragment, target, label: None }
    }

    /// Path and fragment.
    pub fn destination(&self) -> String {
        match &self.fragment {
            Some(fragment) => format!("{}#{fragment}", self.path),
            None => self.path.clone(),
        }
    }

    fn moved(mut self, by: usize) -> Self {
        for range in [Some(&mut self.range), self.target.as_mut(), self.label.as_mut()].into_iter().flatten()
        {
            *range = range.start + by..range.end + by;
        }
        self
    }
}

/// The links of a note: wikilinks in its properties, then the links of its body, in order.
pub fn links(note: &str) -> Vec<Link> {
    let front = Sections::parse(note).frontmatter.end;
    let mut links = wiki::in_properties(&note[..front]);
    links.extend(scan(&note[front..], Dialect::Vault).into_iter().map(|link| link.moved(front)));
    links
}

/// The links of a Markdown text without frontmatter, in the order in which they start.
pub fn scan(text: &str, dialect: Dialect) -> Vec<Link> {
    let mut scanner = LinkScanner {
        text,
        events: Parser::new_ext(text, dialect.options()).into_offset_iter(),
        open: Vec::new(),
        dead: Vec::new(),
        found: Vec::new(),
    };
    scanner.run();
    let LinkScanner { mut found, dead, .. } = scanner;
    if dialect == Dialect::Vault {
        found.extend(wiki::in_text(text, &dead));
    }
    found.sort_by_key(|link| (link.range.start, link.range.end));
    found
}

/// A link whose text is being parsed.
struct Open<'t> {
    kind: LinkType,
    embed: bool,
    range: Range<usize>,
    destination: CowStr<'t>,
    label: CowStr<'t>,
    /// The end of its text, as far as known.
    text_end: usize,
}

struct LinkScanner<'t> {
    text: &'t str,
    events: OffsetIter<'t>,
    open: Vec<Open<'t>>,
    /// Ranges that cannot contain wikilinks: code, HTML, mathematics, destinations.
    dead: Vec<Range<usize>>,
    found: Vec<Link>,
}

impl<'t> LinkScanner<'t> {
    fn run(&mut self) {
        while let Some((event, range)) = self.events.next() {
            match &event {
                Event::End(TagEnd::Link | TagEnd::Image) => {}
                _ => self.read_to(range.end),
            }
            match event {
                Event::Start(Tag::Link { link_type, dest_url, id, .. }) => {
                    self.start(link_type, false, range, dest_url, id);
                }
                Event::Start(Tag::Image { link_type, dest_url, id, .. }) => {
                    self.start(link_type, true, range, dest_url, id);
                }
                Event::End(TagEnd::Link | TagEnd::Image) => {
                    if let Some(open) = self.open.pop() {
                        self.read_to(open.range.end);
                        self.end(&open);
                    }
                }
                Event::Start(Tag::CodeBlock(_))
                | Event::Code(_)
                | Event::InlineMath(_)
                | Event::DisplayMath(_) => {
                    self.dead.push(range);
                }
                Event::Start(Tag::HtmlBlock) | Event::InlineHtml(_) => {
                    self.found.extend(html::links(&self.text[range.clone()], range.start));
                    self.dead.push(range);
                }
                _ => {}
            }
        }
    }

    /// The text of the innermost open link extends at least this far.
    fn read_to(&mut self, end: usize) {
        if let Some(open) = self.open.last_mut() {
            open.text_end = open.text_end.max(end);
        }
    }

    fn start(
        &mut self,
        kind: LinkType,
        embed: bool,
        range: Range<usize>,
        destination: CowStr<'t>,
        label: CowStr<'t>,
    ) {
        let text_end = range.start + 1 + usize::from(embed);
        self.open.push(Open { kind, embed, range, destination, label, text_end });
    }

    fn end(&mut self, open: &Open<'t>) {
        let text = self.text;
        let mut destination = open.destination.to_string();
        let mut label = None;
        let (kind, target) = match open.kind {
            LinkType::Inline => {
                let target = destination_in(text, "](", open.text_end, open.range.end);
                if let Some(target) = &target {
                    self.dead.push(target.clone());
                }
                (LinkKind::Inline, target)
            }
            LinkType::Autolink => (LinkKind::Autolink, None),
            LinkType::Email => {
                destination.insert_str(0, "mailto:");
                (LinkKind::Autolink, None)
            }
            _ => {
                let definition = self.events.reference_definitions().get(&open.label);
                let span = definition.map(|definition| definition.span.clone());
                label = span.clone().and_then(|span| label_in(text, span));
                let target = span.and_then(|span| destination_in(text, "]:", span.start, span.end));
                (LinkKind::Reference, target)
            }
        };
        // An image's text is plain text, so it contains no links.
        if !self.open.iter().any(|around| around.embed) {
            let link = Link::new(kind, open.embed, open.range.clone(), &destination, target);
            self.found.push(Link { label, ..link });
        }
    }
}

/// The range of the label in a definition.
fn label_in(text: &str, definition: Range<usize>) -> Option<Range<usize>> {
    let inner = text.get(definition.clone())?.strip_prefix('[')?;
    let start = definition.start + 1;
    Some(start..start + unescaped(inner, "]:")?)
}

/// The range of the destination after the first `mark` at or after `from`, without angle brackets.
fn destination_in(text: &str, mark: &str, from: usize, end: usize) -> Option<Range<usize>> {
    let part = text.get(from..end)?;
    let mut at = unescaped(part, mark)? + mark.len();
    at += part[at..].len() - part[at..].trim_start_matches([' ', '\t', '\r', '\n']).len();
    let (angle, at) = if part[at..].starts_with('<') { (true, at + 1) } else { (false, at) };
    let (mut depth, mut escaped) = (0_u32, false);
    for (place, char) in part[at..].char_indices() {
        let ends = match char {
            _ if escaped => false,
            '>' if angle => true,
            '\n' | '\r' if angle => return None,
            _ if angle => false,
            ')' if depth == 0 => true,
            char => char.is_ascii_whitespace() || char.is_control(),
        };
        if ends {
            return Some(from + at..from + at + place);
        }
        match char {
            '(' if !escaped && !angle => depth += 1,
            ')' if !escaped && !angle => depth -= 1,
            _ => {}
        }
        escaped = char == '\\' && !escaped;
    }
    (!angle).then_some(from + at..end)
}

/// The first occurrence of `mark` that is not escaped by a backslash.
fn unescaped(text: &str, mark: &str) -> Option<usize> {
    text.match_indices(mark).map(|(at, _)| at).find(|&at| {
        let before = &text[..at];
        (before.len() - before.trim_end_matches('\\').len()).is_multiple_of(2)
    })
}
