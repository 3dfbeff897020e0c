//! Removes what has expired, once an hour, next to the traffic.

use std::sync::Arc;
use std::time::Duration;

use larder_store::{CollectionReport, StoreError};

use crate::app::App;
use crate::storage_health::StoredFor;

/// Time between two collections.
const PERIOD: Duration = Duration::from_hours(1);

impl App {
    /// Removes what has expired by the current settings. It waits after each small transaction as long as that took, so
    /// that requests get at least half of the store's time. Blocks.
    ///
    /// # Errors
    /// The store fails; the next collection goes on.
    pub fn collect(&self) -> Result<CollectionReport, StoreError> {
        let retention = self.current().config.retention();
        self.documents.collect(&retention, &|took| {
            std::thread::sleep(took);
            !self.stop.is_cancelled()
        })
    }
}

/// Collects until the gateway stops.
pub(crate) async fn run(app: Arc<App>) {
    loop {
        let collecting = Arc::clone(&app);
        match tokio::task::spawn_blocking(move || collecting.collect()).await {
            Ok(Ok(report)) => {
                let found = if report.over_limit { Err(StoreError::OverLimit) } else { Ok(()) };
                app.storage.note(StoredFor::SizeLimit, &found);
                report_on(&report);
            }
            Ok(Err(error)) => {
                tracing::error!(%error, "expired data could not be removed; the next attempt is in an hour");
            }
            Err(error) => tracing::error!(%error, "the removal of expired data has failed"),
        }
        tokio::select! {
            () = app.stop.cancelled() => return,
            () = tokio::time::sleep(PERIOD) => {}
        }
    }
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
