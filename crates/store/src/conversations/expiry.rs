//! What of conversations is old enough to go: sides of users in conversations at rest, facts, and records of runs that are
//! gone. Knows no conversation type: how long something is kept is up to the caller.

use larder_disk::{StoreError, Timestamp};
use rusqlite::params;

use crate::pointers::to_sql;
use crate::store::Store;

/// Records removed in one transaction.
const BATCH: usize = 500;

/// A user's side of a conversation at rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestingSide {
    /// The user.
    pub user: String,
    /// The conversation.
    pub conversation: String,
    /// Bytes of its messages.
    pub bytes: u64,
}

impl Store {
    /// The users' sides of all conversations in which nobody has said anything since a moment, nor begun one.
    ///
    /// # Errors
    /// The store fails.
    pub fn resting_sides(&self, since: Timestamp) -> Result<Vec<RestingSide>, StoreError> {
        self.index().read(|tx| {
            let mut query = tx.prepare_cached(
                "SELECT DISTINCT p.user, c.id,
                     (SELECT coalesce(sum(length(text) + length(data)), 0) FROM conversation_messages AS m
                      WHERE m.conversation = c.id AND m.user = p.user)
                 FROM conversations AS c JOIN conversation_participants AS p ON p.conversation = c.id
                 WHERE c.created < ?1 AND NOT EXISTS
                     (SELECT 1 FROM conversation_messages AS m WHERE m.conversation = c.id AND m.created >= ?1)
                 ORDER BY c.created, c.id, p.user",
            )?;
            let rows = query.query_map([to_sql(since.as_millis())], |row| {
                let bytes = row.get::<_, i64>(2)?.unsigned_abs();
                Ok(RestingSide { user: row.get(0)?, conversation: row.get(1)?, bytes })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// Whether nobody has said anything in a conversation since a moment.
    ///
    /// # Errors
    /// The store fails.
    pub fn is_resting(&self, conversation: &str, since: Timestamp) -> Result<bool, StoreError> {
        let said = "SELECT 1 FROM conversation_messages WHERE conversation = ?1 AND created >= ?2";
        self.index().read(|tx| {
            Ok(!tx.prepare_cached(said)?.exists(params![conversation, to_sql(since.as_millis())])?)
        })
    }

    /// Removes the facts of a category, in conversations of a type, that were noted and, if they ended, ended before a moment,
    /// with their vectors, and returns how many there were. What replies say of them stays. With `dry_run` they are only
    /// counted.
    ///
    /// # Errors
    /// The store fails.
    pub fn expire_facts(
        &self,
        (kind, category): (&str, &str),
        before: Timestamp,
        dry_run: bool,
    ) -> Result<u64, StoreError> {
        let old = self.index().read(|tx| {
            let mut query = tx.prepare_cached(
                "SELECT m.user, m.id FROM conversations AS c JOIN memory_records AS m
                     ON m.conversation = c.id AND m.kind = 'fact'
                 WHERE c.type = ?1 AND m.data ->> '$.category' = ?2
                     AND max(m.created, coalesce(m.ended, 0)) < ?3",
            )?;
            let before = to_sql(before.as_millis());
            let rows =
                query.query_map(params![kind, category, before], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<Result<Vec<(String, String)>, _>>()?)
        })?;
        if dry_run {
            return Ok(old.len() as u64);
        }
        for batch in old.chunks(BATCH) {
            self.index().write(|tx| {
                let mut remove = tx.prepare_cached(
                    "DELETE FROM memory_records
                     WHERE user = ?1 AND (kind = 'fact' AND id = ?2 OR kind = 'vector' AND id = 'fact:' || ?2)",
                )?;
                batch.iter().try_for_each(|(user, id)| remove.execute([user, id]).map(drop))?;
                Ok(())
            })?;
        }
        Ok(old.len() as u64)
    }

    /// Removes what says that a run worked on a session, where the run is gone.
    ///
    /// # Errors
    /// The store fails.
    pub fn expire_run_notes(&self) -> Result<(), StoreError> {
        let gone = self.index().read(|tx| {
            let mut query = tx.prepare_cached(
                "SELECT number FROM memory_records AS m WHERE kind = 'run' AND NOT EXISTS
                     (SELECT 1 FROM runs AS r WHERE r.user = m.user AND r.run_id = m.data ->> '$.run')",
            )?;
            let rows = query.query_map([], |row| row.get(0))?;
            Ok(rows.collect::<Result<Vec<i64>, _>>()?)
        })?;
        for batch in gone.chunks(BATCH) {
            self.index().write(|tx| {
                let mut remove = tx.prepare_cached("DELETE FROM memory_records WHERE number = ?1")?;
                batch.iter().try_for_each(|number| remove.execute([number]).map(drop))?;
                Ok(())
            })?;
        }
        Ok(())
    }
}
