//! The settings of what is condensed, and of the windows of conversations.

use larder_core::policy::ToolOffer;
use larder_core::recipe::Layer;

use super::{Known, boolean, names, optional, optional_whole, positive, share, whole};

pub(super) const POLICY: &[Known] = &[
    Known::new(
        "policy.compression_enabled",
        &["LARDER_COMPRESSION_ENABLED", "COMPRESSION_ENABLED"],
        "true",
        boolean,
        // R0-30.4, C50
        "condense what does not fit, in recipes and in the gateway; when false, prompts that do not fit are refused",
    ),
    Known::new(
        "policy.default_context_budget",
        &["LARDER_DEFAULT_CONTEXT_BUDGET", "DEFAULT_CONTEXT_BUDGET"],
        "12000",
        positive,
        // R0-30.1, C17
        "token_budget.total of a recipe of the project that names none; recipes that ship name theirs",
    ),
    Known::new(
        "policy.compression_threshold",
        &["LARDER_COMPRESSION_THRESHOLD", "COMPRESSION_THRESHOLD"],
        "0.9",
        |text| text.parse::<f64>().is_ok_and(|share| share > 0.0 && share <= 1.0),
        // R0-30.3, C19
        "the share of its tokens to which a recipe's prompt is condensed, by rule, though all of it would fit; 1: only \
         what does not fit is condensed",
    ),
    Known::new(
        "policy.min_compression_savings",
        &["LARDER_MIN_COMPRESSION_SAVINGS", "MIN_COMPRESSION_SAVINGS"],
        "500",
        whole,
        // R0-30.6, C25
        "tokens that condensing at that threshold must save, or the prompt stays whole; what does not fit is condensed \
         whatever it saves",
    ),
    Known::new(
        "policy.compression_model_layer",
        &["LARDER_COMPRESSION_MODEL_LAYER", "COMPRESSION_MODEL_LAYER"],
        "NERVES",
        |text| text == Layer::Nerves.as_str(),
        // R0-30.7, R0-10.11
        "the layer whose model writes condensed renditions: always NERVES; another model is bound to it under \
         [models.layers]",
    ),
    Known::new(
        "policy.use_llm_summarizer",
        &["LARDER_USE_LLM_SUMMARIZER"],
        "false",
        boolean,
        // R3-4.20
        "let the model of layer NERVES write condensed renditions in recipes",
    ),
    Known::new(
        "policy.summarizer_timeout_s",
        &["LARDER_SUMMARIZER_TIMEOUT"],
        "120",
        whole,
        "seconds that a model may condense for one run; what is not done then is condensed by rule",
    ),
    Known::new(
        "policy.compression_cache_ttl_s",
        &["LARDER_COMPRESSION_CACHE_TTL", "COMPRESSION_CACHE_TTL"],
        "300",
        whole,
        // R0-30.5
        "seconds that condensed forms are cached",
    ),
    Known::new(
        "policy.enabled",
        &["LARDER_CONTEXT_POLICY_ENABLED"],
        "true",
        boolean,
        // R3-4.7, C50
        "let the gateway make conversations fit; when false it still counts, and refuses what cannot fit",
    )
    .also(&["ai.context_policy.enabled", "context_policy.enabled"]),
    Known::new(
        "policy.dry_run",
        &["LARDER_CONTEXT_POLICY_DRY_RUN"],
        "false",
        boolean,
        // R3-5.1
        "decide and report, and send requests as they came",
    )
    .also(&["ai.context_policy.dry_run", "context_policy.dry_run"]),
    Known::new(
        "policy.prompt_budget_override",
        &["LARDER_PROMPT_BUDGET_OVERRIDE"],
        "",
        optional,
        // R3-4.8
        "tokens that a prompt through the gateway may have, where that is less than its model's window leaves",
    )
    .also(&["ai.context_policy.prompt_budget_override", "context_policy.prompt_budget_override"]),
    Known::new(
        "policy.response_reserve",
        &["LARDER_RESPONSE_RESERVE", "RESPONSE_TOKEN_RESERVE"],
        "2000",
        whole,
        // R3-4.9, R0-30.2
        "tokens kept free for the reply where a request does not say how many it may have",
    )
    .also(&["ai.context_policy.response_reserve", "context_policy.response_reserve"]),
    Known::new(
        "policy.emergency_floor",
        &["LARDER_EMERGENCY_FLOOR"],
        "",
        optional_whole,
        // R3-4.1
        "tokens that a prompt must leave free in any case; unset: a twentieth of the window",
    )
    .also(&["ai.context_policy.emergency_floor", "context_policy.emergency_floor"]),
    Known::new(
        "policy.trace_threshold_tokens",
        &["LARDER_TRACE_THRESHOLD_TOKENS"],
        "",
        optional,
        // R3-4.32
        "tokens of a conversation from which its oldest tool results are compacted; unset: four fifths of the budget",
    )
    .also(&["ai.context_policy.trace_threshold_tokens", "context_policy.trace_threshold_tokens"]),
    Known::new(
        "policy.low_watermark",
        &["LARDER_LOW_WATERMARK"],
        "0.5",
        share,
        "the share of that threshold which a compaction comes down to",
    ),
    Known::new(
        "policy.entry_cap",
        &["LARDER_ENTRY_CAP"],
        "144",
        positive,
        "tokens that a tool result may have when it enters; more is condensed, with a pointer to all of it",
    ),
    Known::new(
        "policy.protect_last",
        &["LARDER_PROTECT_LAST"],
        "4",
        whole,
        "newest messages that a compaction leaves as they are",
    ),
    Known::new(
        "policy.offer_tool",
        &["LARDER_OFFER_TOOL"],
        "when_needed",
        |text| ToolOffer::named(text).is_some(),
        "when the model is offered the tool that reads originals back: when_needed (only where pointers stand) or \
         with_tools (in every request that has tools, which keeps the provider's cached prefix in place)",
    ),
    Known::new(
        "policy.cache_price",
        &["LARDER_CACHE_PRICE"],
        "0.1",
        share,
        "what a cached token of a prompt costs beside one that is not, for models whose prices are not known",
    ),
    Known::new(
        "policy.expected_turns",
        &["LARDER_EXPECTED_TURNS"],
        "",
        optional,
        "calls of the model that a conversation is expected to have yet; unset: as many as it had",
    ),
    Known::new(
        "policy.opt_out_tools",
        &["LARDER_OPT_OUT_TOOLS"],
        "document_edit,document_apply_patch,search_replace,validat*",
        names,
        // R3-4.28, R3-5.10
        "tools whose results are never condensed",
    )
    .also(&["ai.context_policy.opt_out_tools", "context_policy.opt_out_tools"]),
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::Config;
    use crate::engine::RunPolicy;

    #[test]
    fn the_older_names_of_the_environment_set_what_they_say() {
        let read = |set: &[(&str, &str)]| {
            let env =
                |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            Config::resolve("", "larder.toml", None, Path::new("."), &env)
        };
        let usual = read(&[]).unwrap();
        assert_eq!((usual.policy(), usual.default_context_budget()), (RunPolicy::default(), 12_000));
        assert_eq!(
            (usual.policy().compression_threshold, usual.policy().min_compression_savings),
            (0.9, 500)
        );
        let set = read(&[
            ("DEFAULT_CONTEXT_BUDGET", "9000"),
            ("COMPRESSION_THRESHOLD", "0.8"),
            ("MIN_COMPRESSION_SAVINGS", "0"),
            ("COMPRESSION_MODEL_LAYER", "NERVES"),
        ])
        .unwrap();
        let policy =
            RunPolicy { compression_threshold: 0.8, min_compression_savings: 0, ..RunPolicy::default() };
        assert_eq!((set.policy(), set.default_context_budget()), (policy, 9_000));
        for wrong in [
            ("DEFAULT_CONTEXT_BUDGET", "0"),
            ("COMPRESSION_THRESHOLD", "0"),
            ("COMPRESSION_THRESHOLD", "90"),
            ("COMPRESSION_MODEL_LAYER", "MIND"),
        ] {
            assert!(read(&[wrong]).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_new_name_counts_where_an_older_one_is_set_too() {
        let text = "[ai.context_policy]\nenabled = true\nresponse_reserve = 1\n[context_policy]\nresponse_reserve = 2\n\
                    emergency_floor = 3\n[policy]\nresponse_reserve = 4\nenabled = false\n";
        let read = |env: &dyn Fn(&str) -> Option<String>| {
            let config = Config::resolve(text, "larder.toml", None, Path::new("."), env).unwrap();
            let of = |key: &str| {
                let setting = config.settings().into_iter().find(|setting| setting.key == key).unwrap();
                (setting.value, setting.origin.to_string())
            };
            ["policy.response_reserve", "policy.enabled", "policy.emergency_floor"].map(of)
        };
        let is = |value: &str, origin: &str| (value.to_owned(), origin.to_owned());
        let [reserve, enabled, floor] = read(&|_| None);
        assert_eq!(reserve, is("4", "larder.toml:8"));
        assert_eq!(enabled, is("false", "larder.toml:9"));
        assert_eq!(floor, is("3", "larder.toml:6"), "an older name counts where it is alone");

        let old = |name: &str| (name == "RESPONSE_TOKEN_RESERVE").then(|| "5".to_owned());
        assert_eq!(read(&old)[0], is("5", "$RESPONSE_TOKEN_RESERVE"), "the environment goes before the file");
        let both = |name: &str| match name {
            "LARDER_RESPONSE_RESERVE" => Some("6".to_owned()),
            other => old(other),
        };
        assert_eq!(read(&both)[0], is("6", "$LARDER_RESPONSE_RESERVE"));
    }
}
