//! The engine: one project, its models and one user's store, put together. Everything above it calls only this.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use larder_condense::Condensed;
use larder_core::output::Schemas;
use larder_core::pack::Rendition;
use larder_core::recipe::{Recipe, RecipeError};
use larder_models::connect::Models;
use larder_models::table::ModelSpec;
use larder_store::UserStore;
use larder_text::tokens::{Counter, Label, Registry};

use crate::condensing::{self, MissingRecipe};
use crate::executor::{NoopSink, ReducedText, RunMetricsSink};
use crate::project::Project;

/// Loads tokenizers that are files: by the name a model's `tokenizer` gives.
pub type LoadCounter = dyn Fn(&str) -> Option<Counter> + Send + Sync;

/// A project with its models and one user's store. Clones share all but the store.
#[derive(Clone)]
pub struct Engine {
    /// Recipes and prompts.
    pub project: Arc<Project>,
    /// Models by layer.
    pub models: Arc<Models>,
    /// What persists.
    pub store: UserStore,
    /// Policy settings.
    pub policy: RunPolicy,
    pub(crate) schemas: Arc<Schemas>,
    /// The recipes that ship, for what a project does not bring itself.
    pub(crate) cookbook: Arc<OnceLock<Project>>,
    tokenizers: Arc<Tokenizers>,
    /// Told of every run, whoever starts it.
    pub(crate) metrics: Arc<dyn RunMetricsSink>,
}

/// Counters by name, found once.
struct Tokenizers {
    registry: Registry,
    load: Box<LoadCounter>,
    counters: Mutex<BTreeMap<String, Counter>>,
}

/// How long a model may condense for one run, when the settings do not say.
pub const DEFAULT_SUMMARIZER_TIMEOUT: Duration = Duration::from_secs(120);

/// The share of its tokens to which a prompt is condensed though it fits, when the settings do not say (R0-30.3).
pub const DEFAULT_COMPRESSION_THRESHOLD: f64 = 0.9;
/// Tokens that this must save, when the settings do not say (R0-30.6).
pub const DEFAULT_COMPRESSION_SAVINGS: usize = 500;

/// Settings that hold for every run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunPolicy {
    /// Whether a NERVES model may condense; otherwise the deterministic condensers do (R3-4.20).
    pub use_llm_summarizer: bool,
    /// How long a model may condense for one run; what is not done then is condensed by rule (C46).
    pub summarizer_timeout: Duration,
    /// Whether anything is condensed at all; counting and refusal stay when it is off (C50).
    pub compression_enabled: bool,
    /// A prompt that fits but takes more than this share of its tokens is condensed to it, by rule (C19).
    pub compression_threshold: f64,
    /// Tokens that this must save; what does not fit is condensed whatever it saves (C25).
    pub min_compression_savings: usize,
}

impl Default for RunPolicy {
    fn default() -> Self {
        Self {
            use_llm_summarizer: false,
            summarizer_timeout: DEFAULT_SUMMARIZER_TIMEOUT,
            compression_enabled: true,
            compression_threshold: DEFAULT_COMPRESSION_THRESHOLD,
            min_compression_savings: DEFAULT_COMPRESSION_SAVINGS,
        }
    }
}

impl Engine {
    /// Puts an engine together. `load` finds tokenizers that the registry does not know, such as the one inside a
    /// model's weights.
    ///
    /// # Errors
    /// When the policy lets a model condense and a content type has no compression recipe (C40).
    pub fn new(
        project: Project,
        models: Models,
        store: UserStore,
        policy: RunPolicy,
        load: Box<LoadCounter>,
    ) -> Result<Self, MissingRecipe> {
        let tokenizers = Tokenizers { registry: Registry::builtin(), load, counters: Mutex::default() };
        let engine = Self {
            project: Arc::new(project),
            models: Arc::new(models),
            store,
            policy,
            schemas: Arc::default(),
            cookbook: Arc::default(),
            tokenizers: Arc::new(tokenizers),
            metrics: Arc::new(NoopSink),
        };
        if engine.policy.use_llm_summarizer {
            condensing::check(|name| engine.recipe_or_builtin(name))?;
        }
        Ok(engine)
    }

    /// The same project, models and policy over the store of another user.
    #[must_use]
    pub fn for_user(&self, store: UserStore) -> Self {
        Self { store, ..self.clone() }
    }

    /// The same, with all that it does told to `metrics`.
    #[must_use]
    pub fn with_metrics(self, metrics: Arc<dyn RunMetricsSink>) -> Self {
        Self { metrics, ..self }
    }

    /// Tells the metrics of a text that was condensed without a run.
    pub fn condensed(&self, condensed: &Condensed, took: Duration) {
        if condensed.tokens < condensed.original_tokens {
            let (before, after) = (condensed.original_tokens, condensed.tokens);
            self.metrics.text_condensed(ReducedText { to: Rendition::Condensed, before, after }, took);
        }
    }

    /// A recipe of the project, or of the cookbook where the project has none of that name.
    ///
    /// # Errors
    /// When there is none, or it has errors.
    pub fn recipe_or_builtin(&self, name: &str) -> Result<&Recipe, RecipeError> {
        match self.project.recipe(name) {
            Err(RecipeError::NotFound { .. }) => {
                self.cookbook.get_or_init(|| Project::builtin(&Counter::cl100k())).recipe(name)
            }
            found => found,
        }
    }

    /// The counter of a model: the tokenizer its table entry names, else the one registered for its id.
    pub fn counter(&self, spec: &ModelSpec) -> Counter {
        self.tokenizers.of(spec.tokenizer.as_deref(), &spec.id)
    }

    /// The counter of a model that the table does not know, by its provider's id: its window is a guess, so where its
    /// vocabulary is not known either, an estimate serves better than a bound.
    pub fn counter_of_id(&self, id: &str) -> Counter {
        let counter = self.tokenizers.registry.for_model(id);
        if counter.label() == Label::Bounded { self.tokenizers.registry.unknown() } else { counter }
    }
}

impl Tokenizers {
    fn of(&self, name: Option<&str>, id: &str) -> Counter {
        let Some(name) = name else { return self.registry.for_model(id) };
        self.registry.for_pictures(&self.named(name), id)
    }

    fn named(&self, name: &str) -> Counter {
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(counter) = counters.get(name) {
            return counter.clone();
        }
        let found = self.registry.by_name(name).ok().or_else(|| (self.load)(name));
        // A tokenizer that cannot be had is replaced by the bound that holds for every byte-level vocabulary.
        let counter = found.unwrap_or_else(Counter::bytes);
        counters.insert(name.to_owned(), counter.clone());
        counter
    }
}
