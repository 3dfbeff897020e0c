//! Live data per user: totals since the start, the most recent requests, and watchers. All in memory and bounded;
//! nothing here outlives the process.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use larder_models::price::Usd;
use larder_store::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::Instant;
use utoipa::ToSchema;

use larder_core::policy::BudgetStatus;
use larder_proxy::record::{Outcome, RequestRecord, RequestSummary, saved};

/// Requests remembered for each user.
pub const RECENT: usize = 100;
/// Sessions remembered for each user; the one used longest ago is forgotten first.
const SESSIONS: usize = 1_000;
/// Minimum interval between updates to watchers.
const PACE: Duration = Duration::from_millis(250);

/// Sums over the requests of one user since the gateway started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Totals {
    /// When the gateway started.
    #[schema(value_type = String, format = DateTime)]
    pub since: Timestamp,
    /// Requests that are being answered now.
    pub in_flight: u64,
    /// Requests that ended.
    pub requests: u64,
    /// How many of these were refused or invalid, so that nothing was sent.
    pub refused: u64,
    /// How many of these ended with an error of the upstream or of Larder.
    pub failed: u64,
    /// Sessions seen.
    pub sessions: u64,
    /// Tokens of the original prompts.
    pub tokens_before: u64,
    /// Tokens of the prompts as sent.
    pub prompt_tokens: u64,
    /// Tokens that did not have to be sent.
    pub tokens_saved: u64,
    /// Prompt tokens that providers read from their caches.
    pub cached_tokens: u64,
    /// Prompt tokens as reported by providers, with estimates for replies that broke off.
    pub input_tokens: u64,
    /// Reply tokens, likewise.
    pub output_tokens: u64,
    /// Parts whose form changed in a prompt that was sent.
    pub compactions: u64,
    /// How many of these were condensed (R3-6.6).
    #[serde(default)]
    pub summaries: u64,
    /// Originals that models read back.
    pub refetches: u64,
    /// Decisions by status.
    pub decisions: Decisions,
    /// Prompts over budget, as the provider counts them where it reports it; stays 0 (R3-2.2).
    pub violations: u64,
    /// What it cost, in dollars.
    #[schema(value_type = String, example = "0.0105")]
    pub cost: Usd,
    /// What it would have cost without Larder.
    #[schema(value_type = String, example = "0.042")]
    pub cost_without: Usd,
    /// The difference, net of cache effects; may be negative.
    #[schema(example = "0.0315")]
    pub saved: String,
    /// The last request that the policy decided, with its window (R3-2.6).
    pub last: Option<Box<RequestSummary>>,
}

/// How often the policy reached each decision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Decisions {
    /// The prompt fit unchanged.
    pub ok: u64,
    /// It fitted once something was condensed or pointed at.
    pub needs_summary: u64,
    /// The prompt could not be made to fit.
    pub reject: u64,
}

/// What a watcher is sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = LiveUpdate)]
pub struct LiveUpdate {
    /// Counts events; a returning watcher names the last one it received.
    pub sequence: u64,
    /// The sums now.
    pub totals: Totals,
    /// Requests that ended since the watcher last heard, oldest first; at most the last 100.
    pub recent: Vec<RequestSummary>,
}

/// All live data of all users. A user's data is accessible only under the user's name.
#[derive(Debug)]
pub struct LiveStats {
    since: Timestamp,
    pace: Duration,
    users: Mutex<BTreeMap<String, Arc<UserLive>>>,
    open: watch::Sender<bool>,
}

/// What is live of one user.
#[derive(Debug)]
pub struct UserLive {
    state: Mutex<UserState>,
    changed: watch::Sender<u64>,
}

#[derive(Debug)]
struct UserState {
    /// Without the last request.
    totals: Totals,
    recent: VecDeque<(u64, Arc<RequestSummary>)>,
    /// The last request that the policy decided.
    last: Option<Arc<RequestSummary>>,
    /// Session → the sequence number of its last request.
    sessions: BTreeMap<String, u64>,
    sequence: u64,
}

/// A request that is being answered; it counts as in flight until this is dropped.
#[derive(Debug)]
pub struct LiveRequest(Arc<UserLive>);

impl Drop for LiveRequest {
    fn drop(&mut self) {
        self.0.change(|state| state.totals.in_flight = state.totals.in_flight.saturating_sub(1));
    }
}

impl LiveStats {
    /// Nothing yet. `now` is when the gateway started.
    pub fn new(now: Timestamp) -> Self {
        Self::with_pace(now, PACE)
    }

    /// As [`LiveStats::new`], with the minimum interval between updates to watchers.
    pub fn with_pace(now: Timestamp, pace: Duration) -> Self {
        Self { since: now, pace, users: Mutex::default(), open: watch::Sender::new(true) }
    }

    /// The live data of one user. There are only as many users as keys, so they are kept.
    pub fn user(&self, user: &str) -> Arc<UserLive> {
        let mut users = lock(&self.users);
        if let Some(live) = users.get(user) {
            return Arc::clone(live);
        }
        let live = Arc::new(UserLive::new(self.since));
        users.insert(user.to_owned(), Arc::clone(&live));
        live
    }

    /// Counts a request of `user` as in flight until the guard is dropped.
    pub fn begin(&self, user: &str) -> LiveRequest {
        let live = self.user(user);
        live.change(|state| state.totals.in_flight = state.totals.in_flight.saturating_add(1));
        LiveRequest(live)
    }

    /// Records a completed request; true if its session is new.
    pub fn record(&self, exchange: &RequestRecord) -> bool {
        self.user(&exchange.summary.user).record(&exchange.summary)
    }

    /// Watches one user, from after `sequence` on; 0 is from the beginning.
    pub fn watch(&self, user: &str, sequence: u64) -> Watcher {
        let live = self.user(user);
        let changed = live.changed.subscribe();
        Watcher { live, changed, open: self.open.subscribe(), sequence, heard: None, pace: self.pace }
    }

    /// Ends all watching, now and in future, so that open pages do not delay a shutdown.
    pub fn close(&self) {
        self.open.send_replace(false);
    }
}

impl UserLive {
    fn new(since: Timestamp) -> Self {
        let totals = Totals {
            since,
            in_flight: 0,
            requests: 0,
            refused: 0,
            failed: 0,
            sessions: 0,
            tokens_before: 0,
            prompt_tokens: 0,
            tokens_saved: 0,
            cached_tokens: 0,
            input_tokens: 0,
            output_tokens: 0,
            compactions: 0,
            summaries: 0,
            refetches: 0,
            decisions: Decisions::default(),
            violations: 0,
            cost: Usd::default(),
            cost_without: Usd::default(),
            saved: saved(Usd::default(), Usd::default()),
            last: None,
        };
        let state =
            UserState { totals, recent: VecDeque::new(), last: None, sessions: BTreeMap::new(), sequence: 0 };
        Self { state: Mutex::new(state), changed: watch::Sender::new(0) }
    }

    /// The sums, and the requests that ended after `sequence`.
    pub fn news(&self, sequence: u64) -> LiveUpdate {
        let state = lock(&self.state);
        // A watcher from before a restart refers to other events.
        let sequence = if sequence > state.sequence { 0 } else { sequence };
        let recent = state.recent.iter().filter(|(at, _)| *at > sequence);
        let recent = recent.map(|(_, head)| RequestSummary::clone(head)).collect();
        let last = state.last.as_deref().map(|head| Box::new(head.clone()));
        LiveUpdate { sequence: state.sequence, totals: Totals { last, ..state.totals.clone() }, recent }
    }

    fn change(&self, change: impl FnOnce(&mut UserState)) {
        let sequence = {
            let mut state = lock(&self.state);
            state.sequence += 1;
            change(&mut state);
            state.sequence
        };
        self.changed.send_replace(sequence);
    }

    fn record(&self, head: &RequestSummary) -> bool {
        let mut new_session = false;
        let kept = Arc::new(head.clone());
        self.change(|state| {
            new_session = state.meet(head);
            state.totals.add(head);
            if state.recent.len() == RECENT {
                state.recent.pop_front();
            }
            if kept.decision.is_some() {
                state.last = Some(Arc::clone(&kept));
            }
            state.recent.push_back((state.sequence, kept));
        });
        new_session
    }
}

impl UserState {
    /// Whether the session of this request is new; forgets the oldest where there are too many.
    fn meet(&mut self, head: &RequestSummary) -> bool {
        let Some(session) = &head.session else { return false };
        let new = self.sessions.insert(session.clone(), self.sequence).is_none();
        if self.sessions.len() > SESSIONS {
            let oldest = self.sessions.iter().min_by_key(|(_, used)| **used).map(|(name, _)| name.clone());
            oldest.map(|name| self.sessions.remove(&name));
        }
        self.totals.sessions = self.totals.sessions.saturating_add(u64::from(new));
        new
    }
}

impl Totals {
    fn add(&mut self, head: &RequestSummary) {
        let add = |sum: &mut u64, number: u64| *sum = sum.saturating_add(number);
        add(&mut self.requests, 1);
        match head.outcome {
            Outcome::Refused | Outcome::Invalid => add(&mut self.refused, 1),
            Outcome::UpstreamError | Outcome::UpstreamFailed | Outcome::Failed => add(&mut self.failed, 1),
            Outcome::Ok | Outcome::ClientGone => {}
        }
        if head.outcome.sent() {
            add(&mut self.tokens_before, head.tokens.before);
            add(&mut self.prompt_tokens, head.tokens.after);
            add(&mut self.tokens_saved, head.tokens.saved());
        }
        if let Some(usage) = &head.usage {
            add(&mut self.input_tokens, usage.input);
            add(&mut self.cached_tokens, usage.cached_input);
            add(&mut self.output_tokens, usage.output);
        }
        add(&mut self.compactions, head.shape.compactions);
        add(&mut self.summaries, head.shape.summaries);
        add(&mut self.refetches, head.shape.rehydrations);
        add(&mut self.violations, head.violations);
        if let Some(bill) = head.bill {
            self.cost = self.cost + bill.cost;
            self.cost_without = self.cost_without + bill.without;
            self.saved = saved(self.cost, self.cost_without);
        }
        if let Some(decision) = &head.decision {
            match decision.status {
                BudgetStatus::Ok => add(&mut self.decisions.ok, 1),
                BudgetStatus::NeedsSummary => add(&mut self.decisions.needs_summary, 1),
                BudgetStatus::Reject => add(&mut self.decisions.reject, 1),
            }
        }
    }
}

/// Watches one user. Updates that come faster than the pace are sent together.
#[derive(Debug)]
pub struct Watcher {
    live: Arc<UserLive>,
    changed: watch::Receiver<u64>,
    open: watch::Receiver<bool>,
    sequence: u64,
    heard: Option<Instant>,
    pace: Duration,
}

impl Watcher {
    /// The next update: at once the first time, then when something happened. `None` when the gateway shuts down.
    pub async fn next(&mut self) -> Option<LiveUpdate> {
        let mut open = self.open.clone();
        let closed = async move { drop(open.wait_for(|open| !*open).await) };
        let due = async {
            if let Some(heard) = self.heard {
                self.changed.changed().await.ok()?;
                tokio::time::sleep_until(heard + self.pace).await;
            }
            Some(())
        };
        tokio::select! {
            biased;
            () = closed => return None,
            due = due => due?,
        }
        self.changed.mark_unchanged();
        let news = self.live.news(self.sequence);
        self.sequence = news.sequence;
        self.heard = Some(Instant::now());
        Some(news)
    }
}

/// A panic elsewhere leaves sums that are at worst one request short.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "live_stats_tests.rs"]
mod tests;
