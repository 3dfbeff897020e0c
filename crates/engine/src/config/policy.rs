//! The policy for conversations derived from the settings, and problems with it. Knows no packer.

use larder_core::policy::{InvalidSetting, PolicySettings};

use super::{CODE, Config, ConfigError, SettingOrigin, SettingProblem};
use crate::settings::{self, GatewayPolicy};

impl Config {
    /// How the gateway fits conversations.
    pub fn context_policy(&self) -> PolicySettings {
        self.section::<GatewayPolicy>().settings(&self.policy())
    }

    /// Fails if the policy cannot work with some value: reports all such values in the file, or the first one in the
    /// environment.
    pub(super) fn check_policy(&self) -> Result<(), ConfigError> {
        let mut problems = Vec::new();
        for problem in self.context_policy().problems() {
            let key = key_of(&problem);
            let InvalidSetting { name, value, help } = problem;
            let entry = format!("policy.{name}");
            let stated = self.settings.iter().find(|setting| setting.key == key);
            let spec = settings::find(&key);
            if let (Some(SettingOrigin::Environment { name }), Some(spec)) =
                (stated.map(|setting| &setting.origin), spec)
            {
                let (name, like) = (name.clone(), spec.example());
                return Err(ConfigError::Environment { name, value, key: spec.key, like });
            }
            let names = spec.into_iter().flat_map(|spec| spec.aliases).copied();
            let place = [entry.as_str(), key.as_str()]
                .into_iter()
                .chain(names)
                .find_map(|name| self.places.find(name));
            let (line, column) = place.unwrap_or((1, 1));
            problems.push(SettingProblem {
                code: CODE,
                severity: "error",
                file: self.path.clone(),
                line,
                column,
                message: format!("{entry} cannot be {value}"),
                help,
            });
        }
        if problems.is_empty() { Ok(()) } else { Err(ConfigError::Problems(problems)) }
    }
}

/// The key of the setting that a problem is in.
pub(super) fn key_of(problem: &InvalidSetting) -> String {
    let field = problem.name.split('.').next().unwrap_or_default();
    format!("policy.{field}")
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
