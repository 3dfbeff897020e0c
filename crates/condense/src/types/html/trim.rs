//! Trims what surrounds an article without being part of it: dates, bylines, tags, lists of other pages.
//!
//! Knows blocks and which were judged main content; trims only at the two ends, where such things appear.

use super::outline::{Block, Form, PageOutline};

/// A block with this many bytes outside links is part of the article.
const SUBSTANTIAL: usize = 120;
/// The share of linked bytes that makes a block a link.
const LINKED: (usize, usize) = (4, 5);
/// Short lines at one end count as credits if they are at most one part in this many of the kept text.
const CREDITS: usize = 8;

/// Clears `kept` for what surrounds the article.
pub(super) fn trim(page: &str, outline: &PageOutline, kept: &mut [bool]) {
    let lines: Vec<Line> =
        outline.blocks.iter().filter_map(|block| Line::of(page, outline, block, kept)).collect();
    let Some(first) = lines.iter().position(Line::is_substantial) else { return };
    let last = lines.iter().rposition(Line::is_substantial).unwrap_or(first);
    let total: usize = lines.iter().map(|line| line.bytes).sum();
    let (head, tail) = (&lines[..first], &lines[last + 1..]);
    for end in [head, tail] {
        let credits: usize = end.iter().filter(|line| line.is_credit()).map(|line| line.bytes).sum();
        let few = credits * CREDITS <= total;
        let leaves = |line: &&Line| line.linked || few && line.is_credit();
        end.iter().filter(leaves).for_each(|line| kept[line.runs.clone()].fill(false));
    }
    // The page's own heading stays even if nothing below it does.
    take_lone_headings(head, true, 2, kept);
    take_lone_headings(tail, false, 1, kept);
}

/// Clears headings of `level` and deeper that have no kept content; `heads` says whether something follows the last
/// line.
fn take_lone_headings(lines: &[Line], mut heads: bool, level: u8, kept: &mut [bool]) {
    for line in lines.iter().rev() {
        match line.form {
            Form::Heading(depth) => {
                if !heads && depth >= level {
                    kept[line.runs.clone()].fill(false);
                }
                heads = false;
            }
            _ => heads |= kept[line.runs.clone()].contains(&true),
        }
    }
}

/// A block that is kept at least in part.
struct Line {
    form: Form,
    runs: std::ops::Range<usize>,
    bytes: usize,
    /// A link to another page: nearly all link text, and not ending in a sentence or an address.
    linked: bool,
    ends_sentence: bool,
}

impl Line {
    fn of(page: &str, outline: &PageOutline, block: &Block, kept: &[bool]) -> Option<Self> {
        let (mut bytes, mut linked, mut end, mut end_is_url) = (0, 0, None, false);
        for (run, _) in
            outline.runs[block.runs.clone()].iter().zip(&kept[block.runs.clone()]).filter(|(_, kept)| **kept)
        {
            // Not decoded: a reference that ends a sentence ends in `;`.
            let text = page[run.range.clone()].trim();
            bytes += text.len();
            linked += if run.link.is_some() { text.len() } else { 0 };
            end = text.chars().last().or(end);
            end_is_url = text.starts_with("http");
        }
        let end = end?;
        let ends_sentence = matches!(
            end,
            '.' | ',' | '、' | '!' | '?' | '…' | '"' | '”' | '»' | '’' | '。' | '！' | '？' | ':' | ';'
        );
        Some(Self {
            form: block.form,
            runs: block.runs.clone(),
            bytes,
            linked: linked * LINKED.1 >= bytes * LINKED.0 && !ends_sentence && !end_is_url,
            ends_sentence,
        })
    }

    fn is_substantial(&self) -> bool {
        self.bytes >= SUBSTANTIAL && !self.linked && !matches!(self.form, Form::Heading(_))
    }

    fn is_credit(&self) -> bool {
        self.form == Form::Text && self.bytes < SUBSTANTIAL && !self.ends_sentence
    }
}
