//! JSON values selected by a path, as their original bytes: numbers keep their digits, strings their escapes, objects
//! their spacing. Knows JSON only.

use std::collections::HashMap;
use std::ops::Range;
use std::slice;
use std::str;

use crate::json::{self, Document, JsonError};
use crate::lines;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json_path::JsonPath;

use super::{MAX_QUERY_BYTES, SelectError, shorten};

const BYTE_ORDER_MARK: char = '\u{feff}';
/// The largest content, in bytes, that a path is evaluated on: its values need about ten times this in memory.
const MAX_JSON_BYTES: usize = 64 << 20;
/// Maximum number of values that one path may match.
const MAX_MATCHES: usize = 100_000;
/// Deeper nesting of parentheses or brackets would make parsing a path unboundedly slow.
const MAX_NESTING: usize = 6;
/// How many lines among other text are tried as the start of JSON.
const MAX_STARTS: usize = 16;
/// How many times a path may visit the content by naming several selectors in one bracket.
const MAX_FAN_OUT: usize = 64;

/// A well-formed path whose evaluation is linear in the content.
#[derive(Debug, Clone)]
pub(crate) struct JsonQuery {
    text: String,
    kind: JsonQueryKind,
}

#[derive(Debug, Clone)]
enum JsonQueryKind {
    Pointer,
    Path(JsonPath),
}

impl JsonQuery {
    pub(crate) fn parse(text: &str) -> Result<Self, SelectError> {
        let bad = |reason: String| SelectError::BadPath { path: shorten(text), reason };
        if text.len() > MAX_QUERY_BYTES {
            return Err(bad(format!("{} bytes long; the maximum is {MAX_QUERY_BYTES}", text.len())));
        }
        if text.starts_with('/') {
            return Ok(Self { text: text.to_owned(), kind: JsonQueryKind::Pointer });
        }
        check_cost(text).map_err(|reason| bad(reason.to_owned()))?;
        match JsonPath::parse(text) {
            Ok(path) => Ok(Self { text: text.to_owned(), kind: JsonQueryKind::Path(path) }),
            Err(error) => Err(bad(format!("{error}; expected a JSONPath such as $.items[0], or /items/0"))),
        }
    }

    /// The bytes of the value; of several, a JSON array.
    pub(crate) fn select(&self, source: &[u8]) -> Result<Vec<u8>, SelectError> {
        let found: Vec<_> = self.find(source)?.into_iter().filter_map(|span| source.get(span)).collect();
        match found.as_slice() {
            [one] => Ok(one.to_vec()),
            several => Ok([&b"["[..], &several.join(&b","[..]), b"]"].concat()),
        }
    }

    /// The spans of the values, in the order of the path; at least one.
    pub(crate) fn find(&self, source: &[u8]) -> Result<Vec<Range<usize>>, SelectError> {
        if source.len() > MAX_JSON_BYTES {
            let reason = format!("{} bytes, and at most {MAX_JSON_BYTES} are read", source.len());
            return Err(SelectError::NotJson { reason });
        }
        let content = JsonContent::read(source)?;
        let values = match &self.kind {
            JsonQueryKind::Pointer => content.root.pointer(&self.text).into_iter().collect(),
            JsonQueryKind::Path(path) => path.query(&content.root).all(),
        };
        if values.len() > MAX_MATCHES {
            let reason = format!(
                "matches {} values; the maximum is {MAX_MATCHES}: make it more specific",
                values.len()
            );
            return Err(SelectError::BadPath { path: shorten(&self.text), reason });
        }
        let not_json = |error: JsonError| SelectError::NotJson { reason: error.to_string() };
        let found = content.spans(&values).map_err(not_json)?;
        if found.is_empty() {
            return Err(SelectError::NothingThere { path: shorten(&self.text) });
        }
        Ok(found)
    }
}

/// A content as one JSON value: itself, the array of its lines if it is JSON Lines, or the only object or array that is
/// among other lines, such as the sentence of a tool that announces it.
struct JsonContent<'t> {
    root: Value,
    /// The texts that were read as the root or as its items, each with its place in the content.
    texts: Vec<(usize, &'t str)>,
    is_lines: bool,
}

impl<'t> JsonContent<'t> {
    fn read(source: &'t [u8]) -> Result<Self, SelectError> {
        let not_json = |reason: String| SelectError::NotJson { reason };
        let text = str::from_utf8(source).map_err(|error| not_json(error.to_string()))?;
        let start = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 };
        let lines = text[start..].split_inclusive('\n').scan(start, |at, line| {
            let start = *at;
            *at += line.len();
            Some((start, line))
        });
        let lines = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
        let is_value = |(_, line): (usize, &str)| serde_json::from_str::<IgnoredAny>(line).is_ok();
        let mut first = lines.clone();
        // Two lines that are each a value: no single value looks like that.
        if first.next().is_some_and(is_value) && first.next().is_some_and(is_value) {
            let texts: Vec<_> = lines.collect();
            let values: Result<_, _> = texts.iter().map(|(_, line)| serde_json::from_str(line)).collect();
            let failed = |error: serde_json::Error| {
                let good = |(_, line): &&(usize, &str)| serde_json::from_str::<Value>(line).is_ok();
                let before = texts.iter().take_while(good).count();
                let place = texts.get(before).map_or(0, |&(at, _)| at);
                let line = 1 + source[..place].iter().filter(|&&byte| byte == b'\n').count();
                not_json(format!("JSON Lines, and line {line} is not a value: {error}"))
            };
            return Ok(Self { root: Value::Array(values.map_err(failed)?), texts, is_lines: true });
        }
        let text = &text[start..];
        let (at, text, root) = match serde_json::from_str(text) {
            Ok(root) => (0, text, root),
            Err(error) => among_lines(text).ok_or_else(|| not_json(error.to_string()))?,
        };
        Ok(Self { root, texts: vec![(start + at, text)], is_lines: false })
    }

    /// Where the values are in the content.
    fn spans(&self, values: &[&Value]) -> Result<Vec<Range<usize>>, JsonError> {
        let wanted = values.iter().map(|value| (address(value), 0..0)).collect();
        let mut spans = Spans { found: wanted };
        let items = self.root.as_array().filter(|_| self.is_lines).map(Vec::as_slice);
        for (value, &(offset, text)) in items.unwrap_or(slice::from_ref(&self.root)).iter().zip(&self.texts) {
            spans.collect(value, Document::parse(text)?.root(), offset);
        }
        if let (true, Some(span)) = (self.is_lines, spans.found.get_mut(&address(&self.root))) {
            let last = self.texts.last().map_or(0, |(at, line)| at + line.trim_ascii_end().len());
            *span = self.texts.first().map_or(0, |&(at, _)| at)..last;
        }
        Ok(values.iter().filter_map(|value| spans.found.get(&address(value)).cloned()).collect())
    }
}

/// The only object or array that begins and ends with a line: its place, its text and its value.
fn among_lines(text: &str) -> Option<(usize, &str, Value)> {
    let (mut found, mut end, mut left) = (None, 0, MAX_STARTS);
    let starts = lines::spans(text).filter(|line| text[line.clone()].starts_with(['{', '[']));
    for line in starts {
        if line.start < end {
            continue;
        }
        if left == 0 {
            break;
        }
        left -= 1;
        let mut values = serde_json::Deserializer::from_str(&text[line.start..]).into_iter();
        let Some(Ok(value)) = values.next() else { continue };
        end = line.start + values.byte_offset();
        if !text[end..].lines().next().unwrap_or_default().trim().is_empty() {
            continue;
        }
        if found.is_some() {
            return None;
        }
        found = Some((line.start, &text[line.start..end], value));
    }
    found
}

/// Rejects paths whose evaluation is not linear in the content: they come from models as well as from people.
fn check_cost(path: &str) -> Result<(), &'static str> {
    // Selectors in each bracket that is open.
    let mut open = Vec::new();
    let (mut fan_out, mut descents) = (1usize, 0);
    let (mut quote, mut escaped, mut before) = (None, false, '\0');
    for (at, c) in path.char_indices() {
        if let Some(mark) = quote {
            (escaped, quote) = (c == '\\' && !escaped, (escaped || c != mark).then_some(mark));
            continue;
        }
        match c {
            '\'' | '"' => quote = Some(c),
            '(' | '[' => open.push(1),
            ')' | ']' => fan_out = fan_out.saturating_mul(open.pop().unwrap_or(1)),
            ',' => open.last_mut().into_iter().for_each(|selectors| *selectors += 1),
            '.' if before == '.' => descents += 1,
            '$' if at > 0 => return Err("`$` is allowed at the start only; use `@` in filters"),
            _ => {}
        }
        if open.len() > MAX_NESTING {
            return Err("brackets nested too deep; use a simpler path");
        }
        before = c;
    }
    if descents > 1 {
        return Err("more than one `..`; name the steps between");
    }
    if fan_out > MAX_FAN_OUT {
        return Err("too many selectors separated by commas; ask in several paths");
    }
    Ok(())
}

/// Values of one tree are identical if they have the same address.
fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}

/// Finds the spans of values by walking the tree that a path was followed in together with the spans of its text.
struct Spans {
    /// By the address of each requested value; empty until it is found.
    found: HashMap<usize, Range<usize>>,
}

impl Spans {
    /// Of members with the same name the last counts, as for the parser: it replaces what was found earlier.
    /// Recursion is bounded, since the parser accepts 128 levels.
    fn collect(&mut self, value: &Value, at: json::Value<'_, '_>, offset: usize) {
        if let Some(span) = self.found.get_mut(&address(value)) {
            *span = at.span().start + offset..at.span().end + offset;
        }
        match value {
            Value::Object(members) => {
                let pairs = at.members().filter_map(|(name, at)| Some((members.get(&*name.text())?, at)));
                pairs.for_each(|(value, at)| self.collect(value, at, offset));
            }
            Value::Array(items) => {
                items.iter().zip(at.items()).for_each(|(value, at)| self.collect(value, at, offset));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
