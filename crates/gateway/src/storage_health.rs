//! Whether the store takes what requests leave behind, as health checks, dashboard and metrics show it. Knows no request.

use std::sync::{Mutex, PoisonError};

use larder_store::StoreError;

/// What the store has to take for requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredFor {
    /// Originals, which must be stored before a request leaves.
    Originals,
    /// Records and transcripts.
    Records,
    /// Anything at all, under the limit on the size of the store.
    SizeLimit,
}

/// The last outcome of each kind.
#[derive(Debug, Default)]
pub struct StorageHealth {
    failed: Mutex<[Option<&'static str>; 3]>,
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
        if let Some(place) = failed.get_mut(what as usize)
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

    /// Notes whether the last collection, of any process, found the store above its limit. Below it nothing is refused for
    /// the limit any more, whatever a request was told before.
    pub fn note_limit(&self, is_over: bool) {
        if !is_over {
            for what in [StoredFor::Originals, StoredFor::Records] {
                if self.class_of(what) == Some(crate::error::storage_class(&StoreError::OverLimit)) {
                    self.note(what, &Ok(()));
                }
            }
        }
        self.note(StoredFor::SizeLimit, &if is_over { Err(StoreError::OverLimit) } else { Ok(()) });
    }

    fn class_of(&self, what: StoredFor) -> Option<&'static str> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.get(what as usize).copied().flatten()
    }

    /// Why the store cannot write, in a word; `None` if it can.
    pub fn degraded(&self) -> Option<&'static str> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).iter().find_map(|class| *class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_below_its_limit_may_still_be_unable_to_write() {
        let health = StorageHealth::default();
        let full = StoreError::DiskFull { path: "index.sqlite".into(), action: "writing" };
        health.note(StoredFor::Originals, &Err::<(), _>(full));
        health.note_limit(false);
        assert!(health.degraded().is_some());
        health.note(StoredFor::Originals, &Ok(()));
        assert_eq!(health.degraded(), None);
    }

    #[test]
    fn a_store_below_its_limit_again_refuses_nothing_for_it() {
        let health = StorageHealth::default();
        health.note_limit(true);
        health.note(StoredFor::Originals, &Err::<(), _>(StoreError::OverLimit));
        assert_eq!(health.degraded(), Some("storage_over_limit"));
        health.note_limit(false);
        assert_eq!(health.degraded(), None);
    }
}
