//! Problems in documents, and how reading continues despite them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A problem in a document. Reading continues; the document is not changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ParseProblem {
    /// The line of the text, from 1.
    pub line: usize,
    /// What was expected and what was found, or what is ignored.
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

/// The result of reading a document that people may have edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedDocument<T> {
    /// The value; `None` if an essential part is missing.
    pub value: Option<T>,
    /// What was not understood, in line order. Empty for any unedited document.
    pub problems: Vec<ParseProblem>,
}

impl<T> ParsedDocument<T> {
    pub(super) fn new(value: Option<T>, mut problems: Vec<ParseProblem>) -> Self {
        problems.sort();
        problems.dedup();
        Self { value, problems }
    }

    /// Transforms the value.
    pub fn map<U>(self, map: impl FnOnce(T) -> U) -> ParsedDocument<U> {
        ParsedDocument { value: self.value.map(map), problems: self.problems }
    }
}
