//! Determines which runs of a page are its main content.
//!
//! An extraction library decides, given a sanitised copy of the page: the relevant markup, the text mapped to ASCII,
//! and a mark after every run by which the kept runs are recognised. Pages on which the copy or the library could be
//! too slow, or finds nothing, are handled by a simple rule.

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hashbrown::HashMap;
use rs_trafilatura::page_type::PageType;
use rs_trafilatura::{Options, extract_with_options};

use super::outline::{Form, PageOutline};
use larder_text::elements::closes_itself;
use larder_text::entities::for_each_char;
use larder_text::markup::{Token, TokenKind, attributes};

/// Limits on the library's input: bytes of the copy, elements (its time is quadratic in them), nesting depth, and the
/// sum of all depths, which bounds tree walks. Within these limits it takes at most about 50 ms.
const LARGEST_COPY: usize = 384 << 10;
const MAX_TAGS: usize = 6_000;
const DEEPEST: usize = 160;
const MAX_DEPTH: usize = 400_000;
/// Longer attribute values are omitted from the copy.
const LONGEST_VALUE: usize = 160;
/// Most attributes of one element in the copy.
const MAX_ATTRIBUTES: usize = 12;
/// An extraction with fewer bytes of text than this, and less than one part in [`SMALL_SHARE`] of the page, has
/// failed.
const SMALL: usize = 200;
const SMALL_SHARE: usize = 3;
/// The simple rule excludes blocks with more than half of their text in links.
const LINKS: usize = 2;

/// Whether each run belongs to the main content. If none does, all are kept.
pub(super) fn main_text(page: &str, tokens: &[Token], outline: &PageOutline) -> Vec<bool> {
    let all: usize = outline.runs.iter().map(|run| run.range.len()).sum();
    let enough = |kept: &Vec<bool>| {
        let runs = outline.runs.iter().zip(kept).filter(|(_, kept)| **kept);
        let bytes: usize = runs.map(|(run, _)| run.range.len()).sum();
        bytes >= SMALL || bytes * SMALL_SHARE >= all && bytes > 0
    };
    copy(page, tokens, outline)
        .and_then(|copy| judged(&copy, outline.runs.len()))
        .filter(enough)
        .unwrap_or_else(|| {
            Some(by_rule(outline)).filter(enough).unwrap_or_else(|| vec![true; outline.runs.len()])
        })
}

/// Text outside navigation, footers and forms that is not mostly links.
fn by_rule(outline: &PageOutline) -> Vec<bool> {
    let mut kept = vec![false; outline.runs.len()];
    for block in &outline.blocks {
        let runs = &outline.runs[block.runs.clone()];
        let all: usize = runs.iter().map(|run| run.range.len()).sum();
        let linked: usize = runs.iter().filter(|run| run.link.is_some()).map(|run| run.range.len()).sum();
        let heading = matches!(block.form, Form::Heading(_));
        if !block.furniture && (heading || linked * LINKS <= all) {
            kept[block.runs.clone()].fill(true);
        }
    }
    kept
}

/// The runs that the library keeps.
fn judged(copy: &str, runs: usize) -> Option<Vec<bool>> {
    let (text, merged) = extracted(copy, PageType::Article)?;
    let text = if merged {
        // It combined similar elements from the whole page: try again without that.
        extracted(copy, PageType::Documentation)
            .map(|(text, _)| text)
            .filter(|text| text.len() >= SMALL)
            .unwrap_or(text)
    } else {
        text
    };
    let mut kept = vec![false; runs];
    let mut digits = Vec::new();
    for byte in text.bytes() {
        match byte.checked_sub(FIRST_DIGIT).filter(|digit| *digit < BASE as u8) {
            Some(digit) => digits.push(usize::from(digit)),
            None => digits.clear(),
        }
        if digits.len() == DIGITS {
            let run = digits.drain(..).fold(0, |number, digit| number * BASE + digit);
            if let Some(kept) = kept.get_mut(run) {
                *kept = true;
            }
        }
    }
    Some(kept)
}

fn extracted(copy: &str, page_type: PageType) -> Option<(String, bool)> {
    // A fixed type: detecting it costs a third of the time and depends on more than the text.
    let options = Options { page_type: Some(page_type), ..Options::default() };
    // The library cuts strings at unchecked byte offsets; ASCII makes those cuts valid, but we cannot prove that no
    // other input makes it panic. It keeps no state that a panic could corrupt.
    let result = catch_unwind(AssertUnwindSafe(|| extract_with_options(copy, &options))).ok()?.ok()?;
    let merged = result.warnings.iter().any(|warning| warning.contains("multi-candidate merge"));
    Some((result.content_text, merged))
}

/// Run numbers are encoded in control characters, which no copied text contains.
const FIRST_DIGIT: u8 = 0x0e;
const BASE: usize = 18;
const DIGITS: usize = 4;
const MAX_RUNS: usize = BASE * BASE * BASE * BASE;

/// The page as given to the library; `None` if it is too large or too deep.
fn copy(page: &str, tokens: &[Token], outline: &PageOutline) -> Option<String> {
    let text: usize = outline.runs.iter().map(|run| run.range.len()).sum();
    if outline.runs.len() > MAX_RUNS || outline.runs.is_empty() || text > LARGEST_COPY {
        return None;
    }
    let mut copy = String::new();
    let (mut depth, mut walked, mut run, mut tags) = (0_usize, 0_usize, 0_usize, 0_usize);
    // An unmatched end tag must not make a deep page look shallow; browsers ignore it too.
    let mut open: HashMap<String, usize> = HashMap::new();
    for token in tokens {
        let name = copied(&page[token.name.clone()]);
        match token.kind {
            TokenKind::Open if !is_dropped(name) => {
                push_tag(&mut copy, name, &page[token.range.clone()]);
                if !closes_itself(name) {
                    *open.entry(name.to_ascii_lowercase()).or_default() += 1;
                    depth += 1;
                }
                walked += depth;
                tags += 1;
            }
            TokenKind::Close if !is_dropped(name) && !closes_itself(name) => {
                if let Some(count) = open.get_mut(&name.to_ascii_lowercase()).filter(|count| **count > 0) {
                    *count -= 1;
                    depth = depth.saturating_sub(1);
                    let _ = write!(copy, "</{}>", ascii(name));
                }
            }
            TokenKind::Text => {
                let text = &page[token.range.clone()];
                if outline.runs.get(run).is_some_and(|known| known.range == token.range) {
                    push_marked(&mut copy, text, run);
                    run += 1;
                } else {
                    copy.push(if text.contains('\n') { '\n' } else { ' ' });
                }
            }
            TokenKind::Hidden if name.eq_ignore_ascii_case("title") => {
                push_text(&mut copy, &page[token.range.clone()])
            }
            _ => {}
        }
        if depth > DEEPEST || walked > MAX_DEPTH || tags > MAX_TAGS || copy.len() > LARGEST_COPY {
            return None;
        }
    }
    Some(copy)
}

/// Elements whose content is excluded from the copy.
fn is_dropped(name: &str) -> bool {
    const DROPPED: &str = "script style textarea iframe noscript noembed noframes xmp svg math template object audio \
                           video canvas plaintext";
    DROPPED.split(' ').any(|dropped| dropped.eq_ignore_ascii_case(name))
}

/// The name that an element has in the copy. The library drops some elements of sentences with their text.
fn copied(name: &str) -> &str {
    let is_lost = "time output ins del data".split(' ').any(|lost| lost.eq_ignore_ascii_case(name));
    if is_lost { "span" } else { name }
}

fn push_tag(copy: &mut String, name: &str, tag: &str) {
    copy.push('<');
    copy.push_str(&ascii(name));
    for (name, value) in
        attributes(tag).take(MAX_ATTRIBUTES).filter(|(_, value)| value.len() <= LONGEST_VALUE)
    {
        let name = ascii(name);
        if name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b':' | b'_')) {
            let value = ascii(value).replace('&', "&amp;").replace('"', "&quot;");
            let _ = write!(copy, " {name}=\"{value}\"");
        }
    }
    copy.push('>');
}

fn ascii(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii() && !c.is_ascii_control() { c } else { '-' }).collect()
}

fn push_marked(copy: &mut String, text: &str, run: usize) {
    let end = text.trim_end().len();
    push_text(copy, &text[..end]);
    for place in (0..DIGITS).rev() {
        let digit = run / BASE.pow(place as u32) % BASE;
        copy.push(char::from(FIRST_DIGIT + digit as u8));
    }
    if end < text.len() {
        copy.push(if text[end..].contains('\n') { '\n' } else { ' ' });
    }
}

/// Appends `text` with references resolved and every character mapped to ASCII of the same class.
fn push_text(copy: &mut String, text: &str) {
    for_each_char(text, |_, c| match c {
        '&' => copy.push_str("&amp;"),
        '<' => copy.push_str("&lt;"),
        '>' => copy.push_str("&gt;"),
        '\n' => copy.push('\n'),
        '“' | '”' => copy.push('"'),
        '‘' | '’' => copy.push('\''),
        '–' | '—' => copy.push('-'),
        '。' => copy.push('.'),
        c if c.is_whitespace() || c.is_control() => copy.push(' '),
        c if c.is_ascii() => copy.push(c),
        c if c.is_alphanumeric() => copy.push('x'),
        _ => copy.push('~'),
    });
}
