//! Where the home folder is. Creates nothing.

use std::path::Path;

use super::{Env, Setting, SettingOrigin};

/// The name of the home folder in a project folder, by default.
pub const DEFAULT_HOME: &str = ".larder";
const HOME_ENV: &str = "LARDER_HOME";
const HOME_HELP: &str = "Folder where originals, runs and interventions are stored.";

/// The home folder: from the command line, the environment or, by default, in the project folder `dir`.
pub fn home_setting(home: Option<&Path>, dir: &Path, env: Env<'_>) -> Setting {
    let (value, origin) = match (home, env(HOME_ENV)) {
        (Some(home), _) => (home.to_string_lossy().into_owned(), SettingOrigin::Flag),
        (None, Some(home)) => (home, SettingOrigin::Environment { name: HOME_ENV.into() }),
        (None, None) => (dir.join(DEFAULT_HOME).to_string_lossy().into_owned(), SettingOrigin::Default),
    };
    Setting { key: "home".to_owned(), value, origin, env: &[HOME_ENV], aliases: &[], help: HOME_HELP }
}
