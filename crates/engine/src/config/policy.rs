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
        let policy = self.context_policy();
        let illegal = policy.problems().into_iter().map(|problem| {
            let words = format!("policy.{} cannot be {}", problem.name, problem.value);
            (problem, words)
        });
        for (problem, message) in illegal.chain(misplaced_stars(&policy)) {
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
                message,
                help,
            });
        }
        if problems.is_empty() { Ok(()) } else { Err(ConfigError::Problems(problems)) }
    }
}

/// Names of tools with a `*` in another place than at their end, where it matches nothing: no tool has such a name, so
/// they would be without effect.
fn misplaced_stars(policy: &PolicySettings) -> impl Iterator<Item = (InvalidSetting, String)> {
    let is_misplaced = |name: &&String| name.strip_suffix('*').unwrap_or(name).contains('*');
    let capped = policy.tool_caps.keys().map(|name| (name, format!("tool_caps.{name}")));
    let left_alone = policy.opt_out_tools.iter().map(|name| (name, "opt_out_tools".to_owned()));
    capped.chain(left_alone).filter(move |(name, _)| is_misplaced(name)).map(|(name, setting)| {
        let start = name.split('*').next().unwrap_or_default();
        let help = format!(
            "a `*` matches any ending, so it can only be the last character: write `{start}*`, or the whole names"
        );
        let key = setting.split('.').next().unwrap_or_default();
        let message = format!("policy.{key}: the name `{name}` covers no tool");
        (InvalidSetting { name: setting, value: name.clone(), help }, message)
    })
}

/// The key of the setting that a problem is in.
pub(super) fn key_of(problem: &InvalidSetting) -> String {
    let field = problem.name.split('.').next().unwrap_or_default();
    format!("policy.{field}")
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
