//! The messages of a track: posted once however often a client repeats it, answered once and in order.

use larder_disk::{StoreError, Timestamp};
use larder_text::hash::ContentHash;
use larder_text::pointer::{Pointer, PointerId};
use rusqlite::{OptionalExtension, Row, Transaction, params};
use serde::Serialize;
use serde_json::Value;

use super::{ConversationCost, Conversations, Erasure, MemoryRecord, Track, json, number, time};
use crate::jobs::{self, NewJob};
use crate::pointers::to_sql;
use crate::user;

const COLUMNS: &str = "number, session, role, text, pointer, reply_to, pending, data, created";
/// The kind of an original that is a message.
const POINTER_KIND: &str = "message";

/// Who says a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// The participant.
    Participant,
    /// The assistant.
    Assistant,
}

/// A message of a track.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ConversationMessage {
    /// Its number, ascending, which no other message of the home ever has.
    pub number: u64,
    /// The session.
    pub session: u64,
    /// Who says it.
    pub speaker: Speaker,
    /// What is said.
    pub text: String,
    /// The original with its text, if it is a long one.
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub pointer: Option<Pointer>,
    /// The number of the message that it answers.
    pub reply_to: Option<u64>,
    /// Whether it waits for its reply.
    pub pending: bool,
    /// What whoever leads the conversation keeps of it.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub data: Value,
    /// When it was stored.
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub created: Timestamp,
}

/// A message of a participant.
#[derive(Debug, Clone, Copy)]
pub struct NewMessage<'a> {
    /// What is said.
    pub text: &'a str,
    /// What the client gave to post it once.
    pub key: Option<&'a str>,
    /// What is kept of it.
    pub data: &'a Value,
    /// The characters from which the text is an original, too.
    pub chars: usize,
}

/// A message of the assistant, and what is committed with it.
#[derive(Debug, Clone, Copy)]
pub struct NewReply<'a> {
    /// The message that it answers; `None` if the assistant begins.
    pub to: Option<u64>,
    /// What is said.
    pub text: &'a str,
    /// What is kept of it.
    pub data: &'a Value,
    /// The participant's state from now on.
    pub state: &'a Value,
    /// What is to be remembered with it; records without a conversation get that of the track.
    pub memory: &'a [MemoryRecord],
    /// What is to be done behind it.
    pub jobs: &'a [NewJob],
    /// What it cost.
    pub cost: ConversationCost<'a>,
    /// The characters from which the text is an original, too.
    pub chars: usize,
}

impl Conversations<'_> {
    /// Stores a message of the participant, which then waits for its reply. One that was posted with the same key and text
    /// is returned as it is.
    ///
    /// # Errors
    /// [`StoreError::KeyTaken`] if the key is of another text. There is no such participant of this user, or the store
    /// fails.
    pub fn post(&self, track: Track<'_>, new: &NewMessage<'_>) -> Result<ConversationMessage, StoreError> {
        if let Some(key) = new.key {
            user::check_name("Idempotency-Key", key)?;
        }
        self.participant(track)?;
        let pointer = self.original(new.text, new.chars)?;
        self.store.write(|tx| {
            let session = self.own(tx, track)?.session;
            if let Some(key) = new.key
                && let Some(earlier) = self.with_key(tx, track, key, Some(new.text))?
            {
                // One that was left without a reply waits for one again.
                tx.prepare_cached(
                    "UPDATE conversation_messages SET pending = 1 WHERE number = ?1 AND NOT EXISTS
                     (SELECT 1 FROM conversation_messages WHERE reply_to = ?1)",
                )?
                .execute([to_sql(earlier.number)])?;
                return self.message(tx, track, earlier.number);
            }
            tx.prepare_cached(
                "INSERT INTO conversation_messages
                 (user, conversation, participant, session, role, text, pointer, pending, key, data, created)
                 VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6, 1, ?7, ?8, ?9)",
            )?
            .execute(params![
                self.store.user(),
                track.conversation,
                track.participant,
                to_sql(session),
                new.text,
                pointer,
                new.key,
                new.data.to_string(),
                to_sql(self.store.now().as_millis())
            ])?;
            self.message(tx, track, tx.last_insert_rowid().unsigned_abs())
        })
    }

    /// The message of a track that was posted with a key and, if one is given, this text.
    ///
    /// # Errors
    /// [`StoreError::KeyTaken`] if the key is of another text. Or the store fails.
    pub fn posted(
        &self,
        track: Track<'_>,
        key: &str,
        text: Option<&str>,
    ) -> Result<Option<ConversationMessage>, StoreError> {
        user::check_name("Idempotency-Key", key)?;
        self.store.index().read(|tx| self.with_key(tx, track, key, text))
    }

    /// Stores a text over the limit as an original; returns its name.
    pub(super) fn original(&self, text: &str, chars: usize) -> Result<Option<String>, StoreError> {
        if text.chars().nth(chars).is_none() {
            return Ok(None);
        }
        let stored = self.store.pointers().insert(text.as_bytes(), POINTER_KIND, "a message")?;
        Ok(Some(PointerId::name_of(stored.content)))
    }

    /// Stores a message of the assistant together with the state of the participant, with what is to be remembered and
    /// what is to be done.
    ///
    /// # Errors
    /// [`StoreError::Answered`] if the message is no longer waiting for a reply. There is no such participant of this user,
    /// or the store fails.
    pub fn answer(&self, track: Track<'_>, new: &NewReply<'_>) -> Result<ConversationMessage, StoreError> {
        let pointer = self.original(new.text, new.chars)?;
        self.store.write(|tx| {
            let mut session = self.own(tx, track)?.session;
            if let Some(to) = new.to {
                let asked = self.message(tx, track, to)?;
                if !asked.pending {
                    return Err(StoreError::Answered { number: to });
                }
                session = asked.session;
                tx.execute("UPDATE conversation_messages SET pending = 0 WHERE number = ?1", [to_sql(to)])?;
            }
            tx.prepare_cached(
                "INSERT INTO conversation_messages
                 (user, conversation, participant, session, role, text, pointer, reply_to, pending, data, created)
                 VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6, ?7, 0, ?8, ?9)",
            )?
            .execute(params![
                self.store.user(),
                track.conversation,
                track.participant,
                to_sql(session),
                new.text,
                pointer,
                new.to.map(to_sql),
                new.data.to_string(),
                to_sql(self.store.now().as_millis())
            ])?;
            let reply = self.message(tx, track, tx.last_insert_rowid().unsigned_abs())?;
            self.put_state(tx, track, new.state)?;
            for record in new.memory {
                self.memory().put(tx, record, Some((track, &reply)))?;
            }
            for job in new.jobs {
                jobs::insert(tx, self.store.user(), job, self.store.now())?;
            }
            self.put_cost(tx, track, &new.cost)?;
            Ok(reply)
        })
    }

    /// Lets a message stay without a reply, so that it no longer waits for one until it is posted again with its key.
    ///
    /// # Errors
    /// The store fails.
    pub fn leave(&self, track: Track<'_>, number: u64) -> Result<(), StoreError> {
        self.store.write(|tx| {
            self.message(tx, track, number)?;
            tx.execute("UPDATE conversation_messages SET pending = 0 WHERE number = ?1", [to_sql(number)])?;
            Ok(())
        })
    }

    /// Puts a new message in place of the newest one of the participant, whose reply goes, too: with another text, or with
    /// the same to be answered once more. `state` is what the participant was before that message; what was made from it is
    /// erased with it. `key` is what [`posted`](Self::posted) finds the new one by.
    ///
    /// # Errors
    /// The newest session has no message of the participant, there is no such participant of this user, or the store fails.
    pub fn replace_last(
        &self,
        track: Track<'_>,
        text: Option<&str>,
        key: Option<&str>,
        state: &Value,
        chars: usize,
        erasure: &Erasure,
    ) -> Result<ConversationMessage, StoreError> {
        let session = self.participant(track)?.session;
        let last = self.messages(track, session, 0..u64::MAX)?;
        let last = last.into_iter().rev().find(|message| message.speaker == Speaker::Participant);
        let last = last.ok_or(StoreError::UnknownMessage { number: 0 })?;
        let text = text.unwrap_or(&last.text);
        let pointer = self.original(text, chars)?;
        self.erase_after(erasure, |tx| {
            self.message(tx, track, last.number)?;
            let removed =
                "DELETE FROM conversation_messages WHERE user = ?1 AND conversation = ?2 AND participant = ?3
                           AND session = ?4 AND number >= ?5";
            let (user, first) = (self.store.user(), to_sql(last.number));
            tx.execute(
                removed,
                params![user, track.conversation, track.participant, to_sql(session), first],
            )?;
            tx.execute(
                "INSERT INTO conversation_messages
                 (user, conversation, participant, session, role, text, pointer, pending, key, data, created)
                 VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6, 1, ?7, ?8, ?9)",
                params![
                    user,
                    track.conversation,
                    track.participant,
                    to_sql(session),
                    text,
                    pointer,
                    key,
                    last.data.to_string(),
                    to_sql(self.store.now().as_millis())
                ],
            )?;
            let new = self.message(tx, track, tx.last_insert_rowid().unsigned_abs())?;
            self.put_state(tx, track, state)?;
            Ok(new)
        })
    }

    /// The messages of a session with numbers in a range, in order.
    ///
    /// # Errors
    /// The store fails.
    pub fn messages(
        &self,
        track: Track<'_>,
        session: u64,
        numbers: std::ops::Range<u64>,
    ) -> Result<Vec<ConversationMessage>, StoreError> {
        let (Track { conversation, participant }, user) = (track, self.store.user());
        let (session, from, to) = (to_sql(session), to_sql(numbers.start), to_sql(numbers.end));
        let within =
            "conversation = ?2 AND participant = ?3 AND session = ?4 AND number >= ?5 AND number < ?6";
        let values = params![user, conversation, participant, session, from, to];
        self.store.index().read(|tx| self.select(tx, within, values))
    }

    /// A message of a track of this user, without what is kept of it.
    ///
    /// # Errors
    /// [`StoreError::UnknownMessage`] if there is none. Or the store fails.
    pub fn text_of(&self, track: Track<'_>, number: u64) -> Result<ConversationMessage, StoreError> {
        let columns = COLUMNS.replace("data", "'null'");
        let sql = format!(
            "SELECT {columns} FROM conversation_messages
             WHERE number = ?1 AND user = ?2 AND conversation = ?3 AND participant = ?4"
        );
        let values = params![to_sql(number), self.store.user(), track.conversation, track.participant];
        self.store.index().read(|tx| {
            let found =
                tx.prepare_cached(&sql)?.query_row(values, |row| self.read_message(row)).optional()?;
            found.ok_or(StoreError::UnknownMessage { number })
        })
    }

    /// The messages of a track that wait for their replies, in order.
    ///
    /// # Errors
    /// The store fails.
    pub fn pending(&self, track: Track<'_>) -> Result<Vec<ConversationMessage>, StoreError> {
        let within = "conversation = ?2 AND participant = ?3 AND pending = 1";
        let values = params![self.store.user(), track.conversation, track.participant];
        self.store.index().read(|tx| self.select(tx, within, values))
    }

    /// The reply to a message, if there is one.
    ///
    /// # Errors
    /// The store fails.
    pub fn reply_to(&self, track: Track<'_>, number: u64) -> Result<Option<ConversationMessage>, StoreError> {
        let within = "conversation = ?2 AND participant = ?3 AND reply_to = ?4";
        let values = params![self.store.user(), track.conversation, track.participant, to_sql(number)];
        self.store.index().read(|tx| Ok(self.select(tx, within, values)?.pop()))
    }

    /// A message of a track of this user.
    ///
    /// # Errors
    /// [`StoreError::UnknownMessage`] if there is none. Or the store fails.
    pub fn get_message(&self, track: Track<'_>, number: u64) -> Result<ConversationMessage, StoreError> {
        self.store.index().read(|tx| self.message(tx, track, number))
    }

    fn message(
        &self,
        tx: &Transaction<'_>,
        track: Track<'_>,
        number: u64,
    ) -> Result<ConversationMessage, StoreError> {
        let found = self.select(
            tx,
            "conversation = ?2 AND participant = ?3 AND number = ?4",
            params![self.store.user(), track.conversation, track.participant, to_sql(number)],
        );
        found?.pop().ok_or(StoreError::UnknownMessage { number })
    }

    fn with_key(
        &self,
        tx: &Transaction<'_>,
        track: Track<'_>,
        key: &str,
        text: Option<&str>,
    ) -> Result<Option<ConversationMessage>, StoreError> {
        let found = self.select(
            tx,
            "conversation = ?2 AND participant = ?3 AND key = ?4",
            [self.store.user(), track.conversation, track.participant, key],
        );
        match found?.pop() {
            Some(found) if text.is_some_and(|text| text != found.text) => {
                Err(StoreError::KeyTaken { key: key.to_owned() })
            }
            found => Ok(found),
        }
    }

    /// Messages of this user for which a condition holds, in order.
    fn select(
        &self,
        tx: &Transaction<'_>,
        condition: &str,
        values: impl rusqlite::Params,
    ) -> Result<Vec<ConversationMessage>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM conversation_messages WHERE user = ?1 AND {condition} ORDER BY number"
        );
        let mut query = tx.prepare_cached(&sql)?;
        let rows = query.query_map(values, |row| self.read_message(row))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    pub(super) fn read_message(&self, row: &Row<'_>) -> rusqlite::Result<ConversationMessage> {
        let text: String = row.get(3)?;
        let original = row.get::<_, Option<String>>(4)?;
        Ok(ConversationMessage {
            number: number(row, 0)?,
            session: number(row, 1)?,
            speaker: if row.get::<_, i64>(2)? == 0 { Speaker::Participant } else { Speaker::Assistant },
            pointer: original
                .map(|_| Pointer::whole(self.store.key().mint(ContentHash::new(text.as_bytes())))),
            text,
            reply_to: row.get::<_, Option<i64>>(5)?.map(i64::unsigned_abs),
            pending: row.get(6)?,
            data: json(row, 7)?,
            created: time(row, 8)?,
        })
    }
}
