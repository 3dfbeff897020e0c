//! Connections: accepting them, slow clients, and draining. Knows HTTP/1.1 and no route.
//!
//! The listener of `axum` sets no time limit for the head of a request, so connections are served by `hyper` itself.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use larder_engine::blocking;
use larder_store::{RESERVATION_LIFETIME, StoreError};
use tokio::net::{TcpListener, TcpStream};
use tokio_io_timeout::TimeoutWriter;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use crate::app::App;
use crate::reload::{self, WatchedFiles};
use crate::routes::Extra;

/// Pause after a connection could not be accepted, for example because the process has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How often reservations are renewed: a third of their lifetime.
const RENEWAL: Duration = Duration::from_secs(RESERVATION_LIFETIME.as_secs() / 3);

/// Timeouts for clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// For the head of a request; also how long a connection stays open without one.
    pub header: Duration,
    /// For taking more of a reply that waits to be written.
    pub write: Duration,
    /// For requests in progress when the server stops.
    pub drain: Duration,
}

/// Runs a gateway until `asked` completes: serves, reloads when one of the files in `watched` changes, and finally
/// lets requests in progress end and writes everything still to be written. Returns the number of connections that
/// were cut.
pub async fn run(
    app: Arc<App>,
    extra: Extra,
    listener: TcpListener,
    watched: WatchedFiles,
    asked: impl Future<Output = ()>,
) -> usize {
    let documents = app.documents.clone();
    let recovered = blocking::run(move || documents.recover()).await;
    if let Ok(Err(error)) = recovered {
        tracing::error!(%error, "turns interrupted by a crash were not recovered; the next start will try again");
    }
    let gateway = app.current().gateway.clone();
    let pace = Pace { header: gateway.header_timeout, write: gateway.write_timeout, drain: gateway.drain };
    let watching = tokio::spawn(reload::watch(Arc::clone(&app), watched, app.stop.clone()));
    let holding = Arc::clone(&app);
    let renewing = tokio::spawn(renew(move || holding.auth.renew()));
    let working = tokio::spawn(crate::jobs::serve(Arc::clone(&app)));
    let warming = tokio::spawn(crate::warming::warm(Arc::clone(&app)));
    let router = crate::routes::router(&app, extra);
    let serving = tokio::spawn(serve(listener, router, pace, app.stop.clone()));
    asked.await;
    app.telemetry.close();
    app.stop.cancel();
    let left = serving.await.unwrap_or_default();
    renewing.abort();
    let _ = watching.await;
    let _ = working.await;
    let _ = warming.await;
    let finished = blocking::run(move || {
        app.recorder.finish();
        app.telemetry.flush();
    });
    let _ = finished.await;
    left
}

/// Keeps budget reservations of requests in progress from expiring; `once` renews them, and blocks.
pub(crate) async fn renew(once: impl Fn() -> Result<(), StoreError> + Clone + Send + 'static) {
    loop {
        tokio::time::sleep(RENEWAL).await;
        let renewed = blocking::run(once.clone()).await;
        if let Ok(Err(error)) = renewed {
            tracing::warn!(%error, "budget reservations of requests in progress may expire before they end");
        }
    }
}

/// Serves `router` until `stop` is cancelled, then accepts no new connection and gives requests in progress time to
/// end. Returns the number of connections that did not.
pub async fn serve(listener: TcpListener, router: Router, pace: Pace, stop: CancellationToken) -> usize {
    let (connections, cut) = (TaskTracker::new(), CancellationToken::new());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let served = connection(stream, peer, router.clone(), pace, stop.clone());
                let cut = cut.clone();
                connections.spawn(async move { cut.run_until_cancelled(served).await });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    connections.close();
    let _ = tokio::time::timeout(pace.drain, connections.wait()).await;
    let left = connections.len();
    cut.cancel();
    connections.wait().await;
    left
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    pace: Pace,
    stop: CancellationToken,
) {
    // A streamed reply consists of many small writes, and someone is waiting for each of them.
    let _ = stream.set_nodelay(true);
    // A client that stops reading would keep a slot and the upstream connection indefinitely. The time runs only
    // while something waits to be written, and restarts with each byte accepted: a silent upstream is not affected.
    let mut stream = TimeoutWriter::new(stream);
    stream.set_timeout(Some(pace.write));
    let service = router.map_request(move |request: hyper::Request<hyper::body::Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        request
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(pace.header)
        .serve_connection(TokioIo::new(Box::pin(stream)), TowerToHyperService::new(service));
    let mut served = pin!(served);
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = stop.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Listens from the moment of the call for a request to stop: SIGTERM, SIGINT, or their equivalents. The future
/// completes when it arrives. Call this before the server's address is announced: until then a signal kills the
/// process.
///
/// # Panics
///
/// Outside a Tokio runtime.
#[cfg(unix)]
pub fn asked_to_stop() -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};
    let [interrupt, terminate] = [SignalKind::interrupt(), SignalKind::terminate()].map(|kind| {
        let listening = signal(kind);
        async move {
            match listening {
                Ok(mut signal) => drop(signal.recv().await),
                Err(_) => std::future::pending().await,
            }
        }
    });
    async {
        tokio::select! {
            () = interrupt => {}
            () = terminate => {}
        }
    }
}

/// Listens for a request to stop. The future completes when it arrives.
#[cfg(not(unix))]
pub fn asked_to_stop() -> impl Future<Output = ()> {
    async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use larder_models::price::Usd;
    use larder_store::{Clock, KeyLimits, Store, StoreOptions, Timestamp};
    use larder_testkit::fixed::START_MS;
    use tokio::time::Instant;

    use super::*;
    use crate::auth::{Auth, Caller, create_key};

    /// A clock that follows the runtime's clock, starting at a fixed time.
    struct Running(Instant);

    impl Clock for Running {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(START_MS + self.0.elapsed().as_millis() as u64)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn reservations_last_as_long_as_their_process() {
        let dir = tempfile::tempdir().unwrap();
        let options = StoreOptions { clock: Arc::new(Running(Instant::now())), ..StoreOptions::default() };
        let store = Store::open(&dir.path().join("home"), options).unwrap();
        let limits = KeyLimits { tokens_per_day: Some(100), picos_per_day: None };
        let (_, record) = create_key(&store, "ada", "test", limits).unwrap();
        let key = Some(record.id.clone());
        let caller = Caller { store: store.user("ada").unwrap(), key, limits, operator: false };
        let auth = Arc::new(Auth::new(store.clone()).unwrap());
        let _held = auth.reserve(&caller, 40, Usd::default()).unwrap();
        let renewing = tokio::spawn(renew(move || auth.renew()));
        let held = || store.keys().day_spend(&record.id).unwrap().held.tokens;
        tokio::time::sleep(5 * RESERVATION_LIFETIME).await;
        assert_eq!(held(), 40);
        // As when the process is killed.
        renewing.abort();
        tokio::time::sleep(RESERVATION_LIFETIME).await;
        assert_eq!(held(), 0, "nobody renews it, so others may take it");
    }
}
