//! The user's memory: records in `memory/*.json` and their readable renderings (R1-7, C76, C103).
//!
//! Reads and writes both together, so that what people change in `facts.md` and `preferences.md` is read back before
//! anything is added. Knows the documents' own writers; knows no phase.

mod create;
mod notebook;
mod query;

use super::spec::Tool;

/// The tools of memory.
pub(super) fn tools() -> Vec<Box<dyn Tool>> {
    vec![Box::new(query::Query::new()), Box::new(create::Create::new())]
}
