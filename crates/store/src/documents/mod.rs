//! The documents of all users: the files of turns and of memory, and the index over them.
//!
//! The documents are the source of truth. A turn is committed by one durable transaction in the main database; its
//! files follow, `metadata.json` last, and a folder without one is not a turn. The index is derived from paths and
//! bytes alone and may be deleted at any time. Knows where and how documents are stored; their formats belong to
//! `larder_vault`.
//!
//! | | |
//! |---|---|
//! | [`files`] | single documents, within the folders of one user |
//! | [`drafts`] | turns under way, in the main database |
//! | [`lease`] | which process works on a turn |
//! | [`commit`] | from a draft to files: the journal |
//! | [`recover`] | finishing what a crash interrupted |
//! | [`catalog`], [`index`] | what is found without reading files |
//! | [`uses`] | how far documents and sites proved reliable |
//! | [`vectors`] | documents close in meaning to a query |
//! | [`figures`] | what the turns of all users took, by day and week |
//! | [`notes`] | notes generated from the index, wrappers |
//! | [`export`] | everything of a user, for other programs |
//! | [`tree`] | where bytes are kept |

mod archive;
mod catalog;
mod commit;
mod drafts;
mod export;
mod figures;
mod files;
mod forget;
mod index;
mod journal;
mod lease;
mod notes;
mod recover;
mod reindex;
mod tree;
mod types;
mod uses;
mod vectors;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use larder_vault::layout::UserPlace;
use larder_vault::{DocumentTime, VaultPath};

pub use catalog::DocumentCatalog;
pub use drafts::Drafts;
pub use export::ExportReport;
pub use figures::Trends;
pub use files::DocumentFiles;
pub use lease::Leases;
pub use types::{
    ArchiveReport, CaptureRow, DocumentHit, DocumentKind, DocumentPlace, DraftSummary, EmbeddingText,
    ReindexReport, ResearchRow, SourceRow, TextVector, TurnDraft, TurnRow,
};
pub use uses::Uses;
pub use vectors::Vectors;

use self::archive::Archiver;
use self::commit::TurnWriter;
use self::index::{IndexFile, PathKind, name_of};
use self::notes::Notes;
use crate::store::{Store, UserStore};
use larder_disk::StoreError;
use larder_disk::files::create_dir_all;
use larder_disk::tree::Tree;

/// The documents of all users. Cheap to clone.
///
/// Calls block on any thread: they read and write files, or wait for a server in the case of a bucket. Asynchronous
/// code must call them from a thread that may block.
#[derive(Debug, Clone)]
pub struct Documents {
    inner: Arc<DocumentsInner>,
}

struct DocumentsInner {
    store: Store,
    tree: Arc<dyn Tree>,
    /// The folder of the indexes.
    indexes: PathBuf,
    /// What all handles of one user share, by the name of the user's folder.
    handles: Mutex<HashMap<String, Arc<UserHandles>>>,
    /// The names of the folders of all users, as they were when they were last listed.
    known: Mutex<Option<BTreeSet<String>>>,
    /// Commits of this process since the journal was last cleared.
    journalled: AtomicU64,
}

impl fmt::Debug for DocumentsInner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Documents").field("tree", &self.tree).finish_non_exhaustive()
    }
}

/// What all handles of one user share.
#[derive(Debug)]
struct UserHandles {
    index: IndexFile,
    /// Held while notes are generated from the index, so that the newest state is written last.
    notes: Mutex<()>,
    /// Held while a document is compared and written.
    writes: Mutex<()>,
}

impl Documents {
    /// Opens the documents at `place`. Call [`Documents::recover`] before any other operation.
    ///
    /// # Errors
    /// The place cannot be used.
    pub fn open(store: &Store, place: &DocumentPlace) -> Result<Self, StoreError> {
        Self::over(store, tree::open(place)?)
    }

    fn over(store: &Store, tree: Arc<dyn Tree>) -> Result<Self, StoreError> {
        let indexes = store.home().join("indexes").join("documents");
        create_dir_all(&indexes)?;
        let inner = DocumentsInner {
            store: store.clone(),
            tree,
            indexes,
            handles: Mutex::default(),
            known: Mutex::default(),
            journalled: AtomicU64::new(0),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The documents as `user` sees them.
    ///
    /// # Errors
    /// The id cannot be one of a user.
    pub fn user(&self, user: &str) -> Result<UserDocuments, StoreError> {
        let store = self.inner.store.user(user)?;
        let place = UserPlace::new(user);
        let name = name_of(&place);
        let handles = self.handles(&name)?;
        Ok(UserDocuments { documents: self.clone(), store, place, name, handles })
    }

    /// What is shared for the folder of this name.
    fn handles(&self, name: &str) -> Result<Arc<UserHandles>, StoreError> {
        let mut known = self.inner.handles.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handles) = known.get(name) {
            return Ok(Arc::clone(handles));
        }
        let path = self.inner.indexes.join(format!("{name}.db"));
        let index = {
            // While a new file is switched to its write-ahead log, SQLite does not wait for other processes but fails
            // at once.
            let _lock = self.inner.store.lock_setup()?;
            IndexFile::open(path, self.inner.store.options().patience)?
        };
        let handles = Arc::new(UserHandles { index, notes: Mutex::new(()), writes: Mutex::new(()) });
        known.insert(name.to_owned(), Arc::clone(&handles));
        Ok(handles)
    }

    /// Drops the shared handles of a folder.
    fn remove_handles(&self, name: &str) -> Result<Arc<UserHandles>, StoreError> {
        let handles = self.handles(name)?;
        self.inner.handles.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        Ok(handles)
    }

    fn tree(&self) -> &dyn Tree {
        self.inner.tree.as_ref()
    }

    pub(crate) fn store(&self) -> &Store {
        &self.inner.store
    }
}

/// The documents of one user. Nothing of another user can be read through it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct UserDocuments {
    documents: Documents,
    store: UserStore,
    place: UserPlace,
    /// The name of the user's folder.
    name: String,
    handles: Arc<UserHandles>,
}

impl UserDocuments {
    /// The paths of the user's documents.
    pub fn place(&self) -> &UserPlace {
        &self.place
    }

    /// The user's id.
    pub fn user(&self) -> &str {
        self.store.user()
    }

    /// Everything else stored for the user.
    pub fn store(&self) -> &UserStore {
        &self.store
    }

    /// Single documents.
    pub const fn files(&self) -> DocumentFiles<'_> {
        DocumentFiles { docs: self }
    }

    /// Turns from their beginning to their commit.
    pub const fn drafts(&self) -> Drafts<'_> {
        Drafts { docs: self }
    }

    /// Which turns some process works on.
    pub const fn leases(&self) -> Leases<'_> {
        Leases { docs: self }
    }

    /// What the index knows: turns, research, captured pages, links, words.
    pub const fn catalog(&self) -> DocumentCatalog<'_> {
        DocumentCatalog { docs: self }
    }

    /// How far documents and sites proved reliable.
    pub const fn uses(&self) -> Uses<'_> {
        Uses { docs: self }
    }

    /// Vectors of the texts of turns and research.
    pub const fn vectors(&self) -> Vectors<'_> {
        Vectors { docs: self }
    }

    const fn notes(&self) -> Notes<'_> {
        Notes { docs: self }
    }

    const fn writer(&self) -> TurnWriter<'_> {
        TurnWriter { docs: self }
    }

    const fn archiver(&self) -> Archiver<'_> {
        Archiver { docs: self }
    }

    fn tree(&self) -> &dyn Tree {
        self.documents.tree()
    }

    /// The present moment by the store's clock, as documents write it.
    fn now(&self) -> DocumentTime {
        self.store.now().into()
    }

    /// Whether a document is this user's.
    fn owns(&self, path: &VaultPath) -> bool {
        PathKind::parse(path).is_some_and(|spot| spot.name == self.name)
    }

    fn require_own(&self, path: &VaultPath) -> Result<(), StoreError> {
        if self.owns(path) { Ok(()) } else { Err(self.foreign(path.as_str())) }
    }

    fn foreign(&self, path: &str) -> StoreError {
        StoreError::Foreign { path: path.to_owned(), expected: format!("users/{}/", self.name) }
    }

    fn index(&self) -> &IndexFile {
        &self.handles.index
    }
}

/// Refuses the moment to which times after the year 9999 are cut: by such a clock every turn would be old.
fn refuse_last(now: DocumentTime) -> Result<(), StoreError> {
    if now.is_last() {
        let reason = "the clock is past the year 9999; correct it".to_owned();
        return Err(StoreError::BadTurn { number: 0, reason });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
