//! TOML → [`ModelTable`], with every problem and its place. Knows no provider.

mod catalogue;
mod checks;
mod prices;
mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use larder_text::Layer;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{
    Binding, Capability, DEFAULT_RETRIES, DEFAULT_TABLE, DEFAULT_TIMEOUT_MS, ModelSpec, ModelTable, Problems,
    Provider, SHIPPED, TableProblemCode,
};
use crate::catalogue::Catalogue;
use crate::price::Prices;
use walk::{Span, TableWalk};

/// Keys of `[models]` that are not models.
const TABLE_KEYS: [&str; 4] = ["table", "use_alternative", "layers", CATALOGUE];
/// The key of the table with single models of the catalogue.
const CATALOGUE: &str = "catalogue";
const BINDING_KEYS: [&str; 6] =
    ["model", "code_model", "alternative", "temperature", "thinking_budget", "target_ms"];
const MODEL_KEYS: [&str; 21] = [
    "provider",
    "base_url",
    "id",
    "tokenizer",
    "window",
    "input_limit",
    "max_output",
    "temperature",
    "prices",
    "capabilities",
    "timeout_ms",
    "retries",
    "fallback",
    "api_key_env",
    "api_key_file",
    "key_header",
    "aws_profile",
    "dimensions",
    "folder",
    "size",
    "extra_body",
];
/// Fields of a request body that are Larder's own, since the budget rests on them.
const OWN_FIELDS: [&str; 15] = [
    "model",
    "messages",
    "system",
    "tools",
    "input",
    "max_tokens",
    "max_completion_tokens",
    "stream",
    "stream_options",
    "response_format",
    "n",
    "encoding_format",
    "inferenceConfig",
    "toolConfig",
    "outputConfig",
];
/// Highest temperature accepted by any provider.
const MAX_TEMPERATURE: f64 = 2.0;
/// Maximum sensible number of retries; more belong in a queue.
const MAX_RETRIES: u64 = 10;
/// Longest time for a call: one day.
const MAX_TIMEOUT_MS: u64 = 24 * 60 * 60 * 1_000;
/// Largest window that a table may state.
const MAX_WINDOW: u64 = 1 << 30;

/// A model whose keys are still being read; later keys override those of the built-in table it starts from.
#[derive(Default)]
struct ModelDraft {
    span: Span,
    /// The keys that the file gives, with legal values or not.
    stated: BTreeSet<String>,
    provider: Option<Provider>,
    base_url: Option<String>,
    id: Option<String>,
    tokenizer: Option<String>,
    window: Option<usize>,
    states_window: bool,
    input_limit: Option<usize>,
    max_output: Option<u32>,
    temperature: Option<f32>,
    prices: Option<Prices>,
    capabilities: BTreeSet<Capability>,
    timeout_ms: Option<u64>,
    retries: Option<u32>,
    fallback: Option<String>,
    api_key_env: Option<String>,
    api_key_file: Option<String>,
    key_header: Option<String>,
    aws_profile: Option<String>,
    dimensions: Option<usize>,
    folder: Option<String>,
    size: Option<String>,
    extra_body: serde_json::Map<String, serde_json::Value>,
}

pub(super) fn table(source: &str, catalogue: &Catalogue) -> Result<ModelTable, Problems> {
    let mut walk = TableWalk::new(source);
    let table = walk.parse().and_then(|document| read(&mut walk, &document, catalogue));
    let problems = walk.into_problems();
    match table {
        Some(table) if problems.0.is_empty() => Ok(table),
        _ => Err(problems),
    }
}

fn read(walk: &mut TableWalk<'_>, document: &DeTable<'_>, catalogue: &Catalogue) -> Option<ModelTable> {
    let Some(value) = document.get("models") else {
        return ModelTable::shipped_with(DEFAULT_TABLE, catalogue);
    };
    let models = walk.table("models", value)?;
    let overrides = models.get(CATALOGUE).map(|value| catalogue::read(walk, value));
    let catalogue = &overrides.map_or_else(|| catalogue.clone(), |given| catalogue.with_overrides(given));
    if models.keys().all(|key| key.get_ref().as_ref() == CATALOGUE) {
        return ModelTable::shipped_with(DEFAULT_TABLE, catalogue);
    }
    let base = models.get("table").and_then(|value| shipped(walk, value, catalogue));
    let mut table = base.unwrap_or(ModelTable {
        layers: BTreeMap::new(),
        models: BTreeMap::new(),
        use_alternative: false,
        catalogue: catalogue.clone(),
    });
    if let Some(value) = models.get("use_alternative") {
        table.use_alternative = walk.boolean("use_alternative", value).unwrap_or_default();
    }
    for (name, value) in models {
        let key = name.get_ref().as_ref();
        if TABLE_KEYS.contains(&key) {
            continue;
        }
        // Layers under a misspelled name are no model that lacks everything.
        if value.get_ref().as_table().is_none_or(names_layers) {
            walk.unknown_key(name, "[models]", &TABLE_KEYS);
            continue;
        }
        let start = table.models.remove(key).map_or_else(ModelDraft::default, ModelDraft::from);
        let mut draft = model(walk, key, value, ModelDraft { span: name.span(), ..start })?;
        draft.complete(&table.catalogue);
        if let Some(spec) = draft.finish(walk, key, &table.catalogue) {
            table.models.insert(key.to_owned(), spec);
        } else {
            walk.broken_model(key);
        }
    }
    if let Some(value) = models.get("layers") {
        layers(walk, value, &mut table);
    }
    checks::names(walk, &table, models);
    Some(table)
}

fn names_layers(table: &DeTable<'_>) -> bool {
    let mut names = table.keys().map(|name| name.get_ref().as_ref());
    !table.is_empty() && names.all(|name| Layer::ALL.iter().any(|(layer, _)| *layer == name))
}

fn shipped(
    walk: &mut TableWalk<'_>,
    value: &Spanned<DeValue<'_>>,
    catalogue: &Catalogue,
) -> Option<ModelTable> {
    let name = walk.string("table", value)?;
    let table = ModelTable::shipped_with(&name, catalogue);
    if table.is_none() {
        let names: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
        walk.unknown_name(TableProblemCode::M005, value.span(), "table", &name, &names);
    }
    table
}

fn layers(walk: &mut TableWalk<'_>, value: &Spanned<DeValue<'_>>, table: &mut ModelTable) {
    let Some(layers) = walk.table("layers", value) else { return };
    for (name, value) in layers {
        let layer = Layer::ALL.iter().find(|(layer, _)| *layer == name.get_ref().as_ref());
        let Some(&(_, layer)) = layer else {
            walk.unknown_name(
                TableProblemCode::M005,
                name.span(),
                "layer",
                name.get_ref(),
                &Layer::ALL.map(|(name, _)| name),
            );
            continue;
        };
        if let Some(binding) = binding(walk, value, table.layers.remove(&layer)) {
            table.layers.insert(layer, binding);
        }
    }
}

/// `MIND = "name"` or `MIND = { model = "name", … }`; the second form keeps the keys it does not mention.
fn binding(
    walk: &mut TableWalk<'_>,
    value: &Spanned<DeValue<'_>>,
    start: Option<Binding>,
) -> Option<Binding> {
    let bare = |model| Binding {
        model,
        code_model: None,
        alternative: None,
        temperature: None,
        thinking_budget: None,
        target: None,
    };
    if let Some(name) = value.get_ref().as_str() {
        return Some(bare(name.to_owned()));
    }
    let table = walk.table("a layer", value)?;
    let mut binding = start.unwrap_or_else(|| bare(String::new()));
    for (name, value) in table {
        match name.get_ref().as_ref() {
            "model" => binding.model = walk.string("model", value).unwrap_or_default(),
            "code_model" => binding.code_model = walk.string("code_model", value),
            "alternative" => binding.alternative = walk.string("alternative", value),
            "temperature" => binding.temperature = temperature(walk, value),
            "thinking_budget" => {
                binding.thinking_budget = walk.integer("thinking_budget", value, 1..=MAX_WINDOW);
            }
            "target_ms" => {
                binding.target =
                    walk.integer("target_ms", value, 1..=MAX_TIMEOUT_MS).map(Duration::from_millis);
            }
            _ => walk.unknown_key(name, "a layer", &BINDING_KEYS),
        }
    }
    if binding.model.is_empty() && !table.contains_key("model") {
        walk.problem(
            TableProblemCode::M004,
            value.span(),
            "the layer names no `model`",
            "add `model = \"…\"`",
        );
        return None;
    }
    Some(binding)
}

fn model(
    walk: &mut TableWalk<'_>,
    name: &str,
    value: &Spanned<DeValue<'_>>,
    mut draft: ModelDraft,
) -> Option<ModelDraft> {
    let table = walk.table(name, value)?;
    for (key, value) in table {
        draft.stated.insert(key.get_ref().to_string());
        match key.get_ref().as_ref() {
            "provider" => draft.provider = provider(walk, value),
            "base_url" => draft.base_url = walk.string("base_url", value),
            "id" => draft.id = walk.string("id", value),
            "tokenizer" => draft.tokenizer = walk.string("tokenizer", value),
            "window" => {
                draft.window = walk.integer("window", value, 1..=MAX_WINDOW);
                draft.states_window = true;
            }
            "input_limit" => draft.input_limit = walk.integer("input_limit", value, 1..=MAX_WINDOW),
            "max_output" => draft.max_output = walk.integer("max_output", value, 0..=MAX_WINDOW),
            "temperature" => draft.temperature = temperature(walk, value),
            "prices" => draft.prices = prices::read(walk, value),
            "capabilities" => draft.capabilities = capabilities(walk, value),
            "timeout_ms" => draft.timeout_ms = walk.integer("timeout_ms", value, 1..=MAX_TIMEOUT_MS),
            "retries" => draft.retries = walk.integer("retries", value, 0..=MAX_RETRIES),
            "fallback" => draft.fallback = walk.string("fallback", value),
            "api_key_env" => draft.api_key_env = walk.variable(value),
            "api_key_file" => draft.api_key_file = walk.string("api_key_file", value),
            "key_header" => draft.key_header = walk.string("key_header", value),
            "aws_profile" => draft.aws_profile = walk.string("aws_profile", value),
            "dimensions" => draft.dimensions = walk.integer("dimensions", value, 1..=MAX_WINDOW),
            "folder" => draft.folder = walk.string("folder", value),
            "size" => draft.size = walk.string("size", value),
            "extra_body" => extra_body(walk, value, &mut draft.extra_body),
            "api_key" | "key" | "token" => walk.problem(
                TableProblemCode::M007,
                key.span(),
                "larder.toml must not contain a key",
                "put it into an environment variable and name that with `api_key_env`, or into a file and name that \
                 with `api_key_file`",
            ),
            _ => walk.unknown_key(key, &format!("[models.{name}]"), &MODEL_KEYS),
        }
    }
    Some(draft)
}

fn provider(walk: &mut TableWalk<'_>, value: &Spanned<DeValue<'_>>) -> Option<Provider> {
    let name = walk.string("provider", value)?;
    let found = Provider::from_name(&name);
    if found.is_none() {
        let names = Provider::ALL.map(Provider::as_str);
        walk.unknown_name(TableProblemCode::M003, value.span(), "provider", &name, &names);
    }
    found
}

fn temperature(walk: &mut TableWalk<'_>, value: &Spanned<DeValue<'_>>) -> Option<f32> {
    let number = walk.decimal("temperature", value)?.parse::<f64>().ok();
    let good = number.filter(|number| (0.0..=MAX_TEMPERATURE).contains(number));
    if good.is_none() {
        let message = format!("`temperature` is a number from 0 to {MAX_TEMPERATURE}");
        walk.problem(TableProblemCode::M003, value.span(), message, "");
    }
    good.map(|number| number as f32)
}

fn capabilities(walk: &mut TableWalk<'_>, value: &Spanned<DeValue<'_>>) -> BTreeSet<Capability> {
    let mut capabilities = BTreeSet::new();
    let Some(items) = value.get_ref().as_array() else {
        let help = "write a list, such as `capabilities = [\"json_schema\", \"streaming\"]`";
        walk.problem(TableProblemCode::M003, value.span(), "`capabilities` is not a list", help);
        return capabilities;
    };
    for item in items.iter() {
        let Some(name) = walk.string("a capability", item) else { continue };
        match Capability::NAMES.iter().find(|(capability, _)| *capability == name) {
            Some((_, capability)) => {
                capabilities.insert(*capability);
            }
            None => walk.unknown_name(
                TableProblemCode::M003,
                item.span(),
                "capability",
                &name,
                &Capability::NAMES.map(|(name, _)| name),
            ),
        }
    }
    capabilities
}

fn extra_body(
    walk: &mut TableWalk<'_>,
    value: &Spanned<DeValue<'_>>,
    body: &mut serde_json::Map<String, serde_json::Value>,
) {
    let Some(table) = walk.table("extra_body", value) else { return };
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        if OWN_FIELDS.contains(&name) {
            let message = format!("`extra_body` may not set `{name}`: Larder sets it from the recipe");
            walk.problem(TableProblemCode::M006, key.span(), message, "remove it");
        } else if let Some(json) = walk.json(value) {
            body.insert(name.to_owned(), json);
        }
    }
}

impl From<ModelSpec> for ModelDraft {
    fn from(spec: ModelSpec) -> Self {
        Self {
            stated: BTreeSet::new(),
            span: 0..0,
            provider: Some(spec.provider),
            base_url: spec.base_url,
            id: Some(spec.id),
            tokenizer: spec.tokenizer,
            window: Some(spec.window),
            states_window: spec.states_window,
            input_limit: spec.input_limit,
            max_output: Some(spec.max_output),
            temperature: spec.temperature,
            prices: spec.prices,
            capabilities: spec.capabilities,
            timeout_ms: u64::try_from(spec.timeout.as_millis()).ok(),
            retries: Some(spec.retries),
            fallback: spec.fallback,
            api_key_env: spec.api_key_env,
            api_key_file: spec.api_key_file,
            key_header: spec.key_header,
            aws_profile: spec.aws_profile,
            dimensions: spec.dimensions,
            folder: spec.folder,
            size: spec.size,
            extra_body: spec.extra_body,
        }
    }
}

impl ModelDraft {
    /// Takes what the settings leave out from the catalogue, for models that a server has.
    fn complete(&mut self, catalogue: &Catalogue) {
        let missing = self.window.is_none() || self.max_output.is_none() || self.prices.is_none();
        // A misspelt provider is a problem of its own.
        let is_remote = self.provider.is_none_or(Provider::is_remote);
        let id = self.id.as_deref().filter(|_| missing && is_remote);
        let Some(entry) = id.and_then(|id| catalogue.find(id)) else { return };
        let tokens = |tokens: u64| usize::try_from(tokens).ok();
        if let Some(limits) = entry.limits {
            let window = tokens(limits.window);
            self.states_window |= self.window.is_none() && entry.states_window;
            self.window = self.window.or(window);
            if self.window == window {
                self.input_limit = self.input_limit.or(limits.input_limit().and_then(tokens));
            }
        }
        let fits =
            |output: &u64| self.window.zip(tokens(*output)).is_some_and(|(window, output)| output < window);
        let output = entry.row.max_output.filter(fits).and_then(|output| u32::try_from(output).ok());
        self.max_output = self.max_output.or(output);
        self.prices = self.prices.take().or_else(|| entry.prices());
        self.dimensions = self.dimensions.or(entry.row.dimensions.and_then(tokens));
    }

    fn finish(self, walk: &mut TableWalk<'_>, name: &str, catalogue: &Catalogue) -> Option<ModelSpec> {
        checks::model(walk, name, &self, catalogue);
        Some(ModelSpec {
            provider: self.provider?,
            base_url: self.base_url,
            id: self.id?,
            tokenizer: self.tokenizer,
            window: self.window?,
            states_window: self.states_window,
            input_limit: self.input_limit,
            max_output: self.max_output.unwrap_or(0),
            temperature: self.temperature,
            prices: self.prices,
            capabilities: self.capabilities,
            timeout: Duration::from_millis(self.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS)),
            retries: self.retries.unwrap_or(DEFAULT_RETRIES),
            fallback: self.fallback,
            api_key_env: self.api_key_env,
            api_key_file: self.api_key_file,
            key_header: self.key_header,
            aws_profile: self.aws_profile,
            dimensions: self.dimensions,
            folder: self.folder,
            size: self.size,
            extra_body: self.extra_body,
        })
    }
}
