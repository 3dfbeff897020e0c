//! What would become of a request: decided as if it had come in, but neither sent, stored nor recorded.

use std::time::Instant;

use axum::http::HeaderMap;
use bytes::Bytes;
use larder_engine::Engine;
use larder_engine::config::{Config, GatewaySettings};
use larder_proxy::record::{Endpoint, Outcome, RequestRecord};
use larder_proxy::window::{Forms, WindowBuilder};
use larder_proxy::wire::{self, ApiDialect, Request};
use larder_store::{Store, UserStore};
use larder_text::tokens::{Counter, Label};

use crate::app::App;
use crate::limits::BodyFault;
use crate::model_budget::ModelBudget;
use crate::request::fault::Fault;
use crate::request::ledger::micros;
use crate::request::route::{Route, Routes};
use crate::request::shelf::Shelf;
use crate::sessions;

/// Decides over the body of a request. Blocks.
///
/// # Errors
/// Why it cannot be understood, in words.
pub fn inspect(app: &App, store: &UserStore, wire: Endpoint, body: &str) -> Result<RequestRecord, String> {
    let current = app.current();
    let (routes, gateway, engine) = (&current.routes, &current.gateway, current.shared());
    let rules = Rules { routes, gateway, engine, shelf: &app.shelf };
    rules.decide(&app.store, store, InspectRequest { wire, model: None, body })
}

/// The same without a gateway, by its settings, its limit of bodies among them. No key of a provider is needed, since
/// nothing is sent.
///
/// # Errors
/// As [`inspect`], and where the settings cannot be served.
pub fn inspect_by(
    config: &Config,
    engine: &Engine,
    store: &Store,
    asked: InspectRequest<'_>,
) -> Result<RequestRecord, String> {
    let gateway = config.gateway();
    let limit = gateway.max_body_bytes;
    if asked.body.len() > limit {
        return Err(BodyFault::TooLarge { limit }.to_string());
    }
    let routes = Routes::to_decide(config, &gateway, engine)?;
    let rules = Rules { routes: &routes, gateway: &gateway, engine, shelf: &Shelf::default() };
    rules.decide(store, &engine.store, asked)
}

/// What each model of the table that answers may take, whether or not its server can be reached.
///
/// # Errors
/// Where the policy contradicts itself.
pub fn budgets(config: &Config, engine: &Engine) -> Result<Vec<ModelBudget>, String> {
    let routes = Routes::to_decide(config, &config.gateway(), engine)?;
    let models = engine.models.table().models().filter(|(_, spec)| spec.max_output > 0);
    Ok(models.map(|(name, spec)| ModelBudget::new(name, spec, &routes.policy(spec))).collect())
}

/// The body of a request to look at.
#[derive(Debug, Clone, Copy)]
pub struct InspectRequest<'a> {
    /// What it speaks.
    pub wire: Endpoint,
    /// The model, instead of the one that it names.
    pub model: Option<&'a str>,
    /// It.
    pub body: &'a str,
}

/// By what a request is decided.
struct Rules<'a> {
    routes: &'a Routes,
    gateway: &'a GatewaySettings,
    engine: &'a Engine,
    shelf: &'a Shelf,
}

impl Rules<'_> {
    fn decide(
        &self,
        all: &Store,
        store: &UserStore,
        asked: InspectRequest<'_>,
    ) -> Result<RequestRecord, String> {
        let InspectRequest { wire, model, body } = asked;
        let format = match wire {
            Endpoint::Chat => ApiDialect::Chat,
            Endpoint::Responses => ApiDialect::Responses,
            Endpoint::Messages | Endpoint::CountTokens => ApiDialect::Messages,
            Endpoint::Embeddings => {
                return Err("a request for vectors has no window to decide over".to_owned());
            }
            Endpoint::Passed => {
                return Err("a request that passes as it is has no window to decide over".to_owned());
            }
        };
        let request =
            wire::read_up_to(format, body, self.gateway.max_messages).map_err(|error| error.to_string())?;
        let named = || request.model.as_ref().map(wire::Text::text).unwrap_or_default().into_owned();
        let model = model.map_or_else(named, str::to_owned);
        let route = self.routes.find(wire, &model, self.engine).map_err(|fault| fault.message)?;
        let id = all.new_run_id().map_err(|error| error.to_string())?;
        let mut exchange = RequestRecord::blank(id.as_str(), all.now(), store.user(), wire);
        exchange.summary.model = larder_proxy::record::cut_name(&model);
        exchange.summary.stream = request.stream;
        exchange.summary.answered_by = Some(route.model.clone());
        let counter = counter(store, &route, &request)?;
        let counts = self.shelf.counts(&counter);
        let bench = WindowBuilder {
            memo: &self.shelf.memo,
            counts: &|key, count| counts.get_or_insert_with(key, count),
            policy: &route.policy,
            counter: &counter,
            key: store.key(),
            last: &Forms::default(),
            rehydrates: self.gateway.rehydrate_rounds > 0,
            body: &Bytes::new(),
            counts_only: false,
            transcribes: false,
            is_stored: &|_| true,
        };
        let started = Instant::now();
        let prepared = bench.prepare(&request, None, &mut exchange).map_err(Fault::from);
        exchange.summary.times.policy_us = micros(started.elapsed());
        match prepared {
            Ok(_) => exchange.summary.outcome = Outcome::Ok,
            Err(fault) => {
                exchange.summary.outcome = fault.outcome;
                exchange.summary.status = fault.status.as_u16();
                exchange.summary.error = Some(fault.class.to_owned());
            }
        }
        Ok(exchange.sealed())
    }
}

/// The model's counter, corrected as it would be if the request came in; its conversation keeps nothing by it.
fn counter(store: &UserStore, route: &Route, request: &Request<'_>) -> Result<Counter, String> {
    if route.counter.label() != Label::Estimated {
        return Ok(route.counter.clone());
    }
    let session = sessions::of(request, &HeaderMap::new()).map_err(|fault| fault.message)?;
    let known = store.calibrations().peek(&session, &route.model.id).map_err(|error| error.to_string())?;
    Ok(route.counter.corrected(known.factor_ppm))
}
