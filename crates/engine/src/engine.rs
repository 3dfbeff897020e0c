//! The state shared by runs: one project, its models and one user's store. Knows nothing of how a recipe is run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use larder_core::output::Schemas;
use larder_core::recipe::{Mode, Recipe, RecipeError};
use larder_models::connect::Models;
use larder_models::table::ModelSpec;
use larder_store::{KeyId, UserStore};
use larder_text::family::OTHER_TOKENIZER;
use larder_text::tokens::{Counter, DEFAULT_TOKENIZER, Label, Registry};
use tokio::time::Instant;

use crate::background::LONGEST_WAIT;
use crate::compression_recipes::{self, MissingRecipe};
use crate::metrics::{NoopSink, RunMetricsSink};
use crate::project::Project;
use crate::recipe_tools::RecipeTools;
use crate::settings::RunPolicy;

/// Loads tokenizers from files, by the name in a model's `tokenizer` field.
pub type LoadCounter = dyn Fn(&str) -> Option<Counter> + Send + Sync;

/// The state shared by all runs of one user: a project, its models, the user's store and the policy. Clones are
/// cheap.
#[derive(Clone)]
pub struct Engine {
    /// Recipes and prompts.
    pub project: Arc<Project>,
    /// Models by layer.
    pub models: Arc<Models>,
    /// The user's store.
    pub store: UserStore,
    /// Policy settings.
    pub policy: RunPolicy,
    pub(crate) schemas: Arc<Schemas>,
    /// The built-in recipes, for names that the project does not define.
    pub(crate) cookbook: Arc<OnceLock<Project>>,
    tokenizers: Arc<Tokenizers>,
    /// Receives a report of every run.
    pub(crate) metrics: Arc<dyn RunMetricsSink>,
    /// Carries out what the models of recipes call.
    pub(crate) tools: Option<Arc<dyn RecipeTools>>,
    /// The key whose budget pays for what is done behind runs.
    pub payer: Option<KeyId>,
    /// Whether no one waits for the runs.
    pub(crate) is_background: bool,
    /// Until when others go first, in the background.
    pub(crate) patient_until: Option<Instant>,
}

/// Counters by name, each looked up once.
struct Tokenizers {
    registry: Registry,
    load: Box<LoadCounter>,
    counters: Mutex<BTreeMap<String, Counter>>,
}

impl Engine {
    /// Creates an engine. `load` finds tokenizers missing from the registry, such as the one inside a model's
    /// weights.
    ///
    /// # Errors
    /// If the policy lets a model condense and a content type has no compression recipe.
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
            tools: None,
            payer: None,
            is_background: false,
            patient_until: None,
        };
        if engine.policy.use_llm_summarizer {
            compression_recipes::check(|name| engine.recipe_or_builtin(name))?;
        }
        Ok(engine)
    }

    /// The same engine with another user's store.
    #[must_use]
    pub fn for_user(&self, store: UserStore) -> Self {
        Self { store, ..self.clone() }
    }

    /// The same engine, with jobs behind its runs at the expense of a key.
    #[must_use]
    pub fn paid_by(self, payer: Option<KeyId>) -> Self {
        Self { payer, ..self }
    }

    /// The same engine for work that no one waits for, and which has waited for so long already.
    #[must_use]
    pub fn in_background(self, waited: Duration) -> Self {
        let patience = LONGEST_WAIT.saturating_sub(waited);
        Self { is_background: true, patient_until: Some(Instant::now() + patience), ..self }
    }

    /// The same engine, reporting to `metrics`.
    #[must_use]
    pub fn with_metrics(self, metrics: Arc<dyn RunMetricsSink>) -> Self {
        Self { metrics, ..self }
    }

    /// The same engine, whose runs call the tools that their recipes name; `None`: they call none.
    #[must_use]
    pub fn with_tools(self, tools: Option<Arc<dyn RecipeTools>>) -> Self {
        Self { tools, ..self }
    }

    /// Whether its runs call tools.
    pub fn calls_tools(&self) -> bool {
        self.tools.is_some()
    }

    /// A recipe of the project, or of the cookbook if the project has none with that name.
    ///
    /// # Errors
    /// If it does not exist or has errors.
    pub fn recipe_or_builtin(&self, name: &str) -> Result<&Recipe, RecipeError> {
        match self.project.recipe(name) {
            Err(RecipeError::NotFound { .. }) => self.cookbook().recipe(name),
            found => found,
        }
    }

    /// What ships: recipes, prompts and conversation types for names that the project does not define.
    pub fn cookbook(&self) -> &Project {
        self.cookbook.get_or_init(|| self.project.cookbook(&Counter::cl100k()))
    }

    /// A recipe of the project by its name, or by its role in a mode; otherwise the built-in one.
    ///
    /// # Errors
    /// If it does not exist or has errors.
    pub fn find(&self, name: &str, mode: Option<Mode>) -> Result<&Recipe, RecipeError> {
        fn find<'p>(project: &'p Project, name: &str, mode: Option<Mode>) -> Result<&'p Recipe, RecipeError> {
            project.recipe(name).or_else(|error| match mode {
                Some(mode) => project.recipe_for_mode(name, mode).map_err(|_| error),
                None => Err(error),
            })
        }
        // Commands rely on built-in recipes, whether or not the project has recipes of its own.
        match find(&self.project, name, mode) {
            Err(error @ RecipeError::NotFound { .. }) if self.project.root().is_some() => {
                find(self.cookbook(), name, mode).map_err(|builtin| self.not_found(name, error, builtin))
            }
            found => found,
        }
    }

    /// The error of a name that neither the project nor the cookbook has, with the nearest names of both.
    fn not_found(&self, name: &str, own: RecipeError, builtin: RecipeError) -> RecipeError {
        let is_misspelled = |project: &Project| project.check().recipes.nearest(name).is_some();
        if is_misspelled(&self.project) {
            return own;
        }
        if is_misspelled(self.cookbook()) || own.help().is_empty() {
            return builtin;
        }
        let help = format!("{}; built in: {}", own.help(), builtin.help());
        RecipeError::NotFound { name: name.to_owned(), help }
    }

    /// The counter of sizes that no model is asked for, such as those that a recipe allots to its prompt. What it counted
    /// before costs it nothing.
    pub fn sizes(&self) -> Counter {
        self.tokenizers.registry.by_name(DEFAULT_TOKENIZER).unwrap_or_default()
    }

    /// The counter for a model: the tokenizer named in its table entry, otherwise the one registered for its id.
    pub fn counter(&self, spec: &ModelSpec) -> Counter {
        match spec.tokenizer.as_deref() {
            Some(name) => self.tokenizers.registry.for_pictures(&self.tokenizers.named(name), &spec.id),
            None => self.known_counter(&spec.id),
        }
    }

    /// The counter for a model id: by its family, otherwise, if the catalogue has the model, by what holds for every
    /// vocabulary that was measured, otherwise a bound.
    fn known_counter(&self, id: &str) -> Counter {
        let registry = &self.tokenizers.registry;
        let id = self.models.table().catalogue().counted_as(id);
        let counter = registry.for_model(id);
        let other = || registry.by_name(OTHER_TOKENIZER).ok();
        match counter.label() {
            Label::Bounded if self.models.table().catalogue().find(id).is_some() => {
                other().unwrap_or(counter)
            }
            _ => counter,
        }
    }

    /// The counter for a model that is not in the table, by its provider's id: if its vocabulary is
    /// unknown too, an estimate is more useful than a bound.
    pub fn counter_of_id(&self, id: &str) -> Counter {
        let counter = self.known_counter(id);
        if counter.label() == Label::Bounded { self.tokenizers.registry.unknown() } else { counter }
    }

    /// Whether the tokens of the model with a provider's id are estimated by the estimate of this name: one learned
    /// correction applies to no other.
    pub fn estimates_by(&self, id: &str, estimate: &str) -> bool {
        let mut of_table = self.models.table().models().filter(|(_, spec)| spec.id == id).peekable();
        match of_table.peek() {
            None => self.counter_of_id(id).estimate_name() == estimate,
            Some(_) => of_table.any(|(_, spec)| self.counter(spec).estimate_name() == estimate),
        }
    }
}

impl Tokenizers {
    fn named(&self, name: &str) -> Counter {
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(counter) = counters.get(name) {
            return counter.clone();
        }
        let found = self.registry.by_name(name).ok().or_else(|| (self.load)(name));
        // A tokenizer that cannot be loaded is replaced by the bound that holds for every byte-level vocabulary.
        let counter = found.unwrap_or_else(Counter::bytes);
        counters.insert(name.to_owned(), counter.clone());
        counter
    }
}
