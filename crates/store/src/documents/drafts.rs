//! Turns under way: numbers that are given out once, and drafts that outlast a crash. All of it stands in the main
//! database.

use larder_vault::{Mode, Timestamp};
use rusqlite::{OptionalExtension, Row, Transaction, params};
use serde::{Deserialize, Serialize};

use super::index::highest_turn;
use super::types::{DraftSummary, TurnDraft};
use super::{UserDocuments, journal};
use crate::error::StoreError;

/// What stands in a draft's row beside its columns.
#[derive(Serialize, Deserialize)]
struct Rest {
    mode: Mode,
    session: Option<String>,
    state: serde_json::Value,
}

impl UserDocuments {
    /// Begins a turn under the user's next number; no two ever share one. It is saved with what `fill` puts into it, or
    /// not begun at all.
    ///
    /// # Errors
    /// The main database cannot be written; or the documents lie in a bucket that [`super::Documents::recover`] has not
    /// looked through, so that nobody knows which numbers are taken.
    pub fn begin_with(
        &self,
        mode: Mode,
        session: Option<&str>,
        query: &str,
        fill: impl FnOnce(&mut TurnDraft),
    ) -> Result<TurnDraft, StoreError> {
        let taken = self.highest_number()?;
        let created_at = self.now()?;
        let mut draft = TurnDraft {
            number: 0,
            place: self.place.turn(0),
            mode,
            session: session.map(str::to_owned),
            query: query.to_owned(),
            created_at,
            phase: None,
            state: serde_json::Value::Null,
            files: std::collections::BTreeMap::new(),
        };
        self.store.write(|tx| {
            draft.number = self.next_number(tx, taken)?;
            draft.place = self.place.turn(draft.number);
            fill(&mut draft);
            self.put_row(tx, &draft, false)?;
            journal::put_files(tx, self.user(), draft.number, &draft.files)
        })?;
        Ok(draft)
    }

    /// As [`begin_with`](Self::begin_with), with nothing in it yet.
    ///
    /// # Errors
    /// As there.
    pub fn begin(&self, mode: Mode, session: Option<&str>, query: &str) -> Result<TurnDraft, StoreError> {
        self.begin_with(mode, session, query, |_| {})
    }

    /// The present moment by the store's clock, as documents write it.
    pub(super) fn now(&self) -> Result<Timestamp, StoreError> {
        let millis = i64::try_from(self.store.now().as_millis()).ok();
        millis.and_then(Timestamp::from_millis).ok_or_else(|| StoreError::BadTurn {
            number: 0,
            reason: "the clock stands after the year 9999; set it right".to_owned(),
        })
    }

    /// The highest number of a turn that stands among the documents.
    fn highest_number(&self) -> Result<u32, StoreError> {
        let indexed = self.index().read(highest_turn)?;
        if self.index().is_built()? {
            return Ok(indexed);
        }
        if self.documents.is_new(&self.name)? {
            self.index().set_built()?;
            return Ok(indexed);
        }
        let standing = self.documents.highest_standing_now(&self.name).unwrap_or_else(|| {
            let reason = "the bucket was not looked through yet: call recover() once after opening it";
            Err(StoreError::BadTurn { number: 0, reason: reason.to_owned() })
        })?;
        Ok(indexed.max(standing))
    }

    fn next_number(&self, tx: &Transaction<'_>, taken: u32) -> Result<u32, StoreError> {
        let mut last = tx.prepare_cached("SELECT last FROM turn_numbers WHERE user = ?1")?;
        let last: Option<u32> = last.query_row([self.user()], |row| row.get(0)).optional()?;
        let mut next = last.unwrap_or(0).max(taken).saturating_add(1);
        // Somebody may have put a turn back since the index was built.
        while self.tree().has_folder_now(self.place.turn(next).folder()) {
            next = next.saturating_add(1);
        }
        tx.prepare_cached(
            "INSERT INTO turn_numbers (user, last) VALUES (?1, ?2)
             ON CONFLICT DO UPDATE SET last = excluded.last",
        )?
        .execute(params![self.user(), next])?;
        Ok(next)
    }

    /// Saves a draft, all or nothing. Files that did not change are not written again.
    ///
    /// # Errors
    /// The turn is committed already, or was discarded; or the main database cannot be written.
    pub fn checkpoint(&self, draft: &TurnDraft) -> Result<(), StoreError> {
        self.require_place(draft)?;
        self.store.write(|tx| {
            self.require_row(tx, draft.number)?;
            self.put_row(tx, draft, false)?;
            journal::put_files(tx, self.user(), draft.number, &draft.files)
        })
    }

    /// Saves a state of a draft that goes with the files that were saved last, whatever the draft holds by now.
    ///
    /// # Errors
    /// As [`checkpoint`](Self::checkpoint).
    pub fn save_state(&self, draft: &TurnDraft, state: &serde_json::Value) -> Result<(), StoreError> {
        self.require_place(draft)?;
        self.store.write(|tx| {
            self.require_row(tx, draft.number)?;
            self.put_state(tx, draft, state, false)
        })
    }

    /// Refuses to save what is no draft any more: whoever discarded it, or had its user forgotten, meant that.
    fn require_row(&self, tx: &Transaction<'_>, number: u32) -> Result<(), StoreError> {
        let reason = match journal::is_committed(tx, self.user(), number)? {
            Some(false) => return Ok(()),
            Some(true) => "committed already; begin a new turn",
            None => "no draft any more, since somebody discarded it; begin a new turn",
        };
        Err(StoreError::BadTurn { number, reason: reason.to_owned() })
    }

    /// Refuses a draft that another user's handle made.
    pub(super) fn require_place(&self, draft: &TurnDraft) -> Result<(), StoreError> {
        if draft.place == self.place.turn(draft.number) && draft.number > 0 {
            return Ok(());
        }
        let reason = "not a draft of this user; use the handle that it was begun with".to_owned();
        Err(StoreError::BadTurn { number: draft.number, reason })
    }

    pub(super) fn put_row(
        &self,
        tx: &Transaction<'_>,
        draft: &TurnDraft,
        committed: bool,
    ) -> Result<(), StoreError> {
        self.put_state(tx, draft, &draft.state, committed)
    }

    fn put_state(
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
            self.user(),
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
    pub fn drafts(&self) -> Result<Vec<DraftSummary>, StoreError> {
        self.store.index().read(|tx| {
            let mut query = tx.prepare_cached(
                "SELECT number, query, phase, created FROM turn_drafts WHERE user = ?1 AND committed = 0
                 ORDER BY number",
            )?;
            let rows = query.query_map([self.user()], |row| {
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

    /// A draft as it was saved last; none if it was committed or discarded.
    ///
    /// # Errors
    /// The main database cannot be read.
    pub fn draft(&self, number: u32) -> Result<Option<TurnDraft>, StoreError> {
        self.store.index().read(|tx| {
            let mut query = tx.prepare_cached(
                "SELECT created, phase, query, rest FROM turn_drafts
                 WHERE user = ?1 AND number = ?2 AND committed = 0",
            )?;
            let row = query.query_row(params![self.user(), number], |row| {
                Ok((created(row, 0)?, row.get(1)?, row.get(2)?, row.get::<_, String>(3)?))
            });
            let Some((created_at, phase, query, rest)) = row.optional()? else { return Ok(None) };
            let rest: Rest = serde_json::from_str(&rest).map_err(|source| StoreError::Record {
                what: format!("the draft of turn {number}"),
                source,
            })?;
            let files = journal::files_of(tx, self.user(), number)?;
            let Rest { mode, session, state } = rest;
            let place = self.place.turn(number);
            Ok(Some(TurnDraft { number, place, mode, session, query, created_at, phase, state, files }))
        })
    }

    /// Drops a draft; a turn that was committed stays. Its number is not given out again.
    ///
    /// # Errors
    /// The main database cannot be written.
    pub fn discard(&self, number: u32) -> Result<(), StoreError> {
        self.store.write(|tx| match journal::is_committed(tx, self.user(), number)? {
            Some(false) => journal::remove(tx, self.user(), number),
            _ => Ok(()),
        })
    }
}

fn created(row: &Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    let millis = row.get(column)?;
    Timestamp::from_millis(millis).ok_or(rusqlite::Error::IntegralValueOutOfRange(column, millis))
}
