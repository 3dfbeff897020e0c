//! The SQLite file of one user's index: opened, replaced when it is unusable, read and written. Knows no query.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use super::vectors::sweep;
use larder_disk::StoreError;
use larder_disk::files;

/// Increase it with every change of the tables or their content; an index of another version is rebuilt.
const VERSION: i64 = 4;
const SCHEMA: &str = include_str!("schema.sql");
/// The key in `meta` that marks an index that covers every document, whose pointers are held. Before pointers were held
/// it was `built`.
const BUILT: &str = "built_with_pointers";
/// Memory for pages, in KiB: a common word's list of 100,000 documents and the tables on the way to them.
const CACHE_KIB: i64 = 16 << 10;
/// Pages that the log of writes grows to before it is folded in: few commits wait for that.
const LOG_PAGES: i64 = 8_000;

/// The index of one user.
#[derive(Debug)]
pub(in crate::documents) struct IndexFile {
    path: PathBuf,
    writer: Mutex<Connection>,
    reader: Mutex<Connection>,
}

impl IndexFile {
    /// Opens the index at `path`, or creates an empty one if there is no usable one.
    pub(in crate::documents) fn open(path: PathBuf, patience: Duration) -> Result<Self, StoreError> {
        match Self::try_open(&path, patience) {
            Err(StoreError::IndexCorrupt { detail, .. }) => {
                tracing::warn!(path = %path.display(), detail, "the index of the documents is unusable and will be rebuilt");
                delete(&path)?;
                Self::try_open(&path, patience)
            }
            opened => opened,
        }
    }

    fn try_open(path: &Path, patience: Duration) -> Result<Self, StoreError> {
        files::open_private(path).map_err(StoreError::io(path, "opening the index of the documents"))?;
        let connect = || -> Result<Connection, StoreError> {
            let connection = Connection::open(path)?;
            connection.busy_timeout(patience)?;
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.pragma_update(None, "synchronous", "NORMAL")?;
            connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
            connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
            connection.set_prepared_statement_cache_capacity(64);
            Ok(connection)
        };
        let open = || {
            let mut writer = connect()?;
            prepare(&mut writer)?;
            let reader = connect()?;
            reader.pragma_update(None, "query_only", "ON")?;
            Ok((writer, reader))
        };
        let (writer, reader) = open().map_err(|error: StoreError| error.at_index(path))?;
        Ok(Self { path: path.to_path_buf(), writer: Mutex::new(writer), reader: Mutex::new(reader) })
    }

    /// Reads from one state of the index.
    pub(in crate::documents) fn read<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.transact(&self.reader, TransactionBehavior::Deferred, work)
    }

    /// Writes atomically. A crash of the machine may undo it, which loses nothing.
    pub(in crate::documents) fn write<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.transact(&self.writer, TransactionBehavior::Immediate, work)
    }

    fn transact<T>(
        &self,
        connection: &Mutex<Connection>,
        behaviour: TransactionBehavior,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        // A thread that panicked left no open transaction: dropping it has rolled it back.
        let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
        let done = connection.transaction_with_behavior(behaviour).map_err(StoreError::from).and_then(|tx| {
            let done = work(&tx)?;
            tx.commit()?;
            Ok(done)
        });
        done.map_err(|error| error.at_index(&self.path))
    }

    /// Whether every document is in.
    pub(in crate::documents) fn is_built(&self) -> Result<bool, StoreError> {
        self.read(|tx| {
            let value = tx.query_row("SELECT value FROM meta WHERE key = ?1", [BUILT], |row| row.get(0));
            Ok(value.optional()?.is_some_and(|value: String| value == "yes"))
        })
    }

    /// Marks the index as complete.
    pub(in crate::documents) fn set_built(&self) -> Result<(), StoreError> {
        self.write(|tx| {
            tx.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, 'yes')", [BUILT])?;
            Ok(())
        })
    }

    /// Clears the index except for vectors; [`sweep`] removes those that are no longer needed.
    pub(in crate::documents) fn clear(&self) -> Result<(), StoreError> {
        self.write(|tx| {
            let tables = "meta documents links turns research captures redirects topics gists";
            for table in tables.split(' ') {
                tx.execute(&format!("DELETE FROM {table}"), [])?;
            }
            tx.execute("INSERT INTO words (words) VALUES ('delete-all')", [])?;
            Ok(())
        })
    }

    /// Makes everything that was written survive a crash of the machine.
    pub(in crate::documents) fn sync(&self) -> Result<(), StoreError> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let folded = writer.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        folded.map_err(|error| StoreError::from(error).at_index(&self.path))
    }

    /// Empties the index and removes its file. A process that has it open sees an empty one.
    pub(in crate::documents) fn destroy(&self) -> Result<(), StoreError> {
        {
            let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
            let set = writer.pragma_update(None, "secure_delete", "ON");
            set.map_err(|error| StoreError::from(error).at_index(&self.path))?;
        }
        self.clear()?;
        self.write(sweep)?;
        {
            let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
            let folded = writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
            folded.map_err(|error| StoreError::from(error).at_index(&self.path))?;
        }
        delete(&self.path)
    }
}

/// Brings a connection's file to this version of the tables; tables of another version are dropped.
fn prepare(connection: &mut Connection) -> Result<(), StoreError> {
    let version = |connection: &Connection| -> Result<i64, StoreError> {
        Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
    };
    let found = version(connection)?;
    if found == VERSION {
        return Ok(());
    }
    if found != 0 {
        let detail = format!("version {found} of the index of the documents, not {VERSION}");
        return Err(StoreError::IndexCorrupt { path: PathBuf::new(), detail });
    }
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have been faster.
    if version(&tx)? == 0 {
        tx.execute_batch(SCHEMA)?;
        tx.pragma_update(None, "user_version", VERSION)?;
    }
    Ok(tx.commit()?)
}

/// Removes an index and SQLite's other files next to it.
fn delete(path: &Path) -> Result<(), StoreError> {
    for end in ["", "-wal", "-shm"] {
        let mut file = path.as_os_str().to_owned();
        file.push(end);
        match fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(StoreError::io(path, "removing the index of the documents")(error));
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
impl IndexFile {
    /// Anything, for tests.
    pub(super) fn with_writer<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        work(&self.writer.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
