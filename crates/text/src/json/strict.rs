//! The strict parser: accepts exactly the grammar of RFC 8259 and reports the position of the first error. Does not
//! know what values mean.

use super::blocks::{BLOCK, Block, escaped};
use super::literal::{before, special};
use super::{Document, JsonError, JsonNode, Kind, MAX_DEPTH, MAX_VALUES};

impl<'t> Document<'t> {
    /// Parses a text of one JSON value.
    ///
    /// # Errors
    /// If the text is not valid JSON or nests containers deeper than [`MAX_DEPTH`].
    pub fn parse(text: &'t str) -> Result<Self, JsonError> {
        Self::parse_up_to(text, usize::MAX)
    }

    /// Parses untrusted text.
    ///
    /// # Errors
    /// As for [`Document::parse`], and if the text has more than [`MAX_VALUES`] values and names.
    pub fn parse_request(text: &'t str) -> Result<Self, JsonError> {
        Self::parse_up_to(text, MAX_VALUES)
    }

    fn parse_up_to(text: &'t str, max_values: usize) -> Result<Self, JsonError> {
        let fail = |(at, what): SyntaxFault| {
            let before = &text.as_bytes()[..at.min(text.len())];
            let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
            let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
            JsonError { what, at, line, column: before.len() - line_start + 1 }
        };
        if u32::try_from(text.len()).is_err() {
            return Err(fail((0, "more than 4 GiB")));
        }
        let nodes = Vec::with_capacity(text.len() / 64 + 16);
        let names = Vec::with_capacity(text.len() / 64 + 16);
        let mut scan = StrictScan { bytes: text.as_bytes(), at: 0, nodes, names, name: 0, max_values };
        scan.run().map_err(fail)?;
        Ok(Self { text, nodes: scan.nodes, names: scan.names, dense: Vec::new(), fields: false })
    }
}

/// Where parsing stopped, and why.
type SyntaxFault = (usize, &'static str);

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExpectedToken {
    Value,
    ValueOrEnd,
    Name,
    NameOrEnd,
    CommaOrEnd,
    Nothing,
}

struct StrictScan<'t> {
    bytes: &'t [u8],
    at: usize,
    nodes: Vec<JsonNode>,
    names: Vec<(u32, u32)>,
    /// The name of the next value, as in [`JsonNode`].
    name: u32,
    /// The maximum number of values and names.
    max_values: usize,
}

impl StrictScan<'_> {
    fn run(&mut self) -> Result<(), SyntaxFault> {
        let mut open: Vec<usize> = Vec::new();
        let mut next = ExpectedToken::Value;
        loop {
            self.skip_blanks();
            if self.nodes.len() + self.names.len() > self.max_values {
                return Err((self.at, "more than 2,097,152 values"));
            }
            let Some(&byte) = self.bytes.get(self.at) else {
                return if next == ExpectedToken::Nothing {
                    Ok(())
                } else {
                    Err((self.at, "the text ends before the value does"))
                };
            };
            next = match (next, byte) {
                (ExpectedToken::Nothing, _) => return Err((self.at, "unexpected text after the value")),
                (ExpectedToken::ValueOrEnd | ExpectedToken::CommaOrEnd, b']')
                | (ExpectedToken::NameOrEnd | ExpectedToken::CommaOrEnd, b'}') => {
                    self.close(&mut open, byte)?;
                    after_value(&open)
                }
                (ExpectedToken::CommaOrEnd, b',') => {
                    self.at += 1;
                    match open.last().map(|&node| self.nodes[node].kind) {
                        Some(Kind::Object) => ExpectedToken::Name,
                        _ => ExpectedToken::Value,
                    }
                }
                (ExpectedToken::CommaOrEnd, _) => return Err((self.at, "expected a comma or the end")),
                (ExpectedToken::Name | ExpectedToken::NameOrEnd, b'"') => {
                    self.name()?;
                    self.skip_blanks();
                    self.expect(b':', "expected a colon after the name")?;
                    ExpectedToken::Value
                }
                (ExpectedToken::Name | ExpectedToken::NameOrEnd, _) => {
                    return Err((self.at, "expected a name in quotes"));
                }
                (ExpectedToken::Value | ExpectedToken::ValueOrEnd, b'{' | b'[') => {
                    if open.len() == MAX_DEPTH {
                        return Err((self.at, "containers are nested more than 512 levels deep"));
                    }
                    open.push(self.nodes.len());
                    self.at += 1;
                    if byte == b'{' {
                        self.push(Kind::Object, self.at - 1);
                        ExpectedToken::NameOrEnd
                    } else {
                        self.push(Kind::Array, self.at - 1);
                        ExpectedToken::ValueOrEnd
                    }
                }
                (ExpectedToken::Value | ExpectedToken::ValueOrEnd, _) => {
                    self.scalar(byte)?;
                    after_value(&open)
                }
            };
        }
    }

    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), SyntaxFault> {
        if self.bytes.get(self.at) != Some(&byte) {
            return Err((self.at, what));
        }
        self.at += 1;
        Ok(())
    }

    /// Records a value from `start` to here. Offsets and counts fit because the text has fewer than 2³² bytes.
    fn push(&mut self, kind: Kind, start: usize) {
        let next = self.nodes.len() as u32 + 1;
        let (start, end, name) = (start as u32, self.at as u32, std::mem::take(&mut self.name));
        self.nodes.push(JsonNode { start, end, next, name, kind, irregular: false });
    }

    fn name(&mut self) -> Result<(), SyntaxFault> {
        let start = self.at;
        self.string()?;
        self.names.push((start as u32, self.at as u32));
        self.name = self.names.len() as u32;
        Ok(())
    }

    fn close(&mut self, open: &mut Vec<usize>, byte: u8) -> Result<(), SyntaxFault> {
        let kind = if byte == b'}' { Kind::Object } else { Kind::Array };
        let Some(node) = open.pop().filter(|&node| self.nodes[node].kind == kind) else {
            return Err((self.at, "unmatched closing bracket"));
        };
        self.at += 1;
        let next = self.nodes.len() as u32;
        self.nodes[node].end = self.at as u32;
        self.nodes[node].next = next;
        Ok(())
    }

    fn scalar(&mut self, byte: u8) -> Result<(), SyntaxFault> {
        match byte {
            b'"' => {
                let start = self.at;
                self.string()?;
                self.push(Kind::String, start);
                Ok(())
            }
            b't' => self.word("true", Kind::Bool),
            b'f' => self.word("false", Kind::Bool),
            b'n' => self.word("null", Kind::Null),
            b'-' | b'0'..=b'9' => self.number(),
            _ => Err((self.at, "expected a value")),
        }
    }

    fn word(&mut self, word: &str, kind: Kind) -> Result<(), SyntaxFault> {
        let start = self.at;
        if !self.bytes[start..].starts_with(word.as_bytes()) {
            return Err((start, "expected a value"));
        }
        self.at += word.len();
        self.push(kind, start);
        Ok(())
    }

    fn number(&mut self) -> Result<(), SyntaxFault> {
        let start = self.at;
        self.at += usize::from(self.bytes[start] == b'-');
        if self.bytes.get(self.at) == Some(&b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
        }
        self.push(Kind::Number, start);
        Ok(())
    }

    fn digits(&mut self) -> Result<(), SyntaxFault> {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at == start { Err((start, "expected a digit")) } else { Ok(()) }
    }

    /// Skips a literal, validating but not decoding it.
    fn string(&mut self) -> Result<(), SyntaxFault> {
        let start = self.at;
        let mut at = start + 1;
        loop {
            if let Some(eight) = self.bytes.get(at..).and_then(<[u8]>::first_chunk) {
                let plain = before(special(*eight));
                at += plain;
                if plain == eight.len() {
                    at = self.skip_blocks(at);
                    continue;
                }
            }
            match self.bytes.get(at) {
                None => return Err((start, "unterminated string")),
                Some(b'"') => break,
                Some(b'\\') => at = self.skip_blocks(at + 1 + self.escape(at + 1)?),
                Some(0..b' ') => return Err((at, "unescaped control character in a string")),
                Some(_) => at += 1,
            }
        }
        self.at = at + 1;
        Ok(())
    }

    /// The offset after those whole blocks from `at` on, in a string, that hold neither its end nor a fault, nor escapes of
    /// more than two bytes.
    fn skip_blocks(&self, mut at: usize) -> usize {
        while let Some(bytes) = self.bytes.get(at..).and_then(<[u8]>::first_chunk) {
            let block = Block::new(bytes);
            let (escaped, splits_escape) = escaped(block.equal(b'\\'));
            let unusual = block.controls() | (block.equal(b'"') & !escaped);
            if unusual != 0 || (escaped != 0 && escaped & !block.short_escapes() != 0) {
                break;
            }
            at += BLOCK - usize::from(splits_escape);
        }
        at
    }

    /// The length in bytes of the escape whose backslash precedes `at`.
    fn escape(&self, at: usize) -> Result<usize, SyntaxFault> {
        match self.bytes.get(at) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(1),
            Some(b'u') => match self.bytes.get(at + 1..at + 5) {
                Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => Ok(5),
                _ => Err((at, "expected four hexadecimal digits")),
            },
            _ => Err((at, "invalid escape")),
        }
    }
}

const fn after_value(open: &[usize]) -> ExpectedToken {
    if open.is_empty() { ExpectedToken::Nothing } else { ExpectedToken::CommaOrEnd }
}
