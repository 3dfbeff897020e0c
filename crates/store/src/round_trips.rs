//! Round trips between model and gateway that a client does not see, by the keys under which they are found in the
//! history that it sends later. Does not read the documents.

use crate::store::UserStore;
use larder_disk::StoreError;
use larder_disk::user;

/// Maximum keys read per conversation; of a larger one, always the same keys are read.
const MAX_READ: i64 = 10_000;

/// The hidden round trips of one user's sessions; from [`UserStore::round_trips`].
#[derive(Debug, Clone, Copy)]
pub struct RoundTrips<'s> {
    pub(crate) store: &'s UserStore,
}

impl RoundTrips<'_> {
    /// Stores documents of a conversation, each under all of its keys; a newer document replaces an older one. When this returns
    /// they survive a crash of the machine.
    pub fn insert(&self, session: &str, trips: &[(Vec<String>, String)]) -> Result<(), StoreError> {
        user::check_name("session id", session)?;
        self.store.write(|tx| {
            self.store.touch_session(tx, session, self.store.now())?;
            let mut insert = tx.prepare_cached(
                "INSERT INTO round_trips (user, session, key, document) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (user, session, key) DO UPDATE SET document = excluded.document",
            )?;
            for (keys, document) in trips {
                for key in keys {
                    insert.execute((self.store.user(), session, key, document))?;
                }
            }
            Ok(())
        })
    }

    /// Every document of a conversation with its key, by key.
    pub fn list(&self, session: &str) -> Result<Vec<(String, String)>, StoreError> {
        self.store.index().read(|tx| {
            let mut query = tx.prepare_cached(
                "SELECT key, document FROM round_trips WHERE user = ?1 AND session = ?2 ORDER BY key LIMIT ?3",
            )?;
            let rows =
                query.query_map((self.store.user(), session, MAX_READ), |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}
