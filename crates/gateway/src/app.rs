//! The state behind every route: what lasts for the life of the process, and what a reload replaces atomically. Knows
//! no wire format.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use larder_agent::turn::Turns;
use larder_agent::turn::background::Background;
use larder_conversation::catalog::TypeCatalog;
use larder_conversation::{Conversations, Past};
use larder_engine::Engine;
use larder_engine::config::{Config, Setting};
use larder_engine::project::Project;
use larder_engine::settings::GatewaySettings;
use larder_proxy::record::Endpoint;
use larder_store::{Documents, Job, Store, StoreError, UserDocuments, UserStore};
use larder_text::cache::BoundedCache;
use larder_tools::DenyAll;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use crate::auth::{Auth, Caller};
use crate::caches::RequestCaches;
use crate::error::RequestError;
use crate::jobs;
use crate::key_files::KeyFiles;
use crate::limits::Admission;
use crate::model_budget::ModelBudget;
use crate::model_route::{Route, Routes};
use crate::problem::Problem;
use crate::recorder::Recorder;
use crate::replies::RunningReplies;
use crate::revisions::RevisedSettings;
use crate::storage_health::StorageHealth;
use crate::telemetry::Telemetry;
use crate::turns::{RunningTurns, TurnTools};
use crate::warming::Warmth;

/// Revisions of learned values that are kept in memory: conversations under way may still use older ones.
const REVISIONS: usize = 64;
/// Routes that are kept in memory: finding one reads the catalogue, which takes longer than all else about a small request.
const ROUTES: usize = 256;
/// The longest name of a model, in bytes, whose route is kept. Clients choose the names.
const MAX_ROUTE_NAME: usize = 256;

/// Settings, and the engine built from them.
pub struct Loaded {
    /// All settings.
    pub config: Config,
    /// Recipes and models, over the store of any user.
    pub engine: Engine,
}

impl Loaded {
    /// The files with providers' keys in their current state; to be captured before anything reads them.
    fn key_files(&self) -> KeyFiles {
        KeyFiles::look(self.engine.models.key_files(&self.config.gateway().upstreams()))
    }
}

/// Reads settings, recipes and models. Errors list every problem as text.
pub type Load = dyn Fn() -> Result<Loaded, String> + Send + Sync;

/// Everything that a reload replaces, as a unit. A request takes one snapshot and keeps it to its end.
pub struct Snapshot {
    /// All settings.
    pub config: Config,
    /// Those of the gateway.
    pub gateway: GatewaySettings,
    /// The routing of requests.
    pub routes: Routes,
    engine: Engine,
    /// The conversation types of its project, once one is asked for.
    types: OnceLock<Arc<TypeCatalog>>,
    /// What is kept in memory of the persons who take part in conversations.
    past: Arc<Past>,
    /// What turns may call.
    tools: TurnTools,
    revised: BoundedCache<u64, Arc<RevisedSettings>>,
    /// Routes by endpoint, requested model, revision and whether long context is asked for.
    found: BoundedCache<(Endpoint, String, u64, bool), Arc<Route>>,
}

impl Snapshot {
    fn new(loaded: Loaded) -> Result<Self, String> {
        let Loaded { config, engine } = loaded;
        let gateway = config.gateway();
        let routes = Routes::new(&config, &gateway, &engine)?;
        let tools = TurnTools::new(&config)?;
        let (revised, found) = (BoundedCache::new(REVISIONS), BoundedCache::new(ROUTES));
        Ok(Self {
            config,
            gateway,
            routes,
            engine,
            types: OnceLock::new(),
            past: Arc::default(),
            tools,
            revised,
            found,
        })
    }

    /// The engine over one user's store.
    pub fn engine(&self, store: &UserStore) -> Engine {
        self.engine.for_user(store.clone())
    }

    /// Every usable conversation type. Blocks the first time.
    pub fn types(&self) -> &Arc<TypeCatalog> {
        self.types.get_or_init(|| Arc::new(TypeCatalog::of(&self.engine)))
    }

    /// The conversations of an engine's user.
    fn conversations(&self, engine: Engine) -> Conversations {
        let embedding = self.config.conversation_embedding().map(str::to_owned);
        let (types, past) = (Arc::clone(self.types()), Arc::clone(&self.past));
        Conversations { engine, types, embedding, past }
    }

    /// The settings as a revision of learned values makes them.
    ///
    /// # Errors
    /// When the store fails.
    pub fn revised(&self, store: &Store, number: u64) -> Result<Arc<RevisedSettings>, StoreError> {
        if let Some(revised) = self.revised.get(&number) {
            return Ok(revised);
        }
        let revised = Arc::new(RevisedSettings::read(&self.config, store, number)?);
        self.revised.insert(number, Arc::clone(&revised));
        Ok(revised)
    }

    /// The route of a request for `model`, with prompts fitted as a revision of learned values has it, in the model's longest
    /// window if the request [asks for it](crate::model_route::asks_for_long_context).
    ///
    /// # Errors
    /// If no model with that name supports the request's dialect.
    pub fn route(
        &self,
        endpoint: Endpoint,
        model: &str,
        revised: &RevisedSettings,
        is_long: bool,
    ) -> Result<Arc<Route>, RequestError> {
        let key = (endpoint, model.to_owned(), revised.number, is_long);
        if let Some(route) = self.found.get(&key) {
            return Ok(route);
        }
        let route = self.routes.find(endpoint, model, self.shared())?.revised(revised);
        let route = Arc::new(if is_long { route.with_long_context() } else { route });
        if model.len() <= MAX_ROUTE_NAME {
            self.found.insert(key, Arc::clone(&route));
        }
        Ok(route)
    }

    /// The same, with every run reported to the metrics.
    fn with_metrics(self, telemetry: &Telemetry) -> Self {
        Self { engine: self.engine.with_metrics(telemetry.metrics.clone()), ..self }
    }

    /// Recipes and models for any caller.
    pub const fn shared(&self) -> &Engine {
        &self.engine
    }
}

/// The gateway's state.
pub struct App {
    /// What persists, of all users.
    pub store: Store,
    /// The documents of all users; their location is fixed when the gateway starts.
    pub documents: Documents,
    /// Running turns.
    pub running_turns: Arc<RunningTurns>,
    /// Replies that are being written.
    pub running_replies: RunningReplies,
    /// Checks keys and their budgets.
    pub auth: Auth,
    /// Totals, metrics, traces.
    pub telemetry: Telemetry,
    /// Cancelled when the gateway starts to shut down.
    pub stop: CancellationToken,
    /// The early erasures at which the log of writes was emptied last.
    pub(crate) emptied: AtomicU64,
    /// Which models are loaded.
    pub warmth: Warmth,
    /// Whether the store can write.
    pub storage: Arc<StorageHealth>,
    /// Caches shared between requests.
    pub(crate) caches: RequestCaches,
    /// Writes the records of requests.
    pub(crate) recorder: Recorder,
    /// Limits concurrent requests and the memory for their bodies.
    pub(crate) admission: Admission,
    /// Whether it was started on an address reachable from other machines; a reload does not change that.
    exposed: bool,
    load: Box<Load>,
    current: RwLock<Arc<Snapshot>>,
    /// Files with providers' keys, as they were before they were read last.
    keys: RwLock<KeyFiles>,
    /// Why the last reload was refused.
    refused: RwLock<Option<String>>,
}

/// A gateway that cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Settings or recipes are wrong.
    #[error("{0}")]
    Load(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] larder_store::StoreError),
    /// Traces cannot be sent.
    #[error(transparent)]
    Otel(#[from] crate::otel::OtelError),
    /// The system cannot start a thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

impl App {
    /// Puts a gateway together. To be called inside the runtime.
    ///
    /// # Errors
    /// When something that it needs is wrong or missing.
    pub fn new(store: Store, load: Box<Load>) -> Result<Arc<Self>, StartError> {
        let loaded = load().map_err(StartError::Load)?;
        let keys = loaded.key_files();
        let snapshot = Snapshot::new(loaded).map_err(StartError::Load)?;
        let gateway = &snapshot.gateway;
        let otel = gateway.otlp_endpoint.as_deref().map(crate::otel::Otel::new).transpose()?;
        let telemetry = Telemetry::new(store.now(), otel);
        let stop = CancellationToken::new();
        let storage = Arc::new(StorageHealth::default());
        Ok(Arc::new(Self {
            documents: Documents::open(&store, &snapshot.config.document_place())?,
            running_turns: Arc::new(RunningTurns::new(stop.clone())),
            running_replies: RunningReplies::default(),
            warmth: Warmth::default(),
            auth: Auth::new(store.clone())?,
            stop,
            emptied: AtomicU64::default(),
            caches: RequestCaches::default(),
            recorder: Recorder::start(store.clone(), Arc::clone(&storage), Arc::clone(&telemetry.metrics))?,
            storage,
            admission: Admission::new(gateway.max_requests, gateway.max_body_bytes),
            exposed: !gateway.listen.ip().is_loopback(),
            current: RwLock::new(Arc::new(snapshot.with_metrics(&telemetry))),
            keys: RwLock::new(keys),
            telemetry,
            refused: RwLock::default(),
            load,
            store,
        }))
    }

    /// The current settings, routes and engine.
    pub fn current(&self) -> Arc<Snapshot> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether every request needs a key, by settings and address; `None`: as soon as a key was ever created.
    pub fn keys_required(&self) -> Option<bool> {
        self.current().gateway.keys_required().or(self.exposed.then_some(true))
    }

    /// Rereads everything and, if nothing is wrong, applies it from the next request on. Blocks.
    pub fn reload(&self) {
        let refused = match self.read() {
            Ok(snapshot) => {
                let is_kept_otherwise = snapshot.config.retention() != self.current().config.retention();
                *self.current.write().unwrap_or_else(PoisonError::into_inner) =
                    Arc::new(snapshot.with_metrics(&self.telemetry));
                tracing::warn!("settings and recipes were reloaded");
                if is_kept_otherwise && let Err(error) = jobs::collect_soon(self) {
                    tracing::error!(%error, "the new retention takes effect within the hour");
                }
                None
            }
            Err(problems) => {
                tracing::error!(
                    "the reload was rejected, and the previous settings and recipes remain in effect:\n{problems}"
                );
                Some(problems)
            }
        };
        *self.refused.write().unwrap_or_else(PoisonError::into_inner) = refused;
    }

    /// Rereads everything. A server that was usable before and no longer is is rejected like any other mistake: its
    /// key file may have been read half-written.
    fn read(&self) -> Result<Snapshot, String> {
        // What cannot be loaded is not read once more before something changes.
        self.looked(KeyFiles::look_again);
        let loaded = (self.load)()?;
        self.looked(|_| loaded.key_files());
        let snapshot = Snapshot::new(loaded)?;
        let lost = snapshot.routes.lost(&self.current().routes).join("\n");
        if lost.is_empty() { Ok(snapshot) } else { Err(lost) }
    }

    /// Records the state of the key files.
    fn looked(&self, at: impl FnOnce(&KeyFiles) -> KeyFiles) {
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        *keys = at(&keys);
    }

    /// Whether a file with a provider's key has changed since it was read. Blocks.
    pub(crate) fn has_new_keys(&self) -> bool {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).have_changed()
    }

    /// Why the last reload was rejected; `None` if the files are in effect.
    pub fn refused(&self) -> Option<String> {
        self.refused.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What pages and the REST API look at.
impl App {
    /// The current recipes and prompts.
    pub fn project(&self) -> Arc<Project> {
        Arc::clone(&self.current().shared().project)
    }

    /// Every current setting, with its help and origin; what is learned is as new conversations use it.
    pub fn settings(&self) -> Vec<Setting> {
        match self.newest() {
            Some(newest) => newest.config().settings(),
            None => self.current().config.settings(),
        }
    }

    /// The settings as the newest revision of learned values makes them; `None` if it cannot be read.
    fn newest(&self) -> Option<Arc<RevisedSettings>> {
        let newest = self.store.revisions().newest();
        newest
            .and_then(|number| self.current().revised(&self.store, number))
            .inspect_err(|error| tracing::warn!(%error, "the newest revision of the settings cannot be read"))
            .ok()
    }

    /// The current token budget of each model, by name.
    pub fn budgets(&self) -> Vec<ModelBudget> {
        let (current, newest) = (self.current(), self.newest());
        let budget = |(name, spec): (&str, &larder_models::table::ModelSpec)| {
            let policy = current.routes.policy(name)?;
            let revised = newest.as_ref().map(|newest| policy.revised(&newest.policy, None));
            Some(ModelBudget::new(name, spec, revised.as_ref().unwrap_or(policy)))
        };
        let chats = |(_, spec): &(&str, &larder_models::table::ModelSpec)| spec.max_output > 0;
        current.routes.models().filter(chats).filter_map(budget).collect()
    }

    /// Bytes that the body of a request may have.
    pub fn max_body_bytes(&self) -> usize {
        self.current().gateway.max_body_bytes
    }

    /// Waits until a running or just completed request is recorded; returns at once for any other.
    pub fn recorded(&self, user: &str, id: &str) -> impl Future<Output = ()> + use<> {
        self.recorder.recorded(user, id)
    }

    /// The documents of one user. Blocks.
    ///
    /// # Errors
    /// They cannot be opened.
    pub fn documents_of(&self, store: &UserStore) -> Result<UserDocuments, StoreError> {
        self.documents.user(store.user())
    }

    /// What runs turns of this caller, as the settings are now. Blocks, too.
    ///
    /// # Errors
    /// Something that turns need cannot be opened.
    pub async fn turns(&self, caller: &Caller) -> Result<Turns, Problem> {
        let current = self.current();
        Ok(Turns {
            engine: current.engine(&caller.store).paid_by(caller.key.clone()),
            documents: self.documents.user(caller.store.user())?,
            tools: current.tools.get().await.map_err(|error| Problem::internal(&error))?,
            limits: current.config.turn_limits(),
            embedding: current.config.embedding().map(str::to_owned),
            // Over HTTP there is no one to ask, so dangerous calls are denied.
            confirm: Arc::new(DenyAll),
        })
    }

    /// The conversations of this caller, as the settings are now. Blocks.
    pub fn conversations(&self, caller: &Caller) -> Conversations {
        let current = self.current();
        current.conversations(current.engine(&caller.store).paid_by(caller.key.clone()))
    }

    /// What jobs behind the replies of a user work with, as the settings are now. Blocks.
    ///
    /// # Errors
    /// The user is being deleted, or the store fails.
    pub(crate) fn conversations_behind(&self, job: &Job) -> Result<Conversations, StoreError> {
        let current = self.current();
        let engine = current.engine(&self.user_of(job)?);
        Ok(current.conversations(engine.in_background(self.waited(job))))
    }

    /// What jobs behind the turns of a user work with, as the settings are now. Blocks.
    ///
    /// # Errors
    /// The user's documents cannot be opened.
    pub(crate) fn background(&self, job: &Job) -> Result<Background, StoreError> {
        let current = self.current();
        Ok(Background {
            engine: current.engine(&self.user_of(job)?).in_background(self.waited(job)),
            documents: self.documents.user(&job.user)?,
            embedding: current.config.embedding().map(str::to_owned),
        })
    }

    /// The store of a job's user, for this attempt. It fails if the user was forgotten since the job was claimed, which is gone
    /// then.
    fn user_of(&self, job: &Job) -> Result<UserStore, StoreError> {
        let store = self.store.user(&job.user)?.begun()?;
        store.jobs().get(job.id)?;
        Ok(store)
    }

    /// How long a job has been in the queue.
    fn waited(&self, job: &Job) -> Duration {
        Duration::from_millis(self.store.now().as_millis().saturating_sub(job.created.as_millis()))
    }

    /// Takes a slot for a concurrent request, held until it is dropped; `None` if all are taken.
    pub fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.admission.take()
    }
}
