//! The engine: one project, its models and one user's store, put together. Everything above it calls only this.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use larder_core::output::Schemas;
use larder_core::tokens::{Counter, Registry};
use larder_models::connect::Models;
use larder_models::table::ModelSpec;
use larder_store::UserStore;

use crate::project::Project;

/// Loads tokenizers that are files: by the name a model's `tokenizer` gives.
pub type LoadCounter = dyn Fn(&str) -> Option<Counter> + Send + Sync;

/// A project with its models and one user's store.
pub struct Engine {
    /// Recipes and prompts.
    pub project: Project,
    /// Models by layer.
    pub models: Models,
    /// What persists.
    pub store: UserStore,
    /// Policy settings.
    pub policy: Policy,
    pub(crate) schemas: Schemas,
    registry: Registry,
    load: Box<LoadCounter>,
    counters: Mutex<BTreeMap<String, Counter>>,
}

/// Settings that hold for every run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Whether a NERVES model may condense; otherwise the deterministic condensers do (R3-4.20).
    pub use_llm_summarizer: bool,
    /// Whether anything is condensed at all; counting and refusal stay when it is off (C50).
    pub compression_enabled: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self { use_llm_summarizer: false, compression_enabled: true }
    }
}

impl Engine {
    /// Puts an engine together. `load` finds tokenizers that the registry does not know, such as the one inside a
    /// model's weights.
    pub fn new(
        project: Project,
        models: Models,
        store: UserStore,
        policy: Policy,
        load: Box<LoadCounter>,
    ) -> Self {
        Self {
            project,
            models,
            store,
            policy,
            schemas: Schemas::default(),
            registry: Registry::builtin(),
            load,
            counters: Mutex::default(),
        }
    }

    /// The counter of a model: the tokenizer its table entry names, else the one registered for its id.
    pub fn counter(&self, spec: &ModelSpec) -> Counter {
        let Some(name) = &spec.tokenizer else { return self.registry.for_model(&spec.id) };
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(counter) = counters.get(name) {
            return counter.clone();
        }
        let found = self.registry.by_name(name).ok().or_else(|| (self.load)(name));
        // A tokenizer that cannot be had is replaced by the bound that holds for every byte-level vocabulary.
        let counter = found.unwrap_or_else(Counter::bytes);
        counters.insert(name.clone(), counter.clone());
        counter
    }
}
