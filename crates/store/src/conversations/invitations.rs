//! Invitations: whom another user named for a conversation. They are no participants, and nothing of the conversation is
//! theirs, until they accept.

use larder_disk::{StoreError, Timestamp};
use rusqlite::{Transaction, params};
use serde::Serialize;
use serde_json::Value;

use super::{Conversations, Track, insert_participant, time, unknown};

/// Someone who was invited and has not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct InvitedParticipant {
    /// The name in the conversation.
    pub name: String,
    /// The user.
    pub user: String,
}

/// An invitation as the one who is invited sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Invitation {
    /// The id of the conversation.
    pub conversation: String,
    /// The name of its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The name that the one who is invited has in it.
    pub name: String,
    /// The user who owns the conversation.
    pub from: String,
    /// When it was made.
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub created: Timestamp,
}

impl Conversations<'_> {
    /// The invitations of this user, newest first.
    ///
    /// # Errors
    /// The store fails.
    pub fn invitations(&self) -> Result<Vec<Invitation>, StoreError> {
        self.store.index().read(|tx| {
            let mut query = tx.prepare_cached(
                "SELECT i.conversation, c.type, i.name, c.user, i.created
                 FROM conversation_invitations AS i JOIN conversations AS c ON c.id = i.conversation
                 WHERE i.user = ?1 ORDER BY i.created DESC, i.conversation, i.name",
            )?;
            let rows = query.query_map([self.store.user()], |row| {
                Ok(Invitation {
                    conversation: row.get(0)?,
                    kind: row.get(1)?,
                    name: row.get(2)?,
                    from: row.get(3)?,
                    created: time(row, 4)?,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// How many invitations to conversations that this user owns are open.
    ///
    /// # Errors
    /// The store fails.
    pub fn invitations_made(&self) -> Result<u64, StoreError> {
        self.store.index().read(|tx| {
            let open = "SELECT count(*) FROM conversation_invitations AS i JOIN conversations AS c ON c.id = i.conversation
                        WHERE c.user = ?1";
            Ok(tx.prepare_cached(open)?.query_row([self.store.user()], |row| super::number(row, 0))?)
        })
    }

    /// Makes this user the participant that it was invited to be, with a first session.
    ///
    /// # Errors
    /// [`StoreError::UnknownConversation`] without such an invitation of this user. Or the store fails.
    pub fn accept(&self, track: Track<'_>, state: &Value) -> Result<(), StoreError> {
        let user = self.store.user();
        self.store.write(|tx| {
            let taken = tx.execute(
                "DELETE FROM conversation_invitations WHERE conversation = ?1 AND name = ?2 AND user = ?3",
                [track.conversation, track.participant, user],
            )?;
            if taken == 0 {
                return Err(unknown(track.conversation));
            }
            insert_participant(tx, user, track, state, self.store.now())
        })
    }

    /// Takes back an invitation: of this user, or to a conversation that it owns.
    ///
    /// # Errors
    /// [`StoreError::UnknownConversation`] without such an invitation. Or the store fails.
    pub fn decline(&self, track: Track<'_>) -> Result<(), StoreError> {
        self.store.write(|tx| {
            let gone = tx.execute(
                "DELETE FROM conversation_invitations WHERE conversation = ?1 AND name = ?2 AND (user = ?3 OR EXISTS
                     (SELECT 1 FROM conversations WHERE id = ?1 AND user = ?3))",
                [track.conversation, track.participant, self.store.user()],
            )?;
            if gone == 0 { Err(unknown(track.conversation)) } else { Ok(()) }
        })
    }
}

/// Who is invited to a conversation, in the order of their names.
pub(super) fn invited(tx: &Transaction<'_>, id: &str) -> Result<Vec<InvitedParticipant>, StoreError> {
    let mut query = tx.prepare_cached(
        "SELECT name, user FROM conversation_invitations WHERE conversation = ?1 ORDER BY name",
    )?;
    let rows =
        query.query_map([id], |row| Ok(InvitedParticipant { name: row.get(0)?, user: row.get(1)? }))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Notes an invitation.
pub(super) fn insert(
    tx: &Transaction<'_>,
    user: &str,
    track: Track<'_>,
    now: Timestamp,
) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO conversation_invitations (conversation, name, user, created) VALUES (?1, ?2, ?3, ?4)",
        params![track.conversation, track.participant, user, super::to_sql(now.as_millis())],
    )?;
    Ok(())
}
