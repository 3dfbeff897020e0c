//! Maps the model named in a request to its server, its token counter and its policy. Knows the model table, and of a
//! request only whether it asks for long context.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::HeaderMap;
use larder_core::policy::{ContextBudgetPolicy, ModelProfile, PolicySettings, UNKNOWN_WINDOW};
use larder_engine::Engine;
use larder_engine::config::Config;
use larder_engine::settings::GatewaySettings;
use larder_models::catalogue::{Catalogue, Entry};
use larder_models::chat::ModelError;
use larder_models::price::{CacheShares, Prices};
use larder_models::table::{ModelSpec, Provider};
use larder_models::upstream::{Upstream, UpstreamTarget};
use larder_proxy::record::{AnsweredBy, Endpoint, cut_name};
use larder_proxy::wire::{ApiDialect, Request};
use larder_text::model_id::ModelId;
use larder_text::tokens::{Counter, Label};
use serde_json::Value;

use crate::error::RequestError;
use crate::revisions::RevisedSettings;

/// The header in which clients ask Anthropic for features that are not general, as a list.
const BETA: &str = "anthropic-beta";
/// The same in bodies for Bedrock.
const BETA_IN_BODY: &str = "anthropic_beta";
/// How the feature is called that lengthens a window to [`LONG_CONTEXT`]; a date follows.
const LONG_CONTEXT_BETA: &str = "context-1m";
/// The window of a Claude model with this feature, in tokens.
const LONG_CONTEXT: usize = 1_000_000;
/// The shortest window of a Claude model that has this feature.
const LEAST_LENGTHENED: usize = 200_000;

/// A placeholder address for servers that nothing is sent to.
const NOWHERE: &str = "http://localhost";

/// The model, server, policy and prices of a request.
#[derive(Clone)]
pub struct Route {
    /// The model, for records.
    pub model: AnsweredBy,
    /// Whether the table, the catalogue or a setting has the model by exactly this name, so that reports may repeat it.
    pub is_known: bool,
    /// The server that it is sent to.
    pub target: Arc<UpstreamTarget>,
    /// Counts tokens as the model does.
    pub counter: Counter,
    /// The policy for its prompts.
    pub policy: ContextBudgetPolicy,
    /// The policy for those of requests that ask for [long context](asks_for_long_context), where the model has it.
    pub long_context: Option<ContextBudgetPolicy>,
    /// Its prices, if known.
    pub prices: Option<Prices>,
    /// Whether the request must name the model otherwise than it does: by [`AnsweredBy::id`].
    pub rename: bool,
    /// Whether its window is unknown but for what was learned.
    pub learns: bool,
    /// How its counts are corrected; `None` if they are no estimates.
    pub correction: Option<Correction>,
}

/// The correction of an estimate of tokens.
#[derive(Clone)]
pub struct Correction {
    /// The estimate.
    pub counter: Counter,
    /// The factor, in parts per million.
    pub factor: u64,
}

impl Route {
    /// The route, with prompts counted and fitted as a revision of learned values has it.
    #[must_use]
    pub fn revised(&self, revised: &RevisedSettings) -> Self {
        let window = revised.window(&self.model.id);
        let policy = self.policy.revised(&revised.policy, window);
        let long_context = self.long_context.as_ref().map(|policy| policy.revised(&revised.policy, window));
        let estimate = Some(&self.counter).filter(|counter| counter.label() == Label::Estimated);
        let correction = estimate.map(|estimate| Correction {
            counter: estimate.clone(),
            factor: estimate.correction(revised.estimate_factor(&self.model.id, estimate.estimate_name())),
        });
        let counter = match &correction {
            Some(correction) => self.counter.corrected(correction.factor),
            None => self.counter.clone(),
        };
        Self { policy, long_context, counter, correction, ..self.clone() }
    }

    /// The route of a request that asks for long context.
    #[must_use]
    pub fn with_long_context(self) -> Self {
        Self { policy: self.long_context.clone().unwrap_or(self.policy), ..self }
    }
}

/// All routes of one state of the settings.
pub struct Routes {
    settings: PolicySettings,
    /// Models of the table by name.
    models: BTreeMap<String, TableModel>,
    /// Names by the provider's id.
    ids: BTreeMap<String, Vec<String>>,
    /// Servers for all models outside the table.
    others: Vec<(Provider, Arc<UpstreamTarget>)>,
    /// Placeholders for the servers that no setting names, used only where nothing is sent.
    unset: Vec<(Provider, Arc<UpstreamTarget>)>,
    max_output: usize,
}

/// A model of the table.
struct TableModel {
    spec: ModelSpec,
    /// Its server, or why there is none.
    target: Result<Arc<UpstreamTarget>, String>,
    /// The policy for its prompts.
    policy: ContextBudgetPolicy,
    /// The policy for those of requests that ask for long context.
    long_context: Option<ContextBudgetPolicy>,
}

impl Routes {
    /// The routes of these settings.
    ///
    /// # Errors
    /// If a default server cannot be used, or the policy contradicts itself; as text.
    pub fn new(config: &Config, gateway: &GatewaySettings, engine: &Engine) -> Result<Self, String> {
        Self::settled(config, gateway, engine, &|_, target| target)
    }

    /// The routes for deciding only. Nothing is sent, so a server without a key will do, and so will none: `larder serve`
    /// may have been given one that the settings do not name.
    ///
    /// # Errors
    /// When the policy contradicts itself; in words.
    pub fn to_decide(config: &Config, gateway: &GatewaySettings, engine: &Engine) -> Result<Self, String> {
        let nowhere = |provider: Provider| {
            engine.models.upstream(&Upstream { provider, base_url: NOWHERE.to_owned(), key: None })
        };
        let mut routes = Self::settled(config, gateway, engine, &|provider, target| {
            target.or_else(|_| nowhere(provider))
        })?;
        let takes_requests = |provider: &Provider| {
            provider.info().server.is_some_and(|server| server.gateway_format.is_some())
        };
        for provider in Provider::ALL.into_iter().filter(takes_requests) {
            let target = nowhere(provider).map_err(|error| error.to_string())?;
            routes.unset.push((provider, Arc::new(target)));
        }
        Ok(routes)
    }

    fn settled(
        config: &Config,
        gateway: &GatewaySettings,
        engine: &Engine,
        settle: &dyn Fn(Provider, Result<UpstreamTarget, ModelError>) -> Result<UpstreamTarget, ModelError>,
    ) -> Result<Self, String> {
        let settings = config.context_policy();
        let problems = settings.problems();
        if !problems.is_empty() {
            return Err(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
        }
        let (mut models, mut ids) = (BTreeMap::new(), BTreeMap::<String, Vec<String>>::new());
        for (name, spec) in engine.models.table().models() {
            let target = settle(spec.provider, engine.models.target(name));
            let target = target.map(Arc::new).map_err(|error| error.to_string());
            let profile = profile_of(spec, engine.models.table().catalogue());
            let policy = ContextBudgetPolicy::from_settings(&settings, &profile);
            let may_grow = !spec.states_window && lengthens_windows(spec.provider);
            let long_context = may_grow.then(|| long_context(&settings, &spec.id, profile)).flatten();
            models.insert(name.to_owned(), TableModel { spec: spec.clone(), target, policy, long_context });
            ids.entry(spec.id.clone()).or_default().push(name.to_owned());
        }
        let mut others = Vec::new();
        for upstream in &gateway.upstreams() {
            let target = settle(upstream.provider, engine.models.upstream(upstream));
            let target = target.map_err(|error| error.to_string())?;
            others.push((upstream.provider, Arc::new(target)));
        }
        let max_output = gateway.default_max_output;
        Ok(Self { settings, models, ids, others, unset: Vec::new(), max_output })
    }

    /// The route of a request for `model`.
    ///
    /// # Errors
    /// If no model with that name supports the request's dialect.
    pub fn find(&self, endpoint: Endpoint, model: &str, engine: &Engine) -> Result<Route, RequestError> {
        let wanted = provider(endpoint);
        let speaks = |name: &&str| self.models.get(*name).is_some_and(|known| known.spec.provider == wanted);
        let named: Vec<&str> = self.named(model).collect();
        if let Some(name) = named.iter().copied().find(|name| speaks(name))
            && let Some(known) = self.models.get(name)
        {
            let target = known.target.clone().map_err(|words| RequestError::misconfigured(&words))?;
            return Ok(Self::known(name, known, target, model, engine));
        }
        if let Some(target) = self.other(wanted) {
            return Ok(self.other_model(model, target, engine));
        }
        if let Some((name, known)) = named.first().and_then(|name| Some((name, self.models.get(*name)?))) {
            return Err(RequestError::wrong_wire(name, known.spec.provider));
        }
        match self.unset.iter().find(|(provider, _)| *provider == wanted) {
            Some((_, target)) => Ok(self.other_model(model, Arc::clone(target), engine)),
            None => Err(RequestError::unknown_model(model, wanted)),
        }
    }

    /// The server for models outside the table, which also gets the requests that name no model.
    pub fn other(&self, wanted: Provider) -> Option<Arc<UpstreamTarget>> {
        self.others.iter().find(|(provider, _)| *provider == wanted).map(|(_, target)| Arc::clone(target))
    }

    /// The server of the model that a forwarded request names, if the table has it, with the name that the server knows
    /// it by.
    ///
    /// # Errors
    /// If the server cannot be used.
    pub fn serving(
        &self,
        provider: Provider,
        model: &str,
    ) -> Result<Option<(Arc<UpstreamTarget>, &str)>, RequestError> {
        let speaks =
            |name: &&str| self.models.get(*name).is_some_and(|known| known.spec.provider == provider);
        let Some(known) = self.named(model).find(speaks).and_then(|name| self.models.get(name)) else {
            return Ok(None);
        };
        let target = known.target.clone().map_err(|words| RequestError::misconfigured(&words))?;
        Ok(Some((target, &known.spec.id)))
    }

    /// The models of the table that may be called this: by name, then by the provider's id.
    fn named<'a>(&'a self, model: &str) -> impl Iterator<Item = &'a str> {
        let by_name = self.models.get_key_value(model).map(|(name, _)| name.as_str());
        let by_id = self.ids.get(model).into_iter().flatten().map(String::as_str);
        by_name.into_iter().chain(by_id)
    }

    /// Why servers in the table that were usable `before` no longer are.
    pub fn lost(&self, before: &Self) -> Vec<&str> {
        let could_be_asked = |name: &str| before.models.get(name).is_some_and(|known| known.target.is_ok());
        let remote = self.models.iter().filter(|(_, known)| known.spec.provider.is_remote());
        let lost = remote.filter(|(name, _)| could_be_asked(name));
        lost.filter_map(|(_, known)| known.target.as_ref().err()).map(String::as_str).collect()
    }

    /// The models in the table that a client may name, with their metadata.
    pub fn models(&self) -> impl Iterator<Item = (&str, &ModelSpec)> {
        let reachable = self.models.iter().filter(|(_, known)| known.target.is_ok());
        reachable.map(|(name, known)| (name.as_str(), &known.spec))
    }

    /// The policy for a model in the table.
    pub fn policy(&self, name: &str) -> Option<&ContextBudgetPolicy> {
        self.models.get(name).map(|known| &known.policy)
    }

    fn known(
        name: &str,
        known: &TableModel,
        target: Arc<UpstreamTarget>,
        asked: &str,
        engine: &Engine,
    ) -> Route {
        let TableModel { spec, policy, long_context, .. } = known;
        Route {
            model: AnsweredBy {
                name: name.to_owned(),
                id: spec.id.clone(),
                server: None,
                provider: spec.provider,
            },
            is_known: true,
            target,
            counter: engine.counter(spec),
            policy: policy.clone(),
            long_context: long_context.clone(),
            prices: spec.prices.clone(),
            rename: asked != spec.id,
            learns: false,
            correction: None,
        }
    }

    /// A model outside the table, with what the catalogue knows about it.
    fn other_model(&self, model: &str, target: Arc<UpstreamTarget>, engine: &Engine) -> Route {
        let tokens = |tokens: u64| usize::try_from(tokens).ok();
        let entry = engine.models.table().catalogue().find(model);
        let limits = entry.as_ref().and_then(|entry| entry.limits);
        let prices = entry.as_ref().and_then(Entry::prices);
        let max_output = entry.as_ref().and_then(|entry| entry.row.max_output).and_then(tokens);
        let profile = ModelProfile {
            window: limits.and_then(|limits| tokens(limits.window)).unwrap_or(UNKNOWN_WINDOW),
            input_limit: limits.and_then(|limits| limits.input_limit()).and_then(tokens),
            max_output: max_output.or(Some(self.max_output)),
            cache: cache(prices.as_ref(), entry.as_ref()),
        };
        let may_grow =
            lengthens_windows(target.provider()) && entry.as_ref().is_none_or(|entry| !entry.states_window);
        Route {
            model: AnsweredBy {
                name: cut_name(model),
                id: cut_name(model),
                server: Some(target.name().to_owned()),
                provider: target.provider(),
            },
            is_known: engine.models.table().catalogue().has(model),
            target,
            counter: engine.counter_of_id(model),
            policy: ContextBudgetPolicy::from_settings(&self.settings, &profile),
            long_context: may_grow.then(|| long_context(&self.settings, model, profile)).flatten(),
            prices,
            rename: false,
            learns: limits.is_none(),
            correction: None,
        }
    }
}

/// The limits and prices of a model in the table.
fn profile_of(spec: &ModelSpec, catalogue: &Catalogue) -> ModelProfile {
    let entry = spec.provider.is_remote().then(|| catalogue.find(&spec.id)).flatten();
    ModelProfile {
        window: spec.window,
        input_limit: spec.input_limit,
        max_output: usize::try_from(spec.max_output).ok(),
        cache: cache(spec.prices.as_ref(), entry.as_ref()),
    }
}

/// Whether a request asks for the longest window of its model: `context-1m-2025-08-07` among the features in its headers,
/// or for Bedrock, which does not read these, in its body.
pub fn asks_for_long_context(request: &Request<'_>, headers: &HeaderMap) -> bool {
    let is_asked = |feature: &str| feature.trim().starts_with(LONG_CONTEXT_BETA);
    if request.dialect.provider() == Provider::Bedrock {
        let list = |(name, raw): (Cow<'_, str>, &str)| {
            let value = || serde_json::from_str::<Value>(raw).ok();
            let list = match &*name {
                BETA_IN_BODY => value()?,
                // `Converse` passes on what it does not define itself.
                "additionalModelRequestFields" => value()?.get_mut(BETA_IN_BODY)?.take(),
                _ => return None,
            };
            serde_json::from_value::<Vec<String>>(list).ok()
        };
        return request.fields().filter_map(list).flatten().any(|feature| is_asked(&feature));
    }
    let values = headers.get_all(BETA).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(is_asked)
}

/// Whether Claude models of a provider have a window that requests can lengthen.
const fn lengthens_windows(provider: Provider) -> bool {
    matches!(provider, Provider::Anthropic | Provider::Bedrock)
}

/// The policy for a Claude model with long context; `None` for all other models.
fn long_context(settings: &PolicySettings, id: &str, profile: ModelProfile) -> Option<ContextBudgetPolicy> {
    let is_claude = ModelId::parse(id).key.starts_with("claude-");
    let is_lengthened = is_claude && (LEAST_LENGTHENED..LONG_CONTEXT).contains(&profile.window);
    let profile = ModelProfile { window: LONG_CONTEXT, input_limit: None, ..profile };
    is_lengthened.then(|| ContextBudgetPolicy::from_settings(settings, &profile))
}

/// What the provider's cache costs, at these prices.
fn cache(prices: Option<&Prices>, entry: Option<&Entry>) -> Option<CacheShares> {
    let minimum = entry.and_then(Entry::cache_minimum).and_then(|tokens| usize::try_from(tokens).ok());
    Some(CacheShares { minimum: minimum.unwrap_or(0), ..prices?.cache_shares()? })
}

/// The provider whose servers understand a request.
pub fn provider(endpoint: Endpoint) -> Provider {
    endpoint.dialect().map_or(Provider::OpenAi, ApiDialect::provider)
}
