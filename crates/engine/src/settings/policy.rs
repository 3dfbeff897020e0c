//! The settings of `[policy]`: those for recipes, and how the gateway fits conversations. Knows no packer.

use std::collections::BTreeMap;
use std::time::Duration;

use larder_core::policy::{PolicySettings, ToolOffer};
use larder_core::recipe::Layer;

use super::spec::{SettingValue, positive, positive_or_unset, settings, share};
use crate::rehydrate::RehydrationLimits;

impl SettingValue for ToolOffer {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "when_needed" => Some(Self::WhenNeeded),
            "with_tools" => Some(Self::WithTools),
            _ => None,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::WhenNeeded => "when_needed",
            Self::WithTools => "with_tools",
        }
        .to_owned()
    }
}

impl SettingValue for Layer {
    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(name, _)| *name == text).map(|(_, layer)| layer)
    }

    fn text(&self) -> String {
        self.as_str().to_owned()
    }
}

/// A share above 0, at most 1.
fn positive_share(text: &str) -> Option<f64> {
    share(text).filter(|share| *share > 0.0)
}

fn nerves(text: &str) -> Option<Layer> {
    Layer::parse(text).filter(|layer| *layer == Layer::Nerves)
}

settings! {
    /// The policy of every run.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct RunPolicy {
        /// Make prompts fit, in recipes and in the gateway. If false, they are still counted, and refused if they cannot fit.
        #[env("LARDER_CONTEXT_POLICY_ENABLED")]
        #[aliases("ai.context_policy.enabled", "context_policy.enabled")]
        // R3-4.7, C50
        pub enabled: bool = "policy.enabled", true;
        /// Maximum tokens of a prompt, in recipes and in the gateway, where that is less than the model's window or the
        /// recipe's budget allows. Unset: these decide.
        #[env("LARDER_PROMPT_BUDGET_OVERRIDE")]
        #[aliases("ai.context_policy.prompt_budget_override", "context_policy.prompt_budget_override")]
        #[like("1000")]
        #[accept(positive_or_unset)]
        // R3-4.8
        pub prompt_budget_override: Option<usize> = "policy.prompt_budget_override", None;
        /// Tokens that every prompt must leave free, in recipes and in the gateway. Unset: a twentieth of the window in the
        /// gateway, none in recipes, whose budgets have a reserve.
        #[env("LARDER_EMERGENCY_FLOOR")]
        #[aliases("ai.context_policy.emergency_floor", "context_policy.emergency_floor")]
        #[like("1000")]
        // R3-4.1
        pub emergency_floor: Option<usize> = "policy.emergency_floor", None;
        /// Condense what does not fit, in recipes and in the gateway. If false, prompts that do not fit are refused.
        #[env("LARDER_COMPRESSION_ENABLED", "COMPRESSION_ENABLED")]
        // R0-30.4, C50
        pub compression_enabled: bool = "policy.compression_enabled", true;
        /// Share of its token budget, above 0 and at most 1, beyond which a recipe's prompt is condensed by rule although
        /// it fits. 1: only prompts that do not fit are condensed.
        #[env("LARDER_COMPRESSION_THRESHOLD", "COMPRESSION_THRESHOLD")]
        #[accept(positive_share)]
        // R0-30.3, C19
        pub compression_threshold: f64 = "policy.compression_threshold", 0.9;
        /// Minimum tokens that condensing at `policy.compression_threshold` must save; otherwise the prompt is sent whole.
        /// Does not apply to prompts that do not fit.
        #[env("LARDER_MIN_COMPRESSION_SAVINGS", "MIN_COMPRESSION_SAVINGS")]
        // R0-30.6, C25
        pub min_compression_savings: usize = "policy.min_compression_savings", 500;
        /// Let the model of layer NERVES write condensed renditions in recipes. If false, texts are condensed by rule.
        #[env("LARDER_USE_LLM_SUMMARIZER")]
        // R3-4.20
        pub use_llm_summarizer: bool = "policy.use_llm_summarizer", false;
        /// Seconds that a model may spend condensing for one run. What is not finished by then is condensed by rule.
        #[env("LARDER_SUMMARIZER_TIMEOUT")]
        // C46
        pub summarizer_timeout: Duration = "policy.summarizer_timeout_s", Duration::from_secs(120);
    }
    with {
        /// How much a model may read back of what its prompt shows condensed.
        pub rehydration: RehydrationLimits,
    }
}

settings! {
    /// Settings of `[policy]` that apply to a project or its store rather than to a run.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct CompressionSettings {
        /// `token_budget.total`, in tokens, of the project's recipes that declare none. Built-in recipes declare theirs.
        #[env("LARDER_DEFAULT_CONTEXT_BUDGET", "DEFAULT_CONTEXT_BUDGET")]
        #[accept(positive)]
        // R0-30.1, C17
        pub default_context_budget: usize = "policy.default_context_budget", crate::project::DEFAULT_CONTEXT_BUDGET;
        /// Layer whose model writes condensed renditions. NERVES is the only value; bind another model to it under
        /// `[models.layers]`.
        #[env("LARDER_COMPRESSION_MODEL_LAYER", "COMPRESSION_MODEL_LAYER")]
        #[accept(nerves)]
        // R0-30.7, R0-10.11
        pub model_layer: Layer = "policy.compression_model_layer", Layer::Nerves;
        /// Seconds for which renditions written by a model are kept at least. They are found by the content that they
        /// condense, so one that is still there afterwards is used too.
        #[env("LARDER_COMPRESSION_CACHE_TTL", "COMPRESSION_CACHE_TTL")]
        // R0-30.5
        pub cache_ttl: Duration = "policy.compression_cache_ttl_s", Duration::from_secs(300);
    }
}

settings! {
    /// How the gateway fits conversations.
    #[derive(Debug, Clone, PartialEq)]
    pub(crate) struct GatewayPolicy {
        /// In the gateway, make and report every decision, but forward requests unchanged. Recipes are not affected.
        #[env("LARDER_CONTEXT_POLICY_DRY_RUN")]
        #[aliases("ai.context_policy.dry_run", "context_policy.dry_run")]
        // R3-5.1
        pub dry_run: bool = "policy.dry_run", false;
        /// Tokens reserved for the reply when a request sets no limit for it.
        #[env("LARDER_RESPONSE_RESERVE", "RESPONSE_TOKEN_RESERVE")]
        #[aliases("ai.context_policy.response_reserve", "context_policy.response_reserve")]
        // R3-4.9, R0-30.2
        pub response_reserve: usize = "policy.response_reserve", PolicySettings::default().response_reserve;
        /// Tokens above which the oldest tool results of a conversation are compacted. Unset: four fifths of the budget.
        #[env("LARDER_TRACE_THRESHOLD_TOKENS")]
        #[aliases("ai.context_policy.trace_threshold_tokens", "context_policy.trace_threshold_tokens")]
        #[like("1000")]
        #[accept(positive_or_unset)]
        // R3-4.32
        pub trace_threshold_tokens: Option<usize> = "policy.trace_threshold_tokens", None;
        /// Share of `policy.trace_threshold_tokens`, from 0.05 to 1, that a compaction reduces a conversation to.
        #[env("LARDER_LOW_WATERMARK")]
        #[accept(share)]
        pub low_watermark: f64 = "policy.low_watermark", PolicySettings::default().low_watermark;
        /// Tokens that a new tool result may have; one that exceeds them by more than a quarter is condensed, with a
        /// pointer to the original. Source code and errors may have four times as many, files that are read eight times.
        /// At least 96. Unset: 2,000, or a 64th of a smaller window.
        #[env("LARDER_ENTRY_CAP")]
        #[like("1000")]
        #[accept(positive_or_unset)]
        pub entry_cap: Option<usize> = "policy.entry_cap", None;
        /// `policy.entry_cap` for the results of single tools: a table from names to tokens, each at least 96; `*` at the end
        /// of a name matches any ending, and the name that says most about a tool applies.
        #[env("LARDER_TOOL_CAPS")]
        #[like("{ shell = 2000 }")]
        pub tool_caps: BTreeMap<String, usize> = "policy.tool_caps", BTreeMap::new();
        /// Tokens that a new tool result may have for a model whose window nobody knows; one that exceeds them by more
        /// than a quarter is condensed. At least 96. Nothing else is shortened for such a model, and nothing refused.
        #[env("LARDER_UNKNOWN_MODEL_CAP")]
        #[accept(positive)]
        pub unknown_model_cap: usize = "policy.unknown_model_cap", PolicySettings::default().unknown_model_cap;
        /// Number of newest messages that a compaction leaves unchanged.
        #[env("LARDER_PROTECT_LAST")]
        pub protect_last: usize = "policy.protect_last", PolicySettings::default().protect_last;
        /// When the model is offered the rehydrate tool, which reads originals back: `when_needed` (in prompts with
        /// pointers) or `with_tools` (in every request that has tools, which keeps the provider's cached prefix stable).
        #[env("LARDER_OFFER_TOOL")]
        pub offer_tool: ToolOffer = "policy.offer_tool", ToolOffer::WhenNeeded;
        /// Price of a cached prompt token relative to an uncached one, from 0 to 1, for models without known prices.
        #[env("LARDER_CACHE_PRICE")]
        #[accept(share)]
        pub cache_price: f64 = "policy.cache_price", PolicySettings::default().cache_price;
        /// Model calls that a conversation is expected to make from now on. Unset: as many as it has made so far.
        #[env("LARDER_EXPECTED_TURNS")]
        #[like("1000")]
        #[accept(positive_or_unset)]
        pub expected_turns: Option<usize> = "policy.expected_turns", None;
        /// Tools whose results are never condensed; `*` at the end of a name matches any ending.
        #[env("LARDER_OPT_OUT_TOOLS")]
        #[aliases("ai.context_policy.opt_out_tools", "context_policy.opt_out_tools")]
        // R3-4.28, R3-5.10
        pub opt_out_tools: Vec<String> = "policy.opt_out_tools",
            larder_core::policy::OPT_OUT_TOOLS.map(str::to_owned).to_vec();
    }
}

impl RunPolicy {
    /// Whether what does not fit is condensed: either switch turns it off (C50).
    pub fn condenses(&self) -> bool {
        self.switched_off().is_none()
    }

    /// The switch that turns condensing off.
    pub const fn switched_off(&self) -> Option<&'static str> {
        match (self.enabled, self.compression_enabled) {
            (false, _) => Some("policy.enabled"),
            (true, false) => Some("policy.compression_enabled"),
            (true, true) => None,
        }
    }
}

impl GatewayPolicy {
    /// Converts to the settings of the policy for conversations, with those that it shares with recipes.
    pub(crate) fn settings(self, run: &RunPolicy) -> PolicySettings {
        PolicySettings {
            enabled: run.condenses(),
            dry_run: self.dry_run,
            prompt_budget_override: run.prompt_budget_override,
            response_reserve: self.response_reserve,
            emergency_floor: run.emergency_floor,
            trace_threshold_tokens: self.trace_threshold_tokens,
            low_watermark: self.low_watermark,
            entry_cap: self.entry_cap,
            tool_caps: self.tool_caps,
            unknown_model_cap: self.unknown_model_cap,
            protect_last: self.protect_last,
            opt_out_tools: self.opt_out_tools.into_iter().collect(),
            offer_tool: self.offer_tool,
            cache_price: self.cache_price,
            expected_turns: self.expected_turns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_policy() {
        assert_eq!(GatewayPolicy::default().settings(&RunPolicy::default()), PolicySettings::default());
    }
}
