//! A request in progress: its record and its known usage, budget, time and transcript. A request ends with a call of
//! [`ActiveRequest::finish`]; one that is dropped before counts as abandoned and is recorded nevertheless, so every
//! request is recorded. Knows no wire format.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use larder_core::policy::{ContextBudgetPolicy, SessionUsage};
use larder_engine::executor;
use larder_models::chat::Usage;
use larder_models::price::Usd;
use larder_proxy::record::{Bill, Endpoint, ModelShare, Outcome, RequestRecord, RoundTripFate, cut_name};
use larder_store::ForegroundWork;
use larder_text::pointer::{Pointer, PointerId};
use tokio::sync::OwnedSemaphorePermit;

use crate::app::App;
use crate::auth::Caller;
use crate::error::RequestError;
use crate::limits::BodyMemory;
use crate::model_route::Route;
use crate::recorder::{self, Observation, Pending, RecordJob};
use crate::request::bill;
use crate::request::budget::{RequestBudget, total};
use crate::request::timing::RequestTiming;
use crate::request::usage::UsageAccounting;
use crate::telemetry::{self, InFlight};
use crate::transcript::TranscriptCapture;

/// A request in progress.
pub struct ActiveRequest {
    /// Present until the request ends. Boxed, since it is moved at each step of the request.
    open: Option<Box<OpenRequest>>,
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
    /// Its messages and its reply, if transcripts are enabled.
    pub transcript: Option<TranscriptCapture>,
    /// Pointers in its text and in the history that the provider holds, whose originals count as used.
    pub named: Vec<PointerId>,
    /// Memory for the body, which is kept as long as the request may have to be sent again.
    pub body_memory: BodyMemory,
    /// What it shows of how far estimates of the model's tokens are off.
    pub observation: Option<Observation>,
    app: Arc<App>,
    /// The policy that decided the request, and the usage of its rounds.
    policy: Option<(ContextBudgetPolicy, SessionUsage)>,
    /// What the run of a recipe used, tokens and money.
    run: Option<(u64, Usd)>,
    guards: Guards,
}

/// Resources held from the arrival of a request to its end, or until it is recorded.
struct Guards {
    /// Lets readers of the API wait for the record.
    pending: Option<Pending>,
    /// One of the slots for concurrent requests; `None` for a request refused for lack of one.
    place: Option<OwnedSemaphorePermit>,
    /// Counts it among the requests in progress.
    in_flight: Option<InFlight>,
    /// Keeps background work from the model until the request is about to be recorded.
    foreground: Option<ForegroundWork>,
}

impl ActiveRequest {
    /// Takes in a request that has just arrived.
    ///
    /// # Errors
    /// If too many requests are in progress, or there are no random bytes for an id.
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
            in_flight: Some(app.telemetry.begin(user)),
            foreground: app.current().shared().enter_foreground(),
        };
        let has_place = guards.place.is_some();
        let open = OpenRequest {
            record: Box::new(record),
            caller: caller.clone(),
            budget: RequestBudget::default(),
            usage: UsageAccounting::default(),
            timing: RequestTiming::start(),
            transcript: None,
            named: Vec::new(),
            body_memory: app.admission.body_memory(),
            observation: None,
            app: Arc::clone(app),
            policy: None,
            run: None,
            guards,
        };
        let mut active = Self { open: Some(Box::new(open)) };
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
            open.budget.mark_ended();
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
    /// Gives its place to what it starts, which takes one of its own.
    pub fn leave_place(&mut self) {
        self.guards.place = None;
    }

    /// The gateway that serves it.
    pub const fn app(&self) -> &Arc<App> {
        &self.app
    }

    /// Records the requested model.
    pub fn set_model(&mut self, model: &str) {
        self.record.summary.model = cut_name(model);
    }

    /// Records the model that is asked.
    pub fn set_route(&mut self, route: &Route) {
        let summary = &mut self.record.summary;
        summary.answered_by = Some(route.model.clone());
        summary.model_is_known = route.is_known;
    }

    /// Records the policy that decided the request, and thereby the budget of each round.
    pub fn set_policy(&mut self, policy: &ContextBudgetPolicy) {
        self.policy = Some((policy.clone(), SessionUsage::default()));
    }

    /// Reserves the maximum usage of the request. Blocks if the key has limits.
    ///
    /// # Errors
    /// If the key's budget is too small, or is in dollars and the model has no price.
    pub fn reserve(&mut self) -> Result<(), RequestError> {
        let max = self.max_of_next_round();
        let summary = &self.record.summary;
        let model = match &summary.answered_by {
            Some(by) => (by.name.as_str(), by.server.is_none()),
            None => (summary.model.as_str(), false),
        };
        self.budget.reserve_round(&self.app, &self.caller, model, &max)
    }

    /// Reserves an amount of tokens and money. Blocks if the key has limits.
    ///
    /// # Errors
    /// If the key's budget is too small.
    pub fn reserve_amount(&mut self, tokens: u64, cost: Usd) -> Result<(), RequestError> {
        self.budget.reserve(&self.app, &self.caller, tokens, cost)
    }

    /// Reserves a further round whose prompt is longer by this many tokens.
    ///
    /// # Errors
    /// With the limit that was reached, as text.
    pub async fn reserve_further_round(&mut self, longer: u64) -> Result<(), &'static str> {
        self.usage.grow(longer);
        let (used, max) = (self.charge(false, false), self.max_of_next_round());
        self.budget.reserve_further_round(&self.app, &self.caller, used, &max).await
    }

    fn max_of_next_round(&self) -> Usage {
        self.usage.next_round(&self.record.summary.tokens)
    }

    /// From now on the upstream may have processed the request, or a further round of it.
    pub fn begin_round(&mut self) {
        let max = self.max_of_next_round();
        let summary = &mut self.record.summary;
        if !self.usage.has_sent() && summary.endpoint != Endpoint::CountTokens {
            telemetry::log_call(summary, max.input);
        }
        self.usage.begin_round(max);
    }

    /// Records the usage of a recipe run, including calls whose outcome is unknown.
    pub fn record_run(&mut self, used: executor::Spending, unknown: (u64, Usd)) {
        let cost = used.cost.unwrap_or_default() + unknown.1;
        self.run = Some((used.tokens().saturating_add(unknown.0), cost));
        let summary = &mut self.record.summary;
        summary.usage = Some(used.usage).filter(|usage| *usage != Usage::default());
        // The recipe's cost without packing is unknown, so no saving is claimed.
        summary.bill = used.cost.map(|cost| Bill { cost, without: cost });
    }

    /// Records what each model used in the run of a recipe.
    pub fn record_models(&mut self, models: &executor::SpendingByModel) {
        let share = |one: &executor::ModelSpending| ModelShare {
            model: one.model.clone(),
            calls: one.calls,
            usage: one.spent.usage,
            cost: one.spent.cost,
        };
        self.record.summary.models = models.iter().map(share).collect();
    }

    /// Keeps more of the reply for the transcript, as its client gets it.
    pub fn capture(&mut self, bytes: &[u8]) {
        if let Some(transcript) = &mut self.transcript {
            transcript.add(bytes);
        }
    }

    /// The head of the reply is ready, and its status is final for the client.
    pub fn respond(&mut self, status: StatusCode) {
        let summary = &mut self.record.summary;
        summary.status = status.as_u16();
        // Its provider has begun to answer as this model, whatever becomes of the reply.
        summary.model_is_known |= status.is_success() && summary.answered_by.is_some();
        self.timing.respond();
    }

    /// The request has ended well, or with an error of the upstream's own.
    pub fn complete(&mut self, status: StatusCode) {
        let summary = &mut self.record.summary;
        summary.status = status.as_u16();
        summary.outcome = if status.is_success() { Outcome::Ok } else { Outcome::UpstreamError };
        if !status.is_success() {
            summary.error = Some(format!("http_{}", status.as_u16()));
            if status == StatusCode::BAD_REQUEST && summary.round_trips == Some(RoundTripFate::Restored) {
                tracing::warn!(request = summary.id, "restored_prompt_refused");
            }
        }
    }

    /// The request ended with an upstream error within the reply.
    pub fn complete_with_error(&mut self) {
        let summary = &mut self.record.summary;
        summary.outcome = Outcome::UpstreamError;
        summary.error = Some("upstream_failed".to_owned());
    }

    /// The request ended with an internal or connection error; returns the error.
    pub fn fail(&mut self, error: RequestError) -> RequestError {
        let summary = &mut self.record.summary;
        if !self.timing.has_responded() {
            summary.status = error.status.as_u16();
        }
        summary.outcome = error.outcome;
        summary.error = Some(error.class.to_owned());
        error
    }

    /// Hands the request to the recorder, which completes and counts it.
    fn abandon(mut self: Box<Self>) {
        if std::thread::panicking() && self.record.summary.outcome == Outcome::ClientGone {
            self.fail(RequestError::bug("a request was broken off by a panic"));
        }
        self.timing.write_to(&mut self.record.summary.times);
        self.body_memory.shrink(0);
        self.budget.mark_ended();
        // The recorder may have to wait for the store; the client has left now.
        self.guards.in_flight = None;
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
        let originals = self.originals_used();
        // What was never sent is not part of the conversation.
        let transcript = self.transcript.filter(|_| self.usage.has_sent());
        RecordJob {
            store: self.caller.store,
            record: self.record,
            settlement: self.budget.settlement(used),
            transcript: transcript.map(TranscriptCapture::into_entry),
            originals,
            observation: self.observation,
            pending: self.guards.pending,
            foreground: self.guards.foreground,
        }
    }

    /// Pointers in its window, in its text, and in the history that the provider holds.
    pub fn pointers(&self) -> impl Iterator<Item = PointerId> {
        let in_window = self.record.window.iter().filter_map(|part| Some(part.pointer.as_ref()?.id.clone()));
        self.named.iter().cloned().chain(in_window)
    }

    /// The originals that the prompt names, or that were read back: those whose use is due to be noted.
    fn originals_used(&self) -> Vec<PointerId> {
        let read_back = self.record.rehydrations.iter();
        let read_back = read_back.filter_map(|read| Some(read.pointer.parse::<Pointer>().ok()?.id));
        let mut used: Vec<_> = self.pointers().chain(read_back).collect();
        let (user, now) = (self.caller.store.user(), self.record.summary.time);
        used.retain(|id| self.app.caches.use_is_due(user, id.name(), now));
        used
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
            if let Some((policy, rounds)) = &mut self.policy {
                self.usage.prompts().for_each(|prompt| summary.record_round(policy, rounds, prompt));
            }
            let at_once = self.usage.at_once(early);
            if let (Some(at_once), Some(pricing)) = (at_once, &self.budget.pricing) {
                let cost = self.usage.cost(early, pricing);
                summary.bill = Some(bill::calculate(cost, &at_once, &summary.tokens, pricing));
            }
            if let (Some(usage), Some(at_once)) = (summary.usage, at_once) {
                let pricing = self.budget.pricing.as_ref();
                let cost = pricing.map(|pricing| (self.usage.cost(early, pricing), &pricing.prices));
                bill::divide(&usage, &at_once, cost, &mut record.rehydrations);
            }
        }
        // A request that broke off before sending anything changed no rendition, whatever was decided.
        if !self.usage.has_sent() && summary.outcome.sent() {
            record.compactions.clear();
        }
        record.seal();
        if self.usage.has_sent() && !is_count {
            telemetry::log_called(&record.summary);
        }
    }

    /// The key's charge in tokens and money; `None` if nothing was sent.
    fn used(&self) -> Option<(u64, Usd)> {
        if self.run.is_some() {
            return self.run.filter(|used| *used != (0, Usd::default()));
        }
        let summary = &self.record.summary;
        // A provider's own error is not billed; the outcome of a request that broke off is unknown.
        let unbilled = summary.outcome == Outcome::UpstreamError
            || summary.error.as_deref() == Some("upstream_unreachable");
        self.charge(summary.outcome != Outcome::Ok, unbilled)
    }

    /// The charge for the rounds that were sent.
    fn charge(&self, early: bool, unbilled: bool) -> Option<(u64, Usd)> {
        let charged = self.usage.charged(early, unbilled)?;
        let cost = self.budget.pricing.as_ref();
        let cost = cost.map(|pricing| self.usage.charged_cost(early, unbilled, pricing));
        Some((total(&charged), cost.unwrap_or_default()))
    }
}

/// The trace that the client wants the request in, if it is valid W3C Trace Context: anything else refers to no
/// trace, and would be stored whatever its length.
fn traceparent(headers: &HeaderMap) -> Option<String> {
    let text = headers.get("traceparent")?.to_str().ok()?;
    let is_hex = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let mut parts = text.split('-');
    let whole =
        [2, 32, 16, 2].iter().all(|len| parts.next().is_some_and(|part| part.len() == *len && is_hex(part)));
    (whole && parts.next().is_none()).then(|| text.to_owned())
}
