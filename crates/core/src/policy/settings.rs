//! The policy's settings and their defaults. Every default is safe: none of them loses anything.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Tokens reserved for the reply when a request sets no limit (C15).
const RESPONSE_RESERVE: usize = 2_000;
/// Tokens above which a tool result is a flood whatever the window: a tenth of the common one of 200,000.
const UNKNOWN_MODEL_CAP: usize = 20_000;
/// The smallest entry cap: anything less leaves no room next to header and gap markers.
pub(super) const MIN_ENTRY_CAP: usize = 96;
/// The share of the threshold to which an epoch reduces a conversation (C52: 50 % to 80 %).
const LOW_WATERMARK: f64 = 0.5;
/// The smallest low watermark: anything less would leave hardly any content.
const MIN_LOW_WATERMARK: f64 = 0.05;
/// The price of a cached input token relative to an uncached one, as charged by most providers.
const CACHE_PRICE: f64 = 0.1;
/// Tools whose results are never condensed; a trailing `*` matches any ending.
pub const OPT_OUT_TOOLS: [&str; 4] = ["document_edit", "document_apply_patch", "search_replace", "validat*"];

/// When to offer the model the rehydrate tool, which reads originals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOffer {
    /// In prompts with pointers, so that other requests are forwarded unchanged. The first pointer of a conversation
    /// moves its cached prefix once, because tool definitions come first.
    #[default]
    WhenNeeded,
    /// In every request that has tools: each pays for the definition, and the prefix never moves.
    WithTools,
}

/// A setting with an invalid value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} cannot be {value}; {help}")]
pub struct InvalidSetting {
    /// The name of the field; of an entry in a table with the entry's behind a dot.
    pub name: String,
    /// Its value.
    pub value: String,
    /// How to fix it.
    pub help: String,
}

/// How conversations are kept within their windows. Sizes are in tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicySettings {
    /// If false, nothing is changed; requests are still counted, and refused if they cannot fit.
    pub enabled: bool,
    /// Whether to decide and report without changing anything.
    pub dry_run: bool,
    /// Maximum tokens of a prompt. Can only lower the limit set by the model's window.
    pub prompt_budget_override: Option<usize>,
    /// Reserve for the reply when a request sets no limit.
    pub response_reserve: usize,
    /// Tokens that every prompt leaves free; `None`: a twentieth of the window (C38).
    pub emergency_floor: Option<usize>,
    /// Above this, older tool results are compacted if that saves money; `None`: 80 % of the budget (C38).
    pub trace_threshold_tokens: Option<usize>,
    /// The share of the threshold to which compaction reduces a conversation, so that the next compaction is far off
    /// (C52).
    pub low_watermark: f64,
    /// Maximum tokens of an ordinary tool result when it enters; source code and errors may have four times as many,
    /// files that are read eight times. `None`: 2,000, or a 64th of a smaller window.
    pub entry_cap: Option<usize>,
    /// The same for results of single tools, by name; a trailing `*` matches any ending. The name that says most about a
    /// tool applies.
    pub tool_caps: BTreeMap<String, usize>,
    /// Maximum tokens of any tool result for models whose window nobody knows; nothing else of theirs is shortened.
    pub unknown_model_cap: usize,
    /// The number of newest messages exempt from compaction.
    pub protect_last: usize,
    /// Tools whose results are never condensed; a trailing `*` matches any ending.
    pub opt_out_tools: BTreeSet<String>,
    /// When to offer the model the rehydrate tool.
    pub offer_tool: ToolOffer,
    /// Price of a cached input token relative to an uncached one, for models without prices.
    pub cache_price: f64,
    /// Expected further requests per conversation; `None`: as many as there were so far.
    pub expected_turns: Option<usize>,
}

impl Default for PolicySettings {
    fn default() -> Self {
        Self {
            enabled: true,
            dry_run: false,
            prompt_budget_override: None,
            response_reserve: RESPONSE_RESERVE,
            emergency_floor: None,
            trace_threshold_tokens: None,
            low_watermark: LOW_WATERMARK,
            entry_cap: None,
            tool_caps: BTreeMap::new(),
            unknown_model_cap: UNKNOWN_MODEL_CAP,
            protect_last: 4,
            opt_out_tools: OPT_OUT_TOOLS.map(str::to_owned).into(),
            offer_tool: ToolOffer::default(),
            cache_price: CACHE_PRICE,
            expected_turns: None,
        }
    }
}

impl PolicySettings {
    /// Reports every invalid value.
    pub fn problems(&self) -> Vec<InvalidSetting> {
        let mut problems = Vec::new();
        let mut wrong = |name: &str, value: String, help: String| {
            problems.push(InvalidSetting { name: name.to_owned(), value, help });
        };
        let share = |value: f64, min: f64| value.is_finite() && (min..=1.0).contains(&value);
        if !share(self.low_watermark, MIN_LOW_WATERMARK) {
            let help = format!("use a value from {MIN_LOW_WATERMARK} to 1");
            wrong("low_watermark", self.low_watermark.to_string(), help);
        }
        if !share(self.cache_price, 0.0) {
            wrong("cache_price", self.cache_price.to_string(), "use a value from 0 to 1".to_owned());
        }
        let caps = self.entry_cap.iter().map(|cap| ("entry_cap".to_owned(), cap));
        let caps = caps.chain([("unknown_model_cap".to_owned(), &self.unknown_model_cap)]);
        let of_tools = self.tool_caps.iter().map(|(tool, cap)| (format!("tool_caps.{tool}"), cap));
        for (name, cap) in caps.chain(of_tools).filter(|(_, cap)| **cap < MIN_ENTRY_CAP) {
            let help = format!(
                "use at least {MIN_ENTRY_CAP}: less leaves no room next to a pointer and gap markers"
            );
            wrong(&name, cap.to_string(), help);
        }
        if self.prompt_budget_override == Some(0) {
            let help = "omit it to use what the window leaves".to_owned();
            wrong("prompt_budget_override", "0".to_owned(), help);
        }
        problems
    }

    /// Whether results of this tool are never condensed.
    pub(super) fn opts_out(&self, tool: &str) -> bool {
        self.opt_out_tools.iter().any(|name| covers(name, tool))
    }

    /// The cap for results of this tool, if it has one of its own.
    pub fn tool_cap(&self, tool: &str) -> Option<usize> {
        let covering = self.tool_caps.iter().filter(|(name, _)| covers(name, tool));
        covering.max_by_key(|(name, _)| (!name.ends_with('*'), name.len())).map(|(_, cap)| *cap)
    }

    /// The names under `tool_caps` that cap nothing, since every tool that they cover has opted out.
    pub fn idle_caps(&self) -> impl Iterator<Item = &str> {
        self.tool_caps.keys().map(String::as_str).filter(|name| self.opts_out(name))
    }
}

/// Whether a name in the settings, of which a trailing `*` matches any ending, is that of a tool.
fn covers(name: &str, tool: &str) -> bool {
    match name.strip_suffix('*') {
        Some(start) => tool.starts_with(start),
        None => tool == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_illegal_value_is_reported_with_its_fix() {
        assert_eq!(PolicySettings::default().problems(), []);
        let wrong = PolicySettings {
            low_watermark: 0.01,
            cache_price: f64::NAN,
            entry_cap: Some(MIN_ENTRY_CAP - 1),
            tool_caps: [("read*".to_owned(), 0), ("list".to_owned(), MIN_ENTRY_CAP)].into(),
            unknown_model_cap: 0,
            prompt_budget_override: Some(0),
            ..PolicySettings::default()
        };
        let words: Vec<String> = wrong.problems().iter().map(ToString::to_string).collect();
        assert_eq!(
            words,
            [
                "low_watermark cannot be 0.01; use a value from 0.05 to 1",
                "cache_price cannot be NaN; use a value from 0 to 1",
                "entry_cap cannot be 95; use at least 96: less leaves no room next to a pointer and gap markers",
                "unknown_model_cap cannot be 0; use at least 96: less leaves no room next to a pointer and gap markers",
                "tool_caps.read* cannot be 0; use at least 96: less leaves no room next to a pointer and gap markers",
                "prompt_budget_override cannot be 0; omit it to use what the window leaves",
            ]
        );
    }

    #[test]
    fn the_name_that_says_most_about_a_tool_gives_its_cap() {
        let caps = [("*", 100), ("read*", 200), ("read_f*", 300), ("read", 400)];
        let tool_caps = caps.map(|(name, cap)| (name.to_owned(), cap)).into();
        let settings = PolicySettings { tool_caps, ..PolicySettings::default() };
        let found = ["list", "read_log", "read_file", "read"].map(|tool| settings.tool_cap(tool));
        assert_eq!(found, [Some(100), Some(200), Some(300), Some(400)]);
        assert_eq!(PolicySettings::default().tool_cap("read"), None);
    }
}
