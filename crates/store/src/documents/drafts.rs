//! Unfinished turns: numbers, each assigned once, and drafts that survive a crash. Both are stored in the main
//! database.

use larder_vault::{DocumentTime, Mode};
use rusqlite::{OptionalExtension, Row, Transaction, params};
use serde::{Deserialize, Serialize};

use super::index::highest_turn;
use super::types::{DraftSummary, TurnDraft};
use super::{UserDocuments, journal, refuse_last};
use crate::retention::limit;
use larder_disk::StoreError;

/// The part of a draft's row that is stored as JSON.
#[derive(Serialize, Deserialize)]
struct Rest {
    mode: Mode,
    session: Option<String>,
    state: serde_json::Value,
}

/// Turns of one user from their beginning to their commit; from [`UserDocuments::drafts`].
#[derive(Debug, Clone, Copy)]
pub struct Drafts<'d> {
    pub(super) docs: &'d UserDocuments,
}

impl Drafts<'_> {
    /// Starts a turn under the user's next number, which is never reused. It is saved with what `fill` adds to it, or
    /// not started at all.
    ///
    /// # Errors
    /// If the main database cannot be written; or the documents are in a bucket that [`super::Documents::recover`]
    /// has not scanned, so the numbers in use are unknown.
    pub fn begin_with(
        &self,
        mode: Mode,
        session: Option<&str>,
        query: &str,
        fill: impl FnOnce(&mut TurnDraft),
    ) -> Result<TurnDraft, StoreError> {
        let taken = self.highest_number()?;
        let created_at = self.docs.now();
        refuse_last(created_at)?;
        let mut draft = TurnDraft {
            number: 0,
            place: self.docs.place.turn(0),
            mode,
            session: session.map(str::to_owned),
            query: query.to_owned(),
            created_at,
            phase: None,
            state: serde_json::Value::Null,
            files: std::collections::BTreeMap::new(),
        };
        self.docs.store.write(|tx| {
            limit::require_room(tx)?;
            draft.number = self.next_number(tx, taken)?;
            draft.place = self.docs.place.turn(draft.number);
            fill(&mut draft);
            self.insert_row(tx, &draft, false)?;
            journal::insert_files(tx, self.docs.user(), draft.number, &draft.files)
        })?;
        Ok(draft)
    }

    /// As [`begin_with`](Self::begin_with), with no initial content.
    ///
    /// # Errors
    /// As there.
    pub fn begin(&self, mode: Mode, session: Option<&str>, query: &str) -> Result<TurnDraft, StoreError> {
        self.begin_with(mode, session, query, |_| {})
    }

    /// The highest number of a turn among the documents.
    fn highest_number(&self) -> Result<u32, StoreError> {
        let indexed = self.docs.index().read(highest_turn)?;
        if self.docs.index().is_built()? {
            return Ok(indexed);
        }
        if self.docs.documents.is_new(&self.docs.name)? {
            self.docs.index().set_built()?;
            return Ok(indexed);
        }
        let standing = self.docs.documents.highest_standing_now(&self.docs.name).unwrap_or_else(|| {
            let reason = "the bucket was not looked through yet: call recover() once after opening it";
            Err(StoreError::BadTurn { number: 0, reason: reason.to_owned() })
        })?;
        Ok(indexed.max(standing))
    }

    fn next_number(&self, tx: &Transaction<'_>, taken: u32) -> Result<u32, StoreError> {
        let mut last = tx.prepare_cached("SELECT last FROM turn_numbers WHERE user = ?1")?;
        let last: Option<u32> = last.query_row([self.docs.user()], |row| row.get(0)).optional()?;
        let mut next = last.unwrap_or(0).max(taken).saturating_add(1);
        // A turn may have been restored from a backup since the index was built.
        while self.docs.tree().has_folder_now(self.docs.place.turn(next).folder()) {
            next = next.saturating_add(1);
        }
        tx.prepare_cached(
            "INSERT INTO turn_numbers (user, last) VALUES (?1, ?2)
             ON CONFLICT DO UPDATE SET last = excluded.last",
        )?
        .execute(params![self.docs.user(), next])?;
        Ok(next)
    }

    /// Saves a draft atomically. Files that did not change are not rewritten.
    ///
    /// # Errors
    /// The turn is committed already, or was discarded; or the main database cannot be written.
    pub fn checkpoint(&self, draft: &TurnDraft) -> Result<(), StoreError> {
        self.require_place(draft)?;
        self.docs.store.write(|tx| {
            self.require_row(tx, draft.number)?;
            self.insert_row(tx, draft, false)?;
            journal::insert_files(tx, self.docs.user(), draft.number, &draft.files)
        })
    }

    /// Saves a new state of a draft together with the files of its last checkpoint.
    ///
    /// # Errors
    /// As [`checkpoint`](Self::checkpoint).
    pub fn save_state(&self, draft: &TurnDraft, state: &serde_json::Value) -> Result<(), StoreError> {
        self.require_place(draft)?;
        self.docs.store.write(|tx| {
            self.require_row(tx, draft.number)?;
            self.insert_state(tx, draft, state, false)
        })
    }

    /// Rejects a draft that was committed, or discarded on purpose.
    fn require_row(&self, tx: &Transaction<'_>, number: u32) -> Result<(), StoreError> {
        let reason = match journal::is_committed(tx, self.docs.user(), number)? {
            Some(false) => return Ok(()),
            Some(true) => "already committed; start a new turn",
            None => "no longer a draft, because it was discarded; start a new turn",
        };
        Err(StoreError::BadTurn { number, reason: reason.to_owned() })
    }

    /// Rejects a draft of another user.
    pub(super) fn require_place(&self, draft: &TurnDraft) -> Result<(), StoreError> {
        if draft.place == self.docs.place.turn(draft.number) && draft.number > 0 {
            return Ok(());
        }
        let reason = "not a draft of this user; use the handle that it was begun with".to_owned();
        Err(StoreError::BadTurn { number: draft.number, reason })
    }

    pub(super) fn insert_row(
        &self,
        tx: &Transaction<'_>,
        draft: &TurnDraft,
        committed: bool,
    ) -> Result<(), StoreError> {
        self.insert_state(tx, draft, &draft.state, committed)
    }

    fn insert_state(
        &self,
        tx: &Transaction<'_>,
        draft: &TurnDraft,
        state: &serde_json::Value,
        committed: bool,
    ) -> Result<(), StoreError> {
        let rest = Rest { mode: draft.mode, session: draft.session.clone(), state: state.clone() };
        let rest = serde_json::to_string(&rest).map_err(|source| StoreError::Record {
            what: format!("the draft of turn {}", draft.number),
            source,
        })?;
        tx.prepare_cached(
            "INSERT OR REPLACE INTO turn_drafts (user, number, committed, created, phase, query, rest)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            self.docs.user(),
            draft.number,
            committed,
            draft.created_at.as_millis(),
            draft.phase,
            draft.query,
            rest,
        ])?;
        Ok(())
    }

    /// The drafts that were begun and neither committed nor discarded, by number.
    ///
    /// # Errors
    /// The main database cannot be read.
    pub fn list(&self) -> Result<Vec<DraftSummary>, StoreError> {
        self.docs.store.index().read(|tx| {
            let mut query = tx.prepare_cached(
                "SELECT number, query, phase, created FROM turn_drafts WHERE user = ?1 AND committed = 0
                 ORDER BY number",
            )?;
            let rows = query.query_map([self.docs.user()], |row| {
                Ok(DraftSummary {
                    number: row.get(0)?,
                    query: row.get(1)?,
                    phase: row.get(2)?,
                    created_at: created(row, 3)?,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// Interrupted turns, by number: drafts without a lease.
    ///
    /// # Errors
    /// The main database cannot be read.
    pub fn interrupted(&self) -> Result<Vec<DraftSummary>, StoreError> {
        let mut drafts = self.list()?;
        drafts.retain(|draft| !self.docs.leases().is_held(draft.number));
        Ok(drafts)
    }

    /// A draft as last saved; `None` if it was committed or discarded.
    ///
    /// # Errors
    /// The main database cannot be read.
    pub fn get(&self, number: u32) -> Result<Option<TurnDraft>, StoreError> {
        self.docs.store.index().read(|tx| {
            let mut query = tx.prepare_cached(
                "SELECT created, phase, query, rest FROM turn_drafts
                 WHERE user = ?1 AND number = ?2 AND committed = 0",
            )?;
            let row = query.query_row(params![self.docs.user(), number], |row| {
                Ok((created(row, 0)?, row.get(1)?, row.get(2)?, row.get::<_, String>(3)?))
            });
            let Some((created_at, phase, query, rest)) = row.optional()? else { return Ok(None) };
            let rest: Rest = serde_json::from_str(&rest).map_err(|source| StoreError::Record {
                what: format!("the draft of turn {number}"),
                source,
            })?;
            let files = journal::files_of(tx, self.docs.user(), number)?;
            let Rest { mode, session, state } = rest;
            let place = self.docs.place.turn(number);
            Ok(Some(TurnDraft { number, place, mode, session, query, created_at, phase, state, files }))
        })
    }

    /// Drops a draft; a committed turn is kept. Its number is not reused.
    ///
    /// # Errors
    /// The main database cannot be written.
    pub fn discard(&self, number: u32) -> Result<(), StoreError> {
        self.docs.store.write(|tx| match journal::is_committed(tx, self.docs.user(), number)? {
            Some(false) => journal::discard(tx, self.docs.user(), number),
            _ => Ok(()),
        })
    }
}

fn created(row: &Row<'_>, column: usize) -> rusqlite::Result<DocumentTime> {
    let millis = row.get(column)?;
    DocumentTime::from_millis(millis).ok_or(rusqlite::Error::IntegralValueOutOfRange(column, millis))
}
