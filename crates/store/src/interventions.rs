//! Requests for a human, which persist: raise, list, resolve. Knows nothing of who raises them or why.

use rusqlite::{OptionalExtension, Row, Transaction};
use serde::{Deserialize, Serialize};

use crate::pointers::to_sql;
use crate::store::UserStore;
use larder_disk::StoreError;
use larder_disk::Timestamp;
use larder_disk::run_id::RunId;

/// The type of a request about missing or invalid files of the user (R0-18.2).
pub const CONFIG_ERROR: &str = "config_error";

/// A request for a human, to be raised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewIntervention {
    /// What kind of help is needed, such as [`CONFIG_ERROR`].
    pub kind: String,
    /// What is wrong, for the human to read.
    pub message: String,
    /// The recipe it is about.
    pub recipe: Option<String>,
    /// The run that raised it.
    pub run_id: Option<RunId>,
}

impl NewIntervention {
    /// The request raised when a recipe file does not exist (R0-18.2).
    pub fn missing_recipe(name: &str) -> Self {
        Self {
            kind: CONFIG_ERROR.to_owned(),
            message: format!("Missing recipe: {name}"),
            recipe: Some(name.to_owned()),
            run_id: None,
        }
    }
}

/// A request for a human, open until it is resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Intervention {
    /// Its number among this user's requests, from 1.
    pub id: u64,
    /// What kind of help is needed.
    #[serde(rename = "type")]
    pub kind: String,
    /// What is wrong.
    pub message: String,
    /// The recipe it is about.
    pub recipe: Option<String>,
    /// The run that raised it.
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub run_id: Option<RunId>,
    /// When it was raised.
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub created: Timestamp,
    /// When a human settled it; `None` while it is open.
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>, format = DateTime))]
    pub resolved_at: Option<Timestamp>,
    /// What the human decided.
    pub resolution: Option<String>,
}

const COLUMNS: &str = "id, type, message, recipe, run_id, created, resolved_at, resolution";

/// The requests for a human of one user; from [`UserStore::interventions`].
#[derive(Debug, Clone, Copy)]
pub struct Interventions<'s> {
    pub(crate) store: &'s UserStore,
}

impl Interventions<'_> {
    /// Raises a request, unless the same is open already; when this returns it survives a crash of the machine.
    pub fn raise(&self, new: &NewIntervention) -> Result<Intervention, StoreError> {
        let user = self.store.user();
        let id = self.store.write(|tx| {
            let run_id = new.run_id.as_ref().map(RunId::as_str);
            let open: Option<i64> = tx
                .query_row(
                    "SELECT id FROM interventions WHERE user = ?1 AND type = ?2 AND message = ?3 AND recipe IS ?4
                     AND run_id IS ?5 AND resolved_at IS NULL",
                    (user, &new.kind, &new.message, &new.recipe, run_id),
                    |row| row.get(0),
                )
                .optional()?;
            open.map_or_else(|| insert(tx, user, new, self.store.now()), |id| Ok(id.unsigned_abs()))
        })?;
        self.get(id)
    }

    /// One request.
    pub fn get(&self, id: u64) -> Result<Intervention, StoreError> {
        self.store.index().read(|tx| self.require(tx, id))
    }

    fn require(&self, tx: &Transaction<'_>, id: u64) -> Result<Intervention, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM interventions WHERE user = ?1 AND id = ?2");
        tx.query_row(&sql, (self.store.user(), to_sql(id)), read)
            .optional()?
            .ok_or(StoreError::UnknownIntervention { id })
    }

    /// This user's requests, oldest first; with `open_only`, only unresolved ones.
    pub fn list(&self, open_only: bool) -> Result<Vec<Intervention>, StoreError> {
        self.store.index().read(|tx| {
            let mut query = tx.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM interventions
                 WHERE user = ?1 AND (NOT ?2 OR resolved_at IS NULL) ORDER BY id"
            ))?;
            let rows = query.query_map((self.store.user(), open_only), read)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// Settles a request, once: the first resolution stays.
    pub fn resolve(&self, id: u64, resolution: &str) -> Result<Intervention, StoreError> {
        let now = self.store.now();
        self.store.write(|tx| {
            if self.require(tx, id)?.resolved_at.is_some() {
                return Err(StoreError::InterventionResolved { id });
            }
            tx.execute(
                "UPDATE interventions SET resolved_at = ?3, resolution = ?4 WHERE user = ?1 AND id = ?2",
                (self.store.user(), to_sql(id), to_sql(now.as_millis()), resolution),
            )?;
            self.require(tx, id)
        })
    }
}

/// Adds a request of a user, and returns its number.
pub(crate) fn insert(
    tx: &Transaction<'_>,
    user: &str,
    new: &NewIntervention,
    created: Timestamp,
) -> Result<u64, StoreError> {
    let run_id = new.run_id.as_ref().map(RunId::as_str);
    let id: i64 = tx.query_row(
        "INSERT INTO interventions (user, id, type, message, recipe, run_id, created)
         SELECT ?1, 1 + coalesce(max(id), 0), ?2, ?3, ?4, ?5, ?6 FROM interventions WHERE user = ?1
         RETURNING id",
        (user, &new.kind, &new.message, &new.recipe, run_id, to_sql(created.as_millis())),
        |row| row.get(0),
    )?;
    Ok(id.unsigned_abs())
}

fn read(row: &Row<'_>) -> rusqlite::Result<Intervention> {
    let time = |millis: i64| Timestamp::from_millis(millis.unsigned_abs());
    Ok(Intervention {
        id: row.get::<_, i64>(0)?.unsigned_abs(),
        kind: row.get(1)?,
        message: row.get(2)?,
        recipe: row.get(3)?,
        run_id: row.get::<_, Option<String>>(4)?.and_then(|text| text.parse().ok()),
        created: time(row.get(5)?),
        resolved_at: row.get::<_, Option<i64>>(6)?.map(time),
        resolution: row.get(7)?,
    })
}
