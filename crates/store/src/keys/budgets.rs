//! Daily budgets of keys: reserved before a call, settled after it. Any number of processes may use a budget
//! concurrently, since each step is one transaction. Knows neither calls nor prices.
//!
//! These writes are not synced individually: a killed process loses none of them; a machine that loses power may lose
//! the last moments.

use std::time::Duration;

use rusqlite::{OptionalExtension, Row, Transaction};
use serde::{Deserialize, Serialize};

use super::{KeyId, KeyLimits, Keys, require_key};
use crate::pointers::to_sql;
use larder_disk::StoreError;
use larder_disk::{MILLIS_PER_DAY, Timestamp};

/// Lifetime of a reservation that is neither settled nor renewed, as after a crash. Long enough to miss one renewal,
/// as while another process holds the index; short enough that the budget is soon available again.
pub const RESERVATION_LIFETIME: Duration = Duration::from_secs(90);

/// An amount of tokens and money, the two limits of a key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spend {
    /// Tokens, prompt and reply together.
    pub tokens: u64,
    /// Picodollars.
    pub picos: u64,
}

impl Reservation {
    /// The id for [`Keys::renew`].
    pub const fn id(&self) -> i64 {
        self.id
    }
}

impl Spend {
    const fn plus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            picos: self.picos.saturating_add(other.picos),
        }
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { tokens: row.get::<_, i64>(0)?.unsigned_abs(), picos: row.get::<_, i64>(1)?.unsigned_abs() })
    }
}

/// What a key with limits has spent today.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaySpend {
    /// By calls that have ended.
    pub used: Spend,
    /// Reserved for calls in progress.
    pub held: Spend,
    /// When the next day starts.
    pub resets: Timestamp,
}

/// What is reserved for one call; pass it to [`Keys::settle`].
#[derive(Debug)]
#[must_use = "a reservation that is never settled blocks the budget until it expires"]
pub struct Reservation {
    id: i64,
    key: KeyId,
    /// The day it counts for, even if the call ends on the next.
    day: i64,
    /// The amount reserved.
    pub asked: Spend,
}

/// Why nothing was reserved: the remaining budget is too small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    /// The key.
    pub key: KeyId,
    /// The requested amount.
    pub asked: Spend,
    /// The daily limits of the key.
    pub limits: KeyLimits,
    /// The amount spent today plus reservations of calls in progress.
    pub taken: Spend,
    /// The reservations of calls in progress.
    pub held: Spend,
    /// When the next day starts.
    pub resets: Timestamp,
}

impl Shortage {
    /// Tokens left today; `None` if they are unlimited.
    pub fn left_tokens(&self) -> Option<u64> {
        self.limits.tokens_per_day.map(|limit| limit.saturating_sub(self.taken.tokens))
    }

    /// Picodollars left today; `None` if they are unlimited.
    pub fn left_picos(&self) -> Option<u64> {
        self.limits.picos_per_day.map(|limit| limit.saturating_sub(self.taken.picos))
    }

    /// Whether the budget would suffice if calls in progress used nothing: they reserve more than most of them use.
    pub fn passes(&self) -> bool {
        let taken = Spend {
            tokens: self.taken.tokens.saturating_sub(self.held.tokens),
            picos: self.taken.picos.saturating_sub(self.held.picos),
        };
        !Self { key: self.key.clone(), taken, ..*self }.is_one()
    }

    /// Whether the budget of a whole day would not suffice.
    pub fn exceeds_a_day(&self) -> bool {
        let (taken, held) = (Spend::default(), Spend::default());
        Self { key: self.key.clone(), taken, held, ..*self }.is_one()
    }

    fn is_one(&self) -> bool {
        self.left_tokens().is_some_and(|left| self.asked.tokens > left)
            || self.left_picos().is_some_and(|left| self.asked.picos > left)
    }
}

/// The result of [`Keys::reserve`].
#[derive(Debug)]
pub enum ReserveOutcome {
    /// Reserved.
    Held(Reservation),
    /// It would exceed a limit.
    Refused(Box<Shortage>),
}

impl Keys<'_> {
    /// Reserves all of `asked` from a key's budget for today, or nothing.
    ///
    /// Fails if the key is unknown or revoked.
    pub fn reserve(&self, key: &KeyId, asked: Spend) -> Result<ReserveOutcome, StoreError> {
        let now = self.store.now();
        let (day, resets) = day(now);
        let lifetime = u64::try_from(RESERVATION_LIFETIME.as_millis()).unwrap_or(u64::MAX);
        self.store.index().write_unsynced(|tx| {
            let record = require_key(tx, key)?.record;
            if record.revoked.is_some() {
                return Err(StoreError::KeyRevoked { id: key.to_string() });
            }
            tx.prepare_cached("DELETE FROM reservations WHERE key = ?1 AND expires <= ?2")?
                .execute((key.as_str(), to_sql(now.as_millis())))?;
            let held = held(tx, key, day, now)?;
            let taken = used(tx, key, day)?.plus(held);
            let shortage = Shortage { key: key.clone(), asked, limits: record.limits, taken, held, resets };
            if shortage.is_one() {
                return Ok(ReserveOutcome::Refused(Box::new(shortage)));
            }
            let mut insert = tx.prepare_cached(
                "INSERT INTO reservations (user, key, day, tokens, picos, expires) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?;
            let expires = to_sql(now.as_millis().saturating_add(lifetime));
            let (tokens, picos) = (to_sql(asked.tokens), to_sql(asked.picos));
            let id = insert.insert((&record.user, key.as_str(), day, tokens, picos, expires))?;
            Ok(ReserveOutcome::Held(Reservation { id, key: key.clone(), day, asked }))
        })
    }

    /// Extends reservations of calls under way to [`RESERVATION_LIFETIME`] from now. Expired ones stay expired.
    pub fn renew(&self, reservations: &[i64]) -> Result<(), StoreError> {
        let lifetime = u64::try_from(RESERVATION_LIFETIME.as_millis()).unwrap_or(u64::MAX);
        let expires = to_sql(self.store.now().as_millis().saturating_add(lifetime));
        self.store.index().write_unsynced(|tx| {
            let mut update = tx.prepare_cached("UPDATE reservations SET expires = ?2 WHERE id = ?1")?;
            for id in reservations {
                update.execute((id, expires))?;
            }
            Ok(())
        })
    }

    /// Replaces a reservation by the call's actual usage, even if it has expired meanwhile. Call it once: settling
    /// twice counts twice. If it fails, nothing was counted.
    pub fn settle(&self, reservation: &Reservation, used_up: Spend) -> Result<(), StoreError> {
        let Reservation { id, key, day, .. } = reservation;
        self.store.index().write_unsynced(|tx| {
            tx.prepare_cached("DELETE FROM reservations WHERE id = ?1")?.execute([id])?;
            let sum = used(tx, key, *day)?.plus(used_up);
            // Nothing is counted for a user who was deleted meanwhile: the key no longer exists.
            tx.prepare_cached(
                "INSERT INTO key_days (key, day, user, tokens, picos)
                 SELECT id, ?2, user, ?3, ?4 FROM keys WHERE id = ?1
                 ON CONFLICT (key, day) DO UPDATE SET tokens = excluded.tokens, picos = excluded.picos",
            )?
            .execute((key.as_str(), day, to_sql(sum.tokens), to_sql(sum.picos)))?;
            Ok(())
        })
    }

    /// What a key has spent today. Calls with unlimited keys reserve nothing and are not counted here.
    pub fn day_spend(&self, key: &KeyId) -> Result<DaySpend, StoreError> {
        let now = self.store.now();
        let (day, resets) = day(now);
        self.store.index().read(|tx| {
            require_key(tx, key)?;
            Ok(DaySpend { used: used(tx, key, day)?, held: held(tx, key, day, now)?, resets })
        })
    }
}

/// The day of a timestamp, and the start of the next day.
fn day(now: Timestamp) -> (i64, Timestamp) {
    let day = now.as_millis() / MILLIS_PER_DAY;
    (to_sql(day), Timestamp::from_millis((day + 1).saturating_mul(MILLIS_PER_DAY)))
}

fn used(tx: &Transaction<'_>, key: &KeyId, day: i64) -> Result<Spend, StoreError> {
    let mut query = tx.prepare_cached("SELECT tokens, picos FROM key_days WHERE key = ?1 AND day = ?2")?;
    Ok(query.query_row((key.as_str(), day), Spend::read).optional()?.unwrap_or_default())
}

/// Summed here, not in SQL, whose sums fail on overflow.
fn held(tx: &Transaction<'_>, key: &KeyId, day: i64, now: Timestamp) -> Result<Spend, StoreError> {
    let mut query = tx.prepare_cached(
        "SELECT tokens, picos FROM reservations WHERE key = ?1 AND day = ?2 AND expires > ?3",
    )?;
    let rows = query.query_map((key.as_str(), day, to_sql(now.as_millis())), Spend::read)?;
    rows.into_iter().try_fold(Spend::default(), |sum, row| Ok(sum.plus(row?)))
}
