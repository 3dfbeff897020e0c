//! What of a person is new since somebody looked, so that what is kept of it in memory follows the store.

use larder_disk::StoreError;
use rusqlite::params;

use super::{ConversationMessage, Conversations, MemoryRecord, memory, number};
use crate::pointers::to_sql;

/// What somebody knows of a person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PersonSeen {
    /// [`Memory::erasures`](super::Memory::erasures).
    pub erasures: u64,
    /// The newest message.
    pub message: u64,
    /// The newest fact or vector.
    pub record: u64,
}

/// What there is of a person besides what is known.
#[derive(Debug, Clone, Default)]
pub struct PersonChanges {
    /// [`Memory::erasures`](super::Memory::erasures). If it is not what is known, nothing of that holds, and everything is
    /// given.
    pub erasures: u64,
    /// Newer messages, each with its conversation. What is kept of them is not read.
    pub said: Vec<(String, ConversationMessage)>,
    /// Facts and vectors that are newer, or were written anew.
    pub records: Vec<MemoryRecord>,
    /// The numbers of all messages, and of all facts and vectors.
    pub there: [Vec<u64>; 2],
}

impl Conversations<'_> {
    /// What has changed about a participant of this user, in all conversations.
    ///
    /// # Errors
    /// The store fails.
    pub fn changes(&self, participant: &str, seen: PersonSeen) -> Result<PersonChanges, StoreError> {
        const MESSAGES: &str =
            "FROM conversation_messages WHERE user = ?1 AND participant = ?2 AND conversation IN
             (SELECT conversation FROM conversation_participants WHERE user = ?1 AND name = ?2)";
        const RECORDS: &str =
            "FROM memory_records WHERE user = ?1 AND participant = ?2 AND kind IN ('fact', 'vector')";
        let person = [self.store.user(), participant];
        self.store.index().read(|tx| {
            let erasures = self.memory().last_erasure(tx)?;
            let seen = if erasures == seen.erasures { seen } else { PersonSeen::default() };
            let sql = format!(
                "SELECT number, session, role, text, pointer, reply_to, pending, 'null', created, coalesce(turn, number),
                     conversation
                 {MESSAGES} AND number > ?3 ORDER BY number"
            );
            let mut query = tx.prepare_cached(&sql)?;
            let newer = params![person[0], participant, to_sql(seen.message)];
            let said = query.query_map(newer, |row| Ok((row.get(10)?, self.read_message(row)?)))?;
            let said = said.collect::<Result<_, _>>()?;
            let sql = format!("SELECT {} {RECORDS} AND number > ?3 ORDER BY number", memory::COLUMNS);
            let mut query = tx.prepare_cached(&sql)?;
            let newer = params![person[0], participant, to_sql(seen.record)];
            let records = query.query_map(newer, memory::read)?.collect::<Result<_, _>>()?;
            let numbers = |from: &str| -> Result<Vec<u64>, StoreError> {
                let mut query = tx.prepare_cached(&format!("SELECT number {from}"))?;
                let mut numbers =
                    query.query_map(person, |row| number(row, 0))?.collect::<Result<Vec<_>, _>>()?;
                numbers.sort_unstable();
                Ok(numbers)
            };
            Ok(PersonChanges { erasures, said, records, there: [numbers(MESSAGES)?, numbers(RECORDS)?] })
        })
    }
}
