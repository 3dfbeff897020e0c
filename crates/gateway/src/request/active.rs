//! One request while it is under way: its record and what is known of its usage, budget, time and transcript. The end of
//! a request is a call of [`ActiveRequest::finish`]; one that is dropped before is handed to the recorder as abandoned,
//! so every request is recorded. Knows no wire format.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use larder_core::policy::{ContextBudgetPolicy, SessionUsage};
use larder_engine::executor;
use larder_models::chat::Usage;
use larder_models::price::Usd;
use larder_proxy::record::{Bill, Endpoint, Outcome, RequestRecord, RoundTrips, cut_name};
use tokio::sync::OwnedSemaphorePermit;

use crate::app::App;
use crate::auth::Caller;
use crate::error::RequestError;
use crate::limits::BodyMemory;
use crate::recorder::{self, Observation, Pending, RecordJob};
use crate::request::bill;
use crate::request::budget::{RequestBudget, total};
use crate::request::timing::RequestTiming;
use crate::request::usage::UsageAccounting;
use crate::telemetry::{self, InFlight};
use crate::transcript::TranscriptCapture;

/// One request while it is under way, which ends by [`ActiveRequest::finish`]. If it is dropped before, the recorder ends
/// it.
pub struct ActiveRequest {
    /// Present until the request ends.
    open: Option<OpenRequest>,
}

/// What is known of a request that has not ended.
pub struct OpenRequest {
    /// What is recorded of it.
    pub record: Box<RequestRecord>,
    /// Who sent it.
    pub caller: Caller,
    /// What is reserved for it.
    pub budget: RequestBudget,
    /// What its rounds use.
    pub usage: UsageAccounting,
    /// Its clock.
    pub timing: RequestTiming,
    /// Its messages and its reply, where they are kept.
    pub transcript: Option<TranscriptCapture>,
    /// Memory for the body, which is kept as long as the request may have to be sent again.
    pub body_memory: BodyMemory,
    /// What it shows of how far estimates of the model's tokens are off.
    pub observation: Option<Observation>,
    app: Arc<App>,
    /// What decided over the request, and what its rounds used under it.
    policy: Option<(ContextBudgetPolicy, SessionUsage)>,
    /// What the run of a recipe used, tokens and money.
    run: Option<(u64, Usd)>,
    guards: Guards,
}

/// What is held from the arrival of a request to its end.
struct Guards {
    /// Lets readers of the API wait for the record.
    pending: Option<Pending>,
    /// One of the places for requests at once; none for a request that is refused for lack of one.
    place: Option<OwnedSemaphorePermit>,
    _in_flight: InFlight,
}

impl ActiveRequest {
    /// Takes in a request that has just arrived.
    ///
    /// # Errors
    /// When too many requests are under way, or there are no random bytes for an id.
    pub fn open(
        app: &Arc<App>,
        caller: &Caller,
        endpoint: Endpoint,
        headers: &HeaderMap,
    ) -> Result<Self, RequestError> {
        let id = app.store.new_run_id().map_err(|error| RequestError::bug(&error.to_string()))?;
        let user = caller.store.user();
        let mut record = RequestRecord::blank(id.as_str(), app.store.now(), user, endpoint);
        record.summary.key = caller.key.as_ref().map(ToString::to_string);
        record.summary.traceparent = traceparent(headers);
        let guards = Guards {
            pending: Some(app.recorder.expect(user, id.as_str())),
            place: app.admission.take(),
            _in_flight: app.telemetry.begin(user),
        };
        let has_place = guards.place.is_some();
        let open = OpenRequest {
            record: Box::new(record),
            caller: caller.clone(),
            budget: RequestBudget::default(),
            usage: UsageAccounting::default(),
            timing: RequestTiming::start(),
            transcript: None,
            body_memory: app.admission.body_memory(),
            observation: None,
            app: Arc::clone(app),
            policy: None,
            run: None,
            guards,
        };
        let mut active = Self { open: Some(open) };
        if has_place {
            return Ok(active);
        }
        let error = active.fail(RequestError::busy());
        active.finish();
        Err(error)
    }

    /// Ends the request: completes its record, counts it, and queues what it leaves behind.
    pub fn finish(mut self) {
        if let Some(mut open) = self.open.take() {
            open.timing.write_to(&mut open.record.summary.times);
            let (app, place) = (Arc::clone(&open.app), open.guards.place.take());
            app.recorder.record(open.close(), place);
        }
    }
}

impl Drop for ActiveRequest {
    /// The client left, or the thread panicked.
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            open.abandon();
        }
    }
}

impl Deref for ActiveRequest {
    type Target = OpenRequest;

    #[allow(
        clippy::expect_used,
        reason = "only `finish` and `drop` take it, and nothing can be called after them"
    )]
    fn deref(&self) -> &OpenRequest {
        self.open.as_ref().expect("the request has not ended")
    }
}

impl DerefMut for ActiveRequest {
    #[allow(
        clippy::expect_used,
        reason = "only `finish` and `drop` take it, and nothing can be called after them"
    )]
    fn deref_mut(&mut self) -> &mut OpenRequest {
        self.open.as_mut().expect("the request has not ended")
    }
}

impl OpenRequest {
    /// The gateway that serves it.
    pub const fn app(&self) -> &Arc<App> {
        &self.app
    }

    /// Records the model that was asked for.
    pub fn set_model(&mut self, model: &str) {
        self.record.summary.model = cut_name(model);
    }

    /// Records what decided over the request, and with it what each of its rounds may have.
    pub fn set_policy(&mut self, policy: &ContextBudgetPolicy) {
        self.policy = Some((policy.clone(), SessionUsage::default()));
    }

    /// Reserves what the request may use. Blocks where the key has limits.
    ///
    /// # Errors
    /// When the key's budget does not reach, or is in money and the model has no price.
    pub fn reserve(&mut self) -> Result<(), RequestError> {
        let max = self.max_of_next_round();
        self.budget.reserve_round(&self.app, &self.caller, &self.record.summary.model, &max)
    }

    /// Reserves so many tokens and so much money. Blocks where the key has limits.
    ///
    /// # Errors
    /// When the key's budget does not reach.
    pub fn reserve_amount(&mut self, tokens: u64, cost: Usd) -> Result<(), RequestError> {
        self.budget.reserve(&self.app, &self.caller, tokens, cost)
    }

    /// Reserves what a further round may use, whose prompt is so many tokens longer than that of the one before.
    ///
    /// # Errors
    /// With the limit that is reached, in words.
    pub async fn reserve_further_round(&mut self, longer: u64) -> Result<(), &'static str> {
        self.usage.grow(longer);
        let max = self.max_of_next_round();
        self.budget.reserve_further_round(&self.app, &self.caller, &max).await
    }

    fn max_of_next_round(&self) -> Usage {
        self.usage.next_round(&self.record.summary.tokens)
    }

    /// From now on the upstream may have worked on the request, or on a further round of it.
    pub fn begin_round(&mut self) {
        let max = self.max_of_next_round();
        let summary = &mut self.record.summary;
        if !self.usage.has_sent() && summary.endpoint != Endpoint::CountTokens {
            telemetry::log_call(summary, max.input);
        }
        if let Some((policy, used)) = &mut self.policy {
            summary.record_round(policy, used, max.input);
        }
        self.usage.begin_round(max);
    }

    /// Records what the run of a recipe used, and with it what calls may have used whose end is not known.
    pub fn record_run(&mut self, used: executor::Spending, unknown: (u64, Usd)) {
        let cost = used.cost.unwrap_or_default() + unknown.1;
        self.run = Some((used.tokens().saturating_add(unknown.0), cost));
        let summary = &mut self.record.summary;
        summary.usage = Some(used.usage).filter(|usage| *usage != Usage::default());
        // Nothing says what the recipe would have cost without being packed, so no saving is claimed.
        summary.bill = used.cost.map(|cost| Bill { cost, without: cost });
    }

    /// Keeps more of the reply for the transcript, as its client gets it.
    pub fn capture(&mut self, bytes: &[u8]) {
        if let Some(transcript) = &mut self.transcript {
            transcript.add(bytes);
        }
    }

    /// The head of the reply is ready, and its status is final for the client.
    pub fn respond(&mut self, status: StatusCode) {
        self.record.summary.status = status.as_u16();
        self.timing.respond();
    }

    /// The request has ended well, or with an error of the upstream's own.
    pub fn complete(&mut self, status: StatusCode) {
        let summary = &mut self.record.summary;
        summary.status = status.as_u16();
        summary.outcome = if status.is_success() { Outcome::Ok } else { Outcome::UpstreamError };
        if !status.is_success() {
            summary.error = Some(format!("http_{}", status.as_u16()));
            if status == StatusCode::BAD_REQUEST && summary.round_trips == Some(RoundTrips::Restored) {
                tracing::warn!(request = summary.id, "restored_prompt_refused");
            }
        }
    }

    /// The request has ended with an error of the upstream's own that came within the reply.
    pub fn complete_with_error(&mut self) {
        let summary = &mut self.record.summary;
        summary.outcome = Outcome::UpstreamError;
        summary.error = Some("upstream_failed".to_owned());
    }

    /// The request has ended with an error of ours or of the way to the upstream; returns the error.
    pub fn fail(&mut self, error: RequestError) -> RequestError {
        let summary = &mut self.record.summary;
        if !self.timing.has_responded() {
            summary.status = error.status.as_u16();
        }
        summary.outcome = error.outcome;
        summary.error = Some(error.class.to_owned());
        error
    }

    /// Marks the request as abandoned: the recorder ends it on its own thread. A reply that was complete before stays so.
    fn abandon(mut self) {
        if std::thread::panicking() && self.record.summary.outcome == Outcome::ClientGone {
            self.fail(RequestError::bug("a request was broken off by a panic"));
        }
        self.timing.write_to(&mut self.record.summary.times);
        self.body_memory.shrink(0);
        let (app, place) = (Arc::clone(&self.app), self.guards.place.take());
        let captured = self.transcript.as_ref().map_or(0, TranscriptCapture::size);
        let weight = recorder::weight(&self.record, captured);
        app.recorder.record_abandoned(weight, place, Box::new(move || self.close()));
    }

    /// Completes the record, counts the request, and returns what it leaves behind.
    fn close(mut self) -> RecordJob {
        self.complete_record();
        self.app.telemetry.record(&self.record);
        let used = self.used();
        // What nobody was sent is no part of the conversation.
        let transcript = self.transcript.filter(|_| self.usage.has_sent());
        RecordJob {
            store: self.caller.store,
            record: self.record,
            settlement: self.budget.settlement(used),
            transcript: transcript.map(TranscriptCapture::into_entry),
            observation: self.observation,
            pending: self.guards.pending,
        }
    }

    fn complete_record(&mut self) {
        let record = &mut *self.record;
        let summary = &mut record.summary;
        // Where tokens are counted, no model is called.
        let is_count = summary.endpoint == Endpoint::CountTokens;
        if self.run.is_none() && !is_count {
            let early = summary.outcome != Outcome::Ok;
            summary.usage = self.usage.known(early);
            summary.usage_estimated = self.usage.is_estimated(early);
            let at_once = self.usage.at_once(early);
            if let (Some(usage), Some(at_once), Some(pricing)) =
                (summary.usage, at_once, &self.budget.pricing)
            {
                summary.bill = Some(bill::calculate(&usage, &at_once, &summary.tokens, pricing));
            }
        }
        // What broke off before anything left has changed no rendition, whatever was decided.
        if !self.usage.has_sent() && summary.outcome.sent() {
            record.compactions.clear();
        }
        record.seal();
        if self.usage.has_sent() && !is_count {
            telemetry::log_called(&record.summary);
        }
    }

    /// What the key is charged, in tokens and money; `None` when nothing was sent.
    fn used(&self) -> Option<(u64, Usd)> {
        if self.run.is_some() {
            return self.run.filter(|used| *used != (0, Usd::default()));
        }
        let summary = &self.record.summary;
        // An error of the provider's own is not billed; what became of a request that broke off is not known.
        let unbilled = summary.outcome == Outcome::UpstreamError
            || summary.error.as_deref() == Some("upstream_unreachable");
        let charged = self.usage.charged(summary.outcome != Outcome::Ok, unbilled)?;
        Some((total(&charged), self.budget.price(&charged)))
    }
}

/// The trace that the client wants the request in, if it is written as W3C's Trace Context has it: anything else leads to
/// no trace, and would be kept however long it is.
fn traceparent(headers: &HeaderMap) -> Option<String> {
    let text = headers.get("traceparent")?.to_str().ok()?;
    let is_hex = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let mut parts = text.split('-');
    let whole =
        [2, 32, 16, 2].iter().all(|len| parts.next().is_some_and(|part| part.len() == *len && is_hex(part)));
    (whole && parts.next().is_none()).then(|| text.to_owned())
}
