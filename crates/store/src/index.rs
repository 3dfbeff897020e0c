//! The SQLite file: how it is opened, brought to the newest version, read and written. Knows no table but `meta`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use larder_disk::StoreError;
use larder_disk::files;
use larder_disk::group_sync::GroupSync;
use larder_disk::recent::Recent;

/// Marks an SQLite file as an index of Larder: "LRDR".
const APPLICATION_ID: i64 = 0x4C52_4452;
/// Cache size of each connection: beyond it, pages come from the system's cache, which is nearly as fast.
const CACHE_KIB: i64 = 1 << 10;
/// Pages that the log of writes grows to before it is folded in, 16 MB: pages that many commits change are folded in once.
/// While requests are recorded it is folded in sooner.
const LOG_PAGES: i64 = 4_000;
/// Records of requests after which the log is folded in. To fold in all that [`LOG_PAGES`] allows keeps a processor for some
/// 10 ms, for which requests wait where traffic leaves none idle.
const FOLDED_RECORDS: u64 = 64;
/// Pause before the log is emptied again, while another process folds it in.
const FOLDING_PAUSE: Duration = Duration::from_millis(5);
/// Statements that stay prepared: one turn of a conversation runs some fifty different ones.
const PREPARED: usize = 256;
/// What turns version n into version n + 1.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001.sql"),
    include_str!("migrations/0002.sql"),
    include_str!("migrations/0003.sql"),
    include_str!("migrations/0004.sql"),
    include_str!("migrations/0005.sql"),
    include_str!("migrations/0006.sql"),
    include_str!("migrations/0007.sql"),
    include_str!("migrations/0008.sql"),
    include_str!("migrations/0009.sql"),
    include_str!("migrations/0010.sql"),
    include_str!("migrations/0011.sql"),
    include_str!("migrations/0012.sql"),
    include_str!("migrations/0013.sql"),
    include_str!("migrations/0014.sql"),
    include_str!("migrations/0015.sql"),
    include_str!("migrations/0016.sql"),
    include_str!("migrations/0017.sql"),
    include_str!("migrations/0018.sql"),
    include_str!("migrations/0019.sql"),
    include_str!("migrations/0020.sql"),
    include_str!("migrations/0021.sql"),
    include_str!("migrations/0022.sql"),
    include_str!("migrations/0023.sql"),
    include_str!("migrations/0024.sql"),
];

/// The newest version of the format that this build reads and writes.
pub const FORMAT_VERSION: i64 = MIGRATIONS.len() as i64;

/// Connections to the index, shared by this process's threads: readers do not wait for syncs, and writers share them.
///
/// SQLite itself syncs only when it moves the log of writes into the file. A commit that must be durable syncs the log
/// afterwards, without the lock on the writer, so that one sync serves all commits made before it.
#[derive(Debug)]
pub(crate) struct IndexDb {
    path: PathBuf,
    writer: Mutex<Connection>,
    reader: Mutex<Connection>,
    /// The log of writes. It stays the same file as long as a connection is open.
    log: OnceLock<File>,
    syncs: GroupSync,
    /// The writes of this process so far, but for those of [`IndexDb::append`].
    writes: AtomicU64,
    /// Folds in the log next to the others, which do not wait for its syncs.
    folder: Mutex<Connection>,
    /// Records of requests since the log was folded in for them.
    recorded: AtomicU64,
    /// How long other processes are waited for.
    patience: Duration,
    is_damaged: AtomicBool,
}

impl IndexDb {
    /// Opens the index, creates it if it is missing, and upgrades it to the newest version. Call it with the home
    /// locked.
    pub(crate) fn open(path: PathBuf, patience: Duration) -> Result<Self, StoreError> {
        // SQLite would make it readable by others; its -wal and -shm files inherit the mode of this one.
        files::open_private(&path).map_err(StoreError::io(&path, "opening the index"))?;
        let opened = Connection::open(&path).map_err(StoreError::from);
        let ready = opened.and_then(|mut connection| {
            connection.busy_timeout(patience)?;
            check_owner(&connection, &path)?;
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.pragma_update(None, "synchronous", "NORMAL")?;
            connection.pragma_update(None, "secure_delete", "ON")?;
            tune(&connection)?;
            migrate(&mut connection, &path, MIGRATIONS)?;
            let reader = Connection::open(&path)?;
            reader.busy_timeout(patience)?;
            reader.pragma_update(None, "query_only", "ON")?;
            tune(&reader)?;
            let folder = Connection::open(&path)?;
            folder.pragma_update(None, "synchronous", "NORMAL")?;
            Ok((connection, reader, folder))
        });
        match ready {
            Ok((writer, reader, folder)) => Ok(Self {
                path,
                writer: Mutex::new(writer),
                reader: Mutex::new(reader),
                log: OnceLock::new(),
                syncs: GroupSync::default(),
                writes: AtomicU64::new(0),
                folder: Mutex::new(folder),
                recorded: AtomicU64::new(0),
                patience,
                is_damaged: AtomicBool::new(false),
            }),
            Err(error) => Err(error.at_index(&path)),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads from one state of the index.
    pub(crate) fn read<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.transact(&self.reader, TransactionBehavior::Deferred, work)
    }

    /// As [`IndexDb::read`], for a single statement, which needs no transaction around it.
    pub(crate) fn read_once<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        work(&lock(&self.reader)).map_err(|error| self.failed(error))
    }

    /// As [`IndexDb::read_once`], for what every request looks up. What another process wrote is seen a moment later.
    pub(crate) fn read_recent<T: Copy>(
        &self,
        recent: &Recent<T>,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let writes = self.writes.load(Ordering::Acquire);
        if let Some(value) = recent.get(writes) {
            return Ok(value);
        }
        let began = Instant::now();
        let value = self.read_once(work)?;
        recent.set(began, writes, value);
        Ok(value)
    }

    /// Whether [`IndexDb::read_recent`] would not read.
    pub(crate) fn is_recent<T: Copy>(&self, recent: &Recent<T>) -> bool {
        recent.get(self.writes.load(Ordering::Acquire)).is_some()
    }

    /// Whether a read would start without waiting for another thread of this process.
    pub(crate) fn reads_at_once(&self) -> bool {
        !matches!(self.reader.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// Writes atomically; when it returns, the data survives a crash of the machine.
    pub(crate) fn write<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let done = self.write_unsynced(work)?;
        self.sync()?;
        Ok(done)
    }

    /// As [`IndexDb::write`], but a crash of the machine may undo it until [`IndexDb::sync`] is called. For data that can
    /// be recomputed, or that is synced later.
    pub(crate) fn write_unsynced<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let done = self.append(work);
        self.writes.fetch_add(1, Ordering::Release);
        done
    }

    /// As [`IndexDb::write_unsynced`], for rows that come with every request and on which nothing depends that
    /// [`IndexDb::read_recent`] reads.
    pub(crate) fn append<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.transact(&self.writer, TransactionBehavior::Immediate, work)
    }

    /// Makes everything that was committed before survive a crash of the machine.
    pub(crate) fn sync(&self) -> Result<(), StoreError> {
        let write = self.syncs.written();
        let mut path = self.path.clone().into_os_string();
        path.push("-wal");
        let path = PathBuf::from(path);
        let failed = || StoreError::io(&path, "syncing the index");
        let log = match self.log.get() {
            Some(log) => log,
            None => {
                let log = File::open(&path).map_err(failed())?;
                self.log.get_or_init(|| log)
            }
        };
        self.syncs.sync(write, log).map_err(failed())
    }

    /// Folds the log of writes into the file if enough requests were recorded since it last was, these included. What cannot
    /// be folded in now stays in the log.
    pub(crate) fn fold_log(&self, records: u64) {
        let recorded = records + self.recorded.fetch_add(records, Ordering::Relaxed);
        if recorded < FOLDED_RECORDS {
            return;
        }
        self.recorded.store(0, Ordering::Relaxed);
        let folded = lock(&self.folder).query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        if let Err(error) = folded.map_err(|error| self.failed(error.into())) {
            tracing::warn!(%error, "the log of writes is not folded in");
        }
    }

    /// Folds the log of writes into the file and empties it; returns false if readers kept it from being emptied.
    pub(crate) fn truncate_log(&self) -> Result<bool, StoreError> {
        let began = Instant::now();
        loop {
            // SQLite waits for readers, but not for another process that folds the log in.
            let busy = lock(&self.writer).query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
            let busy: bool = busy.map_err(|error| self.failed(error.into()))?;
            if !busy || began.elapsed() >= self.patience {
                return Ok(!busy);
            }
            std::thread::sleep(FOLDING_PAUSE);
        }
    }

    fn transact<T>(
        &self,
        connection: &Mutex<Connection>,
        behaviour: TransactionBehavior,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        transact(&mut lock(connection), behaviour, work).map_err(|error| self.failed(error))
    }

    /// Adds the file to an error, and notes if it is damaged.
    fn failed(&self, error: StoreError) -> StoreError {
        let error = error.at_index(&self.path);
        if matches!(error, StoreError::IndexCorrupt { .. }) && !self.is_damaged.swap(true, Ordering::Relaxed)
        {
            tracing::error!(%error, "the index is damaged");
        }
        error
    }

    /// Whether a read or a write of this process has found the file damaged.
    pub(crate) fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }

    /// The value stored under `key`: the first one ever offered is kept.
    pub(crate) fn meta(&self, key: &str, offer: &str) -> Result<String, StoreError> {
        self.write(|tx| {
            tx.execute("INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT DO NOTHING", (key, offer))?;
            Ok(tx.query_row("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0))?)
        })
    }
}

fn lock(connection: &Mutex<Connection>) -> MutexGuard<'_, Connection> {
    // A thread that panicked left no open transaction: dropping it has rolled it back.
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tune(connection: &Connection) -> Result<(), StoreError> {
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    connection.set_prepared_statement_cache_capacity(PREPARED);
    // Otherwise SQLite would replan a query whenever different values are bound.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

fn transact<T>(
    connection: &mut Connection,
    behaviour: TransactionBehavior,
    work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let transaction = connection.transaction_with_behavior(behaviour)?;
    let result = work(&transaction)?;
    transaction.commit()?;
    Ok(result)
}

fn pragma(connection: &Connection, name: &str) -> Result<i64, StoreError> {
    Ok(connection.pragma_query_value(None, name, |row| row.get(0))?)
}

/// Rejects a file of another program before anything is written to it.
fn check_owner(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let tables =
        connection.query_row("SELECT 1 FROM sqlite_schema LIMIT 1", [], |_| Ok(())).optional()?.is_some();
    if tables && pragma(connection, "application_id")? != APPLICATION_ID {
        return Err(StoreError::NotAStore { path: path.to_path_buf() });
    }
    Ok(())
}

fn migrate(connection: &mut Connection, path: &Path, migrations: &[&str]) -> Result<(), StoreError> {
    let found = pragma(connection, "user_version")?;
    let known = migrations.len() as i64;
    let pending = usize::try_from(found).ok().and_then(|done| migrations.get(done..));
    let Some(pending) = pending else {
        return Err(StoreError::SchemaTooNew { path: path.to_path_buf(), found, known });
    };
    if pending.is_empty() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for migration in pending {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", known)?;
    transaction.commit()?;
    tracing::info!(from = found, to = known, "upgraded the index to the newest version");
    Ok(())
}

/// An index as an older version created it.
#[cfg(test)]
pub(crate) fn of_version(path: &Path, version: usize) -> Connection {
    let mut old = Connection::open(path).unwrap();
    old.pragma_update(None, "journal_mode", "WAL").unwrap();
    migrate(&mut old, path, &MIGRATIONS[..version]).unwrap();
    old
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
