//! Decides a request as if it had been received, without sending, storing or recording it.

use std::time::Instant;

use axum::http::HeaderMap;
use bytes::Bytes;
use larder_engine::Engine;
use larder_engine::config::Config;
use larder_engine::settings::GatewaySettings;
use larder_proxy::record::{Endpoint, Outcome, RequestRecord};
use larder_proxy::window::{LastRenditions, WindowBuilder};
use larder_proxy::wire;
use larder_store::{Store, UserStore};

use crate::app::App;
use crate::caches::RequestCaches;
use crate::error::RequestError;
use crate::limits::BodyError;
use crate::model_budget::ModelBudget;
use crate::model_route::Routes;
use crate::request::timing::micros;
use crate::revisions::{self, RevisedSettings};
use crate::sessions;

/// Decides the body of a request. Blocks.
///
/// # Errors
/// Why it cannot be understood, in words.
pub fn inspect(
    app: &App,
    store: &UserStore,
    endpoint: Endpoint,
    body: &str,
) -> Result<RequestRecord, String> {
    let current = app.current();
    let (routes, gateway, engine) = (&current.routes, &current.gateway, current.shared());
    let rules = Rules { config: &current.config, routes, gateway, engine, caches: &app.caches };
    rules.decide(&app.store, store, InspectRequest { endpoint, model: None, body })
}

/// As [`inspect`], without a gateway but with its settings, including the limit on bodies. No provider key is needed,
/// since nothing is sent.
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
        return Err(BodyError::TooLarge { limit }.to_string());
    }
    let routes = Routes::to_decide(config, &gateway, engine)?;
    let caches = RequestCaches::default();
    let rules = Rules { config, routes: &routes, gateway: &gateway, engine, caches: &caches };
    rules.decide(store, &engine.store, asked)
}

/// The budget of each chat model in the table, whether or not its server is reachable.
///
/// # Errors
/// Where the policy contradicts itself.
pub fn budgets(config: &Config, engine: &Engine) -> Result<Vec<ModelBudget>, String> {
    let routes = Routes::to_decide(config, &config.gateway(), engine)?;
    let models = engine.models.table().models().filter(|(_, spec)| spec.max_output > 0);
    let budget = |(name, spec)| Some(ModelBudget::new(name, spec, routes.policy(name)?));
    Ok(models.filter_map(budget).collect())
}

/// The body of a request to look at.
#[derive(Debug, Clone, Copy)]
pub struct InspectRequest<'a> {
    /// The requested endpoint.
    pub endpoint: Endpoint,
    /// The model, instead of the one that it names.
    pub model: Option<&'a str>,
    /// The JSON text of the body.
    pub body: &'a str,
}

/// What a decision depends on.
struct Rules<'a> {
    config: &'a Config,
    routes: &'a Routes,
    gateway: &'a GatewaySettings,
    engine: &'a Engine,
    caches: &'a RequestCaches,
}

impl Rules<'_> {
    fn decide(
        &self,
        all: &Store,
        store: &UserStore,
        asked: InspectRequest<'_>,
    ) -> Result<RequestRecord, String> {
        let InspectRequest { endpoint, model, body } = asked;
        let Some(dialect) = endpoint.dialect() else {
            return Err(format!("a request of kind `{}` has no window to decide", endpoint.as_str()));
        };
        let request =
            wire::read_up_to(dialect, body, self.gateway.max_messages).map_err(|error| error.to_string())?;
        let named = || request.model.as_ref().map(wire::Text::text).unwrap_or_default().into_owned();
        let model = model.map_or_else(named, str::to_owned);
        let route = self.routes.find(endpoint, &model, self.engine).map_err(|error| error.message)?;
        let session = sessions::identify(&request, &HeaderMap::new()).map_err(|error| error.message)?;
        let revised = revisions::peek(store, &session)
            .and_then(|number| RevisedSettings::read(self.config, all, number))
            .map_err(|error| error.to_string())?;
        let route = route.revised(&revised);
        let id = all.new_run_id().map_err(|error| error.to_string())?;
        let mut record = RequestRecord::blank(id.as_str(), all.now(), store.user(), endpoint);
        record.summary.model = larder_proxy::record::cut_name(&model);
        record.summary.stream = request.stream;
        record.summary.answered_by = Some(route.model.clone());
        record.summary.model_is_known = route.is_known;
        record.summary.revision = Some(revised.number);
        record.summary.unknown_window = route.policy.is_unlimited();
        let counter = &route.counter;
        let counts = self.caches.counts(counter);
        let builder = WindowBuilder {
            memo: &self.caches.memo,
            counts: &|key, count| counts.get_or_insert_with(key, count),
            policy: &route.policy,
            counter,
            key: store.key(),
            last: &LastRenditions::default(),
            rehydrates: self.gateway.rehydrate_rounds > 0,
            holds_pointers: false,
            body: &Bytes::new(),
            writes: request.cache_writes(),
            counts_only: false,
            transcribes: false,
            is_stored: &|_| true,
            ahead: None,
        };
        let started = Instant::now();
        let decided = builder.decide(&request, None);
        record.summary.times.policy_us = micros(started.elapsed());
        decided.report.write_to(&mut record);
        match decided.outcome.map_err(RequestError::from) {
            Ok(_) => record.summary.outcome = Outcome::Ok,
            Err(error) => {
                record.summary.outcome = error.outcome;
                record.summary.status = error.status.as_u16();
                record.summary.error = Some(error.class.to_owned());
            }
        }
        record.seal();
        Ok(record)
    }
}
