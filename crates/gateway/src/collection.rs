//! Removes what has expired, next to the traffic, and knows whether what is left is too large.

use std::sync::Arc;

use std::sync::atomic::Ordering;

use larder_conversation::expiry;
use larder_engine::blocking;
use larder_store::{CollectionReport, StoreError};

use crate::app::App;

impl App {
    /// Removes what has expired by the current settings. It waits after each small transaction as long as that took, so
    /// that requests get at least half of the store's time. Blocks.
    ///
    /// # Errors
    /// The store fails; the next collection goes on.
    pub fn collect(&self) -> Result<CollectionReport, StoreError> {
        let current = self.current();
        let all = (&self.store, &self.documents, &**current.types());
        expiry::collect(all, &current.config.retention(), &|took| {
            std::thread::sleep(took);
            !self.stop.is_cancelled()
        })
    }

    /// Why the store cannot write, or that its index is damaged, in a word; `None` if all is well. Another process may have
    /// collected last.
    pub async fn degraded(self: &Arc<Self>) -> Option<&'static str> {
        let app = Arc::clone(self);
        if let Ok(Ok(is_over)) = blocking::run(move || app.store.is_over_limit()).await {
            self.storage.note_limit(is_over);
        }
        if self.store.is_damaged() { Some("storage_damaged") } else { self.storage.degraded() }
    }
}

/// Collects, and notes whether the store is too large.
pub(crate) fn run(app: &App) -> Result<(), StoreError> {
    let report = app.collect()?;
    app.storage.note_limit(report.over_limit);
    report_on(&report);
    empty_log(app)
}

/// Empties the log of writes, if something was erased at once since that was last done: a process that read the store may
/// have kept `larder forget` from doing so.
fn empty_log(app: &App) -> Result<(), StoreError> {
    let erasures = app.store.early_erasures()?;
    app.caches.forget_texts_before(erasures);
    let is_due = app.emptied.load(Ordering::Relaxed) != erasures;
    if is_due && app.store.empty_log()? {
        app.emptied.store(erasures, Ordering::Relaxed);
    }
    Ok(())
}

fn report_on(report: &CollectionReport) {
    for (reason, classes) in [("age", &report.by_age), ("size", &report.by_size)] {
        for (class, collected) in classes {
            tracing::info!(
                ?class,
                reason,
                items = collected.items,
                bytes = collected.bytes,
                "expired data was removed"
            );
        }
    }
}
