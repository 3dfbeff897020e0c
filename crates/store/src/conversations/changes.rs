//! What of a person is new since somebody looked, so that what is kept of it in memory follows the store.

use larder_disk::StoreError;
use rusqlite::params;

use super::messages::WITHOUT_DATA;
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
    /// How many messages there are, and how many facts and vectors.
    pub there: [usize; 2],
}

/// The messages of a participant, by the participant's conversations: what is in them under the name is of the same user.
/// Everything that is asked but the texts is in the index of sessions.
const MESSAGES: &str = "FROM conversation_messages WHERE participant = ?2 AND conversation IN
     (SELECT conversation FROM conversation_participants WHERE user = ?1 AND name = ?2)";
const RECORDS: &str =
    "FROM memory_records WHERE user = ?1 AND participant = ?2 AND kind IN ('fact', 'vector')";

impl Conversations<'_> {
    /// What has changed about a participant of this user, in all conversations.
    ///
    /// # Errors
    /// The store fails.
    pub fn changes(&self, participant: &str, seen: PersonSeen) -> Result<PersonChanges, StoreError> {
        let person = [self.store.user(), participant];
        self.store.index().read(|tx| {
            let erasures = self.memory().last_erasure(tx)?;
            let seen = if erasures == seen.erasures { seen } else { PersonSeen::default() };
            let sql =
                format!("SELECT {WITHOUT_DATA}, conversation {MESSAGES} AND number > ?3 ORDER BY number");
            let mut query = tx.prepare_cached(&sql)?;
            let newer = params![person[0], participant, to_sql(seen.message)];
            let said = query.query_map(newer, |row| Ok((row.get(10)?, self.read_message(row)?)))?;
            let said = said.collect::<Result<_, _>>()?;
            let sql = format!("SELECT {} {RECORDS} AND number > ?3 ORDER BY number", memory::COLUMNS);
            let mut query = tx.prepare_cached(&sql)?;
            let newer = params![person[0], participant, to_sql(seen.record)];
            let records = query.query_map(newer, memory::read)?.collect::<Result<_, _>>()?;
            let count = |from: &str| -> Result<usize, StoreError> {
                let mut query = tx.prepare_cached(&format!("SELECT count(*) {from}"))?;
                let count = query.query_row(person, |row| number(row, 0))?;
                Ok(usize::try_from(count).unwrap_or(usize::MAX))
            };
            Ok(PersonChanges { erasures, said, records, there: [count(MESSAGES)?, count(RECORDS)?] })
        })
    }

    /// The numbers of all messages of a participant of this user, ascending, and of all facts and vectors.
    ///
    /// # Errors
    /// The store fails.
    pub fn numbers(&self, participant: &str) -> Result<[Vec<u64>; 2], StoreError> {
        self.store.index().read(|tx| {
            let numbers = |from: &str| -> Result<Vec<u64>, StoreError> {
                let mut query = tx.prepare_cached(&format!("SELECT number {from}"))?;
                let rows = query.query_map([self.store.user(), participant], |row| number(row, 0))?;
                let mut numbers = rows.collect::<Result<Vec<_>, _>>()?;
                numbers.sort_unstable();
                Ok(numbers)
            };
            Ok([numbers(MESSAGES)?, numbers(RECORDS)?])
        })
    }
}
