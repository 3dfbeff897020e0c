//! Reads the settings file as far as it can be read, with all of its problems. Knows no setting.

use std::collections::BTreeMap;
use std::path::Path;

use larder_models::catalogue::Catalogue;
use larder_models::table::ModelTable;

use super::{
    CODE, Config, ConfigError, Env, FILE, KeyPlaces, Setting, SettingProblem, catalogue, error, home_setting,
    mcp, read_tables, resolve_one, slots,
};
use crate::settings::{self, REMOVED, Removed};

/// What can be read of the settings, and the problems of the file.
#[derive(Debug)]
pub struct InspectedConfig {
    /// The settings; those with a problem have their defaults.
    pub config: Config,
    /// All problems of the file.
    pub problems: Vec<SettingProblem>,
    /// Whether the model table is that of the file: it could be read.
    pub has_models: bool,
}

impl Config {
    /// Reads the settings of the project in `dir`; `home` comes from the command line.
    ///
    /// # Errors
    /// If the file cannot be read or has problems, of which the error has all, or an environment variable has a value that
    /// its setting cannot have.
    pub fn load(dir: Option<&Path>, home: Option<&Path>, env: Env<'_>) -> Result<Self, ConfigError> {
        Self::inspect(dir, home, env)?.sound()
    }

    /// As [`Self::load`], but problems of the file are part of the result.
    ///
    /// # Errors
    /// If nothing can be read of the file, or an environment variable has a value that its setting cannot have.
    pub fn inspect(
        dir: Option<&Path>,
        home: Option<&Path>,
        env: Env<'_>,
    ) -> Result<InspectedConfig, ConfigError> {
        let folder = dir.unwrap_or(Path::new("."));
        let path = folder.join(FILE);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(ConfigError::Read { path, source }),
        };
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            ConfigError::Problems(vec![error::not_utf8(&String::from_utf8_lossy(valid), &path)])
        })?;
        let home = home_setting(home, folder, env);
        let catalogue = catalogue::of_home(Path::new(&home.value))?;
        inspect_text(&text, &path.to_string_lossy(), home, &catalogue, env)
    }

    #[cfg(test)]
    pub(super) fn resolve(
        text: &str,
        path: &str,
        home: Option<&Path>,
        dir: &Path,
        env: Env<'_>,
    ) -> Result<Self, ConfigError> {
        let home = home_setting(home, dir, env);
        let catalogue = catalogue::of_home(Path::new(&home.value))?;
        Self::of_text(text, path, home, &catalogue, env)
    }

    pub(super) fn of_text(
        text: &str,
        path: &str,
        home: Setting,
        catalogue: &Catalogue,
        env: Env<'_>,
    ) -> Result<Self, ConfigError> {
        inspect_text(text, path, home, catalogue, env)?.sound()
    }
}

impl InspectedConfig {
    /// The settings, if the file has no problem.
    fn sound(self) -> Result<Config, ConfigError> {
        if self.problems.is_empty() { Ok(self.config) } else { Err(ConfigError::Problems(self.problems)) }
    }
}

fn inspect_text(
    text: &str,
    path: &str,
    home: Setting,
    catalogue: &Catalogue,
    env: Env<'_>,
) -> Result<InspectedConfig, ConfigError> {
    let mut problems = Vec::new();
    let models = ModelTable::parse_with(text, catalogue).map_err(|found| {
        problems.extend(found.0.into_iter().map(|problem| SettingProblem {
            code: CODE,
            severity: "error",
            file: path.to_owned(),
            line: problem.line,
            column: problem.column,
            message: problem.message,
            help: problem.help,
        }));
    });
    let places = KeyPlaces::of(text);
    let file = read_tables(text, path, &places, &mut problems);
    let has_models = models.is_ok();
    let Ok(models) = models.or_else(|()| ModelTable::parse_with("", catalogue)) else {
        return Err(ConfigError::Problems(problems));
    };
    // What is wrong with the environment is reported once the file is sound.
    let ends = |error, problems: &mut Vec<SettingProblem>| match problems.is_empty() {
        true => error,
        false => ConfigError::Problems(std::mem::take(problems)),
    };
    if let Some(Removed { env: name, why, fix, .. }) = REMOVED.iter().find(|gone| env(gone.env).is_some()) {
        return Err(ends(ConfigError::Removed { name, why, fix }, &mut problems));
    }
    let mut resolved = Vec::new();
    for spec in settings::all() {
        resolved.push(resolve_one(spec, &file, path, env).map_err(|error| ends(error, &mut problems))?);
    }
    resolved.extend(mcp::settings(&file, path));
    resolved.extend(slots::settings(&file, path));
    let (windows, factors) = (BTreeMap::new(), BTreeMap::new());
    let path = path.to_owned();
    let config = Config { home, settings: resolved, models, windows, factors, path, places };
    let embedding = if has_models { config.check_embedding() } else { Ok(()) };
    for checked in [embedding, config.check_policy()] {
        match checked {
            Ok(()) => {}
            Err(ConfigError::Problems(found)) => problems.extend(found),
            Err(error) => return Err(ends(error, &mut problems)),
        }
    }
    Ok(InspectedConfig { config, problems, has_models })
}
