//! Sign-ins to the dashboard. A sign-in is stored as the digest of its token, so that a copy of the index grants no
//! access. Knows nothing of cookies.

use larder_text::hash::ContentHash;
use rusqlite::OptionalExtension;

use super::{COLUMNS, KeyId, KeyRecord, Keys, read};
use crate::pointers::to_sql;
use larder_disk::StoreError;
use larder_disk::Timestamp;

impl Keys<'_> {
    /// Signs in with a key until `expires`, and clears out the sign-ins that have expired.
    ///
    /// Fails if the key is unknown or revoked.
    pub fn add_sign_in(&self, token: ContentHash, key: &KeyId, expires: Timestamp) -> Result<(), StoreError> {
        let now = to_sql(self.store.now().as_millis());
        self.store.index().write(|tx| {
            tx.execute("DELETE FROM sign_ins WHERE expires <= ?1", [now])?;
            let added = tx.execute(
                "INSERT INTO sign_ins (token, user, key, expires)
                 SELECT ?1, user, id, ?3 FROM keys WHERE id = ?2 AND revoked IS NULL",
                (token.as_bytes(), key.as_str(), to_sql(expires.as_millis())),
            )?;
            if added == 0 {
                return Err(StoreError::UnknownKey { id: key.to_string() });
            }
            Ok(())
        })
    }

    /// The key that this token is signed in with; `None` once it has expired, ended, or lost its key.
    pub fn sign_in(&self, token: ContentHash) -> Result<Option<KeyRecord>, StoreError> {
        let now = to_sql(self.store.now().as_millis());
        self.store.index().read_once(|index| {
            let mut query = index.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM keys WHERE revoked IS NULL
                 AND id = (SELECT key FROM sign_ins WHERE token = ?1 AND expires > ?2)"
            ))?;
            let found = query.query_row((token.as_bytes(), now), read).optional()?;
            Ok(found.map(|key| key.record))
        })
    }

    /// Ends a sign-in; one that is not there is ended already.
    pub fn remove_sign_in(&self, token: ContentHash) -> Result<(), StoreError> {
        self.store.index().write(|tx| {
            tx.execute("DELETE FROM sign_ins WHERE token = ?1", [token.as_bytes()])?;
            Ok(())
        })
    }
}
