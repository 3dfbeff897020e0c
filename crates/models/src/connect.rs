//! From a name in the model table to a model that answers. The only place that reads keys and knows all providers.

mod server_check;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::anthropic::Anthropic;
use crate::aws::{self, AwsSigner};
use crate::bedrock::{Converse, TitanEmbeddings};
use crate::chat::{ChatModel, EmbeddingModel, ModelError};
use crate::http::{HttpClient, HttpEndpoint};
use crate::openai::{OpenAiEmbeddings, OpenAiModel};
use crate::replay::Replay;
use crate::resilient::{Resilient, RetryPolicy, random_jitter};
use crate::secret::Secret;
use crate::settings::ProviderSettings;
use crate::table::{Capability, ModelSpec, ModelTable, Problems, Provider, ServerInfo};
use crate::upstream::{KeySource, Upstream, UpstreamTarget};

pub use server_check::{ServerField, ServerProblem, is_address};

/// How models inside this process are opened.
pub trait EmbeddedModels: Send + Sync {
    /// Whether the weights of a model are there.
    fn has_weights(&self, _spec: &ModelSpec) -> bool {
        true
    }

    /// Opens a chat model.
    ///
    /// # Errors
    /// [`ModelError::NotConfigured`] when its weights are missing, with how to get them.
    fn chat(&self, spec: &ModelSpec) -> Result<Arc<dyn ChatModel>, ModelError>;

    /// Opens an embedding model.
    ///
    /// # Errors
    /// [`ModelError::NotConfigured`] when its weights are missing, with how to get them.
    fn embedding(&self, spec: &ModelSpec) -> Result<Arc<dyn EmbeddingModel>, ModelError>;
}

/// The models of a table, connected on first use and kept (R4-1.1).
pub struct Models {
    table: ModelTable,
    folder: PathBuf,
    variables: BTreeMap<String, Option<String>>,
    embedded: Option<Arc<dyn EmbeddedModels>>,
    http: Arc<HttpClient>,
    chat: Mutex<BTreeMap<String, Arc<dyn ChatModel>>>,
    embedding: Mutex<BTreeMap<String, Arc<dyn EmbeddingModel>>>,
}

impl Models {
    /// The models of `table`. `folder` contains `larder.toml`; `env` looks up environment variables, of which only
    /// those named in the table are read. Nothing is connected, and nothing can fail, before a model is used.
    pub fn new(table: ModelTable, folder: impl Into<PathBuf>, env: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut variables = BTreeMap::new();
        for (_, spec) in table.models() {
            let address = pieces(base_url(spec));
            let named = address.into_iter().filter_map(|piece| match piece {
                AddressPiece::Variable { name, .. } => Some(name.to_owned()),
                AddressPiece::Text(_) => None,
            });
            let region = (spec.provider == Provider::Bedrock).then(|| aws::REGION.to_owned());
            let keys = spec.api_key_env.clone().into_iter().chain(default_key(spec).map(str::to_owned));
            for name in named.chain(keys).chain(region) {
                variables.entry(name.clone()).or_insert_with(|| env(&name));
            }
        }
        Self {
            table,
            folder: folder.into(),
            variables,
            embedded: None,
            http: Arc::default(),
            chat: Mutex::default(),
            embedding: Mutex::default(),
        }
    }

    /// One model of the caller's own for every layer. Its tokens are counted exactly with the vocabulary `tokenizer`
    /// (`o200k_base`, `cl100k_base` …); `window` and `max_output` are in tokens.
    ///
    /// # Errors
    /// If there is no such tokenizer, or `max_output` leaves no room in `window`.
    pub fn single(
        model: Arc<dyn ChatModel>,
        tokenizer: &str,
        window: usize,
        max_output: usize,
    ) -> Result<Self, Problems> {
        let tokenizer = toml::Value::from(tokenizer);
        let layers =
            ["REFLEX", "NERVES", "MIND", "VOICE", "EYES"].map(|layer| format!("{layer} = \"own\"\n"));
        let table = format!(
            "[models.layers]\n{}[models.own]\nprovider = \"embedded\"\nid = \"own\"\ntokenizer = {tokenizer}\n\
             window = {window}\nmax_output = {max_output}\n",
            layers.concat()
        );
        let models = Self::new(ModelTable::parse(&table)?, "", &|_| None);
        models.chat.lock().unwrap_or_else(PoisonError::into_inner).insert("own".to_owned(), model);
        Ok(models)
    }

    /// Adds a way to open models of provider `embedded`.
    #[must_use]
    pub fn with_embedded(mut self, embedded: Arc<dyn EmbeddedModels>) -> Self {
        self.embedded = Some(embedded);
        self
    }

    /// Adds servers for models outside the table; reads the environment variables with their keys.
    #[must_use]
    pub fn with_upstreams(mut self, upstreams: &[Upstream], env: &dyn Fn(&str) -> Option<String>) -> Self {
        for upstream in upstreams {
            if let Some(KeySource::Environment(name)) = &upstream.key {
                self.variables.entry(name.clone()).or_insert_with(|| env(name));
            }
            if upstream.aws_profile().is_some() {
                self.variables.entry(aws::REGION.to_owned()).or_insert_with(|| env(aws::REGION));
            }
        }
        self
    }

    /// The table.
    pub fn table(&self) -> &ModelTable {
        &self.table
    }

    /// Whether the model called `name` runs on a server or has its weights here.
    pub fn has_weights(&self, name: &str) -> bool {
        self.table.model(name).is_some_and(|spec| {
            let embedded = || self.embedded.as_ref().is_some_and(|embedded| embedded.has_weights(spec));
            spec.provider != Provider::Embedded || embedded()
        })
    }

    /// The chat model called `name` in the table.
    ///
    /// # Errors
    /// [`ModelError::NotConfigured`] if it does not exist, or its key or weights are missing.
    pub fn chat(&self, name: &str) -> Result<Arc<dyn ChatModel>, ModelError> {
        let mut open = self.chat.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = open.get(name) {
            return Ok(Arc::clone(model));
        }
        let model = self.open_chat(name)?;
        open.insert(name.to_owned(), Arc::clone(&model));
        Ok(model)
    }

    /// The embedding model called `name` in the table.
    ///
    /// # Errors
    /// [`ModelError::NotConfigured`] if it does not exist, or its key or weights are missing.
    pub fn embedding(&self, name: &str) -> Result<Arc<dyn EmbeddingModel>, ModelError> {
        let mut open = self.embedding.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = open.get(name) {
            return Ok(Arc::clone(model));
        }
        let model = self.open_embedding(name)?;
        open.insert(name.to_owned(), Arc::clone(&model));
        Ok(model)
    }

    /// The server of the model called `name` in the table, for requests that are forwarded unchanged.
    ///
    /// # Errors
    /// [`ModelError::NotConfigured`] if there is no such model, it has no server, or its key file contains no key.
    pub fn target(&self, name: &str) -> Result<UpstreamTarget, ModelError> {
        let spec = self.spec(name)?;
        let server = server(name, spec.provider)?;
        // If the variable is not set, clients must send their own key.
        let key = match &spec.api_key_file {
            Some(_) => self.key(name, spec)?,
            None => self.key(name, spec).ok().flatten(),
        };
        let base_url = self.expand(name, base_url(spec))?;
        let key = key.filter(|_| spec.aws_profile.is_none()).map(|key| (key_header(spec, server), key));
        let endpoint = HttpEndpoint::new(Arc::clone(&self.http), name, &base_url, key, &[])?;
        let endpoint = match &spec.aws_profile {
            Some(profile) => self.signed(endpoint, profile)?,
            None => endpoint,
        };
        Ok(UpstreamTarget::new(endpoint, spec.provider))
    }

    /// The server for models outside the table; `upstream` is one of those passed to [`Models::with_upstreams`].
    ///
    /// # Errors
    /// [`ModelError::NotConfigured`] when its address or its key cannot be used.
    pub fn upstream(&self, upstream: &Upstream) -> Result<UpstreamTarget, ModelError> {
        let Upstream { provider, base_url, key } = upstream;
        let name = provider.as_str();
        let server = server(name, *provider)?;
        let key = match key {
            None => None,
            Some(KeySource::File(file)) => Some(
                Secret::from_file(&self.folder.join(file))
                    .map_err(|error| unset(name, &error.to_string()))?,
            ),
            Some(KeySource::Environment(variable)) => Some(self.required(name, variable)?),
            Some(KeySource::Aws(_)) => None,
        };
        let key = key.map(|key| (server.key_header, key));
        let endpoint = HttpEndpoint::new(Arc::clone(&self.http), name, base_url, key, &[])?;
        let endpoint = match upstream.aws_profile() {
            Some(profile) => self.signed(endpoint, profile)?,
            None => endpoint,
        };
        Ok(UpstreamTarget::new(endpoint, *provider))
    }

    fn open_chat(&self, name: &str) -> Result<Arc<dyn ChatModel>, ModelError> {
        let spec = self.spec(name)?;
        if spec.can(Capability::Embedding) {
            return Err(unset(name, "it is an embedding model and cannot answer prompts"));
        }
        let model: Arc<dyn ChatModel> = match spec.provider {
            Provider::OpenAi => Arc::new(OpenAiModel::new(self.endpoint(name, spec)?, settings(spec))),
            Provider::Anthropic => Arc::new(Anthropic::new(self.endpoint(name, spec)?, settings(spec))),
            Provider::Bedrock => Arc::new(Converse::new(self.endpoint(name, spec)?, settings(spec))),
            Provider::Replay => {
                Arc::new(Replay::new(self.folder.join(spec.folder.as_deref().unwrap_or_default())))
            }
            Provider::Embedded => self.embedded(name)?.chat(spec)?,
        };
        Ok(if spec.provider.is_remote() { Arc::new(Self::resilient(name, spec, model)) } else { model })
    }

    fn resilient<M: ?Sized>(name: &str, spec: &ModelSpec, model: Arc<M>) -> Resilient<M> {
        let policy = RetryPolicy { retries: spec.retries, ..RetryPolicy::default() };
        Resilient::new(name, model, policy, random_jitter())
    }

    fn open_embedding(&self, name: &str) -> Result<Arc<dyn EmbeddingModel>, ModelError> {
        let spec = self.spec(name)?;
        let Some(dimensions) = spec.dimensions.filter(|_| spec.can(Capability::Embedding)) else {
            return Err(unset(name, "it is not an embedding model"));
        };
        let model: Arc<dyn EmbeddingModel> = match spec.provider {
            Provider::OpenAi => {
                let endpoint = self.endpoint(name, spec)?;
                Arc::new(OpenAiEmbeddings::new(endpoint, &spec.id, dimensions, spec.timeout, settings(spec)))
            }
            Provider::Bedrock => {
                let endpoint = self.endpoint(name, spec)?;
                Arc::new(TitanEmbeddings::new(endpoint, &spec.id, dimensions, spec.timeout))
            }
            Provider::Embedded => return self.embedded(name)?.embedding(spec),
            Provider::Anthropic | Provider::Replay => {
                return Err(unset(name, "its provider has no embedding models"));
            }
        };
        Ok(Arc::new(Self::resilient(name, spec, model)))
    }

    fn spec(&self, name: &str) -> Result<&ModelSpec, ModelError> {
        self.table.model(name).ok_or_else(|| unset(name, "larder.toml does not define this model"))
    }

    fn embedded(&self, name: &str) -> Result<&dyn EmbeddedModels, ModelError> {
        self.embedded.as_deref().ok_or_else(|| {
            unset(
                name,
                "this build of Larder has no embedded model: it was built without the feature `local`",
            )
        })
    }

    fn endpoint(&self, name: &str, spec: &ModelSpec) -> Result<HttpEndpoint, ModelError> {
        let server = server(name, spec.provider)?;
        let base_url = self.expand(name, base_url(spec))?;
        if let Some(profile) = self.signing_profile(spec) {
            let endpoint = HttpEndpoint::new(Arc::clone(&self.http), name, &base_url, None, server.headers)?;
            return self.signed(endpoint, profile);
        }
        let key = self.key(name, spec)?.map(|key| (key_header(spec, server), key));
        HttpEndpoint::new(Arc::clone(&self.http), name, &base_url, key, server.headers)
    }

    /// The AWS profile whose credentials sign the requests to a model: the one that the table names, or where no key is
    /// named or set, the usual sources.
    fn signing_profile<'s>(&self, spec: &'s ModelSpec) -> Option<&'s str> {
        let has_key = || {
            let is_set = default_key(spec).is_some_and(|name| self.variable(name).is_some());
            is_set || spec.api_key_env.is_some() || spec.api_key_file.is_some()
        };
        let usual = (spec.provider == Provider::Bedrock && !has_key()).then_some(aws::USUAL);
        spec.aws_profile.as_deref().or(usual)
    }

    /// An endpoint whose requests are signed with the credentials of a profile.
    fn signed(&self, endpoint: HttpEndpoint, profile: &str) -> Result<HttpEndpoint, ModelError> {
        let region = aws::region(endpoint.base()).or_else(|| self.variable(aws::REGION));
        let region = region.unwrap_or(aws::DEFAULT_REGION);
        let signer = AwsSigner::new(Arc::clone(&self.http), profile, region);
        let signer = signer.map_err(|why| unset(endpoint.name(), &why))?;
        Ok(endpoint.with_signer(signer))
    }

    /// The key of a model; `None` if the table names none.
    fn key(&self, name: &str, spec: &ModelSpec) -> Result<Option<Secret>, ModelError> {
        if let Some(file) = &spec.api_key_file {
            let key = Secret::from_file(&self.folder.join(file));
            return key.map(Some).map_err(|error| unset(name, &error.to_string()));
        }
        let Some(variable) = spec.api_key_env.as_deref().or_else(|| default_key(spec)) else {
            return Ok(None);
        };
        self.required(name, variable).map(Some)
    }

    /// One error for each model that cannot be asked because its key, or a part of its server's address, is an environment
    /// variable that is not set. Key files are not read.
    pub fn unset_variables(&self) -> Vec<ModelError> {
        let reached = self.table.models().filter(|(_, spec)| spec.provider.info().server.is_some());
        let problem = |(name, spec): (&str, &ModelSpec)| {
            let has_other_key = spec.api_key_file.is_some() || self.signing_profile(spec).is_some();
            let without_key = || if has_other_key { None } else { self.key(name, spec).err() };
            self.expand(name, base_url(spec)).err().or_else(without_key)
        };
        reached.filter_map(problem).collect()
    }

    fn required(&self, name: &str, variable: &str) -> Result<Secret, ModelError> {
        self.variable(variable).and_then(Secret::new).ok_or_else(|| {
            unset(
                name,
                &format!("no key: set the environment variable {variable}, or a key file in larder.toml"),
            )
        })
    }

    fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name)?.as_deref().filter(|value| !value.is_empty())
    }

    /// `text` with each `${NAME:-default}` replaced by the variable, or the default where that is not set.
    fn expand(&self, model: &str, text: &str) -> Result<String, ModelError> {
        let mut expanded = String::with_capacity(text.len());
        for piece in pieces(text) {
            match piece {
                AddressPiece::Text(text) => expanded.push_str(text),
                AddressPiece::Variable { name, default } => {
                    let value = self.variable(name).or(default).ok_or_else(|| {
                        unset(
                            model,
                            &format!("base_url needs the environment variable {name}, which is not set"),
                        )
                    })?;
                    expanded.push_str(value);
                }
            }
        }
        Ok(expanded)
    }
}

/// The address of a model's server, before its variables are filled in; empty for models inside this process.
fn base_url(spec: &ModelSpec) -> &str {
    let own = spec.provider.info().server.map_or("", |server| server.base_url);
    spec.base_url.as_deref().unwrap_or(own)
}

/// The header that carries the key of a model.
fn key_header(spec: &ModelSpec, server: ServerInfo) -> &str {
    spec.key_header.as_deref().unwrap_or(server.key_header)
}

/// The variable with the key of the provider's own servers. Never sent to any other address.
fn default_key(spec: &ModelSpec) -> Option<&'static str> {
    let own = spec.base_url.is_none() && spec.api_key_file.is_none();
    spec.provider.info().server.filter(|_| own).map(|server| server.key_env)
}

/// How to reach the servers of a provider.
fn server(name: &str, provider: Provider) -> Result<ServerInfo, ModelError> {
    provider
        .info()
        .server
        .ok_or_else(|| unset(name, "the model has no server that requests could be sent to"))
}

fn settings(spec: &ModelSpec) -> ProviderSettings {
    ProviderSettings { capabilities: spec.capabilities.clone(), extra_body: spec.extra_body.clone() }
}

fn unset(model: &str, detail: &str) -> ModelError {
    ModelError::NotConfigured { provider: model.to_owned(), detail: detail.to_owned() }
}

enum AddressPiece<'t> {
    Text(&'t str),
    Variable { name: &'t str, default: Option<&'t str> },
}

/// The parts of a text with `${NAME}` and `${NAME:-default}`.
fn pieces(mut text: &str) -> Vec<AddressPiece<'_>> {
    let mut pieces = Vec::new();
    while let Some((before, rest)) = text.split_once("${") {
        let Some((inside, after)) = rest.split_once('}') else { break };
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        pieces.push(AddressPiece::Text(before));
        pieces.push(AddressPiece::Variable { name, default });
        text = after;
    }
    pieces.push(AddressPiece::Text(text));
    pieces
}

#[cfg(test)]
#[path = "connect_tests.rs"]
mod tests;
