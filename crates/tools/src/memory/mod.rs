//! The user's memory: records in `memory/*.json` and their readable renderings (R1-7, C76, C103).
//!
//! Reads and writes both together, so that edits of `facts.md` and `preferences.md` by people are read back before
//! anything is added. Knows the documents' own writers; knows no phase.

mod create;
mod notebook;
mod query;
mod sharing;

use larder_store::{StoreError, UserDocuments};
use larder_vault::lifecycle::{TrackRecord, promoted};
use larder_vault::{DocumentTime, FactRecord, Ttl, VaultPath};
use schemars::JsonSchema;
use serde::Deserialize;

use self::notebook::{FactBook, PreferenceBook};
pub use self::sharing::{ShareCandidate, ShareError, publish, share_candidates};
use super::spec::{Tool, ToolError};
use super::typed::typed;

/// The tools of memory.
pub(super) fn tools() -> Vec<Box<dyn Tool>> {
    vec![typed(query::MemoryQuery), typed(create::MemoryCreate)]
}

/// Attempts if someone else is writing concurrently.
const TRIES: usize = 4;

/// Counts a use of these facts by an answer that held. A new fact that has earned it counts for its user from then on
/// (R1-12.6 to R1-12.8).
///
/// # Errors
/// The records cannot be read or written.
pub fn record_fact_uses(
    documents: &UserDocuments,
    now: DocumentTime,
    ids: &[String],
) -> Result<(), ToolError> {
    let mut tries = 1;
    loop {
        let mut book = FactBook::open(documents, now)?;
        for fact in book.facts.iter_mut().filter(|fact| ids.iter().any(|id| id == fact.id.as_str())) {
            fact.uses = fact.uses.saturating_add(1);
            fact.scope = promoted(fact.scope, &standing(fact, now));
        }
        match book.write(documents, now) {
            Err(ToolError::Store(StoreError::Changed { .. })) if tries < TRIES => tries += 1,
            written => return written,
        }
    }
}

/// Removes the links of memory to a document that will never be there, such as that of a dropped turn. What was learned
/// stays.
///
/// # Errors
/// The records cannot be read or written.
pub fn forget_source(
    documents: &UserDocuments,
    now: DocumentTime,
    source: &VaultPath,
) -> Result<(), ToolError> {
    let mut tries = 1;
    loop {
        match without_source(documents, now, source) {
            Err(ToolError::Store(StoreError::Changed { .. })) if tries < TRIES => tries += 1,
            written => return written,
        }
    }
}

fn without_source(documents: &UserDocuments, now: DocumentTime, source: &VaultPath) -> Result<(), ToolError> {
    let is_gone = |known: &Option<VaultPath>| known.as_ref() == Some(source);
    let mut facts = FactBook::open(documents, now)?;
    let mut has_changed = false;
    for fact in facts.facts.iter_mut().filter(|fact| is_gone(&fact.source)) {
        (fact.source, has_changed) = (None, true);
    }
    if has_changed {
        facts.write(documents, now)?;
    }
    let mut preferences = PreferenceBook::open(documents, now)?;
    has_changed = false;
    for preference in preferences.preferences.iter_mut().filter(|preference| is_gone(&preference.source)) {
        (preference.source, has_changed) = (None, true);
    }
    if has_changed {
        preferences.write(documents, now)?;
    }
    Ok(())
}

fn standing(fact: &FactRecord, now: DocumentTime) -> TrackRecord {
    TrackRecord {
        trust: fact.confidence,
        uses: fact.uses,
        age: now.seconds_since(fact.created_at),
        evergreen: fact.ttl == Ttl::Evergreen,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum MemoryKind {
    Fact,
    Preference,
}
