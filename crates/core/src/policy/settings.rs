//! The settings of the policy and their defaults. Every default is safe: nothing is lost under any of them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Tokens kept for the reply when a request asks for no number (C15).
const RESPONSE_RESERVE: usize = 2_000;
/// Tokens that a tool result may have when it enters: about what the first 600 characters and a pointer take, which is
/// what the usual write-time offload keeps. Over recorded agent runs, fewer begin to hide values that later calls need,
/// and more cost more than they keep (`larder-evals traces`).
const ENTRY_CAP: usize = 144;
/// The least entry cap: below it a header and marks leave no room.
const LEAST_ENTRY_CAP: usize = 96;
/// The share of a watermark that an epoch comes down to (C52: 50 % to 80 %).
const LOW_WATERMARK: f64 = 0.5;
/// The least such share: below it hardly anything would stay.
const LEAST_LOW_WATERMARK: f64 = 0.05;
/// A cached input token beside an uncached one, at most providers.
const CACHE_PRICE: f64 = 0.1;
/// Tools whose results stand as they are (R3-5.10); `*` at the end stands for any further characters.
const OPT_OUT_TOOLS: [&str; 4] = ["document_edit", "document_apply_patch", "search_replace", "validat*"];

/// When the tool that gives originals back is offered to the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOffer {
    /// Only where pointers stand, so that a request that needs none leaves as it came. The first pointer of a
    /// conversation then moves its cached prefix once, since definitions of tools stand at its beginning.
    #[default]
    WhenNeeded,
    /// In every request that has tools of its own, from the first on: the definition is paid for in each, and the
    /// prefix never moves.
    WithTools,
}

impl ToolOffer {
    /// The value that settings call so.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "when_needed" => Some(Self::WhenNeeded),
            "with_tools" => Some(Self::WithTools),
            _ => None,
        }
    }
}

/// A setting whose value makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} cannot be {value}; {help}")]
pub struct InvalidSetting {
    /// The name of the field.
    pub field: &'static str,
    /// What it holds.
    pub value: String,
    /// How to mend it.
    pub help: String,
}

/// How the windows of conversations are kept. Sizes in tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicySettings {
    /// Off: nothing is changed; counting and the refusal of what cannot fit stay (C50).
    pub enabled: bool,
    /// Decides and reports, but changes nothing.
    pub dry_run: bool,
    /// Most tokens of a prompt. It can only lower what the model's window leaves.
    pub prompt_budget_override: Option<usize>,
    /// Kept for the reply when a request asks for no number (C15).
    pub response_reserve: usize,
    /// WindowOriginal free whatever happens; none: a twentieth of the window (C38).
    pub emergency_floor: Option<usize>,
    /// Prompts above it have older tool results compacted when that pays; none: 80 % of the budget (C38).
    pub trace_threshold_tokens: Option<usize>,
    /// The share of the threshold that compaction comes down to, so that the next one is far (C52).
    pub low_watermark: f64,
    /// Tokens that a tool result may have when it enters; errors may have four times as many.
    pub entry_cap: usize,
    /// Newest messages that compaction spares.
    pub protect_last: usize,
    /// Tools whose results are never condensed; a trailing `*` matches any ending.
    pub opt_out_tools: BTreeSet<String>,
    /// When the model is offered the tool that gives originals back.
    pub offer_tool: ToolOffer,
    /// What a cached input token costs beside an uncached one, where the model table does not say.
    pub cache_price: f64,
    /// Further requests of a conversation to expect; none: as many as there were.
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
            entry_cap: ENTRY_CAP,
            protect_last: 4,
            opt_out_tools: OPT_OUT_TOOLS.map(str::to_owned).into(),
            offer_tool: ToolOffer::default(),
            cache_price: CACHE_PRICE,
            expected_turns: None,
        }
    }
}

impl PolicySettings {
    /// What is wrong with the values, all at once.
    pub fn problems(&self) -> Vec<InvalidSetting> {
        let mut problems = Vec::new();
        let mut wrong = |field: &'static str, value: String, help: String| {
            problems.push(InvalidSetting { field, value, help });
        };
        let share = |value: f64, least: f64| value.is_finite() && (least..=1.0).contains(&value);
        if !share(self.low_watermark, LEAST_LOW_WATERMARK) {
            let help = format!("write a share from {LEAST_LOW_WATERMARK} to 1");
            wrong("low_watermark", self.low_watermark.to_string(), help);
        }
        if !share(self.cache_price, 0.0) {
            wrong("cache_price", self.cache_price.to_string(), "write a share from 0 to 1".to_owned());
        }
        if self.entry_cap < LEAST_ENTRY_CAP {
            let help =
                format!("write at least {LEAST_ENTRY_CAP}: less leaves no room beside a pointer and marks");
            wrong("entry_cap", self.entry_cap.to_string(), help);
        }
        if self.prompt_budget_override == Some(0) {
            let help = "leave it out to use what the window leaves".to_owned();
            wrong("prompt_budget_override", "0".to_owned(), help);
        }
        problems
    }

    /// Whether results of this tool stand as they are.
    pub(super) fn opts_out(&self, tool: &str) -> bool {
        let covers = |name: &String| match name.strip_suffix('*') {
            Some(start) => tool.starts_with(start),
            None => tool == name,
        };
        self.opt_out_tools.iter().any(covers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_that_makes_no_sense_is_named_with_what_would() {
        assert_eq!(PolicySettings::default().problems(), []);
        let wrong = PolicySettings {
            low_watermark: 0.01,
            cache_price: f64::NAN,
            entry_cap: LEAST_ENTRY_CAP - 1,
            prompt_budget_override: Some(0),
            ..PolicySettings::default()
        };
        let words: Vec<String> = wrong.problems().iter().map(ToString::to_string).collect();
        assert_eq!(
            words,
            [
                "low_watermark cannot be 0.01; write a share from 0.05 to 1",
                "cache_price cannot be NaN; write a share from 0 to 1",
                "entry_cap cannot be 95; write at least 96: less leaves no room beside a pointer and marks",
                "prompt_budget_override cannot be 0; leave it out to use what the window leaves",
            ]
        );
    }
}
