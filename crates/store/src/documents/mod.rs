//! The documents of all users: the files of turns and of memory, and the index over them.
//!
//! The documents are the truth. A turn is committed by one durable transaction in the main database; its files
//! follow, `metadata.json` last, and a folder without one is no turn. The index is made from paths and bytes alone and
//! may be deleted at any time. Knows where documents stand and how they are kept; what stands in them is the core's.
//!
//! | | |
//! |---|---|
//! | [`access`] | which paths a user may read and write |
//! | [`drafts`] | turns under way, in the main database |
//! | [`hold`] | which process works on a turn |
//! | [`commit`] | from a draft to files: the journal |
//! | [`recover`] | finishing what a crash interrupted |
//! | [`index`] | what is found without reading files |
//! | [`vectors`] | what means nearly the same as a query |
//! | [`notes`] | notes made from the index, wrappers |
//! | [`tree`] | where bytes are kept |

mod access;
mod archive;
mod commit;
mod drafts;
mod forget;
mod hold;
mod index;
mod journal;
mod lookup;
mod notes;
mod recover;
mod reindex;
mod tree;
mod types;
mod usage;
mod vectors;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use larder_vault::layout::UserPlace;

pub use hold::TurnLease;
pub use types::{
    ArchiveReport, CaptureRow, DocumentHit, DocumentKind, DocumentPlace, DraftSummary, EmbeddingText,
    ReindexReport, ResearchRow, SourceRow, TextVector, TurnDraft, TurnRow,
};

use self::index::{IndexFile, name_of};
use self::tree::Tree;
use crate::error::StoreError;
use crate::files;
use crate::store::{Store, UserStore};

/// The documents of all users. Cheap to clone.
///
/// Its calls block until they are done, on any thread: they read and write files, or wait for a server with a bucket.
/// Asynchronous code calls them from a thread that may block.
#[derive(Debug, Clone)]
pub struct Documents {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    tree: Arc<dyn Tree>,
    /// The folder of the indexes.
    indexes: PathBuf,
    /// What all handles of one user share, by the name of his folder.
    shelves: Mutex<HashMap<String, Arc<Shelf>>>,
    /// The names of the folders of all users, as they were when they were last listed.
    known: Mutex<Option<BTreeSet<String>>>,
    /// Commits of this process since the journal was last cleared.
    journalled: AtomicU64,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Documents").field("tree", &self.tree).finish_non_exhaustive()
    }
}

/// What all handles of one user share.
#[derive(Debug)]
struct Shelf {
    index: IndexFile,
    /// Held while notes are made from the index, so that the newest state is written last.
    notes: Mutex<()>,
    /// Held while a document is compared and written.
    writes: Mutex<()>,
}

impl Documents {
    /// Opens the documents at `place`. Call [`Documents::recover`] before anything else is done with them.
    ///
    /// # Errors
    /// The place cannot be used.
    pub fn open(store: &Store, place: &DocumentPlace) -> Result<Self, StoreError> {
        Self::over(store, tree::open(place)?)
    }

    fn over(store: &Store, tree: Arc<dyn Tree>) -> Result<Self, StoreError> {
        let indexes = store.home().join("indexes").join("documents");
        files::create_dir_all(&indexes)?;
        let inner = Inner {
            store: store.clone(),
            tree,
            indexes,
            shelves: Mutex::default(),
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
        let shelf = self.shelf(&name)?;
        Ok(UserDocuments { documents: self.clone(), store, place, name, shelf })
    }

    /// What is shared for the folder of this name.
    fn shelf(&self, name: &str) -> Result<Arc<Shelf>, StoreError> {
        let mut shelves = self.inner.shelves.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shelf) = shelves.get(name) {
            return Ok(Arc::clone(shelf));
        }
        let path = self.inner.indexes.join(format!("{name}.db"));
        let index = {
            // SQLite waits for nobody while a new file gets its log of writes, but refuses at once.
            let _lock = self.inner.store.lock_setup()?;
            IndexFile::open(path, self.inner.store.options().patience)?
        };
        let shelf = Arc::new(Shelf { index, notes: Mutex::new(()), writes: Mutex::new(()) });
        shelves.insert(name.to_owned(), Arc::clone(&shelf));
        Ok(shelf)
    }

    /// Takes what is shared for a folder out of use.
    fn drop_shelf(&self, name: &str) -> Result<Arc<Shelf>, StoreError> {
        let shelf = self.shelf(name)?;
        self.inner.shelves.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        Ok(shelf)
    }

    fn tree(&self) -> &dyn Tree {
        self.inner.tree.as_ref()
    }

    fn store(&self) -> &Store {
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
    shelf: Arc<Shelf>,
}

impl UserDocuments {
    /// Where the user's documents stand.
    pub fn place(&self) -> &UserPlace {
        &self.place
    }

    /// The user's id.
    pub fn user(&self) -> &str {
        self.store.user()
    }

    /// Everything else that is kept for the user.
    pub fn store(&self) -> &UserStore {
        &self.store
    }

    fn tree(&self) -> &dyn Tree {
        self.documents.tree()
    }

    fn index(&self) -> &IndexFile {
        &self.shelf.index
    }
}

#[cfg(test)]
mod tests;
