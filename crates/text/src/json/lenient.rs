//! The lenient parser: one pass, no recursion, no copying, and it never fails.
//!
//! Knows the shape of JSON and where a text departs from it; does not know what a value means. Truncated and
//! malformed texts are read as far as their structure goes. Anything outside the grammar marks the enclosing values
//! as irregular, and irregular values should only be shown as written.
//!
//! It has its own loop: the strict parser stops at the first error and so always knows what may come next, while this
//! one has to decide for each byte what it can be. The tree, its nodes and the scanning of literals are shared.

use super::literal::end_of_string;
use super::{Document, JsonNode, Kind};

impl<'t> Document<'t> {
    /// Parses any text, however malformed or truncated; the root is a [`Kind::Stream`]. `None` if it is longer than 4
    /// GiB.
    pub fn parse_lenient(text: &'t str) -> Option<Self> {
        u32::try_from(text.len()).ok()?;
        let mut scan = LenientScan::new(text);
        scan.run();
        Some(scan.finish())
    }
}

/// What may come next in a container.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    ValueOrEnd,
    Value,
    CommaOrEnd,
}

struct OpenContainer {
    node: usize,
    next: Expected,
    spaces: usize,
    /// The name of the next member, as in [`JsonNode`].
    name: u32,
}

struct LenientScan<'t> {
    text: &'t str,
    at: usize,
    /// Bytes of white space between values so far.
    spaces: usize,
    nodes: Vec<JsonNode>,
    names: Vec<(u32, u32)>,
    dense: Vec<u32>,
    open: Vec<OpenContainer>,
    /// The text violated the grammar here; merely ending early does not count.
    faulty: bool,
}

impl<'t> LenientScan<'t> {
    fn new(text: &'t str) -> Self {
        let values = text.len() / 16 + 2;
        let mut scan = Self {
            text,
            at: 0,
            spaces: 0,
            nodes: Vec::with_capacity(values),
            names: Vec::with_capacity(values),
            dense: Vec::with_capacity(values),
            open: Vec::new(),
            faulty: false,
        };
        scan.push(Kind::Stream, 0);
        scan.open.push(OpenContainer { node: 0, next: Expected::ValueOrEnd, spaces: 0, name: 0 });
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

    fn finish(mut self) -> Document<'t> {
        while self.open.len() > 1 {
            self.mark_irregular();
            self.pop();
        }
        self.pop();
        Document { text: self.text, nodes: self.nodes, names: self.names, dense: self.dense, fields: false }
    }

    fn top(&mut self) -> Option<&mut OpenContainer> {
        self.open.last_mut()
    }

    fn mark_irregular(&mut self) {
        self.faulty |= self.at < self.text.len();
        if let Some(open) = self.open.last() {
            self.nodes[open.node].irregular = true;
        }
    }

    fn push(&mut self, kind: Kind, start: usize) -> usize {
        let (name, next) = match self.top() {
            Some(open) => {
                (std::mem::take(&mut open.name), std::mem::replace(&mut open.next, Expected::CommaOrEnd))
            }
            None => (0, Expected::Value),
        };
        if let Some(&OpenContainer { node: parent, .. }) = self.open.last() {
            let is_object = self.nodes[parent].kind == Kind::Object;
            let is_stream = self.nodes[parent].kind == Kind::Stream;
            if (name != 0) != is_object || next == Expected::CommaOrEnd && !is_stream {
                self.mark_irregular();
            }
        }
        let (node, start) = (self.nodes.len(), start as u32);
        self.nodes.push(JsonNode { start, end: start, next: node as u32 + 1, name, kind, irregular: false });
        self.dense.push(0);
        node
    }

    fn leaf(&mut self, kind: Kind, end: usize) {
        // Advance first: a value that the end of the text cuts off is not faulty.
        let start = std::mem::replace(&mut self.at, end);
        let node = self.push(kind, start);
        self.nodes[node].end = end as u32;
        self.dense[node] = (end - start) as u32;
    }

    fn open(&mut self, kind: Kind) {
        let node = self.push(kind, self.at);
        self.open.push(OpenContainer { node, next: Expected::ValueOrEnd, spaces: self.spaces, name: 0 });
        self.at += 1;
    }

    fn close(&mut self, kind: Kind) {
        let fits = self.open.last().is_some_and(|open| {
            self.nodes[open.node].kind == kind && open.next != Expected::Value && open.name == 0
        });
        if !fits {
            self.mark_irregular();
        }
        self.at += 1;
        if self.open.len() > 1 {
            self.pop();
        }
    }

    /// Closes the innermost open value here.
    fn pop(&mut self) {
        let Some(open) = self.open.pop() else { return };
        let next = self.nodes.len() as u32;
        let (end, spaces) = (self.at, self.spaces - open.spaces);
        let node = &mut self.nodes[open.node];
        node.end = end as u32;
        node.next = next;
        self.dense[open.node] = (end - node.start as usize).saturating_sub(spaces) as u32;
        node.irregular |= open.name != 0;
        let irregular = node.irregular;
        if let Some(parent) = self.open.last().filter(|_| irregular) {
            self.nodes[parent.node].irregular = true;
        }
    }

    fn comma(&mut self) {
        self.at += 1;
        let in_stream = self.open.len() == 1;
        match self.top() {
            Some(open) if open.next == Expected::CommaOrEnd && open.name == 0 && !in_stream => {
                open.next = Expected::Value;
            }
            _ => self.mark_irregular(),
        }
    }

    fn string(&mut self) {
        let bytes = self.text.as_bytes();
        let Some(end) = end_of_string(bytes, self.at + 1) else {
            self.leaf(Kind::String, bytes.len());
            return self.mark_irregular();
        };
        let blanks = bytes[end..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let names = bytes.get(end + blanks) == Some(&b':');
        let in_object = self.open.last().is_some_and(|open| {
            self.nodes[open.node].kind == Kind::Object && open.name == 0 && open.next != Expected::CommaOrEnd
        });
        if !(names && in_object) {
            return self.leaf(Kind::String, end);
        }
        self.names.push((self.at as u32, end as u32));
        let name = self.names.len() as u32;
        if let Some(open) = self.top() {
            open.name = name;
        }
        self.spaces += blanks;
        self.at = end + blanks + 1;
    }

    fn word(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        let len = rest.iter().position(|&byte| ENDS_WORD[usize::from(byte)]).unwrap_or(rest.len());
        let word = &rest[..len];
        let kind = match word {
            b"true" | b"false" => Kind::Bool,
            b"null" => Kind::Null,
            _ if is_number(word) => Kind::Number,
            _ => Kind::Word,
        };
        self.leaf(kind, self.at + len);
        if kind == Kind::Word {
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

/// Whether `word` consists of digits with optional signs, points and exponents. Laxer than the grammar about their
/// order.
pub fn is_number(word: &[u8]) -> bool {
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    digits.first().is_some_and(u8::is_ascii_digit)
        && digits.last().is_some_and(u8::is_ascii_digit)
        && digits.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'))
}

/// How many bytes of a text are sampled to decide whether it is JSON.
const SAMPLE: usize = 64 << 10;
/// A text with fewer values may just be words in brackets.
const MIN_VALUES: usize = 4;

/// Whether the start of `text` is well-formed JSON with more content than a word in brackets.
pub fn looks_like(text: &str) -> bool {
    let body = text.trim_start_matches('\u{feff}').trim_start();
    if !body.starts_with(['{', '[']) {
        return false;
    }
    let mut scan = LenientScan::new(body[..body.floor_char_boundary(SAMPLE)].trim_end());
    scan.run();
    !scan.faulty && scan.nodes.len() > MIN_VALUES
}

#[cfg(test)]
#[path = "lenient_tests.rs"]
mod tests;
