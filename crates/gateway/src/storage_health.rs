//! Whether the store takes what requests leave behind, as health checks, dashboard and metrics show it. Knows no request.

use std::sync::{Mutex, PoisonError};

use larder_store::StoreError;

/// What is written for requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredFor {
    /// Originals, which must be stored before a request leaves.
    Originals,
    /// Records and transcripts.
    Records,
}

/// The outcome of the last write of each kind.
#[derive(Debug, Default)]
pub struct StorageHealth {
    failed: Mutex<[Option<&'static str>; 2]>,
}

impl StorageHealth {
    /// Notes how a write ended. Errors of single requests are not the store's.
    pub fn note<T>(&self, what: StoredFor, written: &Result<T, StoreError>) {
        let class = match written {
            Ok(_) => None,
            Err(error) if error.is_unwritable() => Some(crate::error::storage_class(error)),
            Err(_) => return,
        };
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = usize::from(what == StoredFor::Records);
        if let Some(place) = failed.get_mut(kind)
            && *place != class
        {
            match (&class, written) {
                (Some(class), Err(error)) => {
                    tracing::error!(%error, class, "the store cannot write; requests go whole")
                }
                _ => tracing::warn!(?what, "the store writes again"),
            }
            *place = class;
        }
    }

    /// Why the store cannot write, in a word; `None` if it can.
    pub fn degraded(&self) -> Option<&'static str> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).iter().find_map(|class| *class)
    }
}
