//! From a body to the request that may leave: read, find its server, decide, set aside, store. Blocks; knows no client
//! and no connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use axum::http::HeaderMap;
use bytes::Bytes;
use larder_models::upstream::UpstreamTarget;
use larder_proxy::record::{Endpoint, RequestRecord, RequestSummary, RoundTrips, Tokens};
use larder_proxy::window::{Forms, Missing, Prepared, WindowBuilder};
use larder_proxy::wire::{self, ApiDialect, Request};
use larder_store::{ExchangeFilter, NewPointer, StoreError, UserStore};
use larder_text::hash::ContentHash;
use larder_text::json;
use larder_text::message::Role;
use larder_text::tokens::{Counter, Label};

use crate::app::Snapshot;
use crate::request::RECIPE;
use crate::request::bill::Pricing;
use crate::request::fault::Fault;
use crate::request::ledger::{Ledger, micros};
use crate::request::recipes;
use crate::request::rehydrate::Answerer;
use crate::request::route::Route;
use crate::request::shelf::Session;
use crate::sessions;

/// Records of a conversation among which its last window is looked for: the newest may have been refused or counted only.
const LOOKED_BACK: usize = 8;

/// Where a request goes.
pub enum Way {
    /// To a server.
    Upstream(Box<Ready>),
    /// To a recipe.
    Recipe(Box<recipes::Job>),
}

/// A request that may leave.
pub struct Ready {
    /// Its server.
    pub target: Arc<UpstreamTarget>,
    /// Its body.
    pub body: Bytes,
    /// Who answers calls of our tool, where it was offered.
    pub answerer: Option<Answerer>,
}

/// Reads a request and decides over it. When this returns, everything that the request leaves out is stored.
///
/// # Errors
/// When nothing may be sent.
pub fn prepare(
    ledger: &mut Ledger,
    current: &Snapshot,
    format: ApiDialect,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<Way, Fault> {
    let text = std::str::from_utf8(&body)
        .map_err(|error| Fault::invalid(format!("the body is not UTF-8: byte {}", error.valid_up_to())))?;
    let request = wire::read_up_to(format, text, current.gateway.max_messages)
        .map_err(|error| Fault::invalid(error.to_string()))?;
    let model = request.model.as_ref().map(wire::Text::text).unwrap_or_default();
    if model.is_empty() {
        return Err(Fault::invalid("model: name the model to ask"));
    }
    ledger.model(&model);
    ledger.exchange.summary.stream = request.stream;
    ledger.choices = request.choices;
    let session = sessions::of(&request, headers)?;
    ledger.exchange.summary.session = Some(session.clone());
    if let Some(recipe) = model.strip_prefix(RECIPE) {
        let id = &ledger.exchange.summary.id;
        return recipes::job(recipe, &request, session, id).map(|job| Way::Recipe(Box::new(job)));
    }
    let wire = ledger.exchange.summary.wire;
    let route = current.routes.find(wire, &model, current.shared())?;
    ledger.exchange.summary.answered_by = Some(route.model.clone());
    let desk = Desk { ledger, current, route: &route, session: &session, body: &body };
    desk.decide(&request).map(|ready| Way::Upstream(Box::new(ready)))
}

/// What a decision over one request needs.
struct Desk<'a> {
    ledger: &'a mut Ledger,
    current: &'a Snapshot,
    route: &'a Route,
    session: &'a str,
    body: &'a Bytes,
}

impl Desk<'_> {
    /// Decides over the request as its client knows it, or with what is hidden from the client put back.
    fn decide(mut self, request: &Request<'_>) -> Result<Ready, Fault> {
        let app = Arc::clone(self.ledger.app());
        let user = self.ledger.caller.store.user().to_owned();
        let known = self.known(request, &user);
        let counter = self.counter(request)?;
        let restored = self.restored(request)?;
        let prepared = match &restored {
            Some(body) => {
                let bug = |error: &dyn std::error::Error| Fault::bug(&error.to_string());
                let text = std::str::from_utf8(body).map_err(|error| bug(&error))?;
                let whole = wire::read(request.format, text).map_err(|error| bug(&error))?;
                let restored = self.window(&whole, body, &counter, &known);
                self.tell_round_trips(restored.as_ref().err());
                // What the client knows anyway fits where the restored form does not.
                restored.or_else(|_| self.window(request, self.body, &counter, &known))
            }
            None => self.window(request, self.body, &counter, &known),
        }?;
        let head = &self.ledger.exchange.summary;
        let (before, after) = (head.tokens.before, head.tokens.after);
        let room = usize::try_from(head.tokens.budget.saturating_sub(after)).unwrap_or(usize::MAX);
        self.ledger.pricing = self.route.prices.map(|prices| Pricing { prices, before: known.before });
        if head.wire == Endpoint::CountTokens {
            // Nothing is generated, so this is no prompt: nothing of it is told, saved or remembered.
            let exchange = &mut self.ledger.exchange;
            (exchange.summary.decision, exchange.summary.tokens) = (None, Tokens::default());
            exchange.window.clear();
            exchange.compactions.clear();
        } else {
            let took_effect = !self.route.policy.settings().dry_run;
            self.ledger.decided_by(&self.route.policy);
            self.ledger.reserve()?;
            self.keep(&prepared.missing)?;
            // In a dry run everything leaves as it came.
            let forms = if took_effect { Arc::new(prepared.forms) } else { Arc::default() };
            let known = Session { forms, before };
            app.shelf.remember(&user, self.session, known);
            if let Some(transcript) = prepared.transcript {
                self.ledger.transcribe(self.session.to_owned(), transcript);
            }
        }
        self.ledger.seal();
        let gateway = &self.current.gateway;
        let answerer = prepared.offered.then(|| Answerer {
            store: self.ledger.caller.store.clone(),
            session: self.session.to_owned(),
            place: request.place(),
            rounds: gateway.rehydrate_rounds,
            most: counter.charge_of(gateway.rehydrate_tokens),
            counter,
            room,
        });
        Ok(Ready { target: Arc::clone(&self.route.target), body: prepared.body, answerer })
    }

    /// What is known of the conversation, from memory or, after a restart or on another replica, from its records. It only
    /// serves reports, so a request that begins a conversation or is counted only is not worth reading for, and none is
    /// refused for lack of it.
    fn known(&self, request: &Request<'_>, user: &str) -> Session {
        if let Some(known) = self.ledger.app().shelf.session(user, self.session) {
            return known;
        }
        if self.ledger.exchange.summary.wire == Endpoint::CountTokens || !goes_on(request) {
            return Session::default();
        }
        recorded(&self.ledger.caller.store, self.session).unwrap_or_else(|error| {
            tracing::warn!(%error, "what is known of a conversation cannot be read; its changes may be told anew");
            Session::default()
        })
    }

    fn window(
        &mut self,
        request: &Request<'_>,
        body: &Bytes,
        counter: &Counter,
        known: &Session,
    ) -> Result<Prepared, Fault> {
        let decides = self.ledger.exchange.summary.wire != Endpoint::CountTokens;
        let app = Arc::clone(self.ledger.app());
        let user = self.ledger.caller.store.user().to_owned();
        let counts = app.shelf.counts(counter);
        let bench = WindowBuilder {
            memo: &app.shelf.memo,
            counts: &|key, count| counts.get_or_insert_with(key, count),
            policy: &self.route.policy,
            counter,
            key: self.ledger.caller.store.key(),
            last: &known.forms,
            rehydrates: self.current.gateway.rehydrate_rounds > 0,
            body,
            counts_only: !decides,
            transcribes: decides && self.current.gateway.transcripts,
            is_stored: &|hash: ContentHash| app.shelf.is_stored(&user, hash),
        };
        let rename = self.route.rename.then_some(self.route.model.id.as_str());
        let started = Instant::now();
        let prepared = bench.prepare(request, rename, &mut self.ledger.exchange);
        self.ledger.exchange.summary.times.policy_us = micros(started.elapsed());
        Ok(prepared?)
    }

    /// The model's counter, corrected as the conversation was when it began: a correction that came later must not
    /// change what was decided before.
    fn counter(&mut self, request: &Request<'_>) -> Result<Counter, Fault> {
        let counter = &self.route.counter;
        if counter.label() != Label::Estimated {
            return Ok(counter.clone());
        }
        let shelf = &self.ledger.app().shelf;
        let store = &self.ledger.caller.store;
        let factor = shelf.factor(store, self.session, &self.route.model.id).map_err(unknown)?;
        // What is charged at its worst says nothing about how far the count of texts is off.
        self.ledger.factor = Some(factor).filter(|_| request.is_countable());
        Ok(counter.corrected(factor))
    }

    /// The request with the round trips that its client does not know of, where there were any. They are read anew each
    /// time, and never from memory: other agents and other processes may serve the same conversation.
    fn restored(&self, request: &Request<'_>) -> Result<Option<Bytes>, Fault> {
        if !self.offers(request) || !goes_on(request) {
            return Ok(None);
        }
        let kept: HashMap<String, String> =
            self.ledger.caller.store.round_trips().list(self.session).map_err(unknown)?.into_iter().collect();
        if kept.is_empty() {
            return Ok(None);
        }
        let edits = request.restore(|key| {
            let read = serde_json::from_str(kept.get(key)?);
            read.inspect_err(|error| tracing::warn!(%error, "a round trip cannot be read and is left out"))
                .ok()
        });
        if edits.is_empty() {
            return Ok(None);
        }
        let restored = json::apply(request.body, edits).map_err(|error| Fault::bug(&error.to_string()))?;
        Ok(Some(restored.into()))
    }

    /// Takes down what becomes of round trips that the client does not know of: a model that does not see them may ask the
    /// same again, and its prompt is not the one that the provider has in its cache.
    fn tell_round_trips(&mut self, fault: Option<&Fault>) {
        let head = &mut self.ledger.exchange.summary;
        head.round_trips = Some(if fault.is_some() { RoundTrips::LeftOut } else { RoundTrips::Restored });
        if let Some(fault) = fault {
            tracing::warn!(request = head.id, error = fault.class, "round_trips_left_out");
        }
    }

    /// Whether our tool can be offered: a provider that is not told of it refuses its calls.
    fn offers(&self, request: &Request<'_>) -> bool {
        let policy = self.route.policy.settings();
        let rehydrates = self.current.gateway.rehydrate_rounds > 0;
        policy.enabled && !policy.dry_run && rehydrates && request.unofferable().is_none()
    }

    /// Stores what the request leaves out.
    fn keep(&self, missing: &[Missing]) -> Result<(), Fault> {
        if missing.is_empty() {
            return Ok(());
        }
        let (store, shelf) = (&self.ledger.caller.store, &self.ledger.app().shelf);
        let new: Vec<NewPointer<'_>> = missing
            .iter()
            .map(|Missing { text, kind, display, .. }| NewPointer {
                content: text.as_bytes(),
                kind,
                display_text: display,
            })
            .collect();
        store.pointers().insert_all(&new).map_err(|error| Fault::not_kept(&error))?;
        missing.iter().for_each(|missing| shelf.stored(store.user(), missing.hash));
        Ok(())
    }
}

/// Whether the request may ask for more of the store than what every request does: one goes on with a conversation, in
/// whose history somebody has answered. Guessed by its bytes, before it is read; on the safe side but for odd escapes.
pub fn may_go_on(format: ApiDialect, body: &[u8]) -> bool {
    // Calls and thoughts are elements of their own in OpenAI's responses, and name no role.
    let marks: &[&str] =
        if format == ApiDialect::Responses { &["assistant", "\"type\""] } else { &["assistant"] };
    std::str::from_utf8(body).is_ok_and(|text| marks.iter().any(|mark| text.contains(mark)))
}

/// Whether the request brings a history in which somebody has answered.
fn goes_on(request: &Request<'_>) -> bool {
    request.items.iter().any(|item| item.role() == Role::Assistant)
}

/// What the records of a conversation say of its last request that left: in which forms its parts stood. They are read
/// one by one, since each may be long and mostly the newest is the one.
fn recorded(store: &UserStore, session: &str) -> Result<Session, StoreError> {
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
        let forms = if head.took_effect() { Forms::of(&window) } else { Forms::default() };
        return Ok(Session { forms: Arc::new(forms), before: head.tokens.before });
    }
    Ok(Session::default())
}

/// What is known of the conversation cannot be had.
fn unknown(error: StoreError) -> Fault {
    Fault::of_store(&error, "nothing was sent, since what is known of the conversation cannot be had")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_with_a_conversation_is_seen_by_its_bytes() {
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
        for (format, body, expected) in bodies {
            assert_eq!(goes_on(&wire::read(format, &body).unwrap()), expected, "{body}");
            assert_eq!(may_go_on(format, body.as_bytes()), expected, "{body}");
        }
    }
}
