//! Model output: parsed by format, validated against its schema, checked by its gates.
//!
//! Knows recipes' output specifications; does not know models, retries or where an answer goes. Complete and streamed
//! answers take the same path, so both are parsed alike.

mod citations;
mod gates;
mod grammar;
mod json;
mod schema;
mod stream;
mod tagged;
mod yaml;

use serde_json::Value;

use crate::recipe::OutputSpec;

pub use gates::{Citation, CitationPlace, GateFailure, GateResult, Remedy, evaluate, repair_message};
pub use grammar::grammar;
pub use json::Strict as StrictJson;
pub use schema::{JsonSchemaDraft, Schema, SchemaError, Schemas, Violation};
pub use stream::{OutputEvent, OutputStream};

/// A parsed answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The input of schema and gates: the JSON or YAML value, the declared tags by name (hidden ones too), or the
    /// text as a string.
    pub value: Value,
    /// The part a user may read: the text, the data as written, or in a tagged answer the text outside its tags.
    pub reply: String,
}

/// Parses a complete answer. Equivalent to pushing it into an [`OutputStream`] in any pieces.
///
/// # Errors
/// The first problem that keeps the answer from being parsed, with its position.
pub fn parse(spec: &OutputSpec, answer: &str) -> Result<Parsed, OutputError> {
    let mut stream = OutputStream::new(spec);
    stream.push(answer.as_bytes());
    stream.finish()
}

/// What can be read of an answer that does not parse, for one whose text a user has already seen: the tags that are whole,
/// the first of repeated ones, and the text outside of tags.
pub fn salvage(spec: &OutputSpec, answer: &str) -> Parsed {
    let mut stream = OutputStream::new(spec);
    stream.push(answer.as_bytes());
    stream.salvage()
}

/// Why an answer cannot be parsed. The messages are written for the model, which sees them when it tries again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutputError {
    /// The answer is empty or white space.
    #[error("the answer is empty; expected {expected}")]
    Empty {
        /// What was expected.
        expected: &'static str,
    },
    /// The answer is not valid UTF-8.
    #[error("byte {offset} of the answer is not UTF-8; expected text in UTF-8")]
    NotUtf8 {
        /// Offset of the first invalid byte, from 0.
        offset: usize,
    },
    /// There is prose where data was expected.
    #[error("no {format} value found in the answer; expected exactly one {format} value and nothing else")]
    NoValue {
        /// `JSON`.
        format: &'static str,
    },
    /// There are several values, so none can be chosen.
    #[error(
        "a second {format} value starts at line {line}, column {column}; expected exactly one {format} value"
    )]
    SeveralValues {
        /// `JSON`.
        format: &'static str,
        /// Line of the answer, from 1.
        line: usize,
        /// Character of the line, from 1.
        column: usize,
    },
    /// The value is malformed.
    #[error(
        "{format} error at line {line}, column {column}: {problem}; expected exactly one valid {format} value"
    )]
    Syntax {
        /// `JSON` or `YAML`.
        format: &'static str,
        /// Line of the answer, from 1.
        line: usize,
        /// Character of the line, from 1.
        column: usize,
        /// What is wrong.
        problem: String,
    },
    /// The answer ends inside a tag.
    #[error("<{name}>, opened at byte {offset}, is never closed; expected </{name}> before the answer ends")]
    UnclosedTag {
        /// The tag.
        name: String,
        /// Where it was opened, in bytes from 0.
        offset: usize,
    },
    /// A closing tag has no opening tag.
    #[error("</{name}> at byte {offset} closes nothing; expected <{name}> before it")]
    UnopenedTag {
        /// The tag.
        name: String,
        /// Its byte offset, from 0.
        offset: usize,
    },
    /// A tag that may occur only once is repeated.
    #[error("<{name}> stands a second time at byte {offset}; expected it at most once")]
    RepeatedTag {
        /// The tag.
        name: String,
        /// Byte offset of the second one, from 0.
        offset: usize,
    },
    /// A required tag is missing.
    #[error("<{name}>…</{name}> is missing; expected it in every answer")]
    MissingTag {
        /// The tag.
        name: String,
    },
    /// The content of a tag is not a list of fields.
    #[error("line {line} of <{name}> is {problem}; expected each field once, as a line `Field: value`")]
    Field {
        /// The tag.
        name: String,
        /// Line within the tag, from 1.
        line: usize,
        /// What is wrong.
        problem: &'static str,
    },
}

/// Line and column of a byte offset, both from 1; the column counts characters.
fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(offset)];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
    (line, before[line_start..].chars().count() + 1)
}

/// At most `max` characters of `text`, with a mark where it was cut. For messages that quote untrusted text.
fn shorten(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
