//! Numbered revisions of what is learned at run time, of all users, and the revision that each conversation uses.
//! Revisions are never changed or removed: going back is one more of them. Knows keys and texts of settings, not their
//! meaning.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Row, Transaction};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::pointers::to_sql;
use crate::store::{Store, UserStore};
use larder_disk::StoreError;
use larder_disk::Timestamp;
use larder_disk::user;

/// Every so many revisions one holds everything learned in it, so that reading a revision reads less than so many changes.
const CHECKPOINT_EVERY: u64 = 64;
/// Revisions on a page of the list.
const PAGE: u64 = 100;

/// Learned values as texts, by the key of the setting.
pub type LearnedSettings = BTreeMap<String, String>;

/// One revision: what it changed, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Revision {
    /// From 1. Revision 0 is not stored: nothing is learned in it.
    pub number: u64,
    /// When it was written.
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub created: Timestamp,
    /// Why, in a sentence.
    pub cause: String,
    /// What differs from the revision before: the new value by key, `null` where nothing is learned any more.
    pub changes: BTreeMap<String, Option<String>>,
}

/// The revisions of a store; from [`Store::revisions`].
#[derive(Debug, Clone, Copy)]
pub struct Revisions<'s> {
    pub(crate) store: &'s Store,
}

impl Revisions<'_> {
    /// The number of the newest revision; 0 if there is none. What another process writes is seen 2 ms later.
    pub fn newest(&self) -> Result<u64, StoreError> {
        Ok(self.store.marks()?.0)
    }

    /// The newest 100 revisions with a number below `before`, or of all, newest first. They end with revision 1, unless
    /// there are older ones.
    pub fn list(&self, before: Option<u64>) -> Result<Vec<Revision>, StoreError> {
        self.store.index().read(|tx| {
            let end = newest(tx)?.saturating_add(1).min(before.unwrap_or(u64::MAX));
            let mut page = between(tx, end.saturating_sub(PAGE + 1), end)?;
            page.reverse();
            Ok(page)
        })
    }

    /// One revision; `None` if it is not stored.
    pub fn get(&self, number: u64) -> Result<Option<Revision>, StoreError> {
        let around = (number.saturating_sub(1), number.saturating_add(1));
        self.store.index().read(|tx| Ok(between(tx, around.0, around.1)?.pop()))
    }

    /// What is learned in a revision: the changes up to it together.
    ///
    /// # Errors
    /// [`StoreError::UnknownRevision`] if it does not exist. Revision 0 always does.
    pub fn settings(&self, number: u64) -> Result<LearnedSettings, StoreError> {
        self.store.index().read(|tx| settings(tx, number))
    }

    /// Writes a revision in which these keys have these values, or none; other keys stay as they are. Returns the newest
    /// revision's number: that of the one before if nothing would change.
    pub fn write(&self, cause: &str, changes: &BTreeMap<String, Option<String>>) -> Result<u64, StoreError> {
        self.store.index().write(|tx| append(tx, self.store.now(), cause, changes.clone()))
    }

    /// Writes a revision in which exactly what a previous one had learned is learned again, and returns the newest
    /// revision's number.
    ///
    /// # Errors
    /// [`StoreError::UnknownRevision`] if there is no such revision.
    pub fn revert(&self, number: u64) -> Result<u64, StoreError> {
        self.store.index().write(|tx| {
            let gone = settings(tx, newest(tx)?)?.into_keys().map(|key| (key, None));
            let kept = settings(tx, number)?.into_iter().map(|(key, value)| (key, Some(value)));
            let changes = gone.chain(kept).collect();
            append(tx, self.store.now(), &format!("back to revision {number}"), changes)
        })
    }
}

/// The revisions that one user's conversations use; from [`UserStore::session_revisions`].
#[derive(Debug, Clone, Copy)]
pub struct SessionRevisions<'s> {
    pub(crate) store: &'s UserStore,
}

impl SessionRevisions<'_> {
    /// The revision that a conversation uses; `None` if it has not been given one.
    pub fn get(&self, session: &str) -> Result<Option<u64>, StoreError> {
        user::check_name("session id", session)?;
        self.store.index().read(|tx| self.kept(tx, session))
    }

    /// Gives a conversation a revision, unless it has one, and returns the one it has: the same in every process.
    pub fn begin(&self, session: &str, revision: u64) -> Result<u64, StoreError> {
        self.set(session, revision, "DO NOTHING")
    }

    /// Moves a conversation on to a later revision and returns the one it has: another process may have moved it further.
    pub fn advance(&self, session: &str, revision: u64) -> Result<u64, StoreError> {
        self.set(session, revision, "DO UPDATE SET revision = max(revision, excluded.revision)")
    }

    fn set(&self, session: &str, revision: u64, conflict: &str) -> Result<u64, StoreError> {
        user::check_name("session id", session)?;
        self.store.write_unsynced(|tx| {
            tx.prepare_cached(&format!(
                "INSERT INTO session_revisions (user, session, revision) VALUES (?1, ?2, ?3)
                 ON CONFLICT (user, session) {conflict}"
            ))?
            .execute((self.store.user(), session, to_sql(revision)))?;
            let kept = self.kept(tx, session)?;
            kept.ok_or_else(|| rusqlite::Error::QueryReturnedNoRows.into())
        })
    }

    fn kept(&self, tx: &Transaction<'_>, session: &str) -> Result<Option<u64>, StoreError> {
        let mut query =
            tx.prepare_cached("SELECT revision FROM session_revisions WHERE user = ?1 AND session = ?2")?;
        Ok(query.query_row((self.store.user(), session), |row| number(row, 0)).optional()?)
    }
}

pub(crate) fn newest(index: &Connection) -> Result<u64, StoreError> {
    let mut query = index.prepare_cached("SELECT coalesce(max(number), 0) FROM revisions")?;
    Ok(query.query_row([], |row| number(row, 0))?)
}

/// The revisions between these two, oldest first.
fn between(tx: &Transaction<'_>, after: u64, before: u64) -> Result<Vec<Revision>, StoreError> {
    let mut query = tx.prepare_cached(
        "SELECT number, created, cause, changes FROM revisions WHERE number > ?1 AND number < ?2 ORDER BY number",
    )?;
    let rows = query.query_map([to_sql(after), to_sql(before)], |row| {
        let created = Timestamp::from_millis(number(row, 1)?);
        Ok((number(row, 0)?, created, row.get(2)?, row.get::<_, String>(3)?))
    })?;
    rows.map(|row| {
        let (number, created, cause, changes) = row?;
        Ok(Revision { number, created, cause, changes: parsed(number, &changes)? })
    })
    .collect()
}

fn parsed<T: DeserializeOwned>(number: u64, json: &str) -> Result<T, StoreError> {
    serde_json::from_str(json)
        .map_err(|source| StoreError::Record { what: format!("revision {number}"), source })
}

pub(crate) fn settings(tx: &Transaction<'_>, number: u64) -> Result<LearnedSettings, StoreError> {
    let newest = newest(tx)?;
    if number > newest {
        return Err(StoreError::UnknownRevision { number, newest });
    }
    let checkpoint = tx
        .prepare_cached(
            "SELECT number, learned FROM revisions WHERE number <= ?1 AND learned IS NOT NULL
             ORDER BY number DESC LIMIT 1",
        )?
        .query_row([to_sql(number)], |row| Ok((self::number(row, 0)?, row.get::<_, String>(1)?)))
        .optional()?;
    let (from, checkpoint) = checkpoint.unwrap_or((0, "{}".to_owned()));
    let mut learned = parsed(from, &checkpoint)?;
    for revision in between(tx, from, number.saturating_add(1))? {
        apply(&mut learned, revision.changes);
    }
    Ok(learned)
}

fn apply(learned: &mut LearnedSettings, changes: BTreeMap<String, Option<String>>) {
    for (key, value) in changes {
        match value {
            Some(value) => drop(learned.insert(key, value)),
            None => drop(learned.remove(&key)),
        }
    }
}

/// As [`Revisions::write`], within a transaction.
pub(crate) fn append(
    tx: &Transaction<'_>,
    now: Timestamp,
    cause: &str,
    mut changes: BTreeMap<String, Option<String>>,
) -> Result<u64, StoreError> {
    let parent = newest(tx)?;
    let mut learned = settings(tx, parent)?;
    changes.retain(|key, value| learned.get(key) != value.as_ref());
    if changes.is_empty() {
        return Ok(parent);
    }
    let number = parent.saturating_add(1);
    let failed = |source| StoreError::Record { what: format!("revision {number}"), source };
    let written = serde_json::to_string(&changes).map_err(failed)?;
    apply(&mut learned, changes);
    let checkpoint = number.is_multiple_of(CHECKPOINT_EVERY).then(|| serde_json::to_string(&learned));
    tx.execute(
        "INSERT INTO revisions (number, created, cause, changes, learned) VALUES (?1, ?2, ?3, ?4, ?5)",
        (to_sql(number), to_sql(now.as_millis()), cause, written, checkpoint.transpose().map_err(failed)?),
    )?;
    Ok(number)
}

fn number(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(at)?.unsigned_abs())
}
