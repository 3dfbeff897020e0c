//! What users published for all users (R1-12.12): copies of statements, each with its author and its source. They refer to
//! nothing in the author's vault, and go with the author.

use larder_disk::StoreError;
use larder_text::time::Timestamp;
use rusqlite::{OptionalExtension, Row, params};
use serde::Serialize;

use crate::pointers::to_sql;
use crate::store::UserStore;

const COLUMNS: &str = "id, user, origin, category, source, statements, published";

/// What is to be published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPublication<'a> {
    /// The id of what it is copied from, such as `fact-001`; it is published once.
    pub origin: &'a str,
    /// A category such as `Pets`.
    pub category: &'a str,
    /// Where the statements come from, in words.
    pub source: &'a str,
    /// The statements, and nothing else.
    pub statements: &'a [String],
}

/// What a user published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Publication {
    /// Its number, which no other publication of the home ever has.
    pub id: u64,
    /// The user who published it.
    pub published_by: String,
    /// The author's id of what it was copied from.
    pub origin: String,
    /// A category such as `Pets`.
    pub category: String,
    /// Where the statements come from, in words.
    pub source: String,
    /// The statements.
    pub statements: Vec<String>,
    /// When it was published.
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub published_at: Timestamp,
}

/// What is published, as one user sees it; from [`UserStore::publications`].
#[derive(Debug, Clone, Copy)]
pub struct Publications<'s> {
    pub(crate) store: &'s UserStore,
}

impl Publications<'_> {
    /// What all users published, oldest first.
    ///
    /// # Errors
    /// The store fails.
    pub fn list(&self) -> Result<Vec<Publication>, StoreError> {
        self.store.index().read(|tx| {
            let sql = format!("SELECT {COLUMNS} FROM publications ORDER BY id");
            let mut query = tx.prepare_cached(&sql)?;
            Ok(query.query_map([], read)?.collect::<Result<_, _>>()?)
        })
    }

    /// Publishes statements of this user in place of what was published of the same origin. Call it only for what a person
    /// saw and chose.
    ///
    /// # Errors
    /// The store fails.
    pub fn publish(&self, new: &NewPublication<'_>) -> Result<Publication, StoreError> {
        let NewPublication { origin, category, source, statements } = *new;
        let statements = serde_json::Value::from(statements).to_string();
        self.store.write(|tx| {
            let user = self.store.user();
            tx.execute("DELETE FROM publications WHERE user = ?1 AND origin = ?2", [user, origin])?;
            let sql = format!(
                "INSERT INTO publications (user, origin, category, source, statements, published)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6) RETURNING {COLUMNS}"
            );
            let now = to_sql(self.store.now().as_millis());
            Ok(tx.query_row(&sql, params![user, origin, category, source, statements, now], read)?)
        })
    }

    /// Withdraws a publication of this user, or with `of_anyone` that of any user.
    ///
    /// # Errors
    /// There is none of this number, it is another user's, or the store fails.
    pub fn revoke(&self, id: u64, of_anyone: bool) -> Result<Publication, StoreError> {
        self.store.write(|tx| {
            let sql =
                format!("DELETE FROM publications WHERE id = ?1 AND (user = ?2 OR ?3) RETURNING {COLUMNS}");
            let revoked = tx.query_row(&sql, params![to_sql(id), self.store.user(), of_anyone], read);
            revoked.optional()?.ok_or(StoreError::UnknownPublication { id })
        })
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<Publication> {
    let number = |column: usize| Ok::<_, rusqlite::Error>(row.get::<_, i64>(column)?.unsigned_abs());
    Ok(Publication {
        id: number(0)?,
        published_by: row.get(1)?,
        origin: row.get(2)?,
        category: row.get(3)?,
        source: row.get(4)?,
        statements: serde_json::from_str(&row.get::<_, String>(5)?).unwrap_or_default(),
        published_at: Timestamp::from_millis(number(6)?),
    })
}
