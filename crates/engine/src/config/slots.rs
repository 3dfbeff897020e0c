//! Caps of slots in the settings (R2-8.1 to R2-8.4): a table for each recipe, in place of the caps that it declares.
//! Knows no recipe.

use super::{CODE, Config, Setting, SettingOrigin, SettingProblem};

/// The table of these settings, and the prefix of their keys.
pub(super) const TABLE: &str = "slots";
pub(super) const PREFIX: &str = "slots.";
const HELP: &str = "Tokens of this slot of this recipe, in place of the cap that the recipe declares.";

/// A key as the file sets it: its dotted path, value and line.
pub(super) type Stated = (String, String, usize);

/// The cap of one slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotCap {
    /// `category/name`.
    pub recipe: String,
    /// The slot's name.
    pub slot: String,
    /// Its cap in tokens.
    pub tokens: usize,
    /// The setting: its dotted path.
    pub key: String,
    /// Its file.
    pub file: String,
    /// Its line in the file, from 1.
    pub line: usize,
    /// Its column, from 1.
    pub column: usize,
}

impl SlotCap {
    /// A problem at its place.
    pub(crate) fn problem(&self, message: String, help: String) -> SettingProblem {
        let Self { file, line, column, .. } = self;
        let (file, line, column) = (file.clone(), *line, *column);
        SettingProblem { code: CODE, severity: "error", file, line, column, message, help }
    }
}

/// Problems: the key, the problem, and how to fix it.
pub(super) fn problems(stated: &[Stated]) -> Vec<(String, String, String)> {
    let problem = |(full, value, _): &Stated| {
        let (message, help) = match (split(full), tokens(value)) {
            (Some(_), Some(_)) => return None,
            (None, _) => (
                format!("unknown setting {full}"),
                "name the recipe and the slot: history under [slots.\"card/card_agent\"]",
            ),
            (_, None) => (format!("{full} cannot be {value}"), "use a number of tokens, such as 8000"),
        };
        Some((full.clone(), message, help.to_owned()))
    };
    stated.iter().filter_map(problem).collect()
}

fn split(full: &str) -> Option<(&str, &str)> {
    full.strip_prefix(PREFIX)?.rsplit_once('.')
}

fn tokens(value: &str) -> Option<usize> {
    value.parse().ok().filter(|&tokens| tokens > 0)
}

/// The caps as settings, for display.
pub(super) fn settings(stated: &[Stated], path: &str) -> Vec<Setting> {
    let setting = |(full, value, line): &Stated| {
        split(full)?;
        let origin = SettingOrigin::File { path: path.to_owned(), line: *line };
        Some(Setting { key: full.clone(), value: value.clone(), origin, env: &[], aliases: &[], help: HELP })
    };
    stated.iter().filter_map(setting).collect()
}

impl Config {
    /// The caps of slots that replace those of recipes.
    pub fn slot_caps(&self) -> Vec<SlotCap> {
        let cap = |setting: &Setting| {
            let (recipe, slot) = split(&setting.key)?;
            let (line, column) = self.places.get(&setting.key);
            Some(SlotCap {
                recipe: recipe.to_owned(),
                slot: slot.to_owned(),
                tokens: tokens(&setting.value)?,
                key: setting.key.clone(),
                file: self.path.clone(),
                line,
                column,
            })
        };
        self.settings.iter().filter_map(cap).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{ConfigError, FILE};

    fn read(text: &str) -> Result<Config, ConfigError> {
        Config::resolve(text, FILE, None, Path::new("."), &|_| None)
    }

    #[test]
    fn caps_are_read_and_shown() {
        let config = read("[slots.\"card/card_agent\"]\nhistory = 8000\n").unwrap();
        let [cap] = config.slot_caps().try_into().unwrap();
        assert_eq!((&*cap.recipe, &*cap.slot, cap.tokens), ("card/card_agent", "history", 8_000));
        assert!(config.settings().iter().any(|setting| setting.key == "slots.card/card_agent.history"));
    }

    #[test]
    fn mistakes_are_reported_with_their_places() {
        for (text, message) in [
            ("[slots]\nhistory = 8000\n", "unknown setting slots.history"),
            ("[slots.\"card/card_agent\"]\nhistory = 0\n", "slots.card/card_agent.history cannot be 0"),
            (
                "[slots.\"card/card_agent\"]\nhistory = \"60%\"\n",
                "slots.card/card_agent.history cannot be 60%",
            ),
        ] {
            let Err(ConfigError::Problems(problems)) = read(text) else { panic!("{text}") };
            assert!(problems[0].message.contains(message) && problems[0].line == 2, "{problems:?}");
        }
    }
}
