//! Live totals over REST, once as JSON or as a stream of events, and the metrics of the whole gateway.

use std::sync::Arc;

use std::convert::Infallible;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures::Stream;
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_gateway::live_stats::{LiveUpdate, Watcher};
use larder_gateway::metrics::CONTENT_TYPE;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Problem;
use super::endpoint::{Endpoints, routes};
use super::extract::{Operator, Query};

/// The endpoints of live totals and metrics.
pub(super) fn endpoints(to: &mut impl Endpoints) {
    routes!(to, show, events, metrics);
}

/// Where to continue.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct LiveParams {
    /// The last known sequence number; requests that ended before it are left out.
    #[serde(default)]
    after: u64,
}

/// Show totals and the last requests
#[utoipa::path(
    get, path = "/api/v1/live", tag = "live", params(LiveParams),
    responses((status = 200, description = "As of now", body = LiveUpdate))
)]
pub async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Query(LiveParams { after }): Query<LiveParams>,
) -> Json<LiveUpdate> {
    Json(app.telemetry.live.user(caller.store.user()).news(after))
}

/// Watch totals and requests
///
/// Server-sent events `news` with the data of `/api/v1/live`: the first at once, then at most four a second when
/// something happened. `last-event-id` resumes an interrupted stream.
#[utoipa::path(
    get, path = "/api/v1/live/events", tag = "live",
    responses((status = 200, description = "Events", body = LiveUpdate, content_type = "text/event-stream"))
)]
pub async fn events(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> impl IntoResponse {
    stream(&app, &caller, &headers, |news| Event::default().event("news").json_data(news).ok())
}

/// A stream of events, one for each update for which `event` returns one.
pub fn stream<F: Fn(&LiveUpdate) -> Option<Event> + Send + 'static>(
    app: &Arc<App>,
    caller: &Caller,
    headers: &HeaderMap,
    event: F,
) -> Sse<impl Stream<Item = Result<Event, Infallible>> + use<F>> {
    let after = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.parse().ok());
    let watcher = app.telemetry.live.watch(caller.store.user(), after.unwrap_or(0));
    Sse::new(event_stream(watcher, event)).keep_alive(KeepAlive::default())
}

fn event_stream(
    watcher: Watcher,
    event: impl Fn(&LiveUpdate) -> Option<Event> + Send + 'static,
) -> impl Stream<Item = Result<Event, Infallible>> {
    futures::stream::unfold((watcher, event), |(mut watcher, event)| async move {
        loop {
            let news = watcher.next().await?;
            if let Some(sent) = event(&news) {
                let sent = sent.id(news.sequence.to_string());
                return Some((Ok(sent), (watcher, event)));
            }
        }
    })
}

/// Show the metrics of the whole gateway, for Prometheus
#[utoipa::path(
    get, path = "/metrics", tag = "live",
    responses(
        (status = 200, description = "In the text format of OpenMetrics", body = String, content_type = "application/openmetrics-text"),
        (status = 403, description = "Not an operator key", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn metrics(_: Operator, State(app): State<Arc<App>>) -> Result<Response, Problem> {
    app.telemetry.metrics.set_degraded(app.degraded().await.is_some());
    let text = app.telemetry.metrics.text().map_err(|error| Problem::internal(&error))?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response())
}
