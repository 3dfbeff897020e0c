//! The models a run may call, so that its maximum cost is known before it starts. Knows no budget.

use std::collections::{BTreeMap, BTreeSet};

use larder_condense::ContentType;
use larder_core::recipe::{Layer, Mode, Recipe};
use larder_models::chat::Usage;
use larder_models::price::{Billable, Prices, Rates, Usd};
use larder_models::table::{Capability, ModelSpec, ModelTable, Provider};

use crate::candidate::next_layer;
use crate::compression_recipes::recipe_name;
use crate::engine::Engine;

/// The most that one call of a recipe may use.
pub fn max_call_usage(recipe: &Recipe) -> Usage {
    let number = |tokens: usize| u64::try_from(tokens).unwrap_or(u64::MAX);
    let output = number(recipe.budget.output);
    Usage { input: number(recipe.budget.total).saturating_sub(output), output, ..Usage::default() }
}

/// Models that may be called, with their prices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelSet(BTreeMap<String, Option<Prices>>);

impl ModelSet {
    /// Whether no model is called.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first model, by name, without a price.
    pub fn unpriced(&self) -> Option<&str> {
        self.0.iter().find(|(_, prices)| prices.is_none()).map(|(name, _)| name.as_str())
    }

    /// The maximum cost of `tokens`: the most expensive kind of token at the most expensive model.
    pub fn max_cost(&self, tokens: u64) -> Usd {
        self.prices().map(|prices| prices.max_cost(tokens)).max().unwrap_or_default()
    }

    /// The most that a call which uses at most this costs, at the most expensive model.
    pub fn most(&self, max: &Usage) -> Usd {
        self.prices().map(|prices| prices.most(max, Billable::USUAL)).max().unwrap_or_default()
    }

    /// The names of the models, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    fn prices(&self) -> impl Iterator<Item = &Prices> {
        self.0.values().flatten()
    }

    /// Adds a model and its fallbacks. A model in this process is free unless the table sets a price.
    pub fn add(&mut self, table: &ModelTable, name: &str) {
        let mut next = Some(name);
        while let Some((name, spec)) = next.and_then(|name| Some((name, table.model(name)?))) {
            let free = (spec.provider == Provider::Embedded).then(|| Prices::flat(Rates::default()));
            if self.0.insert(name.to_owned(), spec.prices.clone().or(free)).is_some() {
                return;
            }
            next = spec.fallback.as_deref();
        }
    }

    /// Adds the model bound to a layer.
    pub fn add_layer(&mut self, table: &ModelTable, layer: Layer, mode: Option<Mode>) {
        if let Some(found) = table.resolve(layer, mode) {
            self.add(table, found.name);
        }
    }

    /// Adds the models of another set.
    pub fn join(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

/// Whether a server is on this machine.
fn is_local(address: &str) -> bool {
    let host = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = host.split(['/', '?']).next().unwrap_or_default();
    ["localhost", "127.0.0.1", "[::1]"]
        .iter()
        .any(|name| host.strip_prefix(name).is_some_and(|port| port.is_empty() || port.starts_with(':')))
}

impl Engine {
    /// The chat models that stay loaded, play a layer and cost nothing as far as is known, so that they may be loaded
    /// before anyone asks (R0-20.2). A server of a provider's own loads its models itself.
    pub fn hot_models(&self) -> Vec<String> {
        let table = self.models.table();
        let layers = Layer::ALL.into_iter().flat_map(|(_, layer)| {
            [None, Some(Mode::Code)].map(|mode| table.resolve(layer, mode)).into_iter().flatten()
        });
        let is_free = |spec: &ModelSpec| match &spec.prices {
            Some(prices) => prices.max_cost(1_000_000) == Usd::default(),
            None => spec.provider == Provider::Embedded || spec.base_url.as_deref().is_some_and(is_local),
        };
        let hot = layers.filter(|found| found.spec.can(Capability::AlwaysHot) && is_free(found.spec));
        let names: BTreeSet<String> = hot.map(|found| found.name.to_owned()).collect();
        names.into_iter().collect()
    }

    /// Every model that a run of `recipe` may call: that of its layer or of each tier of its router, that of the next layer for answers that fail
    /// their checks, those that condense for it, and the fallbacks of each.
    pub fn reachable_models(&self, recipe: &Recipe, mode: Option<Mode>) -> ModelSet {
        self.reachable_by(recipe, mode, None)
    }

    /// The same where a router may choose the tier, by a preset in place of the recipe's.
    pub fn reachable_by(&self, recipe: &Recipe, mode: Option<Mode>, preset: Option<&str>) -> ModelSet {
        let (table, mode) = (self.models.table(), mode.or(recipe.mode));
        let mut models = ModelSet::default();
        for layer in self.answering_layers(recipe, preset) {
            for layer in [Some(layer), next_layer(layer)].into_iter().flatten() {
                models.add_layer(table, layer, mode);
            }
        }
        if self.policy.use_llm_summarizer && self.policy.compression_enabled && recipe.compression.enabled {
            for name in ContentType::ALL.map(recipe_name) {
                let Ok(condenses) = self.recipe_or_builtin(name) else { continue };
                models.add_layer(table, condenses.layer, condenses.mode);
            }
        }
        models
    }
}

#[cfg(test)]
mod tests {
    use larder_models::connect::Models;
    use larder_store::{Store, StoreOptions};
    use larder_text::tokens::Counter;

    use super::*;
    use crate::project::Project;
    use crate::settings::RunPolicy;

    const TABLE: &str = "
[models.layers]
NERVES = \"small\"
MIND = \"big\"
VOICE = \"voice\"

[models.small]
provider = \"embedded\"
id = \"small\"
window = 8000
max_output = 1000
prices = { input = 1, output = 2 }

[models.big]
provider = \"embedded\"
id = \"big\"
window = 32000
max_output = 1000
prices = { input = 3, output = 6 }
fallback = \"spare\"

[models.spare]
provider = \"replay\"
folder = \"none\"
id = \"spare\"
window = 8000
max_output = 1000

[models.inside]
provider = \"embedded\"
id = \"inside\"
window = 8000
max_output = 1000

[models.voice]
provider = \"embedded\"
id = \"voice\"
window = 8000
max_output = 1000
prices = { input = 4, output = 5 }
";

    fn engine(home: &tempfile::TempDir) -> Engine {
        let models = Models::new(ModelTable::parse(TABLE).unwrap(), home.path(), &|_| None);
        let store = Store::open(home.path(), StoreOptions::default()).unwrap().user("ann").unwrap();
        let project = Project::builtin(&Counter::cl100k());
        Engine::new(project, models, store, RunPolicy::default(), Box::new(|_| None)).unwrap()
    }

    fn names(models: &ModelSet) -> Vec<&str> {
        models.names().collect()
    }

    #[test]
    fn a_run_may_call_the_next_layer_fallbacks_and_condensing_models() {
        let home = tempfile::tempdir().unwrap();
        let engine = engine(&home);
        let of = |engine: &Engine, name: &str| {
            engine.reachable_models(engine.recipe_or_builtin(name).unwrap(), None)
        };
        let answer = of(&engine, "ask/answer");
        assert_eq!(names(&answer), ["voice"], "nothing comes after the layer VOICE");
        assert_eq!(answer.unpriced(), None);
        assert_eq!(answer.max_cost(1_000_000).to_string(), "5", "as if all of them were the most expensive");
        let usage = Usage { input: 1_000_000, output: 1_000_000, ..Usage::default() };
        assert_eq!(answer.most(&usage).to_string(), "9");
        let summary = of(&engine, "pipeline/phase7_summarizer");
        assert_eq!(names(&summary), ["big", "small", "spare"]);
        assert_eq!(summary.unpriced(), Some("spare"));
        assert_eq!(summary.max_cost(1_000_000).to_string(), "6");
        let mut condensing = engine.clone();
        condensing.policy.use_llm_summarizer = true;
        assert_eq!(names(&of(&condensing, "ask/answer")), ["small", "voice"]);
    }

    #[test]
    fn a_model_in_this_process_needs_no_price() {
        let table = ModelTable::parse(TABLE).unwrap();
        let mut models = ModelSet::default();
        models.add(&table, "inside");
        assert_eq!((models.unpriced(), models.max_cost(1_000_000)), (None, Usd::default()));
        models.add(&table, "small");
        assert_eq!(models.max_cost(1_000_000).to_string(), "2", "a price in the table takes precedence");
        models.add(&table, "spare");
        assert_eq!(models.unpriced(), Some("spare"), "it does not run in this process");
    }
}
