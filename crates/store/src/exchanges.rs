//! The record of every request through the gateway: columns for listing and summing, and an opaque JSON document from
//! the caller. Costs are summed over requests and runs.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension, Row};
use serde::Serialize;

use crate::pointers::to_sql;
use crate::store::{StayingUsers, Store, UserStore};
use larder_disk::StoreError;
use larder_disk::{MILLIS_PER_DAY, Timestamp};

/// Requests, those that ran a recipe with one row for each model that was asked.
const ANSWERED: &str = include_str!("exchanges/answered.sql");

/// Runs that no request pays for, in the columns of exchanges, one row for each model. Without tokens of a reply and a cost
/// no call was answered: the prompt was only packed. Records that lack `request_id` may belong to a request that is counted.
pub(crate) const PAID_RUNS: &str = include_str!("exchanges/paid_runs.sql");

/// A request to be recorded.
#[derive(Debug, Clone, Copy)]
pub struct NewExchange<'a> {
    /// Its unique id.
    pub id: &'a str,
    /// The conversation it belongs to.
    pub session: Option<&'a str>,
    /// When it was received.
    pub time: Timestamp,
    /// The model that answered, or was called.
    pub model: &'a str,
    /// The recipe that it ran.
    pub recipe: Option<&'a str>,
    /// The HTTP status of the answer.
    pub status: u16,
    /// Prompt tokens as the provider reported them.
    pub tokens_in: u64,
    /// Reply tokens as the provider reported them.
    pub tokens_out: u64,
    /// Prompt tokens as counted before the policy.
    pub tokens_before: u64,
    /// Prompt tokens as counted after it.
    pub tokens_after: u64,
    /// What it cost, in picodollars; `None` without a price.
    pub cost_picos: Option<u64>,
    /// What it would have cost without Larder.
    pub without_picos: Option<u64>,
    /// How many parts of its prompt changed form.
    pub compactions: u64,
    /// The originals that its window named, by the names of their pointers: they count as used.
    pub used: &'a [&'a str],
    /// Everything else, as JSON.
    pub json: &'a str,
}

/// Which exchanges to list.
#[derive(Debug, Clone, Default)]
pub struct ExchangeFilter {
    /// Only those of this conversation.
    pub session: Option<String>,
    /// Only those of this model.
    pub model: Option<String>,
    /// Only those received at this time or later.
    pub since: Option<Timestamp>,
    /// Only those before the one with this id; the list is empty if it does not exist.
    pub before: Option<String>,
    /// At most this many, the newest; `None` for all.
    pub limit: Option<u64>,
}

/// Sums over the requests of one conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SessionSummary {
    /// Its id.
    pub session: String,
    /// When its first request was received.
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub first: Timestamp,
    /// When its last request was received.
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub last: Timestamp,
    /// How many there were.
    pub requests: u64,
    /// Prompt tokens before the policy.
    pub tokens_before: u64,
    /// Prompt tokens after it.
    pub tokens_after: u64,
    /// Its cost in picodollars, as far as models have prices.
    #[serde(skip)]
    pub cost_picos: u64,
    /// What it would have cost without Larder.
    #[serde(skip)]
    pub without_picos: u64,
    /// How many parts of its prompts changed form.
    pub compactions: u64,
}

/// The cost of one day's requests to one model, or of the runs of one recipe. Runs requested by a request are part of
/// that request's cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CostRow {
    /// The day in UTC, such as `2026-11-22`.
    #[cfg_attr(feature = "schema", schema(example = "2026-11-22"))]
    pub day: String,
    /// The model's name in the table, or its id if the table does not have it.
    pub model: String,
    /// The recipe: with its category for requests, without it for independent runs; `None` for requests that ran none.
    pub recipe: Option<String>,
    /// How many requests and runs asked the model: one that asked several counts for each.
    pub requests: u64,
    /// How many of them have no known price and are not included in the costs.
    pub unpriced: u64,
    /// Prompt tokens as reported by the provider, or estimated if it reported nothing.
    #[serde(rename = "input_tokens")]
    pub tokens_in: u64,
    /// Reply tokens, counted likewise.
    #[serde(rename = "output_tokens")]
    pub tokens_out: u64,
    /// The cost in picodollars.
    #[serde(skip)]
    pub cost_picos: u64,
    /// The cost without Larder.
    #[serde(skip)]
    pub without_picos: u64,
}

/// The originals that models read back from the results of one tool, and what that took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReadBackRow {
    /// The tool; empty if the record does not say which it was.
    pub tool: String,
    /// How often something was read back.
    pub readings: u64,
    /// How many requests did so.
    pub requests: u64,
    /// Tokens of what was read.
    pub tokens: u64,
    /// Tokens of the further calls of models that it took, prompts and replies.
    pub spent_tokens: u64,
    /// How many readings have no known price and are not included in the cost.
    pub unpriced: u64,
    /// The cost of these calls in picodollars.
    #[serde(skip)]
    pub cost_picos: u64,
}

impl Store {
    /// Records many requests, of any users, in one durable transaction, and returns how many were added.
    ///
    /// An existing id is skipped, so a batch may be repeated after a failure. Requests of a user who is being deleted,
    /// or was after they began, are skipped.
    pub fn record_exchanges(&self, batch: &[(&UserStore, NewExchange<'_>)]) -> Result<usize, StoreError> {
        if batch.is_empty() {
            return Ok(0);
        }
        let added = self.index().append(|tx| {
            let mut insert = tx.prepare_cached(
                "INSERT INTO exchanges
                 (user, id, session, time, model, recipe, status, tokens_in, tokens_out, tokens_before,
                  tokens_after, cost_picos, without_picos, document, compactions)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
                 ON CONFLICT (user, id) DO NOTHING",
            )?;
            let (mut added, mut used, mut staying) = (0, BTreeMap::new(), StayingUsers::default());
            for (user, new) in batch {
                if !staying.contain(tx, user)? {
                    continue;
                }
                for name in new.used {
                    user.pointers().touch(tx, name, new.time)?;
                }
                if let Some(session) = new.session {
                    let (_, last) = used.entry((user.user(), session)).or_insert((user, new.time));
                    *last = new.time.max(*last);
                }
                added += insert.execute((
                    user.user(),
                    new.id,
                    new.session,
                    to_sql(new.time.as_millis()),
                    new.model,
                    new.recipe,
                    new.status,
                    to_sql(new.tokens_in),
                    to_sql(new.tokens_out),
                    to_sql(new.tokens_before),
                    to_sql(new.tokens_after),
                    new.cost_picos.map(to_sql),
                    new.without_picos.map(to_sql),
                    new.json,
                    to_sql(new.compactions),
                ))?;
            }
            for ((_, session), (user, last)) in used {
                user.touch_session(tx, session, last)?;
            }
            Ok(added)
        })?;
        self.index().sync()?;
        self.index().fold_log(added as u64);
        Ok(added)
    }
}

/// The records of one user's requests through the gateway; from [`UserStore::exchanges`]. They are written for many
/// users at once by [`Store::record_exchanges`].
#[derive(Debug, Clone, Copy)]
pub struct Exchanges<'s> {
    pub(crate) store: &'s UserStore,
}

impl Exchanges<'_> {
    /// The document of one exchange; `None` if the id does not exist.
    pub fn get(&self, id: &str) -> Result<Option<String>, StoreError> {
        self.store.index().read(|tx| {
            let mut query =
                tx.prepare_cached("SELECT document FROM exchanges WHERE user = ?1 AND id = ?2")?;
            Ok(query.query_row((self.store.user(), id), |row| row.get(0)).optional()?)
        })
    }

    /// The documents of this user's exchanges, newest first.
    pub fn list(&self, filter: &ExchangeFilter) -> Result<Vec<String>, StoreError> {
        self.store.index().read(|tx| {
            let start = match &filter.before {
                None => Some((i64::MAX, i64::MAX)),
                Some(id) => tx
                    .prepare_cached("SELECT time, seq FROM exchanges WHERE user = ?1 AND id = ?2")?
                    .query_row((self.store.user(), id), |row| Ok((row.get(0)?, row.get(1)?)))
                    .optional()?,
            };
            let Some((time, seq)) = start else { return Ok(Vec::new()) };
            // If one session has most records, SQLite prefers a full scan to its index, even for a session that has
            // none.
            let (index, session) = match filter.session {
                Some(_) => ("INDEXED BY exchanges_of_session", "session = ?2"),
                None => ("", "?2 IS NULL"),
            };
            let mut query = tx.prepare_cached(&format!(
                "SELECT document FROM exchanges {index}
                 WHERE user = ?1 AND {session} AND (?3 IS NULL OR model = ?3)
                   AND time >= ?4 AND time <= ?5 AND (time < ?5 OR seq < ?6)
                 ORDER BY time DESC, seq DESC LIMIT ?7"
            ))?;
            let since = filter.since.map_or(0, |since| to_sql(since.as_millis()));
            let limit = filter.limit.map_or(i64::MAX, to_sql);
            let given = (self.store.user(), &filter.session, &filter.model, since, time, seq, limit);
            let rows = query.query_map(given, |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// Whether a conversation has sent a prompt: requests that were refused or only counted have no tokens.
    pub fn has_prompts(&self, session: &str) -> Result<bool, StoreError> {
        self.store.index().read(|tx| {
            let mut query = tx.prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM exchanges INDEXED BY exchanges_of_session
                                WHERE user = ?1 AND session = ?2 AND tokens_before > 0)",
            )?;
            Ok(query.query_row((self.store.user(), session), |row| row.get(0))?)
        })
    }

    /// This user's conversations, the one used last first.
    pub fn sessions(&self, limit: u64) -> Result<Vec<SessionSummary>, StoreError> {
        self.store.index().read(|tx| {
            let mut query = tx.prepare_cached(
                "SELECT session, min(time), max(time), count(*), total(tokens_before), total(tokens_after),
                        total(cost_picos), total(without_picos), total(compactions)
                 FROM exchanges WHERE user = ?1 AND session IS NOT NULL
                 GROUP BY session ORDER BY max(time) DESC, max(seq) DESC LIMIT ?2",
            )?;
            let rows = query.query_map((self.store.user(), to_sql(limit)), |row| {
                Ok(SessionSummary {
                    session: row.get(0)?,
                    first: Timestamp::from_millis(row.get::<_, i64>(1)?.unsigned_abs()),
                    last: Timestamp::from_millis(row.get::<_, i64>(2)?.unsigned_abs()),
                    requests: row.get::<_, i64>(3)?.unsigned_abs(),
                    tokens_before: total(row, 4)?,
                    tokens_after: total(row, 5)?,
                    cost_picos: total(row, 6)?,
                    without_picos: total(row, 7)?,
                    compactions: total(row, 8)?,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// What models read back since a given time, by tool, the most expensive first. Documents without the list
    /// `rehydrations` count as none.
    pub fn read_back(&self, since: Timestamp) -> Result<Vec<ReadBackRow>, StoreError> {
        self.store.index().read(|tx| {
            // Few requests read something back, and a search is faster than parsing the documents of all others. Texts
            // inside a document cannot contain these characters: their quotes are escaped.
            let mut query = tx.prepare_cached(
                "SELECT coalesce(one.value ->> '$.tool', ''), count(*), count(DISTINCT exchanges.id),
                        total(one.value ->> '$.tokens'), total(one.value ->> '$.spent_tokens'),
                        count(*) - count(one.value ->> '$.cost'),
                        total(round((one.value ->> '$.cost') * 1e12))
                 FROM exchanges, json_each(document, '$.rehydrations') AS one
                 WHERE user = ?1 AND time >= ?2 AND instr(document, '\"rehydrations\":[{') > 0
                 GROUP BY 1 ORDER BY 7 DESC, 5 DESC, 2 DESC, 1",
            )?;
            let rows = query.query_map((self.store.user(), to_sql(since.as_millis())), |row| {
                Ok(ReadBackRow {
                    tool: row.get(0)?,
                    readings: row.get::<_, i64>(1)?.unsigned_abs(),
                    requests: row.get::<_, i64>(2)?.unsigned_abs(),
                    tokens: total(row, 3)?,
                    spent_tokens: total(row, 4)?,
                    unpriced: row.get::<_, i64>(5)?.unsigned_abs(),
                    cost_picos: total(row, 6)?,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// The cost of this user's requests and runs since a given time, by day, model and recipe; newest day first. A
    /// run requested by a request is part of the request, and one refused before any call is not counted.
    pub fn costs(&self, since: Timestamp) -> Result<Vec<CostRow>, StoreError> {
        self.store.index().read(|tx| {
            let mut query = tx.prepare_cached(&format!(
                "SELECT time / ?3, model, recipe, count(*), count(*) - count(cost_picos), total(tokens_in),
                        total(tokens_out), total(cost_picos), total(without_picos)
                 FROM ({ANSWERED} UNION ALL {PAID_RUNS})
                 GROUP BY 1, 2, 3 ORDER BY 1 DESC, 2, 3"
            ))?;
            let given = (self.store.user(), to_sql(since.as_millis()), to_sql(MILLIS_PER_DAY));
            let rows = query.query_map(given, |row| {
                let day = row.get::<_, i64>(0)?.unsigned_abs().saturating_mul(MILLIS_PER_DAY);
                Ok(CostRow {
                    day: Timestamp::from_millis(day).date(),
                    model: row.get(1)?,
                    recipe: row.get(2)?,
                    requests: row.get::<_, i64>(3)?.unsigned_abs(),
                    unpriced: row.get::<_, i64>(4)?.unsigned_abs(),
                    tokens_in: total(row, 5)?,
                    tokens_out: total(row, 6)?,
                    cost_picos: total(row, 7)?,
                    without_picos: total(row, 8)?,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}

/// A total of SQLite. `sum` fails when it overflows, which a provider could bring about by reporting absurd numbers;
/// `total` is exact up to 2^53 (9,007 dollars in picodollars) and rounded above.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a sum of what is not negative; saturates"
)]
fn total(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, f64>(at)? as u64)
}

#[cfg(test)]
#[path = "exchanges_tests.rs"]
mod tests;
