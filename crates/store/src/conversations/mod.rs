//! Conversations: who takes part, what each participant and the assistant said to each other, and what is remembered of
//! persons. Knows no conversation type and no rule about memory: what states and records say is up to who leads them.
//!
//! A participant's messages are its track. Everything of a track is its user's, who need not own the conversation, and
//! every look-up names user, conversation and participant. What one participant gives to another is a record of kind
//! [`MemoryKind::Share`]; nothing else of a track can be read by the user of another.

mod changes;
mod costs;
mod erase;
mod expiry;
mod invitations;
mod keys;
mod memory;
mod messages;

use std::collections::BTreeSet;

use larder_disk::locks::{TurnLease, take_lease};
use larder_disk::{StoreError, Timestamp};
use rusqlite::{OptionalExtension, Row, Transaction, params};
use serde::Serialize;
use serde_json::Value;

use crate::pointers::to_sql;
use crate::retention::limit;
use crate::store::UserStore;
use larder_disk::user;

pub use self::changes::{PersonChanges, PersonSeen};
pub use self::costs::{ConversationCost, ConversationCostRow};
pub(crate) use self::erase::pass_on;
pub use self::erase::{Erasure, ReplacedMessage};
pub use self::expiry::RestingSide;
pub use self::invitations::{Invitation, InvitedParticipant};
pub use self::memory::{ERASE_JOB, Memory, MemoryChange, MemoryFilter, MemoryKind, MemoryRecord};
pub use self::messages::{ConversationMessage, NewMessage, NewReply, Speaker};

/// Hexadecimal digits of what makes an id unique.
const ID_BYTES: usize = 8;

/// A conversation with its participants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ConversationRecord {
    /// `conv-` and digits.
    pub id: String,
    /// The user who began it.
    pub owner: String,
    /// The name of its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// A line that tells it from others.
    pub title: String,
    /// When it was begun.
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub created: Timestamp,
    /// Who takes part, in the order of their names.
    pub participants: Vec<ParticipantRecord>,
    /// Whom another user named and who has not accepted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invited: Vec<InvitedParticipant>,
}

/// A participant. Of one whose user is another, the session is 0 and the state is null, unless the type of the conversation
/// lets it be seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ParticipantRecord {
    /// Its name in the conversation.
    pub name: String,
    /// Its user.
    pub user: String,
    /// The number of its newest session.
    pub session: u64,
    /// What whoever leads the conversation keeps of it.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub state: Value,
}

/// A session of a track.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SessionRecord {
    /// Its number, from 1 on.
    pub session: u64,
    /// What it was begun with.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub opening: Value,
    /// When it was begun.
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub created: Timestamp,
}

/// A conversation to be begun.
#[derive(Debug, Clone, Copy)]
pub struct NewConversation<'a> {
    /// The name of its type.
    pub kind: &'a str,
    /// A line that tells it from others.
    pub title: &'a str,
    /// Names of participants and their users.
    pub participants: &'a [(String, String)],
    /// Names and users of those who take part once they accept.
    pub invited: &'a [(String, String)],
    /// The state in which each participant starts.
    pub state: &'a Value,
}

/// What one participant and the assistant say to each other in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Track<'a> {
    /// The id of the conversation.
    pub conversation: &'a str,
    /// The participant's name.
    pub participant: &'a str,
}

/// The conversations of one user; from [`UserStore::conversations`].
#[derive(Debug, Clone, Copy)]
pub struct Conversations<'s> {
    pub(crate) store: &'s UserStore,
}

impl Conversations<'_> {
    /// Begins a conversation, with a first session for each participant.
    ///
    /// # Errors
    /// There is no participant, two have one name, a name or user cannot be used, or the store fails.
    pub fn create(&self, new: &NewConversation<'_>) -> Result<ConversationRecord, StoreError> {
        user::check_name("conversation type", new.kind)?;
        let invalid = |name: &str, reason| {
            Err(StoreError::InvalidName { what: "participant", name: name.to_owned(), reason })
        };
        let mut users = Vec::new();
        let mut names = BTreeSet::new();
        for (name, of) in new.participants.iter().chain(new.invited) {
            user::check_name("participant", name)?;
            if !names.insert(name) {
                return invalid(name, "given twice");
            }
            users.push(self.store.store().user(of)?);
        }
        if new.participants.is_empty() {
            return invalid("", "missing: name yourself among the participants");
        }
        let id = self.new_id("conv")?;
        let now = self.store.now();
        self.store.write(|tx| {
            tx.execute(
                "INSERT INTO conversations (id, user, type, title, created) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![id, self.store.user(), new.kind, new.title, to_sql(now.as_millis())],
            )?;
            users.iter().try_for_each(|user| user.require_staying(tx))?;
            for (name, of) in new.participants {
                insert_participant(tx, of, Track { conversation: &id, participant: name }, new.state, now)?;
            }
            for (name, of) in new.invited {
                invitations::insert(tx, of, Track { conversation: &id, participant: name }, now)?;
            }
            self.read(tx, &id)
        })
    }

    /// An id that no other thing has: a prefix, `-` and digits.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn new_id(&self, prefix: &str) -> Result<String, StoreError> {
        let bytes: [u8; ID_BYTES] = self.store.store().random()?;
        Ok(bytes.iter().fold(format!("{prefix}-"), |id, byte| format!("{id}{byte:02x}")))
    }

    /// A conversation that this user began or takes part in.
    ///
    /// # Errors
    /// [`StoreError::UnknownConversation`] for any other, whether it exists or not. Or the store fails.
    pub fn get(&self, id: &str) -> Result<ConversationRecord, StoreError> {
        self.store.index().read(|tx| self.read(tx, id))
    }

    fn read(&self, tx: &Transaction<'_>, id: &str) -> Result<ConversationRecord, StoreError> {
        let user = self.store.user();
        let mut query = tx.prepare_cached(
            "SELECT user, type, title, created FROM conversations AS c WHERE id = ?1 AND (user = ?2 OR EXISTS
                 (SELECT 1 FROM conversation_participants AS p WHERE p.conversation = c.id AND p.user = ?2))",
        )?;
        let found = query.query_row([id, user], |row| {
            Ok(ConversationRecord {
                id: id.to_owned(),
                owner: row.get(0)?,
                kind: row.get(1)?,
                title: row.get(2)?,
                created: time(row, 3)?,
                participants: Vec::new(),
                invited: Vec::new(),
            })
        });
        let mut found = found.optional()?.ok_or_else(|| unknown(id))?;
        let mut query = tx.prepare_cached(
            "SELECT name, user, session, state FROM conversation_participants WHERE conversation = ?1 ORDER BY name",
        )?;
        let participants = query.query_map([id], |row| {
            let of: String = row.get(1)?;
            let own = of == user;
            Ok(ParticipantRecord {
                name: row.get(0)?,
                session: if own { number(row, 2)? } else { 0 },
                state: if own { json(row, 3)? } else { Value::Null },
                user: of,
            })
        })?;
        found.participants = participants.collect::<Result<_, _>>()?;
        found.invited = invitations::invited(tx, id)?;
        Ok(found)
    }

    /// The conversations that this user began or takes part in, newest first.
    ///
    /// # Errors
    /// The store fails.
    pub fn list(&self) -> Result<Vec<ConversationRecord>, StoreError> {
        self.store.index().read(|tx| {
            let mut query = tx.prepare_cached(
                "SELECT id FROM conversations WHERE user = ?1
                 OR id IN (SELECT conversation FROM conversation_participants WHERE user = ?1)
                 ORDER BY created DESC, id",
            )?;
            let ids = query.query_map([self.store.user()], |row| row.get(0))?;
            ids.map(|id: rusqlite::Result<String>| self.read(tx, &id?)).collect()
        })
    }

    /// A participant of this user.
    ///
    /// # Errors
    /// [`StoreError::UnknownConversation`] if there is none of this user. Or the store fails.
    pub fn participant(&self, track: Track<'_>) -> Result<ParticipantRecord, StoreError> {
        self.store.index().read(|tx| self.own(tx, track))
    }

    fn own(&self, tx: &Transaction<'_>, track: Track<'_>) -> Result<ParticipantRecord, StoreError> {
        let mut query = tx.prepare_cached(
            "SELECT session, state FROM conversation_participants WHERE conversation = ?1 AND name = ?2 AND user = ?3",
        )?;
        let found = query.query_row([track.conversation, track.participant, self.store.user()], |row| {
            Ok(ParticipantRecord {
                name: track.participant.to_owned(),
                user: self.store.user().to_owned(),
                session: number(row, 0)?,
                state: json(row, 1)?,
            })
        });
        found.optional()?.ok_or_else(|| unknown(track.conversation))
    }

    /// Replaces what is kept of a participant.
    ///
    /// # Errors
    /// There is no such participant of this user, or the store fails.
    pub fn set_state(&self, track: Track<'_>, state: &Value) -> Result<(), StoreError> {
        self.store.write(|tx| self.own(tx, track).and_then(|_| self.put_state(tx, track, state)))
    }

    fn put_state(&self, tx: &Transaction<'_>, track: Track<'_>, state: &Value) -> Result<(), StoreError> {
        tx.prepare_cached(
            "UPDATE conversation_participants SET state = ?4 WHERE conversation = ?1 AND name = ?2 AND user = ?3",
        )?
        .execute(params![track.conversation, track.participant, self.store.user(), state.to_string()])?;
        Ok(())
    }

    /// Begins a session of a participant, which is then the newest, and returns its number.
    ///
    /// # Errors
    /// There is no such participant of this user, or the store fails.
    pub fn begin_session(&self, track: Track<'_>, opening: &Value, state: &Value) -> Result<u64, StoreError> {
        self.store.write(|tx| {
            let session = self.own(tx, track)?.session + 1;
            tx.execute(
                "UPDATE conversation_participants SET session = ?3 WHERE conversation = ?1 AND name = ?2",
                params![track.conversation, track.participant, to_sql(session)],
            )?;
            self.put_state(tx, track, state)?;
            insert_session(tx, self.store.user(), track, session, opening, self.store.now())?;
            Ok(session)
        })
    }

    /// The sessions of a participant of this user, in order.
    ///
    /// # Errors
    /// The store fails.
    pub fn sessions(&self, track: Track<'_>) -> Result<Vec<SessionRecord>, StoreError> {
        self.store.index().read(|tx| {
            let mut query = tx.prepare_cached(
                "SELECT session, opening, created FROM conversation_sessions
                 WHERE conversation = ?1 AND participant = ?2 AND user = ?3 ORDER BY session",
            )?;
            let rows =
                query.query_map([track.conversation, track.participant, self.store.user()], |row| {
                    Ok(SessionRecord {
                        session: number(row, 0)?,
                        opening: json(row, 1)?,
                        created: time(row, 2)?,
                    })
                })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// A value in the state of each other participant, by name, from its path: all that a participant may know of the others.
    ///
    /// # Errors
    /// There is no such participant of this user, or the store fails.
    pub fn values_of_others(&self, track: Track<'_>, path: &str) -> Result<Vec<(String, Value)>, StoreError> {
        self.store.index().read(|tx| {
            self.own(tx, track)?;
            let mut query = tx.prepare_cached(
                "SELECT name, coalesce(state -> ?3, 'null') FROM conversation_participants
                 WHERE conversation = ?1 AND name <> ?2",
            )?;
            let rows = query.query_map([track.conversation, track.participant, path], |row| {
                Ok((row.get(0)?, json(row, 1)?))
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// Takes the right to answer the messages of a track; `None` while another process, or another handle of this one, has
    /// it. It ends when it is dropped, or its process dies.
    ///
    /// # Errors
    /// The home folder cannot be written.
    pub fn take_lease(&self, track: Track<'_>) -> Result<Option<TurnLease>, StoreError> {
        let name = format!("{}/{}", track.conversation, track.participant);
        let digest = blake3::hash(name.as_bytes()).to_hex();
        take_lease(self.store.store().home().join("turns").join(format!("talk-{}", &digest[..32])))
    }
}

/// Makes a user a participant, with a first session.
fn insert_participant(
    tx: &Transaction<'_>,
    user: &str,
    track: Track<'_>,
    state: &Value,
    now: Timestamp,
) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO conversation_participants (conversation, name, user, session, state)
         VALUES (?1, ?2, ?3, 1, ?4)",
        params![track.conversation, track.participant, user, state.to_string()],
    )?;
    insert_session(tx, user, track, 1, &Value::Null, now)
}

fn insert_session(
    tx: &Transaction<'_>,
    user: &str,
    track: Track<'_>,
    session: u64,
    opening: &Value,
    now: Timestamp,
) -> Result<(), StoreError> {
    limit::require_room(tx)?;
    tx.execute(
        "INSERT INTO conversation_sessions (conversation, participant, session, user, opening, created)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            track.conversation,
            track.participant,
            to_sql(session),
            user,
            opening.to_string(),
            to_sql(now.as_millis())
        ],
    )?;
    Ok(())
}

fn unknown(id: &str) -> StoreError {
    StoreError::UnknownConversation { id: id.chars().take(80).collect() }
}

fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)?.unsigned_abs())
}

fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    Ok(Timestamp::from_millis(number(row, column)?))
}

fn json(row: &Row<'_>, column: usize) -> rusqlite::Result<Value> {
    Ok(serde_json::from_str(&row.get::<_, String>(column)?).unwrap_or_default())
}
