//! Keys with which clients make a repeated post the same one. They outlive their messages, so that a late repetition finds
//! what became of one.

use larder_disk::StoreError;
use rusqlite::{OptionalExtension, Transaction, params};

use super::{ConversationMessage, Conversations, Track};
use crate::pointers::to_sql;
use larder_disk::user;

impl Conversations<'_> {
    /// The message of a track that was posted with a key and, if one is given, this text.
    ///
    /// # Errors
    /// [`StoreError::KeyTaken`] if the key is of another text, [`StoreError::KeyGone`] if its message was deleted. Or the
    /// store fails.
    pub fn posted(
        &self,
        track: Track<'_>,
        key: &str,
        text: Option<&str>,
    ) -> Result<Option<ConversationMessage>, StoreError> {
        user::check_name("Idempotency-Key", key)?;
        self.store.index().read(|tx| self.with_key(tx, track, key, text))
    }

    /// Keeps the key of a message that is about to be deleted, so that a late repetition of its post does not post it anew.
    ///
    /// # Errors
    /// The store fails.
    pub fn retire_key(&self, track: Track<'_>, number: u64) -> Result<(), StoreError> {
        self.store.write(|tx| self.keep_key(tx, track, number, None))
    }

    pub(super) fn keep_key(
        &self,
        tx: &Transaction<'_>,
        track: Track<'_>,
        number: u64,
        replaced_by: Option<u64>,
    ) -> Result<(), StoreError> {
        tx.prepare_cached(
            "INSERT OR REPLACE INTO conversation_keys (conversation, participant, key, user, number)
             SELECT conversation, participant, key, user, ?5 FROM conversation_messages
             WHERE user = ?1 AND conversation = ?2 AND participant = ?3 AND number = ?4 AND key IS NOT NULL",
        )?
        .execute(params![
            self.store.user(),
            track.conversation,
            track.participant,
            to_sql(number),
            replaced_by.map(to_sql)
        ])?;
        Ok(())
    }

    /// The message that was posted with a key, or the one that took its place.
    pub(super) fn with_key(
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
            None => self.with_kept_key(tx, track, key),
            found => Ok(found),
        }
    }

    /// The message that took the place of the one that was posted with a key.
    fn with_kept_key(
        &self,
        tx: &Transaction<'_>,
        track: Track<'_>,
        key: &str,
    ) -> Result<Option<ConversationMessage>, StoreError> {
        let kept: Option<Option<i64>> = tx
            .prepare_cached(
                "SELECT number FROM conversation_keys
                 WHERE user = ?1 AND conversation = ?2 AND participant = ?3 AND key = ?4",
            )?
            .query_row([self.store.user(), track.conversation, track.participant, key], |row| row.get(0))
            .optional()?;
        let Some(number) = kept else { return Ok(None) };
        let gone = StoreError::KeyGone { key: key.to_owned() };
        match self.message(tx, track, number.unwrap_or_default().unsigned_abs()) {
            Err(StoreError::UnknownMessage { .. }) => Err(gone),
            found => found.map(Some),
        }
    }
}
