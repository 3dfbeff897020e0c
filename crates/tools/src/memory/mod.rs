//! The user's memory: records in `memory/*.json` and their readable renderings (R1-7, C76, C103).
//!
//! Reads and writes both together, so that edits of `facts.md` and `preferences.md` by people are read back before
//! anything is added. Knows the documents' own writers; knows no phase.

mod create;
mod notebook;
mod query;

use schemars::JsonSchema;
use serde::Deserialize;

use super::spec::Tool;
use super::typed::typed;

/// The tools of memory.
pub(super) fn tools() -> Vec<Box<dyn Tool>> {
    vec![typed(query::MemoryQuery), typed(create::MemoryCreate)]
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum MemoryKind {
    Fact,
    Preference,
}
