//! Requests to stop: Ctrl-C, SIGTERM, and a closed terminal.

/// Completes when the process is asked to stop. What is under way then ends in order, with the programs that it started.
pub async fn requested() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        if let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = kinds.map(signal) {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            return;
        }
    }
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
