//! Every setting outside `[models]` with a fixed key, typed: one struct per section, declared with its defaults,
//! names and help. `config` reads the values, the crates above use them; nothing here reads a file.

mod ask;
mod gateway;
mod policy;
mod retention;
pub(crate) mod spec;
mod tools;
mod vault;

pub use self::ask::{AnswerMode, AskLimits, AskSettings, Planner};
pub use self::gateway::{CallableTools, GatewaySettings};
pub(crate) use self::policy::GatewayPolicy;
pub use self::policy::{CompressionSettings, RunPolicy};
pub(crate) use self::retention::RetentionSettings;
pub(crate) use self::tools::MCP_TIMEOUT;
pub use self::tools::{McpSettings, McpTransport, ToolSettings};
pub use self::vault::TurnLimits;
pub(crate) use self::vault::VaultSettings;

use self::spec::{SettingSection, SettingSpec};

/// Settings whose values may be learned at run time, in a revision: those that trade what is in view for cost.
pub(crate) const LEARNED: [&str; 8] = [
    "policy.entry_cap",
    "policy.expected_turns",
    "policy.low_watermark",
    "policy.offer_tool",
    "policy.opt_out_tools",
    "policy.protect_last",
    "policy.tool_caps",
    "policy.trace_threshold_tokens",
];

/// A setting that is gone: its key, its environment variable, why, and what to do instead.
pub(crate) struct Removed {
    pub key: &'static str,
    pub env: &'static str,
    pub why: &'static str,
    pub fix: &'static str,
}

/// Settings that are gone.
pub(crate) const REMOVED: [Removed; 1] = [Removed {
    key: "gateway.default_window",
    env: "LARDER_DEFAULT_WINDOW",
    why: "no window is assumed for a model that nobody knows: it is learned from the provider's refusal",
    fix: "remove it; give the window of a model under [models.NAME], or limit prompts with policy.prompt_budget_override",
}];

/// All settings, in the order in which they are listed.
pub(crate) fn all() -> impl Iterator<Item = &'static SettingSpec> + Clone {
    [
        RunPolicy::SETTINGS,
        CompressionSettings::SETTINGS,
        GatewayPolicy::SETTINGS,
        AskSettings::SETTINGS,
        AskLimits::SETTINGS,
        GatewaySettings::SETTINGS,
        RetentionSettings::SETTINGS,
        ToolSettings::SETTINGS,
        VaultSettings::SETTINGS,
        TurnLimits::SETTINGS,
    ]
    .into_iter()
    .flatten()
}

/// The setting with this key or alias.
pub(crate) fn find(key: &str) -> Option<&'static SettingSpec> {
    all().find(|setting| setting.is_called(key))
}

/// Whether a table with this name contains settings.
pub(crate) fn is_table(name: &str) -> bool {
    let is_in = |key: &str| key.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
    all().any(|setting| is_in(setting.key) || setting.aliases.iter().any(|alias| is_in(alias)))
}

/// A hint for an unknown table or key: the name that was probably meant, or else where to look it up.
pub(crate) fn suggest(unknown: &str) -> String {
    if unknown.rsplit('.').next() == Some("home") {
        return "the home folder is set with --home or LARDER_HOME, since it is found before this file is read".to_owned();
    }
    let keys = all().map(|setting| setting.key);
    let tables = keys.clone().filter_map(|key| key.split('.').next()).chain(["models"]);
    // `home = …` outside its table has the name of a setting without it.
    let ending = |key: &&str| key.rsplit('.').next() == Some(unknown);
    match keys.clone().find(ending).or_else(|| larder_core::recipe::nearest(unknown, keys.chain(tables))) {
        Some(near) => format!("did you mean `{near}`?"),
        // What is unknown may be the table that it is in.
        None => match unknown.rsplit_once('.') {
            Some((table, _)) if table.contains('.') => suggest(table),
            _ => "docs/reference/settings.md lists all settings".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_legal_and_every_name_is_unique() {
        let mut names: Vec<&str> = Vec::new();
        for setting in all() {
            assert!((setting.accepts)(&(setting.default)()), "{}", setting.key);
            assert!((setting.accepts)(&setting.example()), "{} like {:?}", setting.key, setting.example());
            names.push(setting.key);
            names.extend(setting.aliases);
            names.extend(setting.env);
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn every_printed_example_is_a_line_of_a_file_and_accepted_there() {
        for setting in all() {
            let example = setting.example_in_file();
            let file: toml::Table = format!("example = {example}").parse().unwrap_or_default();
            let value = file.get("example").unwrap_or_else(|| panic!("{}: {example}", setting.key));
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let accepted = setting.form.is_of(value) && (setting.accepts)(&text);
            assert!(accepted, "{}: {example}", setting.key);
        }
        let offer = find("policy.offer_tool").map(|setting| setting.example_in_file());
        assert_eq!(offer.as_deref(), Some("\"when_needed\""));
    }

    #[test]
    fn a_hint_is_one_name_or_where_to_look() {
        assert_eq!(suggest("polcy"), "did you mean `policy`?");
        assert_eq!(suggest("policy.foo"), "docs/reference/settings.md lists all settings");
        assert_eq!(suggest("place"), "did you mean `documents.place`?");
        assert!(suggest("home").contains("LARDER_HOME") && suggest("store.home").contains("--home"));
    }

    #[test]
    fn every_help_is_a_sentence() {
        for setting in all() {
            let help = setting.help;
            assert!(help.ends_with('.') && !help.starts_with(' ') && !help.contains("  "), "{}", setting.key);
        }
    }
}
