//! A text's values as spans: one pass, no recursion, nothing copied, nothing refused.
//!
//! Knows the shape of JSON and how far a text departs from it; does not know what a value means. Truncated and broken
//! texts are read as far as their shape goes; what does not fit the grammar makes the values around it irregular,
//! and irregular values are only ever shown unchanged.

use std::ops::Range;

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The whole text: one value or several after each other.
    Stream,
    Object,
    Array,
    Text,
    Number,
    /// `true`, `false`, `null`, and anything else without quotes.
    Word,
}

/// A value; its descendants follow it in the order of the text.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(super) kind: Kind,
    /// The value departs from the grammar, or holds one that does.
    pub(super) irregular: bool,
    start: u32,
    end: u32,
    key: (u32, u32),
    /// How many values there are in it, itself included.
    size: u32,
    /// Bytes without the white space between values.
    dense: u32,
    pub(super) children: u32,
}

/// All values of a text.
#[derive(Debug)]
pub(crate) struct Tree<'t> {
    pub(super) text: &'t str,
    nodes: Vec<Node>,
}

impl<'t> Tree<'t> {
    /// Reads `text`; none if it is too long for the spans.
    pub(super) fn of(text: &'t str) -> Option<Self> {
        u32::try_from(text.len()).ok()?;
        let mut scan = Scan::new(text);
        scan.run();
        Some(Self { text, nodes: scan.finish() })
    }

    /// A table with named fields, as an array of objects would be: for texts that are no JSON. The first row of
    /// `rows` names the columns; all are fields with or without quotes, in the order of the text.
    pub(crate) fn of_rows(text: &'t str, rows: &[Vec<Range<usize>>]) -> Option<Self> {
        u32::try_from(text.len()).ok()?;
        let at = |at: usize| at as u32; // checked above: no place in the text is larger
        let (names, rows) = rows.split_first()?;
        let plain = Node {
            kind: Kind::Array,
            irregular: false,
            start: 0,
            end: at(text.len()),
            key: (0, 0),
            size: 1,
            dense: at(text.len()),
            children: 1,
        };
        let mut nodes = vec![Node { kind: Kind::Stream, ..plain.clone() }, plain.clone()];
        for row in rows {
            let (Some(first), Some(last)) = (row.first(), row.last()) else { continue };
            let fields = row.iter().zip(names);
            let (start, end) = (at(first.start), at(last.end));
            let irregular = row.len() != names.len();
            let children = at(row.len().min(names.len()));
            let dense = end - start;
            let object = Node {
                kind: Kind::Object,
                irregular,
                start,
                end,
                size: children + 1,
                dense,
                children,
                ..plain.clone()
            };
            nodes.push(object);
            for (field, name) in fields {
                let (start, end) = (at(field.start), at(field.end));
                let kind = match text[field.clone()].parse::<f64>() {
                    Ok(number) if number.is_finite() => Kind::Number,
                    _ => Kind::Text,
                };
                let key = (at(name.start), at(name.end));
                nodes.push(Node {
                    kind,
                    start,
                    end,
                    key,
                    size: 1,
                    dense: end - start,
                    children: 0,
                    ..plain.clone()
                });
            }
            nodes[1].irregular |= irregular;
            nodes[1].children += 1;
        }
        nodes[1].children -= 1;
        let size = at(nodes.len());
        nodes[0].size = size;
        nodes[1].size = size - 1;
        Some(Self { text, nodes })
    }

    pub(super) fn node(&self, node: usize) -> &Node {
        &self.nodes[node]
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The last value that starts at or before `place`.
    pub(super) fn at(&self, place: usize) -> usize {
        self.nodes.partition_point(|node| node.start as usize <= place).saturating_sub(1)
    }

    pub(super) fn span(&self, node: usize) -> Range<usize> {
        let Node { start, end, .. } = self.nodes[node];
        start as usize..end as usize
    }

    pub(super) fn raw(&self, node: usize) -> &'t str {
        &self.text[self.span(node)]
    }

    /// Where the value appears, without the quotes of a string.
    pub(super) fn inner(&self, node: usize) -> Range<usize> {
        let span = self.span(node);
        if unquoted(&self.text[span.clone()]).len() == span.len() {
            span
        } else {
            span.start + 1..span.end - 1
        }
    }

    pub(super) fn dense(&self, node: usize) -> usize {
        self.nodes[node].dense as usize
    }

    /// Where the name of a member appears, quotes included; empty for items of arrays.
    pub(super) fn key_span(&self, node: usize) -> Range<usize> {
        let (start, end) = self.nodes[node].key;
        start as usize..end as usize
    }

    /// The name of a member unchanged, without its quotes.
    pub(super) fn key(&self, node: usize) -> &'t str {
        unquoted(&self.text[self.key_span(node)])
    }

    pub(super) fn is_container(&self, node: usize) -> bool {
        matches!(self.nodes[node].kind, Kind::Stream | Kind::Object | Kind::Array)
    }

    /// The value after `node` and everything in it.
    pub(super) fn after(&self, node: usize) -> usize {
        node + self.nodes[node].size as usize
    }

    pub(super) fn children(&self, node: usize) -> impl Iterator<Item = usize> + use<'_, 't> {
        let end = self.after(node);
        let mut next = node + 1;
        std::iter::from_fn(move || {
            let child = next;
            (child < end).then(|| {
                next = self.after(child);
                child
            })
        })
    }

    /// The places of all values without parts in `node`, in order.
    pub(super) fn leaves(&self, node: usize) -> impl Iterator<Item = usize> + use<'_, 't> {
        (node..self.after(node)).filter(|&inner| !self.is_container(inner))
    }
}

/// `raw` without the quotes around it.
pub(super) fn unquoted(raw: &str) -> &str {
    raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(raw)
}

/// What may appear next in a container.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    ValueOrEnd,
    Value,
    CommaOrEnd,
}

struct Open {
    node: usize,
    next: Next,
    spaces: usize,
    key: Option<(u32, u32)>,
}

struct Scan<'t> {
    text: &'t str,
    at: usize,
    /// White space between values so far.
    spaces: usize,
    nodes: Vec<Node>,
    open: Vec<Open>,
    /// Something appeared where it must not; a text that merely ends too early is not faulty.
    faulty: bool,
}

impl<'t> Scan<'t> {
    fn new(text: &'t str) -> Self {
        let mut scan = Self { text, at: 0, spaces: 0, nodes: Vec::new(), open: Vec::new(), faulty: false };
        scan.nodes.reserve(text.len() / 16 + 2);
        scan.push(Kind::Stream, 0);
        scan.open.push(Open { node: 0, next: Next::ValueOrEnd, spaces: 0, key: None });
        if text.starts_with('\u{feff}') {
            scan.at = '\u{feff}'.len_utf8();
            scan.spaces = scan.at;
        }
        scan
    }

    fn run(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b' ' | b'\n' | b'\r' | b'\t' => {
                    self.at += 1;
                    self.spaces += 1;
                }
                b'"' => self.string(),
                b'{' | b'[' => self.open(if byte == b'{' { Kind::Object } else { Kind::Array }),
                b'}' | b']' => self.close(if byte == b'}' { Kind::Object } else { Kind::Array }),
                b',' => self.comma(),
                b':' => {
                    self.at += 1;
                    self.mark_irregular();
                }
                _ => self.word(),
            }
        }
    }

    fn finish(mut self) -> Vec<Node> {
        while self.open.len() > 1 {
            self.mark_irregular();
            self.pop();
        }
        self.pop();
        self.nodes
    }

    fn top(&mut self) -> Option<&mut Open> {
        self.open.last_mut()
    }

    fn mark_irregular(&mut self) {
        self.faulty |= self.at < self.text.len();
        if let Some(open) = self.open.last() {
            self.nodes[open.node].irregular = true;
        }
    }

    fn push(&mut self, kind: Kind, start: usize) -> usize {
        let (key, next) = match self.top() {
            Some(open) => (open.key.take(), std::mem::replace(&mut open.next, Next::CommaOrEnd)),
            None => (None, Next::Value),
        };
        if let Some(&Open { node: parent, .. }) = self.open.last() {
            let is_object = self.nodes[parent].kind == Kind::Object;
            let is_stream = self.nodes[parent].kind == Kind::Stream;
            self.nodes[parent].children += 1;
            if key.is_some() != is_object || next == Next::CommaOrEnd && !is_stream {
                self.mark_irregular();
            }
        }
        self.nodes.push(Node {
            kind,
            irregular: false,
            start: start as u32,
            end: start as u32,
            key: key.unwrap_or_default(),
            size: 1,
            dense: 0,
            children: 0,
        });
        self.nodes.len() - 1
    }

    fn leaf(&mut self, kind: Kind, end: usize) {
        let start = self.at;
        let node = self.push(kind, start);
        self.nodes[node].end = end as u32;
        self.nodes[node].dense = (end - start) as u32;
        self.at = end;
    }

    fn open(&mut self, kind: Kind) {
        let node = self.push(kind, self.at);
        self.open.push(Open { node, next: Next::ValueOrEnd, spaces: self.spaces, key: None });
        self.at += 1;
    }

    fn close(&mut self, kind: Kind) {
        let fits = self.open.last().is_some_and(|open| {
            self.nodes[open.node].kind == kind && open.next != Next::Value && open.key.is_none()
        });
        if !fits {
            self.mark_irregular();
        }
        self.at += 1;
        if self.open.len() > 1 {
            self.pop();
        }
    }

    /// Ends the innermost open value here.
    fn pop(&mut self) {
        let Some(open) = self.open.pop() else { return };
        let size = (self.nodes.len() - open.node) as u32;
        let (end, spaces) = (self.at, self.spaces - open.spaces);
        let node = &mut self.nodes[open.node];
        node.end = end as u32;
        node.size = size;
        node.dense = (end - node.start as usize).saturating_sub(spaces) as u32;
        node.irregular |= open.key.is_some();
        let irregular = node.irregular;
        if let Some(parent) = self.open.last().filter(|_| irregular) {
            self.nodes[parent.node].irregular = true;
        }
    }

    fn comma(&mut self) {
        self.at += 1;
        let in_stream = self.open.len() == 1;
        match self.top() {
            Some(open) if open.next == Next::CommaOrEnd && open.key.is_none() && !in_stream => {
                open.next = Next::Value;
            }
            _ => self.mark_irregular(),
        }
    }

    fn string(&mut self) {
        let bytes = self.text.as_bytes();
        let Some(end) = end_of_string(bytes, self.at + 1) else {
            self.leaf(Kind::Text, bytes.len());
            return self.mark_irregular();
        };
        let blanks = bytes[end..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let names = bytes.get(end + blanks) == Some(&b':');
        let in_object = self.open.last().is_some_and(|open| {
            self.nodes[open.node].kind == Kind::Object && open.key.is_none() && open.next != Next::CommaOrEnd
        });
        if !(names && in_object) {
            return self.leaf(Kind::Text, end);
        }
        let key = (self.at as u32, end as u32);
        if let Some(open) = self.top() {
            open.key = Some(key);
        }
        self.spaces += blanks;
        self.at = end + blanks + 1;
    }

    fn word(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        let len = rest.iter().position(|&byte| ENDS_WORD[usize::from(byte)]).unwrap_or(rest.len());
        let word = &rest[..len];
        let kind = if is_number(word) { Kind::Number } else { Kind::Word };
        self.leaf(kind, self.at + len);
        if kind == Kind::Word && !matches!(word, b"true" | b"false" | b"null") {
            self.mark_irregular();
        }
    }
}

/// Which bytes end a number or word.
const ENDS_WORD: [bool; 256] = {
    let mut table = [false; 256];
    let bytes = *b",:{}[]\" \n\r\t";
    let mut at = 0;
    while at < bytes.len() {
        table[bytes[at] as usize] = true;
        at += 1;
    }
    table
};

/// The byte after the quote that closes a string; most are short, so eight bytes are looked at together.
fn end_of_string(bytes: &[u8], from: usize) -> Option<usize> {
    const LOWEST: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHEST: u64 = LOWEST << 7;
    let has = |eight: u64, byte: u8| {
        let zeros = eight ^ (LOWEST * u64::from(byte));
        zeros.wrapping_sub(LOWEST) & !zeros & HIGHEST
    };
    let mut at = from;
    while let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let eight = u64::from_le_bytes(*eight);
        let signs = has(eight, b'"') | has(eight, b'\\');
        if signs == 0 {
            at += 8;
            continue;
        }
        // The lowest is right; those above it may be carries.
        at += signs.trailing_zeros() as usize / 8 + 1;
        if bytes[at - 1] == b'"' {
            return Some(at);
        }
        at += 1;
    }
    while let Some(&byte) = bytes.get(at) {
        at += if byte == b'\\' { 2 } else { 1 };
        if byte == b'"' {
            return Some(at);
        }
    }
    None
}

/// Digits with an optional sign, point and exponent.
pub(super) fn is_number(word: &[u8]) -> bool {
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    digits.first().is_some_and(u8::is_ascii_digit)
        && digits.last().is_some_and(u8::is_ascii_digit)
        && digits.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'))
}

/// How much of a text is looked at to see whether it is JSON, in bytes.
const SAMPLE: usize = 64 << 10;
/// A text of fewer values may be a word in brackets.
const MIN_VALUES: usize = 4;

/// Whether the beginning of `text` is JSON without a fault, and holds more than a word in brackets.
pub(super) fn looks_like(text: &str) -> bool {
    let body = text.trim_start_matches('\u{feff}').trim_start();
    if !body.starts_with(['{', '[']) {
        return false;
    }
    let mut scan = Scan::new(&body[..body.floor_char_boundary(SAMPLE)]);
    scan.run();
    !scan.faulty && scan.nodes.len() > MIN_VALUES
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
