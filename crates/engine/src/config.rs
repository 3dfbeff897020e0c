//! Reads settings from flags, the environment, `larder.toml` and defaults, in this order (C86), and records the origin of
//! each value.
//!
//! Unknown keys are errors with a suggestion; all problems of a file are reported together. Which settings exist is
//! declared in [`crate::settings`]; the `[models]` table belongs to `larder-models`.

mod catalogue;
mod error;
mod home;
mod inspect;
mod learned;
mod mcp;
mod places;
mod policy;
mod servers;
mod slots;
mod vault;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use larder_core::recipe::{Layer, Recipe};
use larder_models::catalogue::Catalogue;
use larder_models::table::{DEFAULT_TABLE, ModelTable};
use larder_store::Retention;
use serde::Serialize;

pub use self::catalogue::{catalogue_file, install_catalogue, remove_catalogue};
pub use self::error::ConfigError;
pub use self::home::{DEFAULT_HOME, home_setting};
pub use self::inspect::InspectedConfig;
pub use self::learned::{
    BUDGETS, LearnedValue, Standing, UnusableRevision, budget_key, factor_change, factor_in, factor_in_key,
    is_window, tool_caps_value, window_key,
};
use self::places::KeyPlaces;
pub use self::slots::SlotCap;
use crate::rehydrate::RehydrationLimits;
use crate::settings::spec::{SettingSection, SettingSpec};
use crate::settings::{
    self, AskSettings, CompressionSettings, GatewaySettings, REMOVED, RetentionSettings, RunPolicy,
    ToolSettings, TurnLimits,
};

/// The name of the file in a project folder.
pub const FILE: &str = "larder.toml";

/// Environment lookup, injected so that nothing else reads the environment.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SettingOrigin {
    /// The default; nothing sets it.
    Default,
    /// The file, at this line.
    File {
        /// The file.
        path: String,
        /// From 1.
        line: usize,
    },
    /// An environment variable.
    Environment {
        /// Its name.
        name: String,
    },
    /// The command line.
    Flag,
    /// Learned at run time, in this revision or an earlier one.
    Revision {
        /// The revision in use.
        number: u64,
    },
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{path}:{line}"),
            Self::Environment { name } => write!(f, "${name}"),
            Self::Flag => f.write_str("command line"),
            Self::Revision { number } => write!(f, "revision {number}"),
        }
    }
}

/// One setting as `larder config` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Setting {
    /// Its key, as in the file.
    pub key: String,
    /// Its value.
    pub value: String,
    /// Where the value comes from.
    pub origin: SettingOrigin,
    /// Environment variables that set it, in order of precedence.
    pub env: &'static [&'static str],
    /// Older keys that the file may use.
    pub aliases: &'static [&'static str],
    /// What it does, in sentences.
    pub help: &'static str,
}

/// The diagnostic code of problems in settings.
const CODE: &str = "L070";

/// One problem of a settings file, in the shape of a recipe's diagnostics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SettingProblem {
    /// Stable across versions.
    pub code: &'static str,
    /// Always `error`.
    pub severity: &'static str,
    /// The file.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// How to fix it; empty if the message suffices.
    pub help: String,
}

impl fmt::Display for SettingProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, file, line, column, message, help, .. } = self;
        write!(f, "error[{code}]: {message}\n  --> {file}:{line}:{column}")?;
        if help.is_empty() { Ok(()) } else { write!(f, "\n  help: {help}") }
    }
}

/// All settings with their values and origins.
#[derive(Debug, Clone)]
pub struct Config {
    home: Setting,
    settings: Vec<Setting>,
    models: ModelTable,
    /// Learned windows, by the id of the model.
    windows: BTreeMap<String, usize>,
    /// Learned factors of estimates, in parts per million, by their keys.
    factors: BTreeMap<String, u64>,
    /// The path of the file, and the place of each key in it.
    path: String,
    places: KeyPlaces,
}

impl Config {
    /// The settings without any file, flag or environment variable.
    pub fn builtin() -> Self {
        #[allow(clippy::expect_used, reason = "an empty file has no problems, and a test reads it")]
        Self::of_text(
            "",
            FILE,
            home_setting(None, Path::new("."), &|_| None),
            &Catalogue::built_in(),
            &|_| None,
        )
        .expect("an empty file has no problems")
    }

    /// Overrides one setting from the command line.
    ///
    /// # Errors
    /// If there is no such setting, or the value is illegal.
    pub fn with_flag(mut self, key: &'static str, value: &str) -> Result<Self, ConfigError> {
        let spec = settings::all().find(|spec| spec.key == key);
        let place = self.settings.iter_mut().find(|setting| setting.key == key);
        match (spec, place) {
            (Some(spec), Some(place)) if (spec.accepts)(value) => {
                *place = setting(spec, value, SettingOrigin::Flag);
                Ok(self)
            }
            (spec, _) => {
                let like = spec.map(|spec| spec.example()).unwrap_or_default();
                Err(ConfigError::Flag { key, value: value.to_owned(), like })
            }
        }
    }

    /// Where the store is.
    pub fn home(&self) -> &Path {
        Path::new(&self.home.value)
    }

    /// The model table.
    pub fn models(&self) -> &ModelTable {
        &self.models
    }

    /// The policy of every run.
    pub fn policy(&self) -> RunPolicy {
        let gateway: GatewaySettings = self.section();
        let rehydration =
            RehydrationLimits { rounds: gateway.rehydrate_rounds, tokens: gateway.rehydrate_tokens };
        RunPolicy { rehydration, ..self.section() }
    }

    /// `token_budget.total`, in tokens, of recipes that declare none.
    pub fn default_context_budget(&self) -> usize {
        self.section::<CompressionSettings>().default_context_budget
    }

    /// How long renditions written by a model are cached.
    pub fn compaction_ttl(&self) -> Duration {
        self.section::<CompressionSettings>().cache_ttl
    }

    /// How `larder ask` answers.
    pub fn asking(&self) -> AskSettings {
        AskSettings { limits: self.section(), ..self.section() }
    }

    /// The settings of the gateway.
    pub fn gateway(&self) -> GatewaySettings {
        self.section()
    }

    /// What tools may do.
    pub fn tools(&self) -> ToolSettings {
        ToolSettings { mcp: self.mcp_servers(), private: self.private_paths(), ..self.section() }
    }

    /// The limits of a turn.
    pub fn turn_limits(&self) -> TurnLimits {
        self.section()
    }

    /// How long and how much the store keeps.
    pub fn retention(&self) -> Retention {
        let settings: RetentionSettings = self.section();
        let days = |days: u32| Duration::from_secs(u64::from(days) * 86_400);
        Retention {
            originals: settings.originals.0.map(days),
            transcripts: settings.transcripts.0.map(days),
            records: settings.records.0.map(days),
            conversations: settings.conversations.0.map(days),
            max_bytes: settings.max_gb.0,
        }
    }

    fn section<S: SettingSection>(&self) -> S {
        S::read(&|key| self.value(key))
    }

    /// Every setting, for display.
    pub fn settings(&self) -> Vec<Setting> {
        let mut all = vec![self.home.clone()];
        all.extend(self.settings.iter().cloned());
        for (name, layer) in Layer::ALL {
            let resolved = self.models.resolve(layer, None);
            let key = format!("models.layers.{name}");
            let (value, origin) = match resolved {
                Some(resolved) => (resolved.name, self.origin_of(&key)),
                None => (UNBOUND, SettingOrigin::Default),
            };
            all.push(Setting {
                key,
                value: value.to_owned(),
                origin,
                env: &[],
                aliases: &[],
                help: LAYER_HELP,
            });
        }
        all.push(self.catalogue_setting());
        all
    }

    /// Where a layer's binding comes from: its own line, or that of the built-in table.
    fn origin_of(&self, key: &str) -> SettingOrigin {
        let place = self.places.find(key).or_else(|| self.places.find("models.table"));
        place
            .map_or(SettingOrigin::Default, |(line, _)| SettingOrigin::File { path: self.path.clone(), line })
    }

    /// Layers that these recipes need but no model is bound to, as problems in the file.
    pub fn unbound<'r>(&self, recipes: impl IntoIterator<Item = &'r Recipe>) -> Vec<SettingProblem> {
        let mut wanted: BTreeMap<Layer, Vec<String>> = BTreeMap::new();
        for recipe in
            recipes.into_iter().filter(|recipe| self.models.resolve(recipe.layer, recipe.mode).is_none())
        {
            wanted.entry(recipe.layer).or_default().push(recipe.id());
        }
        let (line, column) = self.places.find("models.layers").unwrap_or_else(|| self.places.get("models"));
        let problem = |(layer, recipes): (Layer, Vec<String>)| SettingProblem {
            code: CODE,
            severity: "error",
            file: self.path.clone(),
            line,
            column,
            message: format!(
                "layer {} is bound to no model; needed by {}",
                layer.as_str(),
                recipes.join(", ")
            ),
            help: format!(
                "bind it under [models.layers], or start from a table that ships, with `table = \"{DEFAULT_TABLE}\"` \
                 under [models]"
            ),
        };
        wanted.into_iter().map(problem).collect()
    }

    fn value(&self, key: &str) -> Option<&str> {
        self.settings.iter().find(|setting| setting.key == key).map(|setting| setting.value.as_str())
    }
}

/// The value shown for a layer without a model.
const UNBOUND: &str = "(unbound)";
const LAYER_HELP: &str = "Model that is bound to this layer.";

fn setting(spec: &SettingSpec, value: &str, origin: SettingOrigin) -> Setting {
    let SettingSpec { key, env, aliases, help, .. } = *spec;
    Setting { key: key.to_owned(), value: value.to_owned(), origin, env, aliases, help }
}

fn resolve_one(
    spec: &SettingSpec,
    file: &[(String, String, usize)],
    path: &str,
    env: Env<'_>,
) -> Result<Setting, ConfigError> {
    for name in spec.env {
        if let Some(value) = env(name) {
            let name = (*name).to_owned();
            if !(spec.accepts)(&value) {
                return Err(ConfigError::Environment { name, value, key: spec.key, like: spec.example() });
            }
            return Ok(setting(spec, &value, SettingOrigin::Environment { name }));
        }
    }
    let stated = file.iter().find(|(key, ..)| key == spec.key);
    Ok(match stated {
        Some((_, value, line)) => {
            setting(spec, value, SettingOrigin::File { path: path.to_owned(), line: *line })
        }
        None => setting(spec, &(spec.default)(), SettingOrigin::Default),
    })
}

/// The settings of the file as key, value and line. Everything else in it becomes a problem.
fn read_tables(
    text: &str,
    path: &str,
    places: &KeyPlaces,
    problems: &mut Vec<SettingProblem>,
) -> Vec<(String, String, usize)> {
    let mut found = Vec::new();
    // A file that is not TOML has already been reported with the models.
    let Ok(table) = text.parse::<toml::Table>() else { return found };
    let mut report = |key: &str, message: String, help: String| {
        let (line, column) = places.get(key);
        let file = path.to_owned();
        problems.push(SettingProblem { code: CODE, severity: "error", file, line, column, message, help });
    };
    let mut stated = Vec::new();
    for (name, value) in table.iter().filter(|(name, _)| *name != "models") {
        match value {
            toml::Value::Table(table) if settings::is_table(name) || name == slots::TABLE => {
                flatten(name, table, &mut stated)
            }
            _ => report(name, format!("unknown table or key {name}"), settings::suggest(name)),
        }
    }
    let (servers, stated): (Vec<_>, Vec<_>) =
        stated.into_iter().partition(|(full, _)| full.starts_with(mcp::PREFIX));
    let servers: Vec<mcp::Stated> = servers
        .into_iter()
        .map(|(full, value)| (full.clone(), text_of(value), places.get(&full).0))
        .collect();
    for (key, message, help) in mcp::problems(&servers, mcp::empty(&table)) {
        report(&key, message, help);
    }
    found.extend(servers);
    let (caps, stated): (Vec<_>, Vec<_>) =
        stated.into_iter().partition(|(full, _)| full.starts_with(slots::PREFIX));
    let caps: Vec<slots::Stated> =
        caps.into_iter().map(|(full, value)| (full.clone(), text_of(value), places.get(&full).0)).collect();
    for (key, message, help) in slots::problems(&caps) {
        report(&key, message, help);
    }
    found.extend(caps);
    for (full, value) in stated {
        let text = text_of(value);
        if let Some(gone) = REMOVED.iter().find(|gone| gone.key == full) {
            report(&full, format!("{full} is gone: {}", gone.why), gone.fix.to_owned());
            continue;
        }
        match settings::find(&full) {
            None => report(&full, format!("unknown setting {full}"), settings::suggest(&full)),
            Some(spec) if !spec.form.is_of(value) || !(spec.accepts)(&text) => {
                for (key, value) in error::wrong_values(spec, &full, text) {
                    let help = format!("use a value such as {}", spec.example_in_file());
                    report(&key, format!("{key} cannot be {value}"), help);
                }
            }
            Some(spec) => {
                let (line, _) = places.get(&full);
                // The first entry of a setting applies, so its own name precedes the older ones.
                let at = if full == spec.key { 0 } else { found.len() };
                found.insert(at, (spec.key.to_owned(), text, line));
            }
        }
    }
    found
}

/// Every value of a table by its dotted key.
fn flatten<'t>(path: &str, table: &'t toml::Table, stated: &mut Vec<(String, &'t toml::Value)>) {
    for (key, value) in table {
        let full = format!("{path}.{key}");
        match value {
            toml::Value::Table(inner) if settings::find(&full).is_none() => flatten(&full, inner, stated),
            other => stated.push((full, other)),
        }
    }
}

/// A value as settings read it.
fn text_of(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
