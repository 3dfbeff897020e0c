//! API keys: who may call, as which user, and with what daily budget. Knows a key by its public id and the hash of
//! its text; never the text, nor how it is hashed. Keys belong to the operator of the store, so they are accessed
//! through [`Store::keys`]; each grants access to the data of one user.

mod budgets;
mod sign_ins;

use std::fmt;
use std::str::FromStr;

use rusqlite::{Connection, OptionalExtension, Row, Transaction};
use serde::{Deserialize, Deserializer, Serialize};

use crate::pointers::to_sql;
use crate::store::Store;
use larder_disk::StoreError;
use larder_disk::Timestamp;
use larder_disk::user;

pub use budgets::{DaySpend, RESERVATION_LIFETIME, Reservation, ReserveOutcome, Shortage, Spend};

/// Random bytes of an id.
const ID_BYTES: usize = 6;

/// What a key is called and found by: 12 lower-case hexadecimal digits. Not a secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct KeyId(String);

impl KeyId {
    /// The id with these random bytes.
    pub fn new(random: [u8; ID_BYTES]) -> Self {
        Self(random.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The text is not the id of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the id of a key: expected 12 digits of 0-9 a-f, as `larder keys` shows them")]
pub struct ParseKeyIdError;

impl FromStr for KeyId {
    type Err = ParseKeyIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (digits && text.len() == 2 * ID_BYTES).then(|| Self(text.to_owned())).ok_or(ParseKeyIdError)
    }
}

impl<'de> Deserialize<'de> for KeyId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The limits of a key for one day in UTC; `None` is unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyLimits {
    /// Tokens, prompt and reply together.
    pub tokens_per_day: Option<u64>,
    /// Picodollars.
    pub picos_per_day: Option<u64>,
}

impl KeyLimits {
    /// Whether there are no limits.
    pub const fn is_unlimited(&self) -> bool {
        self.tokens_per_day.is_none() && self.picos_per_day.is_none()
    }
}

/// A key to be added.
#[derive(Clone)]
pub struct NewKey<'a> {
    /// From [`KeyId::new`].
    pub id: KeyId,
    /// The user whose data it grants access to.
    pub user: &'a str,
    /// What it is for, for people: up to 256 bytes without control characters.
    pub label: &'a str,
    /// The slow hash of its text.
    pub hash: &'a str,
    /// Its daily limits.
    pub limits: KeyLimits,
    /// Whether it also grants access to what belongs to all users.
    pub operator: bool,
}

/// A key without its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    /// Its id.
    pub id: KeyId,
    /// The user whose data it grants access to.
    pub user: String,
    /// What it is for.
    pub label: String,
    /// Its daily limits.
    pub limits: KeyLimits,
    /// Whether it also grants access to what belongs to all users.
    #[serde(default)]
    pub operator: bool,
    /// When it was created.
    pub created: Timestamp,
    /// When it was revoked; `None` while it is valid.
    pub revoked: Option<Timestamp>,
}

/// A key with the hash its text is checked against.
#[derive(Clone)]
pub struct StoredKey {
    /// The key.
    pub record: KeyRecord,
    /// The slow hash of its text.
    pub hash: String,
}

impl fmt::Debug for StoredKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredKey").field("record", &self.record).finish_non_exhaustive()
    }
}

/// The row of `meta` that the first key leaves for good; a migration writes it, too.
const CREATED: &str = "keys_created";
const COLUMNS: &str = "id, user, label, tokens_per_day, picos_per_day, created, revoked, hash, operator";

/// The API keys of all users, their budgets and sign-ins; from [`Store::keys`].
#[derive(Debug, Clone, Copy)]
pub struct Keys<'s> {
    pub(crate) store: &'s Store,
}

impl Keys<'_> {
    /// Adds a key. Fails if the id is taken.
    pub fn add(&self, new: &NewKey<'_>) -> Result<KeyRecord, StoreError> {
        if !new.label.is_empty() {
            user::check_name("label", new.label)?;
        }
        let created = to_sql(self.store.now().as_millis());
        self.store.user(new.user)?.write(|tx| {
            let added = tx.execute(
                "INSERT INTO keys (id, user, label, hash, tokens_per_day, picos_per_day, created, operator)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (id) DO NOTHING",
                (
                    new.id.as_str(),
                    new.user,
                    new.label,
                    new.hash,
                    new.limits.tokens_per_day.map(to_sql),
                    new.limits.picos_per_day.map(to_sql),
                    created,
                    new.operator,
                ),
            )?;
            if added == 0 {
                return Err(StoreError::KeyExists { id: new.id.to_string() });
            }
            tx.execute("INSERT INTO meta (key, value) VALUES (?1, 'yes') ON CONFLICT DO NOTHING", [CREATED])?;
            Ok(require_key(tx, &new.id)?.record)
        })
    }

    /// One key, revoked or not; `None` if the id does not exist.
    pub fn get(&self, id: &KeyId) -> Result<Option<StoredKey>, StoreError> {
        self.store.index().read_once(|connection| find_key(connection, id))
    }

    /// Every key of every user, oldest first, revoked ones too.
    pub fn list(&self) -> Result<Vec<KeyRecord>, StoreError> {
        self.store.index().read(|tx| {
            let mut query = tx.prepare_cached(&format!("SELECT {COLUMNS} FROM keys ORDER BY created, id"))?;
            let rows = query.query_map([], read)?.map(|row| Ok(row?.record));
            rows.collect()
        })
    }

    /// Whether a key was ever created. Keys that were revoked count, and so do those that were removed with their user.
    pub fn any_created(&self) -> Result<bool, StoreError> {
        self.store.index().read_recent(&self.store.inner.keys_created, |index| {
            Ok(index.prepare_cached("SELECT 1 FROM meta WHERE key = ?1")?.exists([CREATED])?)
        })
    }

    /// Whether [`Keys::any_created`] would answer without a look-up.
    pub fn knows_any_created(&self) -> bool {
        self.store.index().is_recent(&self.store.inner.keys_created)
    }

    /// Revokes a key and ends every sign-in with it, immediately and for every process. Revoking again keeps the
    /// original time.
    pub fn revoke(&self, id: &KeyId) -> Result<KeyRecord, StoreError> {
        let now = to_sql(self.store.now().as_millis());
        self.store.index().write(|tx| {
            tx.execute("UPDATE keys SET revoked = coalesce(revoked, ?2) WHERE id = ?1", (id.as_str(), now))?;
            tx.execute("DELETE FROM sign_ins WHERE key = ?1", [id.as_str()])?;
            Ok(require_key(tx, id)?.record)
        })
    }
}

fn find_key(index: &Connection, id: &KeyId) -> Result<Option<StoredKey>, StoreError> {
    let mut query = index.prepare_cached(&format!("SELECT {COLUMNS} FROM keys WHERE id = ?1"))?;
    Ok(query.query_row([id.as_str()], read).optional()?)
}

fn require_key(tx: &Transaction<'_>, id: &KeyId) -> Result<StoredKey, StoreError> {
    find_key(tx, id)?.ok_or_else(|| StoreError::UnknownKey { id: id.to_string() })
}

fn read(row: &Row<'_>) -> rusqlite::Result<StoredKey> {
    let number = |at: usize| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(at)?.map(i64::unsigned_abs));
    Ok(StoredKey {
        record: KeyRecord {
            id: KeyId(row.get(0)?),
            user: row.get(1)?,
            label: row.get(2)?,
            limits: KeyLimits { tokens_per_day: number(3)?, picos_per_day: number(4)? },
            created: Timestamp::from_millis(row.get::<_, i64>(5)?.unsigned_abs()),
            operator: row.get(8)?,
            revoked: number(6)?.map(Timestamp::from_millis),
        },
        hash: row.get(7)?,
    })
}
