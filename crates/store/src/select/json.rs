//! Values addressed by a path, in the very bytes they have in the source: numbers keep their digits, strings their
//! escapes, objects their spacing. Knows JSON only.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json_path::JsonPath;

use super::{MAX_QUERY_BYTES, SelectError, shorten};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// The largest content that a path is followed into: its values take some ten times this in memory.
const MAX_JSON_BYTES: usize = 64 << 20;
/// The most values one path may lead to.
const MAX_MATCHES: usize = 100_000;
/// Deeper parentheses or brackets make the time to read a path grow without bound.
const MAX_NESTING: usize = 6;
/// How many times over a path may visit the content by naming several selectors in one bracket.
const MAX_FAN_OUT: usize = 64;

/// A path that is well-formed and takes time linear in the content.
#[derive(Debug, Clone)]
pub(crate) struct JsonQuery {
    text: String,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Pointer,
    Path(JsonPath),
}

impl JsonQuery {
    pub(crate) fn parse(text: &str) -> Result<Self, SelectError> {
        let bad = |reason: String| SelectError::BadPath { path: shorten(text), reason };
        if text.len() > MAX_QUERY_BYTES {
            return Err(bad(format!("{} bytes long, and at most {MAX_QUERY_BYTES} are taken", text.len())));
        }
        if text.starts_with('/') {
            return Ok(Self { text: text.to_owned(), kind: Kind::Pointer });
        }
        check_cost(text).map_err(|reason| bad(reason.to_owned()))?;
        match JsonPath::parse(text) {
            Ok(path) => Ok(Self { text: text.to_owned(), kind: Kind::Path(path) }),
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

    /// Where the values stand, in the order of the path; at least one.
    pub(crate) fn find(&self, source: &[u8]) -> Result<Vec<Range<usize>>, SelectError> {
        if source.len() > MAX_JSON_BYTES {
            let reason = format!("{} bytes, and at most {MAX_JSON_BYTES} are read", source.len());
            return Err(SelectError::NotJson { reason });
        }
        let length = source.len();
        let (source, shift) = as_one_value(source);
        let root: Value = serde_json::from_slice(&source)
            .map_err(|error| SelectError::NotJson { reason: error.to_string() })?;
        let values = match &self.kind {
            Kind::Pointer => root.pointer(&self.text).into_iter().collect(),
            Kind::Path(path) => path.query(&root).all(),
        };
        if values.len() > MAX_MATCHES {
            let reason =
                format!("leads to {} values, and at most {MAX_MATCHES} are given; narrow it", values.len());
            return Err(SelectError::BadPath { path: shorten(&self.text), reason });
        }
        let spans = spans(&source, &root, &values);
        let back = |span: &Range<usize>| {
            span.start.saturating_sub(shift)..span.end.saturating_sub(shift).min(length)
        };
        let found: Vec<_> = values.iter().filter_map(|value| spans.get(&address(value)).map(back)).collect();
        if found.is_empty() {
            return Err(SelectError::NothingThere { path: shorten(&self.text) });
        }
        Ok(found)
    }
}

/// The source without its byte order mark and, if it is JSON Lines, as the array of its lines; and how far every byte
/// stands behind its place in the original.
fn as_one_value(source: &[u8]) -> (Cow<'_, [u8]>, usize) {
    let mut source = Cow::Borrowed(source);
    if source.starts_with(BYTE_ORDER_MARK) {
        source.to_mut()[..BYTE_ORDER_MARK.len()].fill(b' ');
    }
    let mut lines = source.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let is_value = |line: &[u8]| serde_json::from_slice::<IgnoredAny>(line).is_ok();
    // Two lines that are values each: nothing that is one value has them.
    if !(lines.next().is_some_and(is_value) && lines.next().is_some_and(is_value)) {
        return (source, 0);
    }
    let mut array = Vec::with_capacity(source.len() + 2);
    array.push(b'[');
    array.extend_from_slice(source.trim_ascii_end());
    let mut blank = true; // so far on this line, seen from its end
    for byte in array[1..].iter_mut().rev() {
        match *byte {
            b'\n' if !blank => (*byte, blank) = (b',', true),
            b'\n' | b' ' | b'\t' | b'\r' => {}
            _ => blank = false,
        }
    }
    if let Some(comma) = array[1..].iter().position(|byte| !byte.is_ascii_whitespace())
        && array[1 + comma] == b','
    {
        array[1 + comma] = b' '; // the source begins with empty lines
    }
    array.push(b']');
    (Cow::Owned(array), 1)
}

/// Refuses paths whose evaluation is not linear in the content: they come from models as well as from people.
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
            '$' if at > 0 => return Err("`$` is taken at the start only; use `@` in filters"),
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

/// Two values of one tree are the same if they are in the same place in memory.
fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}

/// The way from the root to the wanted values, and nothing else.
struct Trail<'a> {
    /// The value here, if it is itself wanted.
    wanted: Option<usize>,
    members: BTreeMap<&'a str, Trail<'a>>,
    items: BTreeMap<usize, Trail<'a>>,
}

/// The trail through `value`, if anything in it is wanted. Recursion is bounded: the parser takes 128 levels.
fn trail<'a>(value: &'a Value, wanted: &HashMap<usize, ()>) -> Option<Trail<'a>> {
    let mut here = Trail {
        wanted: Some(address(value)).filter(|address| wanted.contains_key(address)),
        members: BTreeMap::new(),
        items: BTreeMap::new(),
    };
    match value {
        Value::Object(members) => {
            let members = members.iter();
            here.members =
                members.filter_map(|(key, value)| Some((key.as_str(), trail(value, wanted)?))).collect();
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            here.items = items.filter_map(|(at, value)| Some((at, trail(value, wanted)?))).collect();
        }
        _ => {}
    }
    (here.wanted.is_some() || !here.members.is_empty() || !here.items.is_empty()).then_some(here)
}

/// Where the wanted values of the tree stand in the source it was read from.
fn spans(source: &[u8], root: &Value, values: &[&Value]) -> HashMap<usize, Range<usize>> {
    let wanted = values.iter().map(|value| (address(value), ())).collect();
    let mut scan = Scan { source, at: 0, spans: HashMap::new() };
    if let Some(trail) = trail(root, &wanted) {
        scan.value(&trail);
    }
    scan.spans
}

/// One pass over a source that is known to be valid JSON.
struct Scan<'a> {
    source: &'a [u8],
    at: usize,
    spans: HashMap<usize, Range<usize>>,
}

impl Scan<'_> {
    fn peek(&mut self) -> Option<u8> {
        while matches!(self.source.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        self.source.get(self.at).copied()
    }

    /// Passes a value and notes the spans on its trail. Of members with one name the last counts, as for the parser.
    fn value(&mut self, trail: &Trail<'_>) {
        let first = self.peek();
        let start = self.at;
        match first {
            Some(b'{') if !trail.members.is_empty() => self.object(trail),
            Some(b'[') if !trail.items.is_empty() => self.array(trail),
            _ => self.skip(),
        }
        if let Some(address) = trail.wanted {
            self.spans.insert(address, start..self.at);
        }
    }

    fn object(&mut self, trail: &Trail<'_>) {
        self.at += 1;
        while self.peek().is_some_and(|byte| byte != b'}') {
            let start = self.at;
            self.skip();
            let key =
                self.source.get(start..self.at).and_then(|key| serde_json::from_slice::<String>(key).ok());
            self.peek();
            self.at += 1; // the colon
            self.step(key.and_then(|key| trail.members.get(key.as_str())));
        }
        self.at += 1;
    }

    fn array(&mut self, trail: &Trail<'_>) {
        self.at += 1;
        let mut index = 0;
        while self.peek().is_some_and(|byte| byte != b']') {
            self.step(trail.items.get(&index));
            index += 1;
        }
        self.at += 1;
    }

    /// Passes a value and the comma after it.
    fn step(&mut self, trail: Option<&Trail<'_>>) {
        match trail {
            Some(trail) => self.value(trail),
            None => self.skip(),
        }
        if self.peek() == Some(b',') {
            self.at += 1;
        }
    }

    /// Passes a value of any depth without looking at what it holds.
    fn skip(&mut self) {
        let mut depth = 0usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => self.string(),
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth = depth.saturating_sub(1);
                    self.at += 1;
                }
                b',' | b':' => self.at += 1,
                _ => {
                    let rest = self.source.get(self.at..).unwrap_or_default();
                    let end = rest.iter().position(|byte| b",:]}\" \t\r\n".contains(byte));
                    self.at += end.unwrap_or(rest.len()).max(1);
                }
            }
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.source.get(self.at) {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'"' => return,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
