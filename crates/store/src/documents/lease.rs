//! Which process is running a turn: it holds a lock, which the system releases when the process dies. An interrupted
//! turn can thus be distinguished from a running one, and no two processes ever continue the same turn.

use std::path::PathBuf;

use super::UserDocuments;
use larder_disk::StoreError;
use larder_disk::locks::{TurnLease, take_lease, wait_for_lease};

/// Which turns of one user some process works on; from [`UserDocuments::leases`].
#[derive(Debug, Clone, Copy)]
pub struct Leases<'d> {
    pub(super) docs: &'d UserDocuments,
}

impl Leases<'_> {
    /// Takes the lease of a turn; `None` while another process, or another handle of this one, has it. Where the file
    /// system has no locks, every caller gets one.
    ///
    /// # Errors
    /// The home folder cannot be written.
    pub fn acquire(&self, number: u32) -> Result<Option<TurnLease>, StoreError> {
        take_lease(self.path(number))
    }

    /// Takes the lock for writing documents outside turns, which one process holds at a time: otherwise two processes
    /// that read the same version could both write, and one would overwrite the other.
    pub(super) fn lock_writes(&self) -> Result<TurnLease, StoreError> {
        self.lock(self.folder().join(format!("{}.writes", self.docs.name)))
    }

    /// Takes the lock for writing the figures of all users.
    pub(super) fn lock_figures(&self) -> Result<TurnLease, StoreError> {
        self.lock(self.folder().join("figures"))
    }

    fn lock(&self, path: PathBuf) -> Result<TurnLease, StoreError> {
        let patience = self.docs.documents.store().options().patience;
        let held = wait_for_lease(path.clone(), patience)?;
        held.ok_or(StoreError::Locked { path })
    }

    /// Whether some process works on a turn.
    pub fn is_held(&self, number: u32) -> bool {
        TurnLease::is_held(&self.path(number))
    }

    fn path(&self, number: u32) -> PathBuf {
        self.folder().join(format!("{}-{number}", self.docs.name))
    }

    fn folder(&self) -> PathBuf {
        self.docs.documents.store().home().join("turns")
    }
}
