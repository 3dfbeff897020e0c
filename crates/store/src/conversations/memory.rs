//! What is kept of persons besides their messages, as records: each has a kind, an id, and the consent under which it was
//! made. A consent that is revoked ends; what arrives later as made under it is not kept, or is erased at once.

use larder_disk::{StoreError, Timestamp};
use rusqlite::{OptionalExtension, Row, Transaction, params};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ConversationMessage, Conversations, Track, json, number, time};
use crate::jobs::{self, NewJob};
use crate::pointers::to_sql;
use crate::store::UserStore;

/// The kind of the job that erases what was made under a consent; its payload names it as `consent`.
pub const ERASE_JOB: &str = "conversation_erase";

pub(super) const COLUMNS: &str =
    "number, participant, kind, id, conversation, session, consent, data, vector, created, ended";

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    /// That a person allowed something to cross sessions; it ends when it is revoked.
    Consent,
    /// A remembered statement; it ends when a newer one contradicts it.
    Fact,
    /// What a session's older messages said.
    Summary,
    /// Up to which message a session was read for facts.
    Progress,
    /// A text that a participant gave to others.
    Share,
    /// That a reply was made with something in view that crossed a session.
    Origin,
    /// That a recipe run worked on a session.
    Run,
    /// A vector of a text.
    Vector,
    /// That something of the user was erased: one record, whose number changes each time.
    Erasure,
}

impl MemoryKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Consent => "consent",
            Self::Fact => "fact",
            Self::Summary => "summary",
            Self::Progress => "progress",
            Self::Share => "share",
            Self::Origin => "origin",
            Self::Run => "run",
            Self::Vector => "vector",
            Self::Erasure => "erasure",
        }
    }

    fn parse(text: &str) -> Self {
        serde_json::from_value(Value::from(text)).unwrap_or(Self::Origin)
    }
}

/// A record of memory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryRecord {
    /// Its number, ascending in the order of writing; another one each time it is written, 0 for a new one.
    pub number: u64,
    /// What it is.
    pub kind: MemoryKind,
    /// Its id among those of its kind and user. One with the same id is replaced.
    pub id: String,
    /// The participant's name, which makes a person of the user.
    pub participant: String,
    /// The conversation it belongs to; `None` if to the person.
    pub conversation: Option<String>,
    /// The session it belongs to.
    pub session: Option<u64>,
    /// The id of the consent under which it was made.
    pub consent: Option<String>,
    /// What it says.
    pub data: Value,
    /// Its vector.
    #[serde(skip)]
    pub vector: Option<Vec<f32>>,
    /// When it was first written; of a new one the present moment, or zero for that of its writing.
    pub created: Timestamp,
    /// When it stopped to hold.
    pub ended: Option<Timestamp>,
}

/// Which records to list; what is `None` is not asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct MemoryFilter<'a> {
    /// Of this kind.
    pub kind: Option<MemoryKind>,
    /// With this id.
    pub id: Option<&'a str>,
    /// Of this participant, whatever the conversation.
    pub participant: Option<&'a str>,
    /// Of this conversation.
    pub conversation: Option<&'a str>,
    /// Of this session.
    pub session: Option<u64>,
    /// Made under this consent.
    pub consent: Option<&'a str>,
}

/// Records that are written and removed together.
#[derive(Debug, Clone, Default)]
pub struct MemoryChange {
    /// Written, in order.
    pub put: Vec<MemoryRecord>,
    /// Removed, before others are written.
    pub remove: Vec<(MemoryKind, String)>,
    /// States of participants from now on, with the conversation and the name.
    pub states: Vec<(String, String, Value)>,
    /// What is to be done behind it.
    pub jobs: Vec<NewJob>,
    /// What [`Memory::erasures`] was before anything was read that this is made from. If something was erased since,
    /// nothing is written.
    pub since: Option<u64>,
}

/// The records of one user; from [`Conversations::memory`].
#[derive(Debug, Clone, Copy)]
pub struct Memory<'s> {
    pub(super) store: &'s UserStore,
}

impl<'s> Conversations<'s> {
    /// What is remembered of the persons of this user.
    pub const fn memory(&self) -> Memory<'s> {
        Memory { store: self.store }
    }

    /// What participants of a conversation gave to `track`, oldest first.
    ///
    /// # Errors
    /// There is no such participant of this user, or the store fails.
    pub fn shared_with(&self, track: Track<'_>) -> Result<Vec<MemoryRecord>, StoreError> {
        self.store.index().read(|tx| {
            self.own(tx, track)?;
            let sql = format!(
                "SELECT {COLUMNS} FROM memory_records AS m WHERE kind = 'share' AND conversation = ?1
                 AND EXISTS (SELECT 1 FROM json_each(m.data, '$.to') WHERE value = ?2) ORDER BY number"
            );
            let mut query = tx.prepare_cached(&sql)?;
            let rows = query.query_map([track.conversation, track.participant], read)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// What the participants of a conversation released for one purpose, oldest first; empty until each of them has, and
    /// while somebody is invited.
    ///
    /// # Errors
    /// There is no such participant of this user, or the store fails.
    pub fn released(&self, track: Track<'_>, purpose: &str) -> Result<Vec<MemoryRecord>, StoreError> {
        self.store.index().read(|tx| {
            self.own(tx, track)?;
            let sql = format!(
                "SELECT {COLUMNS} FROM memory_records WHERE kind = 'share' AND conversation = ?1
                 AND data ->> '$.purpose' = ?2
                 AND NOT EXISTS (SELECT 1 FROM conversation_invitations WHERE conversation = ?1) AND NOT EXISTS
                     (SELECT 1 FROM conversation_participants AS p WHERE p.conversation = ?1 AND NOT EXISTS
                         (SELECT 1 FROM memory_records AS m WHERE m.kind = 'share' AND m.conversation = ?1
                          AND m.participant = p.name AND m.user = p.user AND m.data ->> '$.purpose' = ?2))
                 ORDER BY number"
            );
            let mut query = tx.prepare_cached(&sql)?;
            let rows = query.query_map([track.conversation, purpose], read)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}

impl Memory<'_> {
    /// The records of this user for which all of the filter holds, oldest first.
    ///
    /// # Errors
    /// The store fails.
    pub fn list(&self, filter: &MemoryFilter<'_>) -> Result<Vec<MemoryRecord>, StoreError> {
        let MemoryFilter { kind, id, participant, conversation, session, consent } = *filter;
        let mut sql = format!("SELECT {COLUMNS} FROM memory_records WHERE user = ?1");
        let mut values: Vec<rusqlite::types::Value> = vec![self.store.user().to_owned().into()];
        let texts = [
            ("participant", participant),
            ("kind", kind.map(MemoryKind::as_str)),
            ("id", id),
            ("conversation", conversation),
            ("consent", consent),
        ];
        for (column, value) in texts {
            if let Some(value) = value {
                values.push(value.to_owned().into());
                sql.push_str(&format!(" AND {column} = ?{}", values.len()));
            }
        }
        if let Some(session) = session {
            values.push(to_sql(session).into());
            sql.push_str(&format!(" AND session = ?{}", values.len()));
        }
        sql.push_str(" ORDER BY created, number");
        self.store.index().read(|tx| {
            let mut query = tx.prepare_cached(&sql)?;
            let rows = query.query_map(rusqlite::params_from_iter(&values), read)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// Removes and writes records, sets states, and adds jobs, all or nothing.
    ///
    /// # Errors
    /// [`StoreError::ErasedMeanwhile`] if something was erased since the change was begun. Or the store fails.
    pub fn apply(&self, change: &MemoryChange) -> Result<(), StoreError> {
        self.store.write(|tx| {
            if let Some(since) = change.since
                && self.last_erasure(tx)? != since
            {
                return Err(StoreError::ErasedMeanwhile);
            }
            for (kind, id) in &change.remove {
                self.remove(tx, *kind, id)?;
            }
            for record in &change.put {
                self.put(tx, record, None)?;
            }
            for (conversation, participant, state) in &change.states {
                Conversations { store: self.store }.put_state(
                    tx,
                    Track { conversation, participant },
                    state,
                )?;
            }
            for job in &change.jobs {
                jobs::insert(tx, self.store.user(), job, self.store.now())?;
            }
            Ok(())
        })
    }

    /// A number that is another one, never used before, after something of this user was erased or rewritten.
    ///
    /// # Errors
    /// The store fails.
    pub fn erasures(&self) -> Result<u64, StoreError> {
        self.store.index().read(|tx| self.last_erasure(tx))
    }

    pub(super) fn last_erasure(&self, tx: &Transaction<'_>) -> Result<u64, StoreError> {
        let mut query =
            tx.prepare_cached("SELECT number FROM memory_records WHERE user = ?1 AND kind = 'erasure'")?;
        Ok(query.query_row([self.store.user()], |row| number(row, 0)).optional()?.unwrap_or_default())
    }

    /// Tells work that is under way that what it read may be gone.
    pub(super) fn note_erasure(&self, tx: &Transaction<'_>) -> Result<(), StoreError> {
        tx.prepare_cached(
            "INSERT OR REPLACE INTO memory_records (user, participant, kind, id, data, created)
             VALUES (?1, '', 'erasure', 'last', 'null', ?2)",
        )?
        .execute(params![self.store.user(), to_sql(self.store.now().as_millis())])?;
        Ok(())
    }

    pub(super) fn remove(&self, tx: &Transaction<'_>, kind: MemoryKind, id: &str) -> Result<(), StoreError> {
        tx.prepare_cached("DELETE FROM memory_records WHERE user = ?1 AND kind = ?2 AND id = ?3")?
            .execute([self.store.user(), kind.as_str(), id])?;
        Ok(())
    }

    pub(super) fn redact(
        &self,
        tx: &Transaction<'_>,
        kind: MemoryKind,
        id: &str,
        data: &Value,
    ) -> Result<(), StoreError> {
        tx.prepare_cached("UPDATE memory_records SET data = ?4 WHERE user = ?1 AND kind = ?2 AND id = ?3")?
            .execute(params![self.store.user(), kind.as_str(), id, data.to_string()])?;
        Ok(())
    }

    /// Writes a record. One that belongs to a reply names the session and, in its id, the number of the reply.
    pub(super) fn put(
        &self,
        tx: &Transaction<'_>,
        record: &MemoryRecord,
        reply: Option<(Track<'_>, &ConversationMessage)>,
    ) -> Result<(), StoreError> {
        let mut record = record.clone();
        if let Some((track, message)) = reply {
            record.participant = track.participant.to_owned();
            record.conversation.get_or_insert_with(|| track.conversation.to_owned());
            record.session.get_or_insert(message.session);
            record.id = format!("{}/{}", message.number, record.id);
            if let Value::Object(data) = &mut record.data {
                data.insert("message".to_owned(), message.number.into());
            }
        }
        if !self.is_there(tx, &record)?
            || record.kind != MemoryKind::Consent && !self.is_allowed(tx, &record)?
        {
            return Ok(());
        }
        let created = Some(record.created.as_millis()).filter(|created| *created > 0);
        let bytes =
            record.vector.map(|vector| vector.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>());
        tx.prepare_cached(
            "REPLACE INTO memory_records
             (user, participant, kind, id, conversation, session, consent, data, vector, created, ended)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, coalesce(
                 (SELECT created FROM memory_records WHERE user = ?1 AND kind = ?3 AND id = ?4), ?10), ?11)",
        )?
        .execute(params![
            self.store.user(),
            record.participant,
            record.kind.as_str(),
            record.id,
            record.conversation,
            record.session.map(to_sql),
            record.consent,
            record.data.to_string(),
            bytes,
            to_sql(created.unwrap_or_else(|| self.store.now().as_millis())),
            record.ended.map(|ended| to_sql(ended.as_millis()))
        ])?;
        Ok(())
    }

    /// Whether the person of a record still takes part in its conversation. What a job made of a person that was erased
    /// meanwhile is not kept.
    fn is_there(&self, tx: &Transaction<'_>, record: &MemoryRecord) -> Result<bool, StoreError> {
        let Some(conversation) = &record.conversation else { return Ok(true) };
        Ok(tx
            .prepare_cached(
                "SELECT 1 FROM conversation_participants WHERE conversation = ?1 AND name = ?2 AND user = ?3",
            )?
            .exists([conversation, &record.participant, self.store.user()])?)
    }

    /// Whether a record may be kept: its consent is in force, or it says what was made, which is then erased at once.
    fn is_allowed(&self, tx: &Transaction<'_>, record: &MemoryRecord) -> Result<bool, StoreError> {
        let Some(consent) = &record.consent else { return Ok(true) };
        let in_force = tx
            .prepare_cached(
                "SELECT ended IS NULL FROM memory_records WHERE user = ?1 AND kind = 'consent' AND id = ?2
                 AND participant = ?3",
            )?
            .query_row([self.store.user(), consent, &record.participant], |row| row.get(0))
            .optional()?
            .unwrap_or(false);
        if in_force {
            return Ok(true);
        }
        jobs::insert(tx, self.store.user(), &erase_job(consent), self.store.now())?;
        Ok(matches!(record.kind, MemoryKind::Origin | MemoryKind::Run))
    }
}

/// The job that erases what was made under a consent.
pub(super) fn erase_job(consent: &str) -> NewJob {
    NewJob {
        kind: ERASE_JOB,
        key: format!("{ERASE_JOB} {consent}"),
        session: None,
        payload: serde_json::json!({ "consent": consent }),
        after: 0,
    }
}

pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<MemoryRecord> {
    let vector = row.get::<_, Option<Vec<u8>>>(8)?;
    let float = |bytes: &[u8]| bytes.try_into().map_or(0.0, f32::from_le_bytes);
    Ok(MemoryRecord {
        number: number(row, 0)?,
        participant: row.get(1)?,
        kind: MemoryKind::parse(&row.get::<_, String>(2)?),
        id: row.get(3)?,
        conversation: row.get(4)?,
        session: row.get::<_, Option<i64>>(5)?.map(i64::unsigned_abs),
        consent: row.get(6)?,
        data: json(row, 7)?,
        vector: vector.map(|bytes| bytes.chunks_exact(4).map(float).collect()),
        created: time(row, 9)?,
        ended: row.get::<_, Option<i64>>(10)?.map(|millis| Timestamp::from_millis(millis.unsigned_abs())),
    })
}
