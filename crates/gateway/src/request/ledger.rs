//! The account of one request: its record, what was set aside for it, how long it took. It is closed exactly once,
//! when it is dropped, so no request goes unrecorded however it ends. Knows no wire format.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, StatusCode};
use larder_core::policy::{self, ContextBudgetPolicy};
use larder_engine::executor;
use larder_models::chat::Usage;
use larder_models::price::Usd;
use larder_proxy::record::{Bill, Endpoint, Outcome, RequestRecord, RoundTrips, cut_name};
use larder_proxy::window::Transcript;
use larder_proxy::wire::Known;
use larder_store::{StoreError, UserStore};
use tokio::sync::OwnedSemaphorePermit;

use crate::app::App;
use crate::auth::{AuthError, Caller, Held};
use crate::limits::Room;
use crate::request::bill::{self, Pricing};
use crate::request::fault::Fault;
use crate::request::recorder::{Job, Pending, Spent, Work};
use crate::request::taken::Taken;
use crate::request::transcript::{Said, Told};
use crate::telemetry::{self, InFlight};

/// The account of one request.
pub struct Ledger {
    /// What is recorded of it.
    pub exchange: Box<RequestRecord>,
    /// Who asks.
    pub caller: Caller,
    /// What its tokens cost.
    pub pricing: Option<Pricing>,
    /// The factor, in parts per million, by which the model's estimates were corrected; `None` if it is counted, or if
    /// the request teaches nothing about estimates.
    pub factor: Option<u64>,
    /// Replies that are asked for at once, each of which may be as long.
    pub choices: u64,
    /// Room for the body, which is kept as long as the request may have to be sent again.
    pub room: Room,
    app: Arc<App>,
    started: Instant,
    /// Time spent waiting for the upstream, or for the client's body.
    waited: Duration,
    /// Time that the gateway itself has spent; `None` until it responds.
    busy: Option<Duration>,
    held: Vec<Held>,
    /// What each round that was sent to the upstream took.
    taken: Taken,
    /// Whether anything has been sent to the upstream.
    sent: bool,
    /// What decided over the request, and what its rounds used by it.
    policy: Option<ContextBudgetPolicy>,
    rounds: policy::SessionUsage,
    /// What the run of a recipe took.
    ran: Option<(u64, Usd)>,
    /// Tokens by which the prompt of the next round is longer than that of the first.
    longer: u64,
    after: Vec<Work>,
    bytes: usize,
    /// What is to be kept of the request's messages, and for which conversation.
    transcript: Option<(String, Transcript)>,
    /// What was said to the client, for the transcript.
    told: Told,
    /// Lets readers of the API wait for the record.
    pending: Option<Pending>,
    _in_flight: InFlight,
    _place: Option<OwnedSemaphorePermit>,
}

impl Ledger {
    /// Opens the account of a request that has just come in. Until it is said to have ended otherwise, its client is
    /// taken to have gone.
    ///
    /// # Errors
    /// When too many requests are under way, or there are no random bytes for an id.
    pub fn open(app: &Arc<App>, caller: &Caller, wire: Endpoint, headers: &HeaderMap) -> Result<Self, Fault> {
        let id = app.store.new_run_id().map_err(|error| Fault::bug(&error.to_string()))?;
        let mut exchange = RequestRecord::blank(id.as_str(), app.store.now(), caller.store.user(), wire);
        exchange.summary.key = caller.key.as_ref().map(ToString::to_string);
        exchange.summary.traceparent = traceparent(headers);
        let mut ledger = Self {
            exchange: Box::new(exchange),
            caller: caller.clone(),
            pricing: None,
            factor: None,
            room: app.places.room(),
            app: Arc::clone(app),
            started: Instant::now(),
            waited: Duration::ZERO,
            busy: None,
            held: Vec::new(),
            taken: Taken::default(),
            sent: false,
            policy: None,
            rounds: policy::SessionUsage::default(),
            ran: None,
            choices: 1,
            longer: 0,
            after: Vec::new(),
            bytes: 0,
            transcript: None,
            told: Told::default(),
            pending: Some(app.recorder.expect(caller.store.user(), id.as_str())),
            _in_flight: app.telemetry.begin(caller.store.user()),
            _place: app.places.take(),
        };
        if ledger._place.is_none() {
            return Err(ledger.fail(Fault::busy()));
        }
        Ok(ledger)
    }

    /// The gateway.
    pub const fn app(&self) -> &Arc<App> {
        &self.app
    }

    /// Names the model that was asked for.
    pub fn model(&mut self, model: &str) {
        self.exchange.summary.model = cut_name(model);
    }

    /// Sets aside what the request may come to. Blocks where the key has limits.
    ///
    /// # Errors
    /// When the key's budget does not reach, or is in money and the model has no price.
    pub fn reserve(&mut self) -> Result<(), Fault> {
        if self.caller.limits.picos_per_day.is_some() && self.pricing.is_none() {
            let error = AuthError::Unpriced { model: self.exchange.summary.model.clone() };
            return Err(Fault::of_auth(&error, self.app.store.now()));
        }
        let most = self.most();
        self.hold(total(&most), self.price(&most))
    }

    /// Sets aside so many tokens and so much money. Blocks where the key has limits.
    ///
    /// # Errors
    /// When the key's budget does not reach.
    pub fn hold(&mut self, tokens: u64, cost: Usd) -> Result<(), Fault> {
        let held = self.app.auth.reserve(&self.caller, tokens, cost);
        self.held.push(held.map_err(|error| Fault::of_auth(&error, self.app.store.now()))?);
        Ok(())
    }

    /// Sets aside what a further round may come to, whose prompt is so many tokens longer than that of the one before.
    ///
    /// # Errors
    /// With the limit that is reached, in words.
    pub async fn reserve_round(&mut self, longer: u64) -> Result<(), &'static str> {
        self.longer = self.longer.saturating_add(longer);
        if self.caller.limits.is_unlimited() {
            return Ok(());
        }
        let most = self.most();
        let cost = self.price(&most);
        let (app, caller) = (Arc::clone(&self.app), self.caller.clone());
        let reserving = tokio::task::spawn_blocking(move || app.auth.reserve(&caller, total(&most), cost));
        match reserving.await {
            Ok(Ok(held)) => {
                self.held.push(held);
                Ok(())
            }
            Ok(Err(AuthError::Store(error))) => {
                tracing::warn!(%error, "nothing can be set aside for a further round");
                Err("the budget of the API key cannot be looked at now")
            }
            Ok(Err(_)) => Err("the budget of the API key is used up"),
            Err(_) => Err("the budget of the API key cannot be looked at now"),
        }
    }

    /// What the next round may come to.
    fn most(&self) -> Usage {
        let tokens = &self.exchange.summary.tokens;
        let input = tokens.after.saturating_add(self.longer);
        Usage { input, output: tokens.output.saturating_mul(self.choices), ..Usage::default() }
    }

    fn price(&self, usage: &Usage) -> Usd {
        self.pricing.as_ref().map_or_else(Usd::default, |pricing| pricing.prices.cost(usage).total)
    }

    /// Names what has decided over the request, and with it what each of its rounds may have.
    pub fn decided_by(&mut self, policy: &ContextBudgetPolicy) {
        self.policy = Some(policy.clone());
    }

    /// From now on the upstream may have worked on the request, or on a further round of it.
    pub fn leaves(&mut self) {
        let most = self.most();
        let head = &mut self.exchange.summary;
        if !self.sent && head.wire != Endpoint::CountTokens {
            telemetry::log_call(head, most.input);
        }
        if let Some(policy) = &self.policy {
            head.record_round(policy, &mut self.rounds, most.input);
        }
        self.sent = true;
        self.taken.begins(most);
    }

    /// Takes down what is known now of the round that left last. However the request ends, this is kept.
    pub fn knows(&mut self, known: Known) {
        self.taken.knows(known);
    }

    /// Takes down what the run of a recipe has taken, and with it what it may have taken beside that.
    pub fn ran(&mut self, taken: executor::Spending, beside: (u64, Usd)) {
        let cost = taken.cost.unwrap_or_default() + beside.1;
        self.ran = Some((taken.tokens().saturating_add(beside.0), cost));
        let head = &mut self.exchange.summary;
        head.usage = Some(taken.usage).filter(|usage| *usage != Usage::default());
        // Nothing says what the recipe would have cost without being packed, so nothing is claimed.
        head.bill = taken.cost.map(|cost| Bill { cost, without: cost });
    }

    /// Adds time that was spent waiting for others.
    pub fn waited(&mut self, time: Duration) {
        self.waited += time;
    }

    /// The head of the reply is ready, and its status is what the client is told whatever follows. From here on the time
    /// of the gateway is that between [`Self::begin_work`] and [`Self::end_work`].
    pub fn responds(&mut self, status: StatusCode) {
        self.exchange.summary.status = status.as_u16();
        self.busy = Some(self.started.elapsed().saturating_sub(self.waited));
    }

    /// Begins a stretch of work on a reply.
    pub fn begin_work(&self) -> (Instant, Duration) {
        (Instant::now(), self.waited)
    }

    /// Ends it.
    pub fn end_work(&mut self, (started, waited): (Instant, Duration)) {
        let busy = started.elapsed().saturating_sub(self.waited.saturating_sub(waited));
        self.busy = self.busy.map(|before| before + busy);
    }

    /// Has `work` done off the request's path, when the record is written; it holds on to so many bytes until then.
    pub fn later(
        &mut self,
        bytes: usize,
        work: impl FnOnce(&UserStore, &mut RequestRecord) -> Result<(), StoreError> + Send + 'static,
    ) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.after.push(Box::new(work));
    }

    /// Learns how far the estimates of the model are off, from what the provider reported for the whole reply.
    pub fn learns(&mut self, usage: Option<Usage>, rounds: usize) {
        let model = self.exchange.summary.answered_by.as_ref().map(|model| model.id.clone());
        let (Some(usage), Some(factor), Some(model)) = (usage, self.factor, model) else { return };
        // Further rounds hold more than was counted for the prompt.
        if rounds > 1 {
            return;
        }
        let estimated = larder_text::tokens::Counter::uncorrected(self.exchange.summary.tokens.after, factor);
        self.later(0, move |store, _| store.calibrations().observe(&model, estimated, usage.input).map(drop));
    }

    /// The request has ended well, or with an error of the upstream's own.
    pub fn end(&mut self, status: StatusCode) {
        let head = &mut self.exchange.summary;
        head.status = status.as_u16();
        head.outcome = if status.is_success() { Outcome::Ok } else { Outcome::UpstreamError };
        if !status.is_success() {
            head.error = Some(format!("http_{}", status.as_u16()));
            if status == StatusCode::BAD_REQUEST && head.round_trips == Some(RoundTrips::Restored) {
                tracing::warn!(request = head.id, "restored_prompt_refused");
            }
        }
    }

    /// The request has ended with an error of the upstream's own that came within the reply.
    pub fn end_in_error(&mut self) {
        let head = &mut self.exchange.summary;
        head.outcome = Outcome::UpstreamError;
        head.error = Some("upstream_failed".to_owned());
    }

    /// The request has ended with a fault of ours or of the way to the upstream; gives the fault back.
    pub fn fail(&mut self, fault: Fault) -> Fault {
        let has_responded = self.busy.is_some();
        let head = &mut self.exchange.summary;
        if !has_responded {
            head.status = fault.status.as_u16();
        }
        head.outcome = fault.outcome;
        head.error = Some(fault.class.to_owned());
        fault
    }

    /// Works out what the lists of the record come to.
    pub fn seal(&mut self) {
        let time = self.exchange.summary.time;
        let exchange =
            std::mem::replace(&mut *self.exchange, RequestRecord::blank("", time, "", Endpoint::Chat));
        *self.exchange = exchange.sealed();
    }

    /// Has the messages of the request kept with its reply, when it has ended.
    pub fn transcribe(&mut self, session: String, transcript: Transcript) {
        self.transcript = Some((session, transcript));
    }

    /// Takes down more of the reply, as its client gets it.
    pub fn says(&mut self, bytes: &[u8]) {
        if self.transcript.is_some() {
            self.told.add(bytes);
        }
    }

    fn close(&mut self) {
        let total = self.started.elapsed();
        let head = &mut self.exchange.summary;
        head.times.total_us = micros(total);
        head.times.upstream_us = micros(self.busy.map_or(self.waited, |busy| total.saturating_sub(busy)));
        // Where tokens are counted, no model is called.
        let is_count = head.wire == Endpoint::CountTokens;
        if self.ran.is_none() && !is_count {
            let early = head.outcome != Outcome::Ok;
            head.usage = self.taken.known(early);
            head.usage_estimated = self.taken.is_estimated(early);
            let at_once = self.taken.at_once(early);
            if let (Some(usage), Some(at_once), Some(pricing)) = (head.usage, at_once, &self.pricing) {
                head.bill = Some(bill::of(&usage, &at_once, &head.tokens, pricing));
            }
        }
        // What broke off before anything left has changed no form, whatever was decided.
        if !self.sent && head.outcome.sent() {
            self.exchange.compactions.clear();
        }
        self.seal();
        if self.sent && !is_count {
            telemetry::log_called(&self.exchange.summary);
        }
        self.app.telemetry.record(&self.exchange);
    }

    /// What the key is charged: what is known of it, and what was set aside for the rest.
    fn used(&self) -> Option<(u64, Usd)> {
        if self.ran.is_some() {
            return self.ran.filter(|used| *used != (0, Usd::default()));
        }
        let head = &self.exchange.summary;
        if !self.sent {
            return None;
        }
        // An error of the provider's own is not billed; what became of a request that broke off is not known.
        let unbilled =
            head.outcome == Outcome::UpstreamError || head.error.as_deref() == Some("upstream_unreachable");
        let charged = self.taken.charged(head.outcome != Outcome::Ok, unbilled)?;
        Some((total(&charged), self.price(&charged)))
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        // Whoever had the account broke off, and said nothing of it; a reply that was whole before that stays so.
        if std::thread::panicking() && self.exchange.summary.outcome == Outcome::ClientGone {
            self.fail(Fault::bug("a request was broken off by a panic"));
        }
        self.close();
        let used = self.used();
        // What nobody was sent is no part of the conversation.
        let said = self.transcript.take().filter(|_| self.sent).map(|(session, transcript)| {
            let reply = std::mem::take(&mut self.told).close();
            let told = reply.as_ref().map_or(0, Vec::len);
            self.bytes = self.bytes.saturating_add(transcript.size()).saturating_add(told);
            Said { session, transcript, reply }
        });
        let nothing = Box::new(RequestRecord::blank("", self.exchange.summary.time, "", Endpoint::Chat));
        let job = Job {
            store: self.caller.store.clone(),
            spent: Some(std::mem::take(&mut self.held))
                .filter(|held| !held.is_empty())
                .map(|held| Spent { held, used }),
            said,
            after: std::mem::take(&mut self.after),
            bytes: self.bytes,
            pending: self.pending.take(),
            exchange: std::mem::replace(&mut self.exchange, nothing),
        };
        if let Err(job) = self.app.recorder.try_record(job) {
            // The queue is full: the place of this request stays taken until there is room.
            let (app, place) = (Arc::clone(&self.app), self._place.take());
            match tokio::runtime::Handle::try_current() {
                Ok(runtime) => drop(runtime.spawn(async move {
                    app.recorder.record(job).await;
                    drop(place);
                })),
                Err(_) => tracing::error!("the record of a request is lost: the queue is full"),
            }
        }
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

const fn total(usage: &Usage) -> u64 {
    usage.input.saturating_add(usage.output)
}

/// Whole microseconds.
pub fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
