//! Runs one call that may block, reports its progress to the client, and ends it soon after the client cancels. Knows no
//! tool.

use std::future::Future;

use larder_engine::blocking;
use larder_engine::executor::{ProgressObserver, RunReceipt};
use rmcp::model::{ErrorData, ProgressNotificationParam};
use rmcp::service::{RequestContext, RoleServer};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

/// The progress of one call.
pub(super) struct CallProgress {
    cancelled: CancellationToken,
    stages: UnboundedSender<String>,
}

impl CallProgress {
    /// Waits for `work`; `None` if the client cancels.
    pub async fn wait<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.cancelled.run_until_cancelled(work).await
    }
}

impl ProgressObserver for CallProgress {
    fn stage(&self, text: &str) {
        // The receiver is gone only after the call has ended.
        let _ = self.stages.send(text.to_owned());
    }

    fn progress(&self, done: u64, total: u64) {
        self.stage(&format!("read {:.1} of {:.1} MB", done as f64 / 1e6, total as f64 / 1e6));
    }

    fn packed(&self, receipt: &RunReceipt) {
        let ledger = &receipt.receipt.budget;
        self.stage(&format!("packed {} of {} tokens for {}", ledger.used, ledger.available, receipt.model));
    }

    fn is_wanted(&self) -> bool {
        !self.cancelled.is_cancelled()
    }
}

/// Runs `work`, which may block. Each stage becomes a progress notification, if the client asked for them.
pub(super) async fn run<F>(
    context: &RequestContext<RoleServer>,
    work: impl FnOnce(CallProgress) -> F,
) -> Result<F::Output, ErrorData>
where
    F: Future<Output: Send> + Send + 'static,
{
    let (stages, mut received) = unbounded_channel();
    let progress = CallProgress { cancelled: context.ct.clone(), stages };
    let working = blocking::spawn(work(progress));
    let token = context.meta.get_progress_token();
    let mut step = 0.0;
    // The channel closes when the work is done and drops its sender.
    while let Some(stage) = received.recv().await {
        let Some(token) = &token else { continue };
        step += 1.0;
        let progress = ProgressNotificationParam::new(token.clone(), step).with_message(stage);
        // Ignore clients that have disconnected.
        let _ = context.peer.notify_progress(progress).await;
    }
    working.await.map_err(|error| {
        tracing::error!("a call was aborted: {error}");
        ErrorData::internal_error("a bug in larder: the call was aborted; please report it", None)
    })
}
