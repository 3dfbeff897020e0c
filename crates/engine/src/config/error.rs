//! Why settings cannot be used, in the words of the command line.

use std::path::{Path, PathBuf};

use larder_models::catalogue::CatalogueError;

use super::{CODE, SettingProblem};
use crate::settings::spec::SettingSpec;

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
    /// The home is no folder, or not one that may be read.
    #[error(
        "cannot use the home folder {}: {source}; make it a folder that you may read and write, or name another with \
         --home or LARDER_HOME",
        path.display()
    )]
    Home {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The home's catalogue of models is broken.
    #[error(
        "cannot use the catalogue {}: {source}; replace it with `larder models update --from FILE`, or go back to the \
         built-in one with `larder models update --built-in`",
        path.display()
    )]
    Catalogue {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: CatalogueError,
    },
    /// The file has problems; all of them.
    #[error("{}", list(.0))]
    Problems(Vec<SettingProblem>),
    /// The command line gives a setting an illegal value.
    #[error("--{} cannot be {value:?}; use a value such as {like}", key.rsplit('.').next().unwrap_or(key))]
    Flag {
        /// The setting, whose last part is the name of the flag.
        key: &'static str,
        /// The value.
        value: String,
        /// A legal value.
        like: String,
    },
    /// An environment variable names a setting that is gone.
    #[error("${name}: {why}; {fix}")]
    Removed {
        /// The variable.
        name: &'static str,
        /// Why it is gone.
        why: &'static str,
        /// What to do instead.
        fix: &'static str,
    },
    /// An environment variable gives its setting an illegal value.
    #[error("${name} is {value:?}, which {key} cannot be; unset it or use a value such as {like}")]
    Environment {
        /// The variable.
        name: String,
        /// Its value.
        value: String,
        /// The setting.
        key: &'static str,
        /// A legal value.
        like: String,
    },
}

fn list(problems: &[SettingProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The problem of a file that is text up to here and not UTF-8 from here on.
pub(super) fn not_utf8(valid: &str, path: &Path) -> SettingProblem {
    let last = valid.rsplit('\n').next().unwrap_or_default();
    SettingProblem {
        code: CODE,
        severity: "error",
        file: path.to_string_lossy().into_owned(),
        line: valid.matches('\n').count() + 1,
        column: last.chars().count() + 1,
        message: "the file is not UTF-8 from here on".to_owned(),
        help: "save it as UTF-8".to_owned(),
    }
}

/// What of an illegal value is wrong, with its key: of a table each entry that is illegal on its own.
pub(super) fn wrong_values(spec: &SettingSpec, key: &str, text: String) -> Vec<(String, String)> {
    let whole: Option<toml::Table> = format!("value = {text}").parse().ok();
    let entries = whole.as_ref().and_then(|whole| whole.get("value")?.as_table());
    let wrong = |(name, value): (&String, &toml::Value)| {
        let alone = toml::Value::Table(toml::Table::from_iter([(name.clone(), value.clone())]));
        let legal = (spec.accepts)(&alone.to_string());
        (!legal).then(|| (format!("{key}.{name}"), value.to_string()))
    };
    let wrong: Vec<_> = entries.into_iter().flatten().filter_map(wrong).collect();
    if wrong.is_empty() { vec![(key.to_owned(), text)] } else { wrong }
}
