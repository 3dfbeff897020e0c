//! From a body to the request that may be sent: read it, find its server, decide, reserve, store. Blocks; knows no
//! client and no connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use axum::http::request::Parts;
use bytes::Bytes;
use larder_core::policy::{ContextBudgetPolicy, PolicySettings};
use larder_engine::rehydrate::PromptRoom;
use larder_models::upstream::UpstreamTarget;
use larder_proxy::record::{Endpoint, RequestRecord, RequestSummary, RoundTripFate, Tokens};
use larder_proxy::window::{LastRenditions, PreparedRequest, UnstoredOriginal, WindowBuilder};
use larder_proxy::wire::{self, ApiDialect, ModelPath, Request};
use larder_store::{ExchangeFilter, StoreError, UserStore};
use larder_text::hash::ContentHash;
use larder_text::json;
use larder_text::message::Role;
use larder_text::tokens::Counter;

use crate::app::Snapshot;
use crate::caches::SessionMemory;
use crate::error::RequestError;
use crate::model_route::{Correction, Route, asks_for_long_context};
use crate::request::active::ActiveRequest;
use crate::request::bill::{self, Pricing};
use crate::request::packing_ahead::PackedAhead;
use crate::request::rehydrate::{POINTERS, Rehydrator, STORED_UNDER, held_session};
use crate::request::timing::micros;
use crate::request::{CONVERSATION, RECIPE, conversations, fields, recipes, refuse_signed, unpriced};
use crate::revisions::{self, RevisedSettings};
use crate::sessions;
use crate::storage_health::StoredFor;
use crate::transcript::TranscriptCapture;

/// How many records of a conversation are searched for its last window: the newest may have been refused or only
/// counted.
const LOOKED_BACK: usize = 8;

/// The byte order mark of UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Where a request is sent.
pub enum Destination {
    /// To a server.
    Upstream(Box<UpstreamRequest>),
    /// To a recipe.
    Recipe(Box<recipes::RecipeRequest>),
    /// To a conversation.
    Conversation(conversations::ConversationRequest),
}

/// A request that may be sent.
pub struct UpstreamRequest {
    /// Its server.
    pub target: Arc<UpstreamTarget>,
    /// Its path below the gateway's address, if that names the model and the server knows the model by another name.
    pub path: Option<String>,
    /// Its body.
    pub body: Bytes,
    /// Answers calls of Larder's tool, if it was offered.
    pub rehydrator: Option<Rehydrator>,
    /// How the model's estimates were corrected, where the reply can show how far they are off.
    pub correction: Option<Correction>,
    /// Whether the provider's refusal of its length shows the window of its model.
    pub learns: bool,
}

/// Reads a request and decides it. When this returns, everything that the request omits is stored.
///
/// # Errors
/// If nothing may be sent.
pub fn prepare(
    active: &mut ActiveRequest,
    current: &Snapshot,
    dialect: ApiDialect,
    head: &Parts,
    body: Bytes,
) -> Result<Destination, RequestError> {
    // Some clients write a byte order mark, which no provider reads.
    let body = if body.starts_with(BYTE_ORDER_MARK) { body.slice(BYTE_ORDER_MARK.len()..) } else { body };
    let text = std::str::from_utf8(&body).map_err(|error| {
        RequestError::invalid(format!("the body is not UTF-8: byte {}", error.valid_up_to()))
    })?;
    let mut request = wire::read_up_to(dialect, text, current.gateway.max_messages)
        .map_err(|error| RequestError::invalid(error.to_string()))?;
    let path = ModelPath::read(head.uri.path());
    request.stream |= path.as_ref().is_some_and(|path| path.stream);
    let named = path.as_ref().map(|path| path.model.as_str().into());
    let model = named.or_else(|| request.model.as_ref().map(wire::Text::text)).unwrap_or_default();
    if model.is_empty() {
        return Err(RequestError::invalid("model: name the model to ask"));
    }
    active.set_model(&model);
    active.record.summary.stream = request.stream;
    active.usage.choices = request.choices;
    let endpoint = active.record.summary.endpoint;
    if endpoint == Endpoint::CountTokens && (model.starts_with(CONVERSATION) || model.starts_with(RECIPE)) {
        let words = "the tokens of a recipe or a conversation cannot be counted here: `larder explain` shows those of \
                     a recipe's prompt";
        return Err(RequestError::invalid(words));
    }
    let key = active.caller.store.key().clone();
    if let Some(kind) = model.strip_prefix(CONVERSATION) {
        let record = &mut active.record.summary;
        let job = conversations::job(kind, &request, &head.headers, record, &key);
        record.ignored = fields::capped(std::mem::take(&mut record.ignored));
        return job.map(Destination::Conversation);
    }
    let session = sessions::identify(&request, &head.headers)?;
    active.record.summary.session = Some(session.clone());
    let named = active.caller.store.key().find_in(text);
    active.named = named.into_iter().map(|(_, pointer)| pointer.id).collect();
    if let Some(recipe) = model.strip_prefix(RECIPE) {
        return recipes::job(recipe, &request, session, &mut active.record.summary, &key)
            .map(|run| Destination::Recipe(Box::new(run)));
    }
    let newest = active.app().store.revisions().newest().map_err(unknown)?;
    let revised = revised(active, current, &session, newest).map_err(unknown)?;
    let is_long = asks_for_long_context(&request, &head.headers);
    let route = current.route(endpoint, &model, &revised, is_long)?;
    active.set_route(&route);
    unpriced::note(active, &request, &model)?;
    refuse_signed(&route.target, &head.headers)?;
    let path = path.as_ref().filter(|_| route.rename).map(|path| path.with_model(&route.model.id));
    let decider = RequestDecider {
        current,
        model: &model,
        is_long,
        route,
        revision: revised.number,
        newest,
        erasures: active.app().store.early_erasures().map_err(unknown)?,
        active,
        session: &session,
        body: &body,
        moved_prefix: false,
        holds_pointers: false,
        whole: None,
        packed: PackedAhead::default(),
    };
    let decided = decider.decide(&request)?;
    Ok(Destination::Upstream(Box::new(UpstreamRequest { path, ..decided })))
}

/// The settings that the conversation uses: a revision of learned values, which a request that is only counted does not
/// fix.
fn revised(
    active: &ActiveRequest,
    current: &Snapshot,
    session: &str,
    newest: u64,
) -> Result<Arc<RevisedSettings>, StoreError> {
    let (app, store) = (active.app(), &active.caller.store);
    let number = match active.record.summary.endpoint {
        Endpoint::CountTokens => revisions::peek(store, session)?,
        _ => app.caches.revision(store, session, newest)?,
    };
    current.revised(&app.store, number)
}

/// The inputs of the decision about one request.
struct RequestDecider<'a> {
    active: &'a mut ActiveRequest,
    current: &'a Snapshot,
    /// The model as the request names it.
    model: &'a str,
    /// Whether it asks for long context.
    is_long: bool,
    /// The route as the revision that the conversation uses has it.
    route: Arc<Route>,
    revision: u64,
    newest: u64,
    /// Early erasures of originals so far.
    erasures: u64,
    session: &'a str,
    body: &'a Bytes,
    /// Whether the prompt as decided does not extend that of the request before.
    moved_prefix: bool,
    /// Whether the history that the provider holds contains pointers.
    holds_pointers: bool,
    /// The policy that changes nothing, while what is omitted cannot be stored.
    whole: Option<ContextBudgetPolicy>,
    /// Large originals, packed for the store while the window is decided.
    packed: PackedAhead,
}

impl RequestDecider<'_> {
    /// Decides the request as its client knows it, or with hidden steps restored.
    fn decide(mut self, request: &Request<'_>) -> Result<UpstreamRequest, RequestError> {
        let app = Arc::clone(self.active.app());
        let user = self.active.caller.store.user().to_owned();
        let known = self.known(request, &user);
        let mut counter = self.route.counter.clone();
        let held = self.held(request)?;
        self.holds_pointers = !held.is_empty();
        if let Some((_, pointers)) = held.iter().find(|(key, _)| key == POINTERS) {
            let named = self.active.caller.store.key().find_in(pointers);
            self.active.named.extend(named.into_iter().map(|(_, pointer)| pointer.id));
        }
        let restored = self.restored(request, held)?;
        let mut prepared = self.fitted(request, restored.as_ref(), &counter, &known);
        if self.changes_revision(prepared.is_ok())? {
            counter = self.route.counter.clone();
            prepared = self.fitted(request, restored.as_ref(), &counter, &known);
        }
        self.active.record.summary.revision = Some(self.revision);
        self.active.record.summary.unknown_window = self.route.policy.is_unlimited();
        let prepared = prepared?;
        let is_count = self.active.record.summary.endpoint == Endpoint::CountTokens;
        let prepared = if is_count { prepared } else { self.kept(request, prepared, &counter, &known)? };
        let longest = self.route.policy.longest_reply().filter(|_| request.max_output.is_none());
        self.active.usage.longest = longest.map_or(0, |tokens| tokens as u64);
        let head = &self.active.record.summary;
        let (before, after) = (head.tokens.before, head.tokens.after);
        let room = match self.route.policy.is_unlimited() {
            true => usize::MAX,
            false => usize::try_from(head.tokens.budget.saturating_sub(after)).unwrap_or(usize::MAX),
        };
        let may = bill::billable(request.dialect, request.service_tier().as_deref(), request.body);
        let prices = self.route.prices.clone();
        self.active.budget.pricing = prices.map(|prices| Pricing { prices, before: known.before, may });
        if is_count {
            // Nothing is generated, so this is not a prompt: none of it is reported, saved or remembered.
            let exchange = &mut self.active.record;
            (exchange.summary.decision, exchange.summary.tokens) = (None, Tokens::default());
            exchange.window.clear();
            exchange.compactions.clear();
            exchange.summary.left_alone.clear();
        } else {
            let took_effect = !self.policy().settings().dry_run;
            let policy = self.policy().clone();
            self.active.set_policy(&policy);
            self.active.reserve()?;
            // In a dry run everything is sent unchanged.
            let window = if took_effect { self.active.record.window.as_slice() } else { &[] };
            let renditions = Arc::new(LastRenditions::from_window(window));
            let known = SessionMemory { renditions, before };
            app.caches.remember(&user, self.session, known);
            if let Some(transcript) = prepared.transcript {
                self.active.transcript = Some(TranscriptCapture::new(self.session.to_owned(), transcript));
            }
        }
        self.active.record.seal();
        let gateway = &self.current.gateway;
        let rehydrator = prepared.offered.map(|tool| Rehydrator {
            tool,
            store: self.active.caller.store.clone(),
            session: self.session.to_owned(),
            place: request.place(),
            held_in: request.conversation.clone(),
            pointers: self.active.pointers().collect(),
            left: PromptRoom {
                unanswered: 0,
                rounds: gateway.rehydrate_rounds,
                max_tokens: counter.charge_of(gateway.rehydrate_tokens),
                room,
            },
            counter,
        });
        Ok(UpstreamRequest {
            target: Arc::clone(&self.route.target),
            path: None,
            body: prepared.body,
            rehydrator,
            // Attachments charged at their worst case say nothing about the accuracy of text counts.
            correction: self.route.correction.clone().filter(|_| request.is_countable()),
            learns: self.route.learns,
        })
    }

    /// The window, with the round trips that the client does not know where it fits with them.
    fn fitted(
        &mut self,
        request: &Request<'_>,
        restored: Option<&Bytes>,
        counter: &Counter,
        known: &SessionMemory,
    ) -> Result<PreparedRequest, RequestError> {
        let Some(body) = restored else { return self.window(request, self.body, counter, known) };
        let bug = |error: &dyn std::error::Error| RequestError::bug(&error.to_string());
        let text = std::str::from_utf8(body).map_err(|error| bug(&error))?;
        let whole = wire::read(request.dialect, text).map_err(|error| bug(&error))?;
        let restored = self.window(&whole, body, counter, known);
        self.record_round_trips(restored.as_ref().err());
        // What the client knows anyway fits where the restored form does not.
        restored.or_else(|_| self.window(request, self.body, counter, known))
    }

    /// Moves the conversation on to the newest revision of learned values, if that costs no cached prefix: where an epoch
    /// was declared in any case, or the prompt could not be sent as the revision that it uses has it. Returns whether the
    /// request has to be decided again.
    fn changes_revision(&mut self, fits: bool) -> Result<bool, RequestError> {
        let is_count = self.active.record.summary.endpoint == Endpoint::CountTokens;
        if self.revision == self.newest || is_count || (fits && !self.moved_prefix) {
            return Ok(false);
        }
        let (app, store) = (self.active.app(), &self.active.caller.store);
        let number = store.session_revisions().advance(self.session, self.newest).map_err(unknown)?;
        let next = self.current.revised(&app.store, number).map_err(unknown)?;
        let endpoint = self.active.record.summary.endpoint;
        (self.route, self.revision) =
            (self.current.route(endpoint, self.model, &next, self.is_long)?, number);
        Ok(true)
    }

    /// What is known about the conversation, from memory or, after a restart or on another replica, from its records.
    /// It only serves reports, so it is not read for a request that starts a conversation or is only counted, and no
    /// request is refused for lack of it.
    fn known(&self, request: &Request<'_>, user: &str) -> SessionMemory {
        if let Some(known) = self.active.app().caches.session(user, self.session) {
            return known;
        }
        if self.active.record.summary.endpoint == Endpoint::CountTokens || !goes_on(request) {
            return SessionMemory::default();
        }
        recorded(&self.active.caller.store, self.session).unwrap_or_else(|error| {
            tracing::warn!(%error, "the state of a conversation cannot be read; its changes may be reported again");
            SessionMemory::default()
        })
    }

    /// The request, once what it omits is stored. While the store cannot write, what fits whole goes whole, and only what
    /// does not is refused.
    fn kept(
        &mut self,
        request: &Request<'_>,
        prepared: PreparedRequest,
        counter: &Counter,
        known: &SessionMemory,
    ) -> Result<PreparedRequest, RequestError> {
        let Err(error) = self.keep(&prepared.missing) else { return Ok(prepared) };
        let refused = RequestError::not_kept(&error);
        if !error.is_unwritable() {
            return Err(refused);
        }
        let settings = PolicySettings { enabled: false, ..self.route.policy.settings().clone() };
        self.whole = Some(self.route.policy.revised(&settings, None));
        if self.active.record.summary.round_trips.is_some() {
            self.active.record.summary.round_trips = Some(RoundTripFate::LeftOut);
        }
        self.window(request, self.body, counter, known).map_err(|_| refused)
    }

    /// The policy that decides the request.
    fn policy(&self) -> &ContextBudgetPolicy {
        self.whole.as_ref().unwrap_or(&self.route.policy)
    }

    fn window(
        &mut self,
        request: &Request<'_>,
        body: &Bytes,
        counter: &Counter,
        known: &SessionMemory,
    ) -> Result<PreparedRequest, RequestError> {
        let decides = self.active.record.summary.endpoint != Endpoint::CountTokens;
        let app = Arc::clone(self.active.app());
        let user = self.active.caller.store.user().to_owned();
        let counts = app.caches.counts(counter);
        let now = app.store.now();
        let packed = &self.packed;
        let ahead = |hash, text: &str| packed.pack(hash, text);
        let builder = WindowBuilder {
            memo: &app.caches.memo,
            counts: &|key, count| counts.get_or_insert_with(key, count),
            policy: self.policy(),
            counter,
            key: self.active.caller.store.key(),
            last: &known.renditions,
            rehydrates: self.current.gateway.rehydrate_rounds > 0,
            holds_pointers: self.holds_pointers,
            body,
            writes: request.cache_writes(),
            counts_only: !decides,
            transcribes: decides && self.current.gateway.transcripts,
            is_stored: &|hash: ContentHash| app.caches.is_stored(&user, hash, now, self.erasures),
            ahead: if decides { Some(&ahead) } else { None },
        };
        let rename = self.route.rename.then_some(self.route.model.id.as_str());
        let started = Instant::now();
        if let Some(last) = app.caches.texts(&user, self.session, body.len(), self.erasures) {
            last.recognise(request);
        }
        let decided = builder.decide(request, rename);
        if decides {
            app.caches.keep_texts(&user, self.session, request, body.len());
        }
        self.active.record.summary.times.policy_us = micros(started.elapsed());
        self.moved_prefix = decided.report.moved_prefix();
        decided.report.write_to(&mut self.active.record);
        Ok(decided.outcome?)
    }

    /// The request with the round trips that its client does not know, if there were any. They are read from the
    /// store each time: other agents and processes may serve the same conversation.
    fn restored(
        &self,
        request: &Request<'_>,
        held: Vec<(String, String)>,
    ) -> Result<Option<Bytes>, RequestError> {
        if !self.offers(request) || !goes_on(request) && held.is_empty() {
            return Ok(None);
        }
        let mut kept: HashMap<String, String> =
            self.active.caller.store.round_trips().list(self.session).map_err(unknown)?.into_iter().collect();
        kept.extend(held);
        if kept.is_empty() {
            return Ok(None);
        }
        let mut edits = request.restore(|key| {
            let read = serde_json::from_str(kept.get(key)?);
            read.inspect_err(|error| tracing::warn!(%error, "a round trip cannot be read and is omitted"))
                .ok()
        });
        edits.extend(kept.get(STORED_UNDER).and_then(|id| request.continue_from(id)));
        if edits.is_empty() {
            return Ok(None);
        }
        let restored =
            json::apply(request.body, edits).map_err(|error| RequestError::bug(&error.to_string()))?;
        Ok(Some(restored.into()))
    }

    /// What was stored with the history that the provider holds for this request; empty if it has no pointers.
    fn held(&self, request: &Request<'_>) -> Result<Vec<(String, String)>, RequestError> {
        match request.continues.as_ref().or(request.conversation.as_ref()) {
            Some(id) if self.offers(request) => {
                self.active.caller.store.round_trips().list(&held_session(id)).map_err(unknown)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Records what happened to round trips that the client does not know: a model that does not see them may repeat
    /// its calls, and its prompt differs from the one in the provider's cache.
    fn record_round_trips(&mut self, error: Option<&RequestError>) {
        let head = &mut self.active.record.summary;
        head.round_trips =
            Some(if error.is_some() { RoundTripFate::LeftOut } else { RoundTripFate::Restored });
        if let Some(error) = error {
            tracing::warn!(request = head.id, error = error.class, "round_trips_left_out");
        }
    }

    /// Whether Larder's tool can be offered: a provider that does not know the tool rejects calls to it.
    fn offers(&self, request: &Request<'_>) -> bool {
        let policy = self.route.policy.settings();
        let rehydrates = self.current.gateway.rehydrate_rounds > 0;
        policy.enabled && !policy.dry_run && rehydrates && request.unofferable().is_none()
    }

    /// Stores what the request omits.
    fn keep(&self, missing: &[UnstoredOriginal]) -> Result<(), StoreError> {
        if missing.is_empty() {
            return Ok(());
        }
        let (store, caches) = (&self.active.caller.store, &self.active.app().caches);
        let stored = self.packed.store(store, missing);
        self.active.app().storage.note(StoredFor::Originals, &stored);
        stored?;
        let now = store.store().now();
        missing.iter().for_each(|missing| caches.stored(store.user(), missing.hash, now, self.erasures));
        Ok(())
    }
}

/// Whether the request has a history with at least one answer.
fn goes_on(request: &Request<'_>) -> bool {
    request.items.iter().any(|item| item.role() == Role::Assistant)
}

/// The renditions of a conversation's last sent request, from its records. They are read one by one, since each may
/// be long and the newest is usually the right one.
fn recorded(store: &UserStore, session: &str) -> Result<SessionMemory, StoreError> {
    let mut newest =
        ExchangeFilter { session: Some(session.to_owned()), limit: Some(1), ..ExchangeFilter::default() };
    for _ in 0..LOOKED_BACK {
        let Some(json) = store.exchanges().list(&newest)?.pop() else { break };
        let Ok(head) = serde_json::from_str::<RequestSummary>(&json) else { break };
        if head.decision.is_none() || !head.outcome.sent() {
            newest.before = Some(head.id);
            continue;
        }
        let Ok(RequestRecord { summary: head, window, .. }) = serde_json::from_str(&json) else { break };
        let window = if head.took_effect() { window.as_slice() } else { &[] };
        let renditions = Arc::new(LastRenditions::from_window(window));
        return Ok(SessionMemory { renditions, before: head.tokens.before });
    }
    Ok(SessionMemory::default())
}

/// The state of the conversation cannot be read.
fn unknown(error: StoreError) -> RequestError {
    RequestError::from_store(&error, "nothing was sent, because the state of the conversation cannot be read")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continued_conversations_are_recognised_by_their_bytes() {
        let user = r#"{"role":"user","content":"hi"}"#;
        let chat = |more: &str| format!(r#"{{"model":"m","max_tokens":1,"messages":[{user}{more}]}}"#);
        let input = |more: &str| format!(r#"{{"model":"m","input":[{user}{more}]}}"#);
        let said = r#",{"role":"assistant","content":"yes"}"#;
        let call = r#",{"type":"function_call","call_id":"c","name":"n","arguments":"{}"}"#;
        let bodies = [
            (ApiDialect::Chat, chat(""), false),
            (ApiDialect::Chat, chat(said), true),
            (ApiDialect::Messages, chat(""), false),
            (ApiDialect::Messages, chat(said), true),
            (ApiDialect::Responses, input(""), false),
            (ApiDialect::Responses, input(said), true),
            (ApiDialect::Responses, input(call), true),
            (ApiDialect::Responses, input(r#",{"type":"item_reference","id":"i"}"#), true),
        ];
        for (dialect, body, expected) in bodies {
            assert_eq!(goes_on(&wire::read(dialect, &body).unwrap()), expected, "{body}");
            assert_eq!(dialect.may_have_history(&body), expected, "{body}");
        }
    }
}
