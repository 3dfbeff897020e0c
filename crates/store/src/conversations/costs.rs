//! What conversations cost, summed as it is spent.

use larder_disk::StoreError;
use rusqlite::{Transaction, params};
use serde::Serialize;

use super::{Conversations, Track};
use crate::pointers::to_sql;

const DAY_MS: u64 = 86_400_000;

/// What one call, or several together, cost.
#[derive(Debug, Clone, Copy, Default)]
pub struct ConversationCost<'a> {
    /// The stage in which it was spent.
    pub stage: &'a str,
    /// `reply`, or the kind of the job behind it.
    pub call: &'a str,
    /// Tokens of prompts.
    pub input: u64,
    /// Those of them that a provider had cached.
    pub cached_input: u64,
    /// Tokens of replies.
    pub output: u64,
    /// Millionths of a millionth of a US dollar.
    pub picos: u64,
}

/// Costs of one conversation, stage, kind of call and day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ConversationCostRow {
    /// The conversation; its type for what was spent before one was begun.
    pub conversation: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The stage in which it was spent.
    pub stage: String,
    /// `reply`, or the kind of the job behind it.
    pub call: String,
    /// Days since 1970.
    pub day: u64,
    /// Replies, or jobs.
    pub calls: u64,
    /// Tokens of prompts.
    pub input: u64,
    /// Those of them that a provider had cached.
    pub cached_input: u64,
    /// Tokens of replies.
    pub output: u64,
    /// Millionths of a millionth of a US dollar.
    pub picos: u64,
}

impl Conversations<'_> {
    /// Adds what was spent on a track. Survives a crash of the machine from the next durable write on, so that no reply
    /// waits for it.
    ///
    /// # Errors
    /// There is no such participant of this user, or the store fails.
    pub fn add_cost(&self, track: Track<'_>, cost: &ConversationCost<'_>) -> Result<(), StoreError> {
        self.store.write_unsynced(|tx| self.own(tx, track).and_then(|_| self.put_cost(tx, track, cost)))
    }

    /// Adds what was spent before a conversation of a type was begun. Its row has the type in place of a conversation.
    ///
    /// # Errors
    /// The store fails.
    pub fn add_start_cost(&self, kind: &str, cost: &ConversationCost<'_>) -> Result<(), StoreError> {
        self.store.write(|tx| self.put_row(tx, kind, Some(kind), cost))
    }

    pub(super) fn put_cost(
        &self,
        tx: &Transaction<'_>,
        track: Track<'_>,
        cost: &ConversationCost<'_>,
    ) -> Result<(), StoreError> {
        self.put_row(tx, track.conversation, None, cost)
    }

    fn put_row(
        &self,
        tx: &Transaction<'_>,
        conversation: &str,
        kind: Option<&str>,
        cost: &ConversationCost<'_>,
    ) -> Result<(), StoreError> {
        tx.prepare_cached(
            "INSERT INTO conversation_costs
             (user, conversation, type, stage, call, day, calls, input, cached_input, output, picos)
             VALUES (?1, ?2, coalesce(?10, (SELECT type FROM conversations WHERE id = ?2), ''), ?3, ?4, ?5, 1, ?6, ?7, ?8, ?9)
             ON CONFLICT DO UPDATE SET calls = calls + 1, input = input + excluded.input,
                 cached_input = cached_input + excluded.cached_input, output = output + excluded.output,
                 picos = picos + excluded.picos",
        )?
        .execute(params![
            self.store.user(),
            conversation,
            cost.stage,
            cost.call,
            to_sql(self.store.now().as_millis() / DAY_MS),
            to_sql(cost.input),
            to_sql(cost.cached_input),
            to_sql(cost.output),
            to_sql(cost.picos),
            kind
        ])?;
        Ok(())
    }

    /// What this user spent on a conversation, or today on all of them, in millionths of a millionth of a US dollar.
    ///
    /// # Errors
    /// The store fails.
    pub fn spent(&self, conversation: Option<&str>) -> Result<u64, StoreError> {
        let today = to_sql(self.store.now().as_millis() / DAY_MS);
        self.store.index().read(|tx| {
            let user = self.store.user();
            let sum: i64 = match conversation {
                Some(id) => tx
                    .prepare_cached(
                        "SELECT coalesce(sum(picos), 0) FROM conversation_costs WHERE user = ?1 AND conversation = ?2",
                    )?
                    .query_row([user, id], |row| row.get(0))?,
                None => tx
                    .prepare_cached(
                        "SELECT coalesce(sum(picos), 0) FROM conversation_costs WHERE user = ?1 AND day = ?2",
                    )?
                    .query_row(params![user, today], |row| row.get(0))?,
            };
            Ok(sum.unsigned_abs())
        })
    }

    /// What this user spent on a conversation.
    ///
    /// # Errors
    /// The store fails.
    pub fn costs_of(&self, conversation: &str) -> Result<Vec<ConversationCostRow>, StoreError> {
        let mut costs = self.costs(0)?;
        costs.retain(|row| row.conversation == conversation);
        Ok(costs)
    }

    /// What this user spent on conversations from a day on, in days since 1970.
    ///
    /// # Errors
    /// The store fails.
    pub fn costs(&self, from: u64) -> Result<Vec<ConversationCostRow>, StoreError> {
        self.store.index().read(|tx| {
            let mut query = tx.prepare_cached(
                "SELECT conversation, type, stage, call, day, calls, input, cached_input, output, picos
                 FROM conversation_costs WHERE user = ?1 AND day >= ?2 ORDER BY day, conversation, stage, call",
            )?;
            let rows = query.query_map(params![self.store.user(), to_sql(from)], |row| {
                Ok(ConversationCostRow {
                    conversation: row.get(0)?,
                    kind: row.get(1)?,
                    stage: row.get(2)?,
                    call: row.get(3)?,
                    day: super::number(row, 4)?,
                    calls: super::number(row, 5)?,
                    input: super::number(row, 6)?,
                    cached_input: super::number(row, 7)?,
                    output: super::number(row, 8)?,
                    picos: super::number(row, 9)?,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}
