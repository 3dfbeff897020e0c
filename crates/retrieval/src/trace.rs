//! The record of what was considered, for the turn's receipt. Knows no documents.

use serde::{Deserialize, Serialize};

/// Of what was not used, only so many of a kind are named one by one; the others are counted.
const MOST_NAMED: usize = 40;

/// Something that was considered, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceEntry {
    /// Its path in the vault, or what a link said where that leads nowhere.
    pub document: String,
    /// What it was considered as: `turn`, `research`, `capture`, `preference`, `fact`, `strategy`, `passage`, `link`;
    /// `vector` where none could be made of the query.
    pub kind: String,
    /// How well it answers, beside others of its kind; 0 where nothing ranks them.
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
    /// Something was offered.
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

    /// Something was not.
    pub(super) fn unused(&mut self, kind: &'static str, document: &str, score: f64, why: impl Into<String>) {
        let at = self.unused.iter().position(|(known, ..)| *known == kind);
        let at = at.unwrap_or_else(|| {
            self.unused.push((kind, 0, 0));
            self.unused.len() - 1
        });
        let (_, named, more) = &mut self.unused[at];
        if *named == MOST_NAMED {
            *more += 1;
            return;
        }
        *named += 1;
        let (document, kind, why) = (document.to_owned(), kind.to_owned(), why.into());
        self.entries.push(TraceEntry { document, kind, score, used: false, tokens: 0, why });
    }

    /// All of it, in the order in which it was considered.
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
