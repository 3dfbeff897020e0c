//! What could not be understood in a document, and reading in spite of it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A defect of a document. Reading continues; the document is not changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ParseProblem {
    /// In the text that was read, from 1.
    pub line: usize,
    /// What was expected and what was found, or what is not read.
    pub message: String,
}

impl ParseProblem {
    pub(super) fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

impl fmt::Display for ParseProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// What was read of a document that people may have edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedDocument<T> {
    /// The value; none if something is missing without which it has no meaning.
    pub value: Option<T>,
    /// What was not understood, in the order of the lines. Empty for every document as it was written.
    pub problems: Vec<ParseProblem>,
}

impl<T> ParsedDocument<T> {
    pub(super) fn new(value: Option<T>, mut problems: Vec<ParseProblem>) -> Self {
        problems.sort();
        problems.dedup();
        Self { value, problems }
    }

    /// The same with another value.
    pub fn map<U>(self, map: impl FnOnce(T) -> U) -> ParsedDocument<U> {
        ParsedDocument { value: self.value.map(map), problems: self.problems }
    }
}
