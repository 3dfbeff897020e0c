//! Builds the readable text of a page from the runs that are kept, with the source position of every word.
//!
//! Knows blocks and how to write them as Markdown; does not know which runs are kept, nor tokens.

mod rows;

use std::collections::BTreeMap;
use std::ops::Range;
use std::slice;

use self::rows::Tables;
use super::facts::PageFacts;
use super::outline::{Block, Form, PageOutline, TextRun};
use crate::engine::source_map::{SourceMap, SourceWord};
use larder_text::entities::{for_each_char, plain};
use larder_text::markup::{Token, TokenKind, attribute};

/// Shorter scripts, comments and the like count as markup: a marker would be as long.
const SHORTEST_FURNITURE: usize = 64;
/// What is around text that is struck through.
const STRIKE: &str = "~~";
/// Longer addresses mean nothing to a reader.
const LONGEST_TARGET: usize = 120;

/// A page's readable text.
#[derive(Debug, Default)]
pub(super) struct Readable {
    pub(super) text: String,
    pub(super) source_map: SourceMap,
    /// Bytes of `text` taken by the line of facts.
    pub(super) facts: usize,
    /// Where the text of each block or row of a table starts, with the runs that it is made of.
    pub(super) starts: Vec<(usize, Range<usize>)>,
}

/// The parts of a page, and which of them are kept.
pub(super) struct ReadablePage<'a> {
    pub(super) page: &'a str,
    pub(super) tokens: &'a [Token],
    pub(super) outline: &'a PageOutline,
    pub(super) kept: &'a [bool],
    pub(super) facts: &'a PageFacts,
}

impl ReadablePage<'_> {
    /// Builds the text; the ranges in `verbatim` are copied unchanged.
    pub(super) fn readable(&self, verbatim: &[Range<usize>]) -> Readable {
        let visible = self.outline.runs.iter().zip(self.kept).filter(|(_, kept)| **kept);
        let visible: String = visible.take(8).map(|(run, _)| &self.page[run.range.clone()]).collect();
        let mut out = Readable { text: self.facts.line(&visible), ..Readable::default() };
        out.facts = out.text.len();
        let mut writer = Writer {
            page: self,
            furniture: self.furniture(),
            host: self.host(),
            out,
            verbatim,
            mark_at: 0,
            block_start: 0,
            after_gap: false,
            source: 0,
            space: false,
            link: None,
            struck: None,
            tables: Tables::of(self),
        };
        let mut next = 0;
        while let Some(block) = self.outline.blocks.get(next) {
            next += match block.form {
                Form::Cell(place) => writer.row(next, place),
                _ => {
                    writer.block(block);
                    1
                }
            };
        }
        writer.verbatim_until(self.page.len());
        writer.out.source_map.ends_in_gap = writer.gap_before(self.page.len());
        writer.out
    }

    /// Whether some of consecutive blocks is kept.
    fn is_kept(&self, blocks: &[Block]) -> bool {
        self.kept[runs(blocks)].contains(&true)
    }

    /// Where content starts that a reader may miss and the text does not show.
    fn furniture(&self) -> Vec<usize> {
        let hidden = self.tokens.iter().filter(|token| {
            let name = &self.page[token.name.clone()];
            let text = !name.eq_ignore_ascii_case("script") && !name.eq_ignore_ascii_case("style");
            let is_long = token.range.len() >= SHORTEST_FURNITURE;
            token.kind == TokenKind::Hidden && (text || is_long)
                || token.kind == TokenKind::Comment && is_long
        });
        let runs = self.outline.runs.iter().zip(self.kept);
        let left_out = runs.filter(|(run, kept)| run.wordy && !**kept).map(|(run, _)| run.range.start);
        let mut starts: Vec<usize> = hidden.map(|token| token.range.start).chain(left_out).collect();
        starts.sort_unstable();
        starts
    }

    /// The page's own host: as stated, otherwise the most common one in its links; `None` if most links have no host.
    fn host(&self) -> Option<String> {
        if let Some(own) = self.facts.address().and_then(host) {
            return Some(own.to_owned());
        }
        let mut hosts: BTreeMap<Option<&str>, usize> = BTreeMap::new();
        for token in self.tokens.iter().filter(|token| token.kind == TokenKind::Open) {
            if self.page[token.name.clone()].eq_ignore_ascii_case("a") {
                let target = attribute(&self.page[token.range.clone()], "href");
                target.into_iter().for_each(|target| *hosts.entry(host(target)).or_default() += 1);
            }
        }
        hosts.into_iter().max_by_key(|(_, count)| *count)?.0.map(str::to_owned)
    }
}

/// The runs of consecutive blocks.
fn runs(blocks: &[Block]) -> Range<usize> {
    blocks[0].runs.start..blocks[blocks.len() - 1].runs.end
}

/// The last two labels of the host that `target` names.
fn host(target: &str) -> Option<&str> {
    let rest = target.trim().strip_prefix("https://").or_else(|| target.trim().strip_prefix("http://"))?;
    let host = rest.split(['/', '?', '#', ':']).next().filter(|host| !host.is_empty())?;
    let labels = host.rmatch_indices('.').nth(1).map_or(0, |(at, _)| at + 1);
    Some(&host[labels..])
}

struct Writer<'a> {
    page: &'a ReadablePage<'a>,
    furniture: Vec<usize>,
    host: Option<String>,
    out: Readable,
    /// Ranges still to be copied unchanged.
    verbatim: &'a [Range<usize>],
    mark_at: usize,
    /// The start of the current block's text, after its prefix.
    block_start: usize,
    /// Whether a word was omitted since the last one.
    after_gap: bool,
    /// The end of the last word in the page.
    source: usize,
    /// White space appears before the next word.
    space: bool,
    link: Option<(Range<usize>, Option<String>)>,
    /// Where the text starts that is struck through, and what was `block_start` before.
    struck: Option<(usize, usize)>,
    tables: Tables,
}

impl Writer<'_> {
    fn block(&mut self, block: &Block) {
        if !self.page.is_kept(slice::from_ref(block)) {
            return;
        }
        self.new_line(!block.tight);
        self.out.starts.push((self.out.text.len(), block.runs.clone()));
        match block.form {
            Form::Heading(level) => {
                self.out.text.push_str(&"#".repeat(usize::from(level.clamp(1, 6))));
                self.out.text.push(' ');
            }
            Form::Item(depth, number) => {
                self.out.text.push_str(&"  ".repeat(usize::from(depth.saturating_sub(1))));
                let mark = number.map_or("- ".to_owned(), |number| format!("{number}. "));
                let mark = if self.tables.pays(mark.len()) { mark.as_str() } else { "- " };
                self.out.text.push_str(mark);
            }
            _ => {}
        }
        self.runs(block);
    }

    fn new_line(&mut self, paragraph: bool) {
        let text = &mut self.out.text;
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        if paragraph && !text.is_empty() && !text.ends_with("\n\n") {
            text.push('\n');
        }
        self.mark_at = text.len();
    }

    fn runs(&mut self, block: &Block) {
        let runs = &self.page.outline.runs[block.runs.clone()];
        let kept = &self.page.kept[block.runs.clone()];
        let code = block.form == Form::Code;
        let fence = if code { self.fence(runs) } else { String::new() };
        if code {
            self.out.text.push_str(&fence);
            self.out.text.push('\n');
        }
        (self.block_start, self.space) = (self.out.text.len(), false);
        for (run, kept) in runs.iter().zip(kept) {
            run.before.chars().for_each(|c| self.white(c, code));
            if !kept {
                continue;
            }
            if !code {
                self.part_numbers(run);
            }
            let link = run.link.clone().filter(|_| !code);
            if !run.struck || self.link.as_ref().map(|(range, _)| range) != link.as_ref() {
                self.end_strike();
            }
            self.follow(link, runs);
            if run.struck && !code && self.struck.is_none() {
                self.blank();
                self.out.text.push_str(STRIKE);
                let start = self.out.text.len();
                self.struck = Some((start, std::mem::replace(&mut self.block_start, start)));
            }
            self.words(&run.range, code);
        }
        self.end_strike();
        self.follow(None, runs);
        if code {
            if !self.out.text.ends_with('\n') {
                self.out.text.push('\n');
            }
            self.out.text.push_str(&fence);
        }
    }

    fn end_strike(&mut self) {
        let Some((start, block_start)) = self.struck.take() else { return };
        if self.out.text.len() > start {
            self.out.text.push_str(STRIKE);
        } else {
            self.out.text.truncate(start - STRIKE.len());
            self.block_start = block_start;
        }
    }

    /// Keeps two numbers apart that only markup separates: `$<b>129</b><sup>99</sup>` is `$129.99` and not `$12999`, and
    /// `2019<sup>1</sup>` has a footnote.
    fn part_numbers(&mut self, run: &TextRun) {
        let is_digit = |c: char| c.is_ascii_digit();
        let (text, next) = (&self.out.text[self.block_start..], &self.page.page[run.range.clone()]);
        if self.space || !text.ends_with(is_digit) || !next.starts_with(is_digit) {
            return;
        }
        let before = text.trim_end_matches(|c: char| is_digit(c) || matches!(c, ',' | '.'));
        let mut after = &self.page.page[run.range.end..];
        while let Some((_, rest)) = after.strip_prefix('<').and_then(|tag| tag.split_once('>')) {
            after = rest.trim_start();
        }
        let has_currency = before.trim_end().ends_with(['$', '€', '£', '¥'])
            || ["€", "&euro;", "EUR"].iter().any(|sign| after.starts_with(sign));
        let next = next.trim_end();
        if has_currency && next.len() == 2 && next.chars().all(is_digit) {
            let is_decimal = !text[before.len()..].contains('.');
            self.out.text.push(if is_decimal { '.' } else { ',' });
        } else {
            self.space = true;
        }
    }

    /// A fence that no line of the code can close.
    fn fence(&self, runs: &[TextRun]) -> String {
        let longest = runs.iter().map(|run| {
            let text = &self.page.page[run.range.clone()];
            text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
        });
        "`".repeat(longest.max().unwrap_or(0).max(2) + 1)
    }

    /// Closes the open link and opens the next, if its target is meaningful to a reader.
    fn follow(&mut self, link: Option<Range<usize>>, runs: &[TextRun]) {
        if self.link.as_ref().map(|(range, _)| range) == link.as_ref() {
            return;
        }
        if let Some((_, Some(target))) = self.link.take() {
            self.out.text.push_str("](");
            self.out.text.push_str(&target);
            self.out.text.push(')');
        }
        if let Some(link) = link {
            let target = self.salient(&link).filter(|_| !runs.iter().all(|run| run.link.is_some()));
            if target.is_some() {
                self.blank();
                self.out.text.push('[');
                self.space = false;
                self.block_start = self.out.text.len();
            }
            self.link = Some((link, target));
        }
    }

    /// The target of a link that leaves the site: a source.
    fn salient(&self, link: &Range<usize>) -> Option<String> {
        let target = plain(&self.page.page[link.clone()]);
        let outside = host(&target).is_some_and(|host| self.host.as_deref() != Some(host));
        let sound = !target.contains(|c: char| c.is_whitespace() || c == '(' || c == ')');
        (outside && sound && target.len() <= LONGEST_TARGET).then_some(target)
    }

    fn blank(&mut self) {
        if self.space && self.out.text.len() > self.block_start && !self.out.text.ends_with([' ', '\n']) {
            self.out.text.push(' ');
        }
        self.space = false;
    }

    fn white(&mut self, c: char, code: bool) {
        if code && self.out.text.len() > self.block_start {
            self.out.text.push(if c == '\n' { '\n' } else { ' ' });
        } else {
            self.space = true;
        }
    }

    fn words(&mut self, range: &Range<usize>, code: bool) {
        let (page, start) = (self.page.page, range.start);
        let mut word: Option<(Range<usize>, usize)> = None;
        for_each_char(&page[range.clone()], |at, c| {
            let at = start + at.start..start + at.end;
            if c.is_whitespace() || c.is_control() {
                self.finish(word.take());
                self.white(c, code);
                return;
            }
            if word.is_none() {
                self.verbatim_until(at.start);
                self.blank();
            }
            let (source, _) = word.get_or_insert((at.clone(), self.out.text.len()));
            source.end = at.end;
            self.out.text.push(c);
        });
        self.finish(word.take());
    }

    /// Records the last word written, or removes it if it overlaps a verbatim range.
    fn finish(&mut self, word: Option<(Range<usize>, usize)>) {
        let Some((source, begin)) = word else { return };
        let inside =
            self.verbatim.first().is_some_and(|range| range.start < source.end) || source.start < self.source;
        if inside {
            self.out.text.truncate(begin);
            self.after_gap = true;
            return;
        }
        self.take_down(source, begin);
    }

    fn take_down(&mut self, source: Range<usize>, begin: usize) {
        let after_gap = self.gap_before(source.start);
        let mark_at = if self.mark_at > self.out.source_map.words.last().map_or(0, |word| word.at.end) {
            self.mark_at
        } else {
            begin
        };
        self.source = source.end;
        let at = begin..self.out.text.len();
        self.out.source_map.words.push(SourceWord { at, source, mark_at: mark_at.min(begin), after_gap });
    }

    /// Whether there is more than markup between the last word and `at`.
    fn gap_before(&mut self, at: usize) -> bool {
        let next = self.furniture.partition_point(|&start| start < self.source);
        let furniture = self.furniture.get(next).is_some_and(|&start| start < at);
        std::mem::take(&mut self.after_gap) || furniture
    }

    /// Copies the verbatim ranges that start before `at`.
    fn verbatim_until(&mut self, at: usize) {
        while let Some((range, rest)) = self.verbatim.split_first().filter(|(range, _)| range.start < at) {
            self.verbatim = rest;
            self.new_line(false);
            let begin = self.out.text.len();
            self.out.text.push_str(&self.page.page[range.clone()]);
            self.after_gap = true;
            self.take_down(range.clone(), begin);
            self.after_gap = true;
            self.out.text.push('\n');
            (self.block_start, self.space) = (self.out.text.len(), false);
        }
    }
}
