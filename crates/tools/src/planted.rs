//! Settings that a program makes where there were none, and that the next command of Larder would take for the user's.
//! A sandbox cannot deny a name that does not exist, so they are moved aside when the program has ended.

use std::path::{Path, PathBuf};

use larder_engine::config::{DEFAULT_HOME, FILE};

/// What the name of a file that was moved aside ends in.
const ASIDE: &str = "set-aside";

/// The places of settings and stores that do not exist while a program runs. Moves aside what is there when it is
/// dropped, too, so that nothing remains of a call that is given up.
pub(super) struct PlantedSettings(Vec<PathBuf>);

impl PlantedSettings {
    /// Watches these folders.
    pub(super) fn watch(folders: [&Path; 2]) -> Self {
        let places =
            folders.into_iter().flat_map(|folder| [FILE, DEFAULT_HOME].map(|name| folder.join(name)));
        Self(places.filter(|place| !exists(place)).collect())
    }

    /// Moves aside what was made, and says so, a line for each.
    pub(super) fn set_aside(mut self) -> Vec<String> {
        self.moved()
    }

    fn moved(&mut self) -> Vec<String> {
        std::mem::take(&mut self.0).iter().filter(|place| exists(place)).map(|place| moved(place)).collect()
    }
}

impl Drop for PlantedSettings {
    fn drop(&mut self) {
        self.moved();
    }
}

fn exists(place: &Path) -> bool {
    place.symlink_metadata().is_ok()
}

fn moved(place: &Path) -> String {
    let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let numbered = (1..).map(|number| format!("{name}.{ASIDE}-{number}"));
    let mut names = std::iter::once(format!("{name}.{ASIDE}")).chain(numbered);
    let aside = names.find(|aside| !exists(&place.with_file_name(aside))).unwrap_or_default();
    match std::fs::rename(place, place.with_file_name(&aside)) {
        Ok(()) => {
            format!("it made {name}, which Larder would read as settings, so that was renamed to {aside}")
        }
        Err(error) => {
            format!("it made {name}, which Larder reads as settings and which cannot be renamed: {error}")
        }
    }
}
