//! The messages of a track: posted once however often a client repeats it, answered once and in order.

use larder_disk::{StoreError, Timestamp};
use larder_text::hash::ContentHash;
use larder_text::pointer::{Pointer, PointerId};
use rusqlite::{Row, Transaction, params};
use serde::Serialize;
use serde_json::Value;

use super::{ConversationCost, Conversations, Erasure, MemoryRecord, Track, json, number, time};
use crate::jobs::{self, NewJob};
use crate::pointers::to_sql;
use crate::retention::holds;
use crate::retention::limit::{self, RoomCheck};
use larder_disk::user;

const COLUMNS: &str =
    "number, session, role, text, pointer, reply_to, pending, data, created, coalesce(turn, number)";
/// What is read of messages where what is kept of them is not asked for.
pub(super) const WITHOUT_DATA: &str =
    "number, session, role, text, pointer, reply_to, pending, 'null', created, coalesce(turn, number)";
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
    /// The turn it is of: the number of the message that began it, or a later one if that was posted again after it had been
    /// left without a reply. Messages are in the order of turns, whenever they were posted.
    #[serde(skip)]
    pub turn: u64,
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
    /// What it cost, by call.
    pub costs: &'a [ConversationCost<'a>],
    /// The characters from which the text is an original, too.
    pub chars: usize,
}

impl ConversationMessage {
    /// Its place in its track: messages are in the order of these.
    pub const fn position(&self) -> (u64, u64) {
        (self.turn, self.number)
    }
}

impl Conversations<'_> {
    /// Stores a message of the participant, which then waits for its reply. One that was posted with the same key and text
    /// is returned as it is, and one whose message was edited is the one that took its place.
    ///
    /// # Errors
    /// [`StoreError::KeyTaken`] if the key is of another text, [`StoreError::KeyGone`] if its message was deleted,
    /// [`StoreError::OverLimit`]. There is no such participant of this user, or the store fails.
    pub fn post(&self, track: Track<'_>, new: &NewMessage<'_>) -> Result<ConversationMessage, StoreError> {
        if let Some(key) = new.key {
            user::check_name("Idempotency-Key", key)?;
        }
        self.participant(track)?;
        let pointer = self.original(new.text, new.chars, limit::require_room)?;
        self.store.write(|tx| {
            let session = self.own(tx, track)?.session;
            if let Some(key) = new.key
                && let Some(earlier) = self.with_key(tx, track, key, Some(new.text))?
            {
                self.wait_again(tx, &earlier)?;
                return self.message(tx, track, earlier.number);
            }
            limit::require_room(tx)?;
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
            self.inserted(tx, track)
        })
    }

    /// The message that was inserted last. What its text refers to is noted.
    fn inserted(&self, tx: &Transaction<'_>, track: Track<'_>) -> Result<ConversationMessage, StoreError> {
        let message = self.message(tx, track, tx.last_insert_rowid().unsigned_abs())?;
        holds::set_of_message(tx, self.store.user(), message.number, &message.text)?;
        Ok(message)
    }

    /// One that was left without a reply waits for one again, behind everything that was said meanwhile.
    fn wait_again(&self, tx: &Transaction<'_>, message: &ConversationMessage) -> Result<(), StoreError> {
        let number = to_sql(message.number);
        let is_answered =
            tx.prepare_cached("SELECT 1 FROM conversation_messages WHERE reply_to = ?1")?.exists([number])?;
        if message.pending || is_answered || message.speaker == Speaker::Assistant {
            return Ok(());
        }
        tx.execute("UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'conversation_messages'", [])?;
        tx.execute(
            "UPDATE conversation_messages SET pending = 1, turn =
                 (SELECT seq FROM sqlite_sequence WHERE name = 'conversation_messages') WHERE number = ?1",
            [number],
        )?;
        // What is kept in memory has it at its old place.
        self.memory().note_erasure(tx)
    }

    /// Stores a text of more than `chars` characters as an original; returns its name.
    pub(super) fn original(
        &self,
        text: &str,
        chars: usize,
        check: RoomCheck,
    ) -> Result<Option<String>, StoreError> {
        if text.chars().nth(chars).is_none() {
            return Ok(None);
        }
        let stored =
            self.store.pointers().insert_checked(text.as_bytes(), POINTER_KIND, "a message", check)?;
        Ok(Some(PointerId::name_of(stored.content)))
    }

    /// Stores a message of the assistant together with the state of the participant, with what is to be remembered and
    /// what is to be done.
    ///
    /// # Errors
    /// [`StoreError::Answered`] if the message is no longer waiting for a reply. There is no such participant of this user,
    /// or the store fails.
    pub fn answer(&self, track: Track<'_>, new: &NewReply<'_>) -> Result<ConversationMessage, StoreError> {
        // It was paid for.
        let pointer = self.original(new.text, new.chars, limit::exempt)?;
        self.store.write(|tx| {
            let (mut session, mut turn) = (self.own(tx, track)?.session, None);
            if let Some(to) = new.to {
                let asked = self.message(tx, track, to)?;
                if !asked.pending {
                    return Err(StoreError::Answered { number: to });
                }
                (session, turn) = (asked.session, Some(asked.turn));
                tx.execute("UPDATE conversation_messages SET pending = 0 WHERE number = ?1", [to_sql(to)])?;
            }
            tx.prepare_cached(
                "INSERT INTO conversation_messages
                 (user, conversation, participant, session, role, text, pointer, reply_to, pending, data, created, turn)
                 VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6, ?7, 0, ?8, ?9, ?10)",
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
                to_sql(self.store.now().as_millis()),
                turn.map(to_sql)
            ])?;
            let reply = self.inserted(tx, track)?;
            self.put_state(tx, track, new.state)?;
            for record in new.memory {
                self.memory().put(tx, record, Some((track, &reply)))?;
            }
            for job in new.jobs {
                jobs::insert(tx, self.store.user(), job, self.store.now())?;
            }
            for cost in new.costs {
                self.put_cost(tx, track, cost)?;
            }
            Ok(reply)
        })
    }

    /// Lets a message stay without a reply, so that it no longer waits for one until it is posted again.
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

    /// Has a message that was left without a reply wait for one again, behind everything that was said meanwhile.
    ///
    /// # Errors
    /// There is no such message of this user, or the store fails.
    pub fn await_reply(&self, track: Track<'_>, number: u64) -> Result<(), StoreError> {
        self.store.write(|tx| {
            let message = self.message(tx, track, number)?;
            self.wait_again(tx, &message)
        })
    }

    /// Puts a new message in place of the newest one of the participant, `last`: with another text, or with the same to be
    /// answered once more. What goes with that message, it included, is named in `erasure`. `state` is what the participant
    /// was before it. `key` is what [`posted`](Self::posted) finds the new one by; so does the key of the old one.
    ///
    /// # Errors
    /// [`StoreError::NotLast`] if another message of the participant came after it. There is no such message or participant
    /// of this user, or the store fails.
    pub fn replace_last(
        &self,
        track: Track<'_>,
        last: u64,
        (text, key): (Option<&str>, Option<&str>),
        state: &Value,
        chars: usize,
        erasure: &Erasure,
    ) -> Result<ConversationMessage, StoreError> {
        let last = self.get_message(track, last)?;
        let text = text.unwrap_or(&last.text);
        let pointer = self.original(text, chars, limit::require_room)?;
        self.erase_after(erasure, |tx| {
            self.message(tx, track, last.number)?;
            limit::require_room(tx)?;
            let (user, session) = (self.store.user(), to_sql(last.session));
            let later = "conversation = ?2 AND participant = ?3 AND session = ?4 AND role = 0
                         AND coalesce(turn, number) > ?5";
            let values = params![user, track.conversation, track.participant, session, to_sql(last.turn)];
            if !self.select(tx, later, values)?.is_empty() {
                return Err(StoreError::NotLast { number: last.number });
            }
            tx.execute(
                "INSERT INTO conversation_messages
                 (user, conversation, participant, session, role, text, pointer, pending, key, data, created)
                 VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6, 1, ?7, ?8, ?9)",
                params![
                    user,
                    track.conversation,
                    track.participant,
                    session,
                    text,
                    pointer,
                    key,
                    last.data.to_string(),
                    to_sql(self.store.now().as_millis())
                ],
            )?;
            let new = self.inserted(tx, track)?;
            tx.execute(
                "UPDATE conversation_keys SET number = ?2 WHERE number = ?1",
                [to_sql(last.number), to_sql(new.number)],
            )?;
            self.keep_key(tx, track, last.number, Some(new.number))?;
            self.put_state(tx, track, state)?;
            Ok(new)
        })
    }

    /// The messages of a session in the turns before one, in order, without those that wait for their replies and without
    /// what is kept of them.
    ///
    /// # Errors
    /// The store fails.
    pub fn messages_before(
        &self,
        track: Track<'_>,
        session: u64,
        turn: u64,
    ) -> Result<Vec<ConversationMessage>, StoreError> {
        let (Track { conversation, participant }, user) = (track, self.store.user());
        let within = "conversation = ?2 AND participant = ?3 AND session = ?4 AND pending = 0
                      AND coalesce(turn, number) < ?5";
        let values = params![user, conversation, participant, to_sql(session), to_sql(turn)];
        self.store.index().read(|tx| self.select_columns(tx, WITHOUT_DATA, within, values))
    }

    /// The messages of a session with numbers in a range, in the order of turns.
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
        let (Track { conversation, participant }, user) = (track, self.store.user());
        let within = "conversation = ?2 AND participant = ?3 AND number = ?4";
        let values = params![user, conversation, participant, to_sql(number)];
        let mut found =
            self.store.index().read(|tx| self.select_columns(tx, WITHOUT_DATA, within, values))?;
        found.pop().ok_or(StoreError::UnknownMessage { number })
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

    pub(super) fn message(
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

    /// Messages of this user for which a condition holds, in order.
    pub(super) fn select(
        &self,
        tx: &Transaction<'_>,
        condition: &str,
        values: impl rusqlite::Params,
    ) -> Result<Vec<ConversationMessage>, StoreError> {
        self.select_columns(tx, COLUMNS, condition, values)
    }

    fn select_columns(
        &self,
        tx: &Transaction<'_>,
        columns: &str,
        condition: &str,
        values: impl rusqlite::Params,
    ) -> Result<Vec<ConversationMessage>, StoreError> {
        let sql = format!(
            "SELECT {columns} FROM conversation_messages WHERE user = ?1 AND {condition}
             ORDER BY coalesce(turn, number), number"
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
            turn: number(row, 9)?,
        })
    }
}
