//! The possible targets of a fragment: a note's headings and named blocks.

use std::ops::Range;

use hashbrown::{HashMap, HashSet};
use percent_encoding::percent_decode_str;
use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use super::scan::Dialect;
use crate::quote::block_id_at_end;
use larder_text::sections::Sections;

/// A heading and the content under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// The level, 1 to 6.
    pub level: u8,
    /// Its text without markup.
    pub text: String,
    /// The byte range of the heading and everything up to the next heading of the same or a higher level.
    pub section: Range<usize>,
}

/// A named block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    /// The name without `^`.
    pub id: String,
    /// The byte range of the block, its name included.
    pub range: Range<usize>,
}

/// Headings and named blocks of a note.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NoteOutline {
    /// In document order.
    pub headings: Vec<Heading>,
    /// In document order; of blocks with the same name, the first counts.
    pub anchors: Vec<Anchor>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockShape {
    Lines,
    Item,
    Table,
}

impl NoteOutline {
    /// The outline of a whole note, frontmatter included.
    pub fn parse(note: &str) -> Self {
        let base = Sections::parse(note).frontmatter.end;
        let text = &note[base..];
        let mut outline = Self::default();
        let (mut shapes, mut code) = (Vec::new(), Vec::new());
        let mut heading: Option<Heading> = None;
        for (event, range) in Parser::new_ext(text, Dialect::Vault.options()).into_offset_iter() {
            let range = range.start + base..range.end + base;
            match event {
                Event::Start(Tag::Heading { level, .. }) => {
                    shapes.push((BlockShape::Lines, range.clone()));
                    heading = Some(Heading { level: level as u8, text: String::new(), section: range });
                }
                Event::End(TagEnd::Heading(_)) => outline.headings.extend(heading.take()),
                Event::Start(Tag::Paragraph) => shapes.push((BlockShape::Lines, range)),
                Event::Start(Tag::Item) => shapes.push((BlockShape::Item, range)),
                Event::Start(Tag::Table(_)) => shapes.push((BlockShape::Table, range)),
                Event::Start(Tag::CodeBlock(_) | Tag::HtmlBlock) => {
                    shapes.push((BlockShape::Lines, range.clone()));
                    code.push(range);
                }
                Event::Text(words) | Event::Code(words) => {
                    if let Some(heading) = &mut heading {
                        heading.text.push_str(&words);
                    }
                }
                Event::SoftBreak | Event::HardBreak => {
                    if let Some(heading) = &mut heading {
                        heading.text.push(' ');
                    }
                }
                _ => {}
            }
        }
        outline.close_sections(note.len());
        outline.find_anchors(note, base, &shapes, &code);
        outline
    }

    /// Ends each section at the next heading of the same or a higher level.
    fn close_sections(&mut self, end: usize) {
        let mut open: Vec<usize> = Vec::new();
        for at in 0..self.headings.len() {
            let (level, start) = (self.headings[at].level, self.headings[at].section.start);
            while let Some(last) = open.pop_if(|last| self.headings[*last].level >= level) {
                self.headings[last].section.end = start;
            }
            open.push(at);
        }
        open.into_iter().for_each(|last| self.headings[last].section.end = end);
    }

    fn find_anchors(
        &mut self,
        note: &str,
        base: usize,
        shapes: &[(BlockShape, Range<usize>)],
        code: &[Range<usize>],
    ) {
        let mut sweep = Sweep { shapes, next: 0, open: Vec::new(), closed: None };
        let mut seen = HashSet::new();
        let mut at = base;
        for line in note[base..].split_inclusive('\n') {
            let range = at..at + line.len();
            at = range.end;
            let Some((place, id)) = block_id_at_end(line) else { continue };
            let place = range.start + place;
            let in_code = code.partition_point(|code| code.end <= place);
            if code.get(in_code).is_some_and(|code| code.start <= place) {
                continue;
            }
            sweep.to(place);
            let around = if line.trim_start().starts_with('^') {
                // A name on a line of its own belongs to the preceding block.
                sweep.closed.map(|(_, shape)| shape.start..range.end)
            } else {
                let inner = sweep.open.last().filter(|(shape, whole)| match shape {
                    BlockShape::Table => false,
                    BlockShape::Item => true,
                    BlockShape::Lines => note[range.end..whole.end.max(range.end)].trim().is_empty(),
                });
                inner.map(|(_, whole)| without_blank_end(note, whole))
            };
            if seen.insert(id.to_ascii_lowercase()) {
                self.anchors.push(Anchor { id: id.to_owned(), range: around.unwrap_or(range) });
            }
        }
    }

    /// The byte range that a fragment refers to: `^id` is a block; otherwise a heading by its text or slug
    /// (`heading-1`), or a heading under another (`One#Two`).
    pub fn find(&self, fragment: &str) -> Option<Range<usize>> {
        let decoded = percent_decode_str(fragment).decode_utf8().ok()?;
        if let Some(id) = decoded.trim().strip_prefix('^') {
            let anchor = self.anchors.iter().find(|anchor| anchor.id.eq_ignore_ascii_case(id.trim()));
            return anchor.map(|anchor| anchor.range.clone());
        }
        let mut inside = 0..usize::MAX;
        for step in decoded.split('#') {
            let found = self.headings.iter().find(|heading| {
                inside.contains(&heading.section.start) && plain(&heading.text) == plain(step)
            });
            inside = found.map(|heading| heading.section.clone()).or_else(|| self.by_address(step))?;
        }
        Some(inside)
    }

    /// The heading with this slug; of several with the same one, the second ends in `-1`.
    fn by_address(&self, address: &str) -> Option<Range<usize>> {
        let wanted = address.trim().to_lowercase();
        let mut seen: HashMap<String, usize> = HashMap::new();
        self.headings.iter().find_map(|heading| {
            let base = slug(&heading.text);
            let before = seen.entry(base.clone()).or_default();
            let address = if *before == 0 { base } else { format!("{base}-{before}") };
            *before += 1;
            (address == wanted).then(|| heading.section.clone())
        })
    }
}

/// Walks through blocks in order and tracks which are open.
struct Sweep<'s> {
    shapes: &'s [(BlockShape, Range<usize>)],
    next: usize,
    open: Vec<&'s (BlockShape, Range<usize>)>,
    /// The block that closed last; the outermost if several did.
    closed: Option<&'s (BlockShape, Range<usize>)>,
}

impl Sweep<'_> {
    fn to(&mut self, place: usize) {
        while let Some(shape) = self.shapes.get(self.next).filter(|(_, shape)| shape.start <= place) {
            self.close(shape.1.start);
            self.open.push(shape);
            self.next += 1;
        }
        self.close(place);
    }

    fn close(&mut self, place: usize) {
        while let Some(shape) = self.open.pop_if(|(_, shape)| shape.end <= place) {
            self.closed = Some(shape);
        }
    }
}

/// A block without trailing blank lines, which the parser includes in list items.
fn without_blank_end(note: &str, block: &Range<usize>) -> Range<usize> {
    let kept = block.start + note[block.clone()].trim_end().len();
    let line = note[kept..block.end].find('\n').map_or(block.end, |at| kept + at + 1);
    block.start..line
}

/// A heading's text as compared by links: without characters that are invalid in links, spaces and case.
fn plain(text: &str) -> String {
    let words = text.split(|char: char| char.is_whitespace() || "#^|[]:\\/%".contains(char));
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ").to_lowercase()
}

/// The slug that renderers assign to a heading.
fn slug(text: &str) -> String {
    let kept = text.trim().chars().filter(|char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_'));
    kept.map(|char| if char == ' ' { '-' } else { char }).collect::<String>().to_lowercase()
}
