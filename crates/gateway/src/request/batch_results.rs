//! Results of a batch on their way to the client: what they report is priced, recorded and charged, line by line. Knows
//! the lines of OpenAI's and Anthropic's results; knows no route.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderValue, IF_RANGE, RANGE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use larder_engine::executor;
use larder_models::chat::Usage;
use larder_models::price::Usd;
use larder_models::upstream::Incoming;
use larder_proxy::record::{Endpoint, Outcome};
use larder_proxy::wire::{ApiDialect, WholeReply};
use larder_text::json as spans;
use larder_text::usage::Service;

use crate::app::Snapshot;
use crate::auth::AuthError;
use crate::error::RequestError;
use crate::request::active::ActiveRequest;
use crate::request::reply;

/// Bytes of the longest line that is read; a longer one is not a reply of any provider.
const MAX_LINE: usize = 64 << 20;

/// Asks for all of the results as text, so that nothing of them is read uncounted.
pub fn ask_whole(headers: &mut HeaderMap) {
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.remove(RANGE);
    headers.remove(IF_RANGE);
}

/// Forwards the results with what they report charged to `active`.
pub async fn forward(
    mut active: ActiveRequest,
    current: Arc<Snapshot>,
    dialect: ApiDialect,
    incoming: Incoming,
    ours: &HeaderMap,
) -> Response {
    if incoming.headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        let words = "the provider sent the results compressed although it was asked not to, so they cannot be counted";
        let error =
            RequestError::new(StatusCode::BAD_GATEWAY, "upstream_failed", Outcome::UpstreamFailed, words);
        return reply::refuse(active, dialect, error);
    }
    // Without its length: the server would stop at the last byte, and a last line without a line break would not be
    // counted.
    let head = reply::copied(&incoming, ours, false);
    active.respond(incoming.status);
    let state = Some((active, Meter::new(current, dialect), incoming));
    let pieces = stream::unfold(state, |state| async move {
        let (mut active, mut meter, mut incoming) = state?;
        let next = meter.next(&active, &mut incoming).await;
        // However the reply ends, what was handed out is charged.
        meter.charge(&mut active);
        match next {
            Ok(Some(piece)) => Some((Ok(piece), Some((active, meter, incoming)))),
            Ok(None) => {
                active.complete(incoming.status);
                active.finish();
                None
            }
            Err(error) => {
                let error = active.fail(error);
                active.finish();
                Some((Err(error), None))
            }
        }
    });
    head.body(Body::from_stream(pieces)).unwrap_or_default()
}

/// Reads the results to their end and hands nothing out. One line may be of a model without a price, after others that
/// would be charged at every attempt if they were handed out before it is known.
///
/// # Errors
/// If the key may not have all of the results. Nothing is charged.
pub async fn check(
    active: &mut ActiveRequest,
    current: &Arc<Snapshot>,
    dialect: ApiDialect,
    incoming: &mut Incoming,
) -> Result<(), RequestError> {
    let mut meter = Meter::new(Arc::clone(current), dialect);
    meter.charge(active);
    while meter.next(active, incoming).await?.is_some() {}
    Ok(())
}

/// Adds up what the lines of the results report.
struct Meter {
    current: Arc<Snapshot>,
    dialect: ApiDialect,
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    usage: Usage,
    cost: Option<Usd>,
    /// The model of the last line that was counted.
    model: Option<String>,
}

impl Meter {
    fn new(current: Arc<Snapshot>, dialect: ApiDialect) -> Self {
        Self { current, dialect, line: Vec::new(), usage: Usage::default(), cost: None, model: None }
    }

    /// The next piece, with all lines that end in it counted.
    async fn next(
        &mut self,
        active: &ActiveRequest,
        incoming: &mut Incoming,
    ) -> Result<Option<Bytes>, RequestError> {
        let piece = incoming.chunk().await?;
        let Some(bytes) = &piece else {
            self.take_line(active)?;
            return Ok(None);
        };
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.take_line(active)?;
            } else if !self.line.starts_with(b"{") {
                // Not a line of results: only its end matters.
                self.line.truncate(1);
            } else if self.line.len() > MAX_LINE {
                return Err(RequestError::invalid("a line of the results is too long to be counted"));
            }
        }
        Ok(piece)
    }

    /// Counts a whole line.
    fn take_line(&mut self, active: &ActiveRequest) -> Result<(), RequestError> {
        let line = std::mem::take(&mut self.line);
        let Some((model, usage)) = std::str::from_utf8(&line).ok().and_then(|line| self.read(line)) else {
            return Ok(());
        };
        let route = self.current.routes.find(Endpoint::Generate(self.dialect), &model, self.current.shared());
        let (by, prices) = route.ok().map(|route| (route.model, route.prices)).unzip();
        let prices = prices.flatten();
        if prices.is_none() && active.caller.limits.picos_per_day.is_some() {
            let by = by.filter(|by| by.server.is_none());
            let error = AuthError::unpriced(by.as_ref().map_or(&model, |by| &by.name), by.is_some());
            return Err(RequestError::from_auth(&error, active.app().store.now()));
        }
        self.usage += usage;
        if let Some(prices) = prices {
            let usage = Usage { service: Service::Batch, ..usage };
            self.cost = Some(self.cost.unwrap_or_default() + prices.cost(&usage).total);
        }
        self.model = Some(model);
        Ok(())
    }

    /// Charges what was counted so far.
    fn charge(&self, active: &mut ActiveRequest) {
        let used = executor::Spending { usage: self.usage, cost: self.cost };
        active.record_run(used, (0, Usd::default()));
        if let Some(model) = &self.model {
            active.set_model(model);
        }
    }

    /// The model and the usage of one reply of a batch.
    fn read(&self, line: &str) -> Option<(String, Usage)> {
        let document = spans::Document::parse(line).ok()?;
        let root = document.root();
        let openai = root.given("response").and_then(|response| response.given("body"));
        let reply = openai.or_else(|| root.given("result")?.given("message"))?;
        let model = reply.given("model")?.text()?.into_owned();
        let dialect = match reply.given("usage") {
            _ if openai.is_none() => ApiDialect::Messages,
            Some(usage) if usage.given("input_tokens").is_some() => ApiDialect::Responses,
            _ => ApiDialect::Chat,
        };
        let mut whole = WholeReply::new(dialect, None);
        whole.take(reply.raw()).ok()?;
        Some((model, whole.rounds().last().usage?))
    }
}
