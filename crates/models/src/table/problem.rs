//! What can be wrong with a model table, and where. Knows no TOML.

use std::fmt;

use serde::Serialize;

/// The kind of a problem; stable across versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum TableProblemCode {
    /// The file is not TOML.
    M001,
    /// A key that Larder does not know.
    M002,
    /// A value of the wrong type, or outside its range.
    M003,
    /// A key that is missing.
    M004,
    /// A model, layer or table that does not exist.
    M005,
    /// Values that contradict each other.
    M006,
    /// A secret in the file.
    M007,
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableProblem {
    /// Its kind.
    pub code: TableProblemCode,
    /// Line in `larder.toml`, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub help: String,
}

impl fmt::Display for TableProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "larder.toml:{}:{}: {:?}: {}", self.line, self.column, self.code, self.message)?;
        if !self.help.is_empty() {
            write!(f, "\n  help: {}", self.help)?;
        }
        Ok(())
    }
}

/// All problems of a table, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct Problems(pub Vec<TableProblem>);
