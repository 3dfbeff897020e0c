//! The record of everything that was considered, for the turn's receipt. Knows no documents.

use serde::{Deserialize, Serialize};

/// Entries of one kind that were not used and are named one by one; further ones are only counted.
const MAX_NAMED: usize = 40;

/// A document or link that was considered, and whether it was used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceEntry {
    /// Its path in the vault; of a link that leads nowhere, the path as written.
    pub document: String,
    /// What it was considered as: `turn`, `research`, `capture`, `preference`, `fact`, `strategy`, `passage`, `link`;
    /// `document` where a tool searched or read it; `vector` where the query could not be embedded.
    pub kind: String,
    /// How well it answers in comparison with others of its kind; 0 where they are not ranked.
    pub score: f64,
    /// Whether it was offered.
    pub used: bool,
    /// Its tokens as offered; 0 if it was not.
    pub tokens: usize,
    /// Why it was used or not.
    pub why: String,
}

/// Collects what is considered.
#[derive(Debug, Default)]
pub(super) struct Trace {
    entries: Vec<TraceEntry>,
    /// Of each kind: how many not used are named, and how many more there are.
    unused: Vec<(&'static str, usize, usize)>,
}

impl Trace {
    /// Records an entry that was offered.
    pub(super) fn used(
        &mut self,
        kind: &'static str,
        document: &str,
        score: f64,
        tokens: usize,
        why: impl Into<String>,
    ) {
        let (document, kind, why) = (document.to_owned(), kind.to_owned(), why.into());
        self.entries.push(TraceEntry { document, kind, score, used: true, tokens, why });
    }

    /// Records an entry that was not offered.
    pub(super) fn unused(&mut self, kind: &'static str, document: &str, score: f64, why: impl Into<String>) {
        let at = self.unused.iter().position(|(known, ..)| *known == kind);
        let at = at.unwrap_or_else(|| {
            self.unused.push((kind, 0, 0));
            self.unused.len() - 1
        });
        let (_, named, more) = &mut self.unused[at];
        if *named == MAX_NAMED {
            *more += 1;
            return;
        }
        *named += 1;
        let (document, kind, why) = (document.to_owned(), kind.to_owned(), why.into());
        self.entries.push(TraceEntry { document, kind, score, used: false, tokens: 0, why });
    }

    /// All entries, in the order in which they were considered.
    pub(super) fn finish(mut self) -> Vec<TraceEntry> {
        for (kind, _, more) in self.unused.into_iter().filter(|(_, _, more)| *more > 0) {
            self.entries.push(TraceEntry {
                document: String::new(),
                kind: kind.to_owned(),
                score: 0.0,
                used: false,
                tokens: 0,
                why: format!("{more} more of this kind were not used"),
            });
        }
        self.entries
    }
}
