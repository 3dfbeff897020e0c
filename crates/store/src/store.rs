//! The two handles: a store, and one user's view of it. A user's data is accessible through the latter only, so no
//! caller can forget to specify the user.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use larder_text::hash::ContentHash;
use larder_text::pointer::PointerKey;
use rusqlite::Transaction;

use crate::calibrations::Calibrations;
use crate::compactions::{Compactions, DEFAULT_COMPACTION_TTL};
use crate::contents::StoredContents;
use crate::conversations::Conversations;
use crate::deletion::{EARLY_ERASURES, deleted_at, finish_deletions};
use crate::exchanges::Exchanges;
use crate::index::IndexDb;
use crate::interventions::Interventions;
use crate::jobs::{JobQueue, Jobs};
use crate::keys::Keys;
use crate::pointers::{Pointers, to_sql};
use crate::publications::Publications;
use crate::retention::USE_STEP_MILLIS;
use crate::revisions::{Revisions, SessionRevisions};
use crate::round_trips::RoundTrips;
use crate::runs::Runs;
use crate::transcripts::Transcripts;
use larder_disk::StoreError;
use larder_disk::blobs::Blobs;
use larder_disk::foreground::{Foreground, ForegroundWork};
use larder_disk::home::Layout;
use larder_disk::recent::Recent;
use larder_disk::run_id::RunId;
use larder_disk::segments::Segments;
use larder_disk::user;
use larder_disk::{Clock, Entropy, SystemClock, SystemEntropy, Timestamp};

/// Default time to wait for another process before giving up.
const DEFAULT_PATIENCE: Duration = Duration::from_secs(10);

/// What the caller provides to a store.
#[derive(Clone)]
pub struct StoreOptions {
    /// The source of time.
    pub clock: Arc<dyn Clock>,
    /// The source of randomness.
    pub entropy: Arc<dyn Entropy>,
    /// How long to wait for another process that holds a lock.
    pub patience: Duration,
    /// How long condensed forms are cached (R0-30.5).
    pub compaction_ttl: Duration,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy::default()),
            patience: DEFAULT_PATIENCE,
            compaction_ttl: DEFAULT_COMPACTION_TTL,
        }
    }
}

impl fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreOptions").field("patience", &self.patience).finish_non_exhaustive()
    }
}

/// A store in a home folder. Cheap to clone; clones and other processes may use the same folder concurrently.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) inner: Arc<StoreInner>,
}

#[derive(Debug)]
pub(crate) struct StoreInner {
    layout: Layout,
    options: StoreOptions,
    master: PointerKey,
    blobs: Blobs,
    segments: Segments,
    index: IndexDb,
    /// Whether a key was ever created.
    pub(crate) keys_created: Recent<bool>,
    /// The number of the newest revision of learned settings, and that of early erasures.
    marks: Recent<(u64, u64)>,
    foreground: Foreground,
}

impl Store {
    /// Whether there is a store in `home`.
    pub fn exists(home: &Path) -> bool {
        Layout { home: home.to_path_buf() }.index().exists()
    }

    /// Opens the store in `home`, creates it if there is none, and upgrades its format to the newest version.
    pub fn open(home: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        let layout = Layout { home: home.to_path_buf() };
        let _lock = layout.lock(options.patience)?;
        layout.require_index()?;
        let key = layout.master_key(options.entropy.as_ref())?;
        let index = IndexDb::open(layout.index(), options.patience)?;
        let store = Self::over_index(layout, options, key, index)?;
        finish_deletions(&store)?;
        Ok(store)
    }

    /// The store of a home with another index than its own.
    pub(crate) fn over(layout: Layout, options: StoreOptions, index: IndexDb) -> Result<Self, StoreError> {
        let key = layout.master_key(options.entropy.as_ref())?;
        Self::over_index(layout, options, key, index)
    }

    fn over_index(
        layout: Layout,
        options: StoreOptions,
        key: [u8; 32],
        index: IndexDb,
    ) -> Result<Self, StoreError> {
        check_key(&index, &key, &layout)?;
        let inner = StoreInner {
            master: PointerKey::new(key),
            blobs: Blobs::new(layout.blobs()),
            segments: Segments::new(layout.blobs()),
            index,
            keys_created: Recent::default(),
            marks: Recent::default(),
            foreground: Foreground::new(layout.home.join("turns/foreground")),
            layout,
            options,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Takes the lock under which databases in the home folder are set up; it is held until the file is dropped.
    pub(crate) fn lock_setup(&self) -> Result<File, StoreError> {
        self.inner.layout.lock(self.inner.options.patience)
    }

    pub(crate) fn options(&self) -> &StoreOptions {
        &self.inner.options
    }

    pub(crate) fn blobs(&self) -> &Blobs {
        &self.inner.blobs
    }

    pub(crate) fn segments(&self) -> &Segments {
        &self.inner.segments
    }

    pub(crate) fn index(&self) -> &IndexDb {
        &self.inner.index
    }

    /// Says that someone waits for what is done until the value is dropped. `None` where the file system has no locks.
    pub fn enter_foreground(&self) -> Option<ForegroundWork> {
        self.inner.foreground.enter()
    }

    /// Whether someone waits, in any process.
    pub fn is_in_foreground(&self) -> bool {
        self.inner.foreground.is_occupied()
    }

    /// The home folder.
    pub fn home(&self) -> &Path {
        &self.inner.layout.home
    }

    /// Whether a read or a write of this process has found the index damaged.
    pub fn is_damaged(&self) -> bool {
        self.index().is_damaged()
    }

    /// Whether a look-up would start without waiting for another reading thread.
    pub fn reads_at_once(&self) -> bool {
        self.index().reads_at_once()
    }

    /// The present moment by the store's clock.
    pub fn now(&self) -> Timestamp {
        self.inner.options.clock.now()
    }

    /// How often originals were erased that may have been used within the day, or were found damaged, so that nobody may rely
    /// on any original seen stored before (see [`crate::STORED_FOR`]). What another process erases is seen 2 ms later.
    pub fn early_erasures(&self) -> Result<u64, StoreError> {
        Ok(self.marks()?.1)
    }

    /// Whether [`Store::early_erasures`] would not read.
    pub fn knows_erasures(&self) -> bool {
        self.index().is_recent(&self.inner.marks)
    }

    /// The newest revision and [`Store::early_erasures`], which every request needs, in one look-up.
    pub(crate) fn marks(&self) -> Result<(u64, u64), StoreError> {
        self.index().read_recent(&self.inner.marks, |index| {
            let mut query = index.prepare_cached(
                "SELECT coalesce((SELECT max(number) FROM revisions), 0),
                        coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?1), 0)",
            )?;
            let (newest, erasures): (i64, i64) = query.query_row([EARLY_ERASURES], |row| row.try_into())?;
            Ok((newest.unsigned_abs(), erasures.unsigned_abs()))
        })
    }

    /// A new id for a run, in the form of a UUID version 7: later ids sort later.
    pub fn new_run_id(&self) -> Result<RunId, StoreError> {
        Ok(RunId::new(self.now(), self.random()?))
    }

    /// Bytes from the store's source of randomness.
    pub fn random<const N: usize>(&self) -> Result<[u8; N], StoreError> {
        let mut random = [0; N];
        self.inner.options.entropy.fill(&mut random).map_err(|source| StoreError::Randomness { source })?;
        Ok(random)
    }

    /// API keys, their budgets and sign-ins.
    pub const fn keys(&self) -> Keys<'_> {
        Keys { store: self }
    }

    /// The background jobs of all users.
    pub const fn job_queue(&self) -> JobQueue<'_> {
        JobQueue { store: self }
    }

    /// How far token estimates are off.
    pub const fn calibrations(&self) -> Calibrations<'_> {
        Calibrations { store: self }
    }

    /// Revisions of what is learned at run time.
    pub const fn revisions(&self) -> Revisions<'_> {
        Revisions { store: self }
    }

    /// The store as `user` sees it: 1 to 256 bytes without control characters.
    pub fn user(&self, user: &str) -> Result<UserStore, StoreError> {
        user::check(user)?;
        Ok(UserStore {
            key: self.inner.master.for_user(user),
            folder: user::folder(user),
            user: user.to_owned(),
            since: None,
            store: self.clone(),
        })
    }
}

/// Rejects a key other than the one the store was created with: all its pointers would look forged.
fn check_key(index: &IndexDb, key: &[u8; 32], layout: &Layout) -> Result<(), StoreError> {
    let fingerprint = blake3::derive_key("larder 2026 fingerprint of the master pointer key", key);
    let fingerprint = ContentHash::from_bytes(fingerprint).to_hex();
    if index.meta("key_fingerprint", &fingerprint)? == fingerprint {
        return Ok(());
    }
    Err(StoreError::KeyInvalid { path: layout.key(), reason: "the key of another store" })
}

/// One user's view of the store. Nothing of any other user is accessible through it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct UserStore {
    store: Store,
    user: String,
    folder: String,
    key: PointerKey,
    since: Option<u64>,
}

impl UserStore {
    /// The view of what began at so many [`Store::early_erasures`]: it writes nothing once the user was deleted since.
    #[must_use]
    pub fn since(self, erasures: u64) -> Self {
        Self { since: Some(erasures), ..self }
    }

    /// The view of what begins now, as [`UserStore::since`].
    pub fn begun(self) -> Result<Self, StoreError> {
        self.store.early_erasures().map(|erasures| self.since(erasures))
    }

    /// The user's id.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The key under which this user's pointers are minted and recognised.
    pub fn key(&self) -> &PointerKey {
        &self.key
    }

    /// The store that this is a view of.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Pointers and the contents behind them.
    pub const fn pointers(&self) -> Pointers<'_> {
        Pointers { store: self }
    }

    /// Contents by their hash.
    pub const fn contents(&self) -> StoredContents<'_> {
        StoredContents { store: self }
    }

    /// Records of recipe runs.
    pub const fn runs(&self) -> Runs<'_> {
        Runs { store: self }
    }

    /// Records of requests through the gateway.
    pub const fn exchanges(&self) -> Exchanges<'_> {
        Exchanges { store: self }
    }

    /// Transcripts of sessions.
    pub const fn transcripts(&self) -> Transcripts<'_> {
        Transcripts { store: self }
    }

    /// Round trips between model and gateway that clients do not see.
    pub const fn round_trips(&self) -> RoundTrips<'_> {
        RoundTrips { store: self }
    }

    /// Requests for a human.
    pub const fn interventions(&self) -> Interventions<'_> {
        Interventions { store: self }
    }

    /// Conversations, and what is remembered of those who take part.
    pub const fn conversations(&self) -> Conversations<'_> {
        Conversations { store: self }
    }

    /// Background jobs.
    pub const fn jobs(&self) -> Jobs<'_> {
        Jobs { store: self }
    }

    /// What users published for all users.
    pub const fn publications(&self) -> Publications<'_> {
        Publications { store: self }
    }

    /// The revisions that conversations use.
    pub const fn session_revisions(&self) -> SessionRevisions<'_> {
        SessionRevisions { store: self }
    }

    /// The cache of condensed forms.
    pub const fn compactions(&self) -> Compactions<'_> {
        Compactions { store: self }
    }

    pub(crate) fn folder(&self) -> &str {
        &self.folder
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.store.now()
    }

    pub(crate) fn blobs(&self) -> &Blobs {
        self.store.blobs()
    }

    pub(crate) fn segments(&self) -> &Segments {
        self.store.segments()
    }

    pub(crate) fn index(&self) -> &IndexDb {
        self.store.index()
    }

    /// Writes rows of this user, atomically and durably.
    pub(crate) fn write<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.index().write(|tx| self.require_staying(tx).and_then(|()| work(tx)))
    }

    /// As [`UserStore::write`], but a crash of the machine may undo it.
    pub(crate) fn write_unsynced<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.index().write_unsynced(|tx| self.require_staying(tx).and_then(|()| work(tx)))
    }

    /// Notes that a conversation was used, unless that was noted within the hour.
    pub(crate) fn touch_session(
        &self,
        tx: &Transaction<'_>,
        session: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let now = now.as_millis();
        tx.prepare_cached(
            "INSERT INTO sessions (user, session, used) VALUES (?1, ?2, ?3)
             ON CONFLICT (user, session) DO UPDATE SET used = excluded.used WHERE used <= ?4",
        )?
        .execute((&self.user, session, to_sql(now), to_sql(now.saturating_sub(USE_STEP_MILLIS))))?;
        Ok(())
    }

    /// Rejects rows for a user who is being deleted, or was since what writes them began (see `deletion`).
    pub(crate) fn require_staying(&self, tx: &Transaction<'_>) -> Result<(), StoreError> {
        if self.is_staying(tx)? { Ok(()) } else { Err(StoreError::BeingDeleted { user: self.user.clone() }) }
    }

    /// Whether the user is not being deleted, and was not since.
    pub(crate) fn is_staying(&self, tx: &Transaction<'_>) -> Result<bool, StoreError> {
        let mut leaving = tx.prepare_cached(
            "SELECT 1 FROM deletions WHERE folder = ?1
             UNION ALL SELECT 1 FROM meta WHERE key = ?2 AND CAST(value AS INTEGER) > ?3",
        )?;
        let since = self.since.map_or(i64::MAX, to_sql);
        Ok(!leaving.exists((&self.folder, deleted_at(&self.folder), since))?)
    }
}

/// Which users stay, in the state that one transaction sees: each is looked up once.
#[derive(Debug, Default)]
pub(crate) struct StayingUsers<'a>(BTreeMap<(&'a str, Option<u64>), bool>);

impl<'a> StayingUsers<'a> {
    /// As [`UserStore::is_staying`].
    pub(crate) fn contain(&mut self, tx: &Transaction<'_>, user: &'a UserStore) -> Result<bool, StoreError> {
        match self.0.entry((&user.folder, user.since)) {
            Entry::Occupied(known) => Ok(*known.get()),
            Entry::Vacant(unknown) => Ok(*unknown.insert(user.is_staying(tx)?)),
        }
    }
}
