//! Markdown: headings as the skeleton, with sentences, list items, code blocks and tables below them.
//!
//! Knows the block structure; inline markup is text. A line of a fenced block or a table row is never shown without
//! the lines that frame it, and nothing is shown without its headings.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag};

use crate::engine::condenser::Divide;
use crate::engine::job::Job;
use crate::engine::units::{LONGEST_UNIT, TextPiece, split_long};
use crate::types::prose::sentences;

/// Longer structural lines (a heading, the opening of a fence) are treated as text.
const LONGEST_MARKUP: usize = 400;
/// Longer lines of code and raw HTML are divided.
const LONGEST_LINE: usize = 320;
/// Weights by structure: headings by level, the first sentence of a section, frontmatter.
const HEADING: [f32; 6] = [4.0, 3.0, 2.0, 1.5, 1.2, 1.0];
const SECTION_START: f32 = 1.6;
const FRONTMATTER: f32 = 2.0;

pub(crate) struct Markdown;

impl Divide for Markdown {
    fn units(&self, job: &Job<'_>) -> Vec<TextPiece> {
        let mut pieces = Vec::new();
        divide(job.request.text, 0..job.request.text.len(), &mut pieces);
        pieces
    }

    fn parses(&self, text: &str) -> bool {
        fences_close(text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum BlockKind {
    Text,
    Heading(usize),
    Fence,
    Table,
    Lines,
    Frontmatter,
}

/// Appends pieces that tile `range`, and whose needs stay within it.
pub(crate) fn divide(text: &str, range: Range<usize>, pieces: &mut Vec<TextPiece>) {
    let blocks = blocks(&text[range.clone()]);
    let mut divider = Divider { text, pieces, headings: Vec::new(), fresh: true };
    for (index, (start, kind)) in blocks.iter().enumerate() {
        let end = blocks.get(index + 1).map_or(range.len(), |(next, _)| *next);
        divider.block(range.start + start..range.start + end, kind);
    }
}

/// The start of each block, beginning at 0, always at the start of a line.
fn blocks(text: &str) -> Vec<(usize, BlockKind)> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS | Options::ENABLE_FOOTNOTES;
    let mut blocks = vec![(0, BlockKind::Text)];
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        let Event::Start(tag) = event else { continue };
        let kind = match tag {
            Tag::Paragraph | Tag::Item | Tag::FootnoteDefinition(_) => BlockKind::Text,
            Tag::Heading { level, .. } => BlockKind::Heading(depth(level)),
            Tag::CodeBlock(CodeBlockKind::Fenced(_)) => BlockKind::Fence,
            Tag::CodeBlock(CodeBlockKind::Indented) | Tag::HtmlBlock => BlockKind::Lines,
            Tag::Table(_) => BlockKind::Table,
            Tag::MetadataBlock(_) => BlockKind::Frontmatter,
            _ => continue,
        };
        let start = block_start(text, range.start);
        match blocks.last_mut() {
            // A list item's paragraph starts within the item's line, and the first block starts at 0.
            Some(last) if last.0 >= start => last.1 = kind,
            _ => blocks.push((start, kind)),
        }
    }
    blocks
}

fn depth(level: HeadingLevel) -> usize {
    level as usize
}

/// The start of the line if only markup of enclosing blocks precedes `at`, otherwise `at`.
fn block_start(text: &str, at: usize) -> usize {
    let reach = text.ceil_char_boundary(at.saturating_sub(LONGEST_MARKUP));
    let line = text[reach..at].rfind('\n').map_or(reach, |newline| reach + newline + 1);
    let markup =
        |c: char| c.is_whitespace() || c.is_ascii_digit() || matches!(c, '>' | '-' | '*' | '+' | '.' | ')');
    if text[line..at].chars().all(markup) { line } else { at }
}

struct Divider<'a> {
    text: &'a str,
    pieces: &'a mut Vec<TextPiece>,
    /// Pieces of the enclosing headings, with their depths.
    headings: Vec<(usize, usize)>,
    /// Whether the next sentence is the first of its section.
    fresh: bool,
}

impl Divider<'_> {
    fn block(&mut self, range: Range<usize>, kind: &BlockKind) {
        if range.is_empty() {
            return;
        }
        match kind {
            BlockKind::Heading(depth) if range.len() <= LONGEST_MARKUP => self.heading(range, *depth),
            BlockKind::Fence => self.framed(range, true),
            BlockKind::Table => self.framed(range, false),
            BlockKind::Lines => self.lines(range),
            BlockKind::Frontmatter if range.len() <= LONGEST_UNIT => {
                self.pieces.push(TextPiece { divisible: false, ..TextPiece::plain(range, FRONTMATTER) });
            }
            _ => self.sentences(range),
        }
    }

    fn under(&self) -> Option<usize> {
        self.headings.last().map(|&(_, piece)| piece)
    }

    fn heading(&mut self, range: Range<usize>, depth: usize) {
        while self.headings.last().is_some_and(|&(above, _)| above >= depth) {
            self.headings.pop();
        }
        let needs = [self.under(), None];
        self.headings.push((depth, self.pieces.len()));
        let prior = HEADING.get(depth - 1).copied().unwrap_or(1.0);
        self.pieces.push(TextPiece { needs, divisible: false, ..TextPiece::plain(range, prior) });
        self.fresh = true;
    }

    fn sentences(&mut self, range: Range<usize>) {
        for sentence in sentences(self.text, range) {
            let prior = if std::mem::take(&mut self.fresh) { SECTION_START } else { 1.0 };
            self.pieces.push(TextPiece { needs: [self.under(), None], ..TextPiece::plain(sentence, prior) });
        }
    }

    fn lines(&mut self, range: Range<usize>) {
        let under = self.under();
        let lines = split_lines(self.text, range);
        self.pieces.extend(
            lines.into_iter().map(|line| TextPiece { needs: [under, None], ..TextPiece::plain(line, 1.0) }),
        );
    }

    /// A fence with its opening and closing line, or a table with its first two lines, which the lines between need.
    fn framed(&mut self, range: Range<usize>, fence: bool) {
        let lines = split_lines(self.text, range.clone());
        let last = lines.iter().rposition(|line| !self.text[line.clone()].trim().is_empty()).unwrap_or(0);
        let closed = last > 0 && fence_sign(&self.text[lines[last].clone()]).is_some();
        let other = if fence { closed.then_some(last) } else { (lines.len() > 1).then_some(1) };
        let too_long = |index: usize| {
            lines[index].len() > LONGEST_MARKUP || !self.text[..lines[index].end].ends_with('\n')
        };
        if too_long(0) && lines.len() > 1 || other.is_some_and(|other| lines[other].len() > LONGEST_MARKUP) {
            return self.lines(range);
        }
        let (first, under) = (self.pieces.len(), self.under());
        let other = other.map(|other| first + other);
        for line in lines {
            let index = self.pieces.len();
            let frame = index == first || Some(index) == other;
            let needs = match index {
                index if index == first => [under, other],
                index if Some(index) == other => [Some(first), None],
                _ => [Some(first), other],
            };
            self.pieces.push(TextPiece { needs, divisible: !frame, ..TextPiece::plain(line, 1.0) });
        }
        self.fresh = false;
    }
}

/// Lines that tile `range`; overlong ones are divided, trailing blank ones join the last.
fn split_lines(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let body = range.start + text[range.clone()].trim_end().len();
    let mut lines = Vec::new();
    let mut start = range.start;
    for line in text[range.clone()].split_inclusive('\n') {
        let line = start..start + line.len();
        start = line.end;
        if line.start >= body && !lines.is_empty() {
            break;
        }
        lines.extend(split_long(text, line, LONGEST_LINE));
    }
    if let Some(last) = lines.last_mut() {
        last.end = range.end;
    }
    lines
}

/// The fence character and its length if the line opens or closes a fence, and whether more follows it.
fn fence_sign(line: &str) -> Option<(char, usize, bool)> {
    let line = line.trim_start_matches(|c: char| c.is_whitespace() || c == '>');
    let sign = line.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let len = line.len() - line.trim_start_matches(sign).len();
    let inline = sign == '`' && line[len..].contains('`');
    (len >= 3 && !inline).then(|| (sign, len, !line[len..].trim().is_empty()))
}

/// Whether every opened fence is closed.
fn fences_close(text: &str) -> bool {
    let mut open: Option<(char, usize)> = None;
    for (sign, len, more) in text.lines().filter_map(fence_sign) {
        match open {
            Some((opened, least)) if sign == opened && len >= least && !more => open = None,
            None => open = Some((sign, len)),
            _ => {}
        }
    }
    open.is_none()
}
