//! Settings: `larder.toml`, environment and flags in layers, where every value knows where it comes from.
//!
//! Precedence: flag, environment, file, default (C86). Unknown keys are errors with a suggestion; all problems of a
//! file are reported at once. The `[models]` table belongs to `larder-models`.

mod gateway;
mod known;
mod places;
mod servers;
mod tools;
mod turns;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use larder_core::recipe::{Layer, Recipe};
use larder_models::table::{DEFAULT_TABLE, ModelTable};
use serde::Serialize;

pub use self::gateway::Gateway;
use self::known::{Known, known, nearest};
use self::places::Places;
use crate::engine::{
    DEFAULT_COMPRESSION_SAVINGS, DEFAULT_COMPRESSION_THRESHOLD, DEFAULT_SUMMARIZER_TIMEOUT, Policy,
};
use crate::project::DEFAULT_CONTEXT_BUDGET;
use crate::settings::{AnswerMode, AskLimits, Asking, Planner};

/// The name of the file in a project folder.
pub const FILE: &str = "larder.toml";
/// How long condensed forms are cached (R0-30.5).
const COMPRESSION_CACHE_TTL: Duration = Duration::from_secs(300);

/// Environment lookup, injected so that nothing else reads the environment.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Nobody set it.
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
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{path}:{line}"),
            Self::Environment { name } => write!(f, "${name}"),
            Self::Flag => f.write_str("command line"),
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
    /// Where that comes from.
    pub origin: Origin,
    /// Environment variables that set it; the first is its name, the others are older ones.
    pub env: &'static [&'static str],
    /// Older names of its key that the file may use.
    pub aliases: &'static [&'static str],
    /// What it does.
    pub help: &'static str,
}

/// The stable code of problems in settings, beside those of recipes.
const CODE: &str = "L070";

/// One problem of a settings file, in the shape of a recipe's diagnostics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
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
    /// How to fix it; empty where the message says it all.
    pub help: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, file, line, column, message, help, .. } = self;
        write!(f, "error[{code}]: {message}\n  --> {file}:{line}:{column}")?;
        if help.is_empty() { Ok(()) } else { write!(f, "\n  help: {help}") }
    }
}

/// Settings that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file has problems; all of them.
    #[error("{}", list(.0))]
    Problems(Vec<Problem>),
    /// The command line gives a setting what it cannot be.
    #[error("{key} cannot be {value:?}; see `larder config`")]
    Flag {
        /// The setting.
        key: &'static str,
        /// The value.
        value: String,
    },
    /// An environment variable holds what its setting cannot be.
    #[error("${name} is {value:?}, which {key} cannot be; unset it or give a value like {like}")]
    Environment {
        /// The variable.
        name: String,
        /// Its value.
        value: String,
        /// The setting.
        key: &'static str,
        /// A legal value.
        like: &'static str,
    },
}

fn list(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// All settings, resolved.
#[derive(Debug, Clone)]
pub struct Config {
    home: Setting,
    settings: Vec<Setting>,
    models: ModelTable,
    /// Where the file is, and the place of each of its keys.
    path: String,
    places: Places,
}

impl Config {
    /// The settings without any file, flag or environment.
    pub fn builtin() -> Self {
        #[allow(clippy::expect_used, reason = "an empty file has no problems, and a test reads it")]
        Self::resolve("", FILE, None, Path::new("."), &|_| None).expect("an empty file has no problems")
    }

    /// Reads the settings of the project in `dir` with `home` from the command line.
    pub fn load(dir: Option<&Path>, home: Option<&Path>, env: Env<'_>) -> Result<Self, ConfigError> {
        let folder = dir.unwrap_or(Path::new("."));
        let path = folder.join(FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(source) => return Err(ConfigError::Read { path, source }),
        };
        Self::resolve(&text, &path.to_string_lossy(), home, folder, env)
    }

    fn resolve(
        text: &str,
        path: &str,
        home: Option<&Path>,
        dir: &Path,
        env: Env<'_>,
    ) -> Result<Self, ConfigError> {
        let mut problems = Vec::new();
        let models = ModelTable::parse(text).map_err(|found| {
            problems.extend(found.0.into_iter().map(|problem| Problem {
                code: CODE,
                severity: "error",
                file: path.to_owned(),
                line: problem.line,
                column: problem.column,
                message: problem.message,
                help: problem.help,
            }));
        });
        let places = Places::of(text);
        let file = read_tables(text, path, &places, &mut problems);
        let (Ok(models), true) = (models, problems.is_empty()) else {
            return Err(ConfigError::Problems(problems));
        };
        let mut settings = Vec::new();
        for known in known() {
            settings.push(resolve_one(known, &file, path, env)?);
        }
        settings.extend(tools::settings(&file, path));
        let (value, origin) = match (home, env(HOME_ENV)) {
            (Some(home), _) => (home.to_string_lossy().into_owned(), Origin::Flag),
            (None, Some(home)) => (home, Origin::Environment { name: HOME_ENV.into() }),
            (None, None) => (dir.join(".larder").to_string_lossy().into_owned(), Origin::Default),
        };
        let home = Setting {
            key: "home".to_owned(),
            value,
            origin,
            env: &[HOME_ENV],
            aliases: &[],
            help: HOME_HELP,
        };
        let config = Self { home, settings, models, path: path.to_owned(), places };
        config.check_embedding()?;
        config.check_policy()?;
        Ok(config)
    }

    /// The same settings with one from the command line.
    ///
    /// # Errors
    /// When there is no such setting, or it cannot be this.
    pub fn with_flag(mut self, key: &'static str, value: &str) -> Result<Self, ConfigError> {
        let known = known().find(|known| known.key == key && (known.check)(value));
        let place = self.settings.iter_mut().find(|setting| setting.key == key);
        let (Some(known), Some(place)) = (known, place) else {
            return Err(ConfigError::Flag { key, value: value.to_owned() });
        };
        *place = setting(known, value, Origin::Flag);
        Ok(self)
    }

    /// Where the store is.
    pub fn home(&self) -> &Path {
        Path::new(&self.home.value)
    }

    /// Which model plays which layer.
    pub fn models(&self) -> &ModelTable {
        &self.models
    }

    /// The policy that holds for every run.
    pub fn policy(&self) -> Policy {
        Policy {
            compression_enabled: self.is_on("policy.compression_enabled"),
            use_llm_summarizer: self.is_on("policy.use_llm_summarizer"),
            summarizer_timeout: self
                .seconds("policy.summarizer_timeout_s")
                .unwrap_or(DEFAULT_SUMMARIZER_TIMEOUT),
            compression_threshold: self
                .number("policy.compression_threshold")
                .unwrap_or(DEFAULT_COMPRESSION_THRESHOLD),
            min_compression_savings: self
                .number("policy.min_compression_savings")
                .unwrap_or(DEFAULT_COMPRESSION_SAVINGS),
        }
    }

    /// `token_budget.total` of recipes that name none.
    pub fn default_context_budget(&self) -> usize {
        self.number("policy.default_context_budget").unwrap_or(DEFAULT_CONTEXT_BUDGET)
    }

    /// How long condensed forms are cached.
    pub fn compaction_ttl(&self) -> Duration {
        self.seconds("policy.compression_cache_ttl_s").unwrap_or(COMPRESSION_CACHE_TTL)
    }

    /// How `larder ask` answers.
    pub fn asking(&self) -> Asking {
        let answer = self.value("ask.answer").and_then(AnswerMode::named).unwrap_or(AnswerMode::Auto);
        let planner = self.value("ask.planner").and_then(Planner::named).unwrap_or(Planner::Auto);
        let AskLimits { depth, calls, tokens } = AskLimits::DEFAULT;
        let limits = AskLimits {
            depth: self.number("ask.max_depth").unwrap_or(depth),
            calls: self.number("ask.max_calls").unwrap_or(calls),
            tokens: self.number("ask.max_tokens").unwrap_or(tokens),
        };
        Asking { answer, planner, limits }
    }

    fn number<N: std::str::FromStr>(&self, key: &str) -> Option<N> {
        self.value(key)?.parse().ok()
    }

    fn seconds(&self, key: &str) -> Option<Duration> {
        self.number(key).map(Duration::from_secs)
    }

    /// Every setting, for people.
    pub fn settings(&self) -> Vec<Setting> {
        let mut all = vec![self.home.clone()];
        all.extend(self.settings.iter().cloned());
        for (name, layer) in Layer::ALL {
            let resolved = self.models.resolve(layer, None);
            let key = format!("models.layers.{name}");
            let (value, origin) = match resolved {
                Some(resolved) => (resolved.name, self.origin_of(&key)),
                None => (UNBOUND, Origin::Default),
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
        all
    }

    /// Where a layer's binding comes from: its own line, or that of the shipped table it is taken from.
    fn origin_of(&self, key: &str) -> Origin {
        let place = self.places.find(key).or_else(|| self.places.find("models.table"));
        place.map_or(Origin::Default, |(line, _)| Origin::File { path: self.path.clone(), line })
    }

    /// The layers that these recipes ask for and no model plays, as problems of the settings file.
    pub fn unbound<'r>(&self, recipes: impl IntoIterator<Item = &'r Recipe>) -> Vec<Problem> {
        let mut wanted: BTreeMap<Layer, Vec<String>> = BTreeMap::new();
        for recipe in
            recipes.into_iter().filter(|recipe| self.models.resolve(recipe.layer, recipe.mode).is_none())
        {
            wanted.entry(recipe.layer).or_default().push(recipe.id());
        }
        let (line, column) = self.places.find("models.layers").unwrap_or_else(|| self.places.get("models"));
        let problem = |(layer, recipes): (Layer, Vec<String>)| Problem {
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

/// How a layer without a model is listed.
const UNBOUND: &str = "(unbound)";
const LAYER_HELP: &str = "the model that plays this layer";
const HOME_ENV: &str = "LARDER_HOME";
const HOME_HELP: &str = "where originals, runs and interventions are kept";

fn setting(known: &Known, value: &str, origin: Origin) -> Setting {
    let Known { env, aliases, help, .. } = *known;
    Setting { key: known.key.to_owned(), value: value.to_owned(), origin, env, aliases, help }
}

fn resolve_one(
    known: &Known,
    file: &[(String, String, usize)],
    path: &str,
    env: Env<'_>,
) -> Result<Setting, ConfigError> {
    for name in known.env {
        if let Some(value) = env(name) {
            if !(known.check)(&value) {
                return Err(ConfigError::Environment {
                    name: (*name).to_owned(),
                    value,
                    key: known.key,
                    like: known.example(),
                });
            }
            return Ok(setting(known, &value, Origin::Environment { name: (*name).to_owned() }));
        }
    }
    let stated = file.iter().find(|(key, ..)| key == known.key);
    Ok(match stated {
        Some((_, value, line)) => setting(known, value, Origin::File { path: path.to_owned(), line: *line }),
        None => setting(known, known.default, Origin::Default),
    })
}

/// The tables of settings as key, value and line; problems of the rest of the file too.
fn read_tables(
    text: &str,
    path: &str,
    places: &Places,
    problems: &mut Vec<Problem>,
) -> Vec<(String, String, usize)> {
    let mut found = Vec::new();
    // A file that is no TOML at all has been reported with the models.
    let Ok(table) = text.parse::<toml::Table>() else { return found };
    let mut report = |key: &str, message: String, help: String| {
        let (line, column) = places.get(key);
        let file = path.to_owned();
        problems.push(Problem { code: CODE, severity: "error", file, line, column, message, help });
    };
    let mut stated = Vec::new();
    for (name, value) in table.iter().filter(|(name, _)| *name != "models") {
        match value {
            toml::Value::Table(table) if known::is_table(name) => flatten(name, table, &mut stated),
            _ => report(name, format!("unknown table or key {name}"), nearest(name)),
        }
    }
    let (servers, stated): (Vec<_>, Vec<_>) =
        stated.into_iter().partition(|(full, _)| full.starts_with(tools::MCP));
    let servers: Vec<tools::Stated> =
        servers.into_iter().map(|(full, text)| (full.clone(), text, places.get(&full).0)).collect();
    for (key, message, help) in tools::problems(&servers) {
        report(&key, message, help);
    }
    found.extend(servers);
    for (full, text) in stated {
        match known().find(|known| known.is_called(&full)) {
            None => report(&full, format!("unknown setting {full}"), nearest(&full)),
            Some(known) if !(known.check)(&text) => report(
                &full,
                format!("{full} cannot be {text}"),
                format!("give a value like {}", known.example()),
            ),
            Some(known) => {
                let (line, _) = places.get(&full);
                // The first of a setting counts: its own name goes before its older ones.
                let at = if full == known.key { 0 } else { found.len() };
                found.insert(at, (known.key.to_owned(), text, line));
            }
        }
    }
    found
}

/// Every value of a table by its dotted key.
fn flatten(path: &str, table: &toml::Table, stated: &mut Vec<(String, String)>) {
    for (key, value) in table {
        let full = format!("{path}.{key}");
        match value {
            toml::Value::Table(inner) => flatten(&full, inner, stated),
            toml::Value::String(text) => stated.push((full, text.clone())),
            other => stated.push((full, other.to_string())),
        }
    }
}
