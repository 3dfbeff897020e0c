//! The progress of one call: it may block, tells the client how far it is, and ends soon after the client
//! no longer wants it. Knows no tool.

use std::future::Future;

use larder_engine::blocking;
use larder_engine::executor::{ProgressObserver, RunReceipt};
use rmcp::model::{ErrorData, ProgressNotificationParam};
use rmcp::service::{RequestContext, RoleServer};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

/// How one call is going.
pub(super) struct CallProgress {
    cancelled: CancellationToken,
    stages: UnboundedSender<String>,
}

impl CallProgress {
    /// Waits for `work`; `None` when the client no longer wants it.
    pub async fn wait<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.cancelled.run_until_cancelled(work).await
    }
}

impl ProgressObserver for CallProgress {
    fn stage(&self, text: &str) {
        // Nobody listens any more: nothing to tell.
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
    let (stages, mut told) = unbounded_channel();
    let progress = CallProgress { cancelled: context.ct.clone(), stages };
    let working = blocking::spawn(work(progress));
    let token = context.meta.get_progress_token();
    let mut step = 0.0;
    // The channel ends when the work is done and its progress is dropped.
    while let Some(stage) = told.recv().await {
        let Some(token) = &token else { continue };
        step += 1.0;
        let progress = ProgressNotificationParam::new(token.clone(), step).with_message(stage);
        // A client that is gone notices nothing.
        let _ = context.peer.notify_progress(progress).await;
    }
    working.await.map_err(|error| {
        tracing::error!("a call broke off: {error}");
        ErrorData::internal_error("a bug in larder: the call broke off; please report it", None)
    })
}
