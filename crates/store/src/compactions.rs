//! The compaction cache: condensed forms that need not be recomputed. Losing it costs only time.

use std::time::Duration;

use larder_text::hash::ContentHash;
use rusqlite::OptionalExtension;

use crate::pointers::to_sql;
use crate::store::UserStore;
use larder_disk::{MILLIS_PER_DAY, StoreError};

/// How long a condensed form is cached (R0-30.5). The key covers everything the form depends on, so old ones remain
/// valid: expiry only limits the size (C106).
pub const DEFAULT_COMPACTION_TTL: Duration = Duration::from_secs(300);

/// Milliseconds for which the condensed form of a conversation is cached: it may have been made ahead of time, and the
/// conversation may go on another day.
const CONVERSATION_TTL: u64 = 7 * MILLIS_PER_DAY;

/// Everything a condensed form depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CompactionKey<'a> {
    /// The original.
    pub content: ContentHash,
    /// What it was condensed as.
    pub content_type: &'a str,
    /// The size aimed at, in tokens.
    pub target_tokens: u64,
    /// The query it was condensed for; the hash of an empty text if there was none.
    pub query: ContentHash,
    /// The condenser with its version, and the model where one did it.
    pub condenser: &'a str,
    /// What counted the tokens.
    pub tokenizer: &'a str,
}

/// The compaction cache of one user; from [`UserStore::compactions`].
#[derive(Debug, Clone, Copy)]
pub struct Compactions<'s> {
    pub(crate) store: &'s UserStore,
}

impl Compactions<'_> {
    /// The cached form for `key`, as the JSON that was inserted.
    pub fn get(&self, key: &CompactionKey<'_>) -> Result<Option<String>, StoreError> {
        self.get_from(key, key.target_tokens)
    }

    /// The largest cached form for `key` whose target is at most that of the key and at least `least`.
    pub fn get_from(&self, key: &CompactionKey<'_>, least: u64) -> Result<Option<String>, StoreError> {
        self.store.index().read(|tx| {
            let mut query = tx.prepare_cached(
                "SELECT condensed FROM compactions
                 WHERE user = ?1 AND content = ?2 AND content_type = ?3 AND target BETWEEN ?8 AND ?4
                   AND query = ?5 AND condenser = ?6 AND tokenizer = ?7
                 ORDER BY target DESC LIMIT 1",
            )?;
            let parameters = (
                self.store.user(),
                key.content.as_bytes(),
                key.content_type,
                to_sql(key.target_tokens),
                key.query.as_bytes(),
                key.condenser,
                key.tokenizer,
                to_sql(least),
            );
            Ok(query.query_row(parameters, |row| row.get(0)).optional()?)
        })
    }

    /// Keeps a condensed form, and clears out those older than the time in the options. The first one stays.
    pub fn insert(&self, key: &CompactionKey<'_>, json: &str) -> Result<(), StoreError> {
        let now = self.store.now().as_millis();
        let ttl = u64::try_from(self.store.store().options().compaction_ttl.as_millis()).unwrap_or(u64::MAX);
        self.store.write_unsynced(|tx| {
            tx.prepare_cached(
                "DELETE FROM compactions WHERE created < ?1 AND (content_type <> 'chat' OR created < ?2)",
            )?
            .execute([ttl, ttl.max(CONVERSATION_TTL)].map(|ttl| to_sql(now.saturating_sub(ttl))))?;
            tx.prepare_cached(
                "INSERT INTO compactions
                 (user, content, content_type, target, query, condenser, tokenizer, condensed, created)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO NOTHING",
            )?
            .execute((
                self.store.user(),
                key.content.as_bytes(),
                key.content_type,
                to_sql(key.target_tokens),
                key.query.as_bytes(),
                key.condenser,
                key.tokenizer,
                json,
                to_sql(now),
            ))?;
            Ok(())
        })
    }
}
