//! What a model answered: read by format, checked against its schema, held to its gates.
//!
//! Knows recipes' output specifications; does not know models, retries or where an answer goes. Whole answers and
//! streamed ones take the same path, so that both are read alike.

mod citations;
mod gates;
mod json;
mod schema;
mod stream;
mod tagged;
mod yaml;

use serde_json::Value;

use crate::recipe::OutputSpec;

pub use gates::{Citation, CitationPlace, GateFailure, GateResult, Remedy, evaluate, repair_message};
pub use schema::{JsonSchemaDraft, Schema, SchemaError, Schemas, Violation};
pub use stream::{OutputEvent, OutputStream};

/// An answer that could be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// What schema and gates look at: the JSON or YAML value, the declared tags by name (hidden ones too), or the
    /// text as a string.
    pub value: Value,
    /// What a user may read: the text, the data as written, or of a tagged answer the text outside its tags.
    pub reply: String,
}

/// Reads a whole answer. The same as pushing it into an [`OutputStream`] in any pieces.
///
/// # Errors
/// The first thing that keeps the answer from being read, with its position.
pub fn parse(spec: &OutputSpec, answer: &str) -> Result<Parsed, OutputError> {
    let mut stream = OutputStream::new(spec);
    stream.push(answer.as_bytes());
    stream.finish()
}

/// Why an answer cannot be read. The messages are written for the model, which sees them when it tries again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutputError {
    /// Nothing but white space.
    #[error("the answer is empty; expected {expected}")]
    Empty {
        /// What should be there.
        expected: &'static str,
    },
    /// Bytes that are not text.
    #[error("byte {offset} of the answer is not UTF-8; expected text in UTF-8")]
    NotUtf8 {
        /// The first bad byte, from 0.
        offset: usize,
    },
    /// Prose where data should be.
    #[error("no {format} value found in the answer; expected exactly one {format} value and nothing else")]
    NoValue {
        /// `JSON`.
        format: &'static str,
    },
    /// More than one value, so that none can be chosen.
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
    /// Not well formed.
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
        /// What is wrong there.
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
    /// A closing tag without its opening tag.
    #[error("</{name}> at byte {offset} closes nothing; expected <{name}> before it")]
    UnopenedTag {
        /// The tag.
        name: String,
        /// Its place, in bytes from 0.
        offset: usize,
    },
    /// A second occurrence of a tag that may occur only once.
    #[error("<{name}> stands a second time at byte {offset}; expected it at most once")]
    RepeatedTag {
        /// The tag.
        name: String,
        /// The place of the second one, in bytes from 0.
        offset: usize,
    },
    /// A required tag is not there.
    #[error("<{name}>…</{name}> is missing; expected it in every answer")]
    MissingTag {
        /// The tag.
        name: String,
    },
    /// The content of a tag is not made of fields.
    #[error("line {line} of <{name}> is {problem}; expected each field once, as a line `Field: value`")]
    Field {
        /// The tag.
        name: String,
        /// Line within the tag, from 1.
        line: usize,
        /// What is wrong there.
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

/// At most `max` characters of `text`, marked where it was cut. For messages, which quote hostile text.
fn shorten(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
