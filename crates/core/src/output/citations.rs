//! Which parts of the pack an answer cites, and where.
//!
//! In data, every array named `citations`, `sources` or `evidence` holds citations. In text, markers such as `[3]`,
//! `[p3]` and `[1, 4]` are citations, as are links whose target is a part; code is skipped.

use std::collections::BTreeSet;
use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use serde_json::Value;

use super::gates::{Citation, CitationPlace};
use super::shorten;

/// Keys whose arrays hold citations.
const CITING_KEYS: [&str; 3] = ["citations", "sources", "evidence"];
/// Keys that name the part in a citation object.
const ID_KEYS: [&str; 5] = ["id", "part", "part_id", "source", "doc"];
/// The key whose array holds claims, each of which must cite.
const CLAIMS_KEY: &str = "claims";
/// Numbers in brackets of up to this many digits count as citations even if no part has that number; longer ones are
/// years and the like.
const MARKER_DIGITS: usize = 3;

/// How many characters of an unknown citation a message quotes.
const QUOTED_CHARS: usize = 100;
/// Maximum number of citations kept of each kind; an answer with more is useless, and the list must be bounded.
const MAX_KEPT: usize = 1_000;

/// The parts that citations may refer to, and the citations found so far.
#[derive(Debug)]
pub(super) struct Citations<'p> {
    citable: &'p BTreeSet<String>,
    pub(super) resolved: Vec<Citation>,
    /// Citations that match no part of the pack: as written, and where.
    pub(super) unknown: Vec<(String, CitationPlace)>,
    /// JSON pointers to claims without citations.
    pub(super) bare_claims: Vec<String>,
    /// The number of citations found, kept or not.
    met: usize,
}

impl<'p> Citations<'p> {
    pub(super) fn new(citable: &'p BTreeSet<String>) -> Self {
        Self { citable, resolved: Vec::new(), unknown: Vec::new(), bare_claims: Vec::new(), met: 0 }
    }

    /// The part that `written` refers to: literally, in brackets, with a fragment, or with or without `p` before the
    /// number.
    fn resolve(&self, written: &str) -> Option<(&'p str, Option<String>)> {
        let written = written.trim();
        let bare =
            written.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(written).trim();
        let (base, fragment) = match bare.split_once('#') {
            Some((base, fragment)) => (base, Some(fragment.to_owned())),
            None => (bare, None),
        };
        let known = |id: &str| self.citable.get(id).map(String::as_str);
        if let Some(part) = known(bare) {
            return Some((part, None));
        }
        let numbered = || match base.strip_prefix('p') {
            Some(number) if is_number(number) => known(number),
            None if is_number(base) => known(&format!("p{base}")),
            _ => None,
        };
        known(base).or_else(numbered).map(|part| (part, fragment))
    }

    fn cite(&mut self, written: &str, place: CitationPlace) {
        self.met += 1;
        match self.resolve(written) {
            Some((part, fragment)) => {
                keep(&mut self.resolved, Citation { part: part.to_owned(), fragment, place });
            }
            None => keep(&mut self.unknown, (shorten(written, QUOTED_CHARS), place)),
        }
    }

    /// Collects all citations in a JSON or YAML value.
    pub(super) fn read_value(&mut self, value: &Value) {
        self.walk(value, &mut String::new());
    }

    fn walk(&mut self, value: &Value, path: &mut String) {
        match value {
            Value::Object(object) => {
                for (key, child) in object {
                    let length = push_key(path, key);
                    match child {
                        Value::Array(items) if CITING_KEYS.contains(&key.as_str()) => {
                            self.citing(items, path)
                        }
                        Value::Array(items) if key == CLAIMS_KEY => self.claims(items, path),
                        _ => self.walk(child, path),
                    }
                    path.truncate(length);
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    let length = push_key(path, &at.to_string());
                    self.walk(item, path);
                    path.truncate(length);
                }
            }
            _ => {}
        }
    }

    fn citing(&mut self, items: &[Value], path: &mut String) {
        for (at, item) in items.iter().enumerate() {
            let length = push_key(path, &at.to_string());
            let id = match item {
                Value::Object(object) => ID_KEYS.iter().find_map(|key| object.get(*key)),
                other => Some(other),
            };
            let written = match id {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Number(number)) => number.to_string(),
                _ => item.to_string(),
            };
            self.cite(&written, CitationPlace::Pointer(path.clone()));
            path.truncate(length);
        }
    }

    fn claims(&mut self, items: &[Value], path: &mut String) {
        for (at, item) in items.iter().enumerate() {
            let length = push_key(path, &at.to_string());
            let before = self.met;
            match item {
                Value::String(text) => {
                    for (_, marker) in markers(text) {
                        if self.is_marker(marker) {
                            self.cite(marker, CitationPlace::Pointer(path.clone()));
                        }
                    }
                }
                other => self.walk(other, path),
            }
            if self.met == before {
                keep(&mut self.bare_claims, path.clone());
            }
            path.truncate(length);
        }
    }

    /// Collects all citations in plain text.
    pub(super) fn read_text(&mut self, text: &str) {
        self.read_markers(text, &[]);
    }

    /// Collects all citations in Markdown, outside code.
    pub(super) fn read_markdown(&mut self, text: &str) {
        let mut passed_over: Vec<Range<usize>> = Vec::new();
        let (mut code_start, mut link): (usize, Option<String>) = (0, None);
        for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
            match event {
                Event::Code(_) => passed_over.push(range),
                Event::Start(Tag::CodeBlock(_)) => code_start = range.start,
                Event::End(TagEnd::CodeBlock) => passed_over.push(code_start..range.end),
                Event::Start(Tag::Link { dest_url, .. }) => link = Some(dest_url.into_string()),
                Event::End(TagEnd::Link) => {
                    // A link to anything but a part is just a link; its text may still be a marker.
                    if let Some(target) = link.take().filter(|target| self.resolve(target).is_some()) {
                        self.cite(&target, CitationPlace::Bytes(range.clone()));
                        passed_over.push(range);
                    }
                }
                _ => {}
            }
        }
        passed_over.sort_by_key(|range| range.start);
        self.read_markers(text, &passed_over);
    }

    fn read_markers(&mut self, text: &str, passed_over: &[Range<usize>]) {
        let mut ahead = passed_over.iter().peekable();
        for (range, marker) in markers(text) {
            while ahead.next_if(|over| over.end <= range.start).is_some() {}
            let hidden = ahead.peek().is_some_and(|over| over.start < range.end);
            if !hidden && self.is_marker(marker) {
                self.cite(marker, CitationPlace::Bytes(range));
            }
        }
    }

    /// Whether text in brackets is a citation: it names a part, or a number that looks like one.
    fn is_marker(&self, marker: &str) -> bool {
        let number = marker.strip_prefix('p').unwrap_or(marker);
        (is_number(number) && number.len() <= MARKER_DIGITS) || self.resolve(marker).is_some()
    }
}

fn keep<T>(kept: &mut Vec<T>, item: T) {
    if kept.len() < MAX_KEPT {
        kept.push(item);
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The items of every innermost `[a, b]`, with the byte range of the item.
fn markers(text: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    text.match_indices('[').flat_map(|(open, _)| {
        let inner = &text[open + 1..];
        let end = inner.find(['[', ']', '\n']).filter(|&end| inner[end..].starts_with(']')).unwrap_or(0);
        inner[..end].split(',').scan(open + 1, |at, item| {
            let start = *at + (item.len() - item.trim_start().len());
            *at += item.len() + 1;
            Some((start..start + item.trim().len(), item.trim()))
        })
    })
}

/// Appends a step to a JSON pointer; returns the length to truncate it to afterwards.
fn push_key(path: &mut String, key: &str) -> usize {
    let length = path.len();
    path.push('/');
    path.push_str(&key.replace('~', "~0").replace('/', "~1"));
    length
}
