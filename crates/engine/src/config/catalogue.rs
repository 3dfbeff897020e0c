//! The catalogue of models that a home keeps in place of the built-in one. Knows where it is; its format belongs to
//! `larder-models`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use larder_models::catalogue::{Catalogue, Source};
use larder_store::{StoreError, remove_home_file, write_home_file};

use super::{Config, ConfigError, Setting, SettingOrigin};

/// Its name in the home folder.
const NAME: &str = "models.tsv";
/// The key under which the catalogue in use is shown.
const KEY: &str = "models.catalogue";
const HELP: &str = "Source and date of the catalogue of models. `larder models update` replaces it.";

/// Where a home keeps a catalogue of its own.
pub fn catalogue_file(home: &Path) -> PathBuf {
    home.join(NAME)
}

/// Lets everything that uses this home use `catalogue` from now on, atomically.
///
/// # Errors
/// If it cannot be written.
pub fn install_catalogue(home: &Path, catalogue: &Catalogue) -> Result<(), StoreError> {
    write_home_file(home, NAME, catalogue.to_text().as_bytes())
}

/// Goes back to the built-in catalogue; returns whether the home had one of its own.
///
/// # Errors
/// If the file cannot be removed.
pub fn remove_catalogue(home: &Path) -> Result<bool, StoreError> {
    remove_home_file(home, NAME)
}

/// The catalogue of a home: its own, otherwise the built-in one.
pub(super) fn of_home(home: &Path) -> Result<Catalogue, ConfigError> {
    let path = catalogue_file(home);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Catalogue::built_in()),
        // Where the file cannot even be found, the folder is at fault.
        Err(source) if path.symlink_metadata().is_err() => {
            return Err(ConfigError::Home { path: home.to_path_buf(), source });
        }
        Err(source) => return Err(ConfigError::Read { path, source }),
    };
    // It names its own source.
    let unnamed = Source { format: 0, source: String::new(), date: String::new(), license: String::new() };
    Catalogue::read(&text, unnamed).map_err(|source| ConfigError::Catalogue { path, source })
}

impl Config {
    /// The catalogue in use, for display.
    pub(super) fn catalogue_setting(&self) -> Setting {
        let file = catalogue_file(self.home());
        let own = file.is_file().then(|| file.to_string_lossy().into_owned());
        Setting {
            key: KEY.to_owned(),
            value: self.models.catalogue().to_string(),
            origin: own.map_or(SettingOrigin::Default, |path| SettingOrigin::File { path, line: 1 }),
            env: &[],
            aliases: &[],
            help: HELP,
        }
    }
}
