//! Queries to the index of one user: turns, research, captured pages, links, words.

use std::collections::HashMap;

use larder_vault::{Scope, VaultPath};
use rusqlite::{OptionalExtension, params};

use super::UserDocuments;
use super::index::{self, Wanted};
use super::types::{CaptureRow, DocumentHit, DocumentKind, ResearchRow, TurnRow};
use larder_disk::StoreError;

/// The most captured pages that one query returns.
const CAPTURES: u64 = 1_000;

/// How many times more documents are searched than returned, so that logs displace none.
const BESIDE_LOGS: u64 = 4;

/// What the index knows about the documents of one user; from [`UserDocuments::catalog`].
#[derive(Debug, Clone, Copy)]
pub struct DocumentCatalog<'d> {
    pub(super) docs: &'d UserDocuments,
}

impl DocumentCatalog<'_> {
    /// A committed turn.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn turn(&self, number: u32) -> Result<Option<TurnRow>, StoreError> {
        self.docs.index().read(|tx| index::turn(tx, number))
    }

    /// The newest turns, newest first; only those with a number below `before` and of one session, if given.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn recent_turns(
        &self,
        limit: u64,
        before: Option<u32>,
        session: Option<&str>,
    ) -> Result<Vec<TurnRow>, StoreError> {
        self.docs.index().read(|tx| index::recent_turns(tx, limit, before, session))
    }

    /// Documents with words of `query`, best first; of all kinds if `kinds` is empty. The log of tool calls comes
    /// last: it contains the words of every question, and rarely an answer.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn search(
        &self,
        query: &str,
        kinds: &[DocumentKind],
        limit: u64,
    ) -> Result<Vec<DocumentHit>, StoreError> {
        let most = limit.saturating_mul(BESIDE_LOGS);
        let found = self.docs.index().read(|tx| index::search(tx, query, kinds, most))?;
        let is_log = |hit: &DocumentHit| hit.document.as_str().ends_with("/toolresults.md");
        let (logs, mut hits): (Vec<_>, Vec<_>) = found.into_iter().partition(is_log);
        hits.extend(logs);
        hits.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(hits)
    }

    /// Research on a topic or its subtopics, newest first; on all topics if none is given.
    ///
    /// # Errors
    /// The index or the main database cannot be read.
    pub fn research(&self, topic: Option<&str>, limit: u64) -> Result<Vec<ResearchRow>, StoreError> {
        let wanted = topic.map_or(Wanted::All, Wanted::Topic);
        let rows = self.docs.index().read(|tx| index::research(tx, wanted, limit))?;
        self.with_uses(rows)
    }

    /// Adds usage statistics to the rows.
    pub(super) fn with_uses(&self, mut rows: Vec<ResearchRow>) -> Result<Vec<ResearchRow>, StoreError> {
        let uses = self.uses_of(rows.iter().map(|row| &row.document))?;
        for row in &mut rows {
            if let Some((count, scope)) = uses.get(&row.document) {
                row.use_count = *count;
                row.scope = row.scope.max(*scope);
            }
        }
        Ok(rows)
    }

    fn uses_of<'p>(
        &self,
        documents: impl Iterator<Item = &'p VaultPath>,
    ) -> Result<HashMap<VaultPath, (u64, Scope)>, StoreError> {
        self.docs.store.index().read(|tx| {
            let mut query =
                tx.prepare_cached("SELECT uses, scope FROM document_uses WHERE user = ?1 AND path = ?2")?;
            let mut found = HashMap::new();
            for document in documents {
                let row = query.query_row(params![self.docs.user(), document.as_str()], |row| {
                    Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
                });
                if let Some((uses, scope)) = row.optional()? {
                    let scope = scope.parse().unwrap_or(Scope::New).min(Scope::User);
                    found.insert(document.clone(), (u64::try_from(uses).unwrap_or(0), scope));
                }
            }
            Ok(found)
        })
    }

    /// Captured pages, newest first: of one turn, of one address, or of both; at most 1,000.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn captures(&self, turn: Option<u32>, url: Option<&str>) -> Result<Vec<CaptureRow>, StoreError> {
        self.docs.index().read(|tx| index::captures(tx, turn, url, CAPTURES))
    }

    /// The documents that a document links to, sorted; they may not exist, and reading checks their owner.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn links_from(&self, path: &VaultPath) -> Result<Vec<VaultPath>, StoreError> {
        self.docs.index().read(|tx| index::links_of(tx, path))
    }

    /// The documents of this user that link to a document, sorted.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn links_to(&self, path: &VaultPath) -> Result<Vec<VaultPath>, StoreError> {
        self.docs.index().read(|tx| index::links_to(tx, path))
    }
}
