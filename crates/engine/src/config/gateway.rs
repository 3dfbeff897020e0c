//! The settings of the gateway, typed. Knows neither HTTP nor what the limits are applied to.

use std::net::SocketAddr;
use std::time::Duration;

use larder_core::policy;
use larder_models::table::Provider;
use larder_models::upstream::{KeySource, Upstream};

use super::{CODE, Config, ConfigError, SettingOrigin, SettingProblem, known};

/// How `larder serve` listens, what it takes, and where it passes requests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewaySettings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Whether programs on this machine need a key; `None` where nobody set it.
    pub require_keys: Option<bool>,
    /// Servers for models that the table does not have.
    pub upstreams: Vec<Upstream>,
    /// Tokens of prompt and reply of such a model.
    pub default_window: usize,
    /// Tokens of a reply of such a model.
    pub default_max_output: usize,
    /// Bytes of a body.
    pub max_body_bytes: usize,
    /// Messages of a request.
    pub max_messages: usize,
    /// Requests at once.
    pub max_requests: usize,
    /// Time for the head of a request.
    pub header_timeout: Duration,
    /// Time for its body.
    pub body_timeout: Duration,
    /// Time that a client may take no more of its reply.
    pub write_timeout: Duration,
    /// Time that an upstream may stay silent.
    pub upstream_timeout: Duration,
    /// Time that requests under way have to end.
    pub drain: Duration,
    /// Times a request is sent again that surely was not worked on.
    pub retries: u32,
    /// The longest `retry-after` that is waited for.
    pub retry_after_max: Duration,
    /// Times within one request that a model may ask originals back.
    pub rehydrate_rounds: u32,
    /// Tokens of one answer to such a call.
    pub rehydrate_tokens: usize,
    /// Whether transcripts are kept.
    pub transcripts: bool,
    /// Where traces go.
    pub otlp_endpoint: Option<String>,
}

impl GatewaySettings {
    /// Whether every request needs a key: as set, otherwise where other machines reach the address. `None` leaves it to
    /// whether a key was ever created.
    pub fn keys_required(&self) -> Option<bool> {
        self.require_keys.or((!self.listen.ip().is_loopback()).then_some(true))
    }
}

impl Config {
    /// The settings of the gateway.
    pub fn gateway(&self) -> GatewaySettings {
        let number = |key: &str| self.number(key).unwrap_or_default();
        let seconds = |key: &str| self.seconds(key).unwrap_or_default();
        GatewaySettings {
            listen: self.number("gateway.listen").unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8787))),
            require_keys: self.stated("gateway.require_keys").map(|value| value == "true"),
            upstreams: [Provider::OpenAi, Provider::Anthropic, Provider::Bedrock]
                .into_iter()
                .filter_map(|provider| self.upstream(provider))
                .collect(),
            default_window: number("gateway.default_window"),
            default_max_output: number("gateway.default_max_output"),
            max_body_bytes: number("gateway.max_body_bytes"),
            max_messages: number("gateway.max_messages"),
            max_requests: number("gateway.max_requests"),
            header_timeout: seconds("gateway.header_timeout_s"),
            body_timeout: seconds("gateway.body_timeout_s"),
            write_timeout: seconds("gateway.write_timeout_s"),
            upstream_timeout: seconds("gateway.upstream_timeout_s"),
            drain: seconds("gateway.drain_s"),
            retries: self.number("gateway.retries").unwrap_or_default(),
            retry_after_max: seconds("gateway.retry_after_max_s"),
            rehydrate_rounds: self.number("gateway.rehydrate_rounds").unwrap_or_default(),
            rehydrate_tokens: number("gateway.rehydrate_tokens"),
            transcripts: self.is_on("gateway.transcripts"),
            otlp_endpoint: self.stated("gateway.otlp_endpoint").map(str::to_owned),
        }
    }

    /// What the gateway's policy goes by.
    pub fn context_policy(&self) -> policy::PolicySettings {
        let number = |key: &str| self.number(key).unwrap_or_default();
        let share = |key: &str| self.number(key).unwrap_or_default();
        policy::PolicySettings {
            // Either switch turns condensing off (C50).
            enabled: self.is_on("policy.enabled") && self.is_on("policy.compression_enabled"),
            dry_run: self.is_on("policy.dry_run"),
            prompt_budget_override: self.number("policy.prompt_budget_override"),
            response_reserve: number("policy.response_reserve"),
            emergency_floor: self.number("policy.emergency_floor"),
            trace_threshold_tokens: self.number("policy.trace_threshold_tokens"),
            low_watermark: share("policy.low_watermark"),
            entry_cap: number("policy.entry_cap"),
            protect_last: number("policy.protect_last"),
            opt_out_tools: self.names("policy.opt_out_tools").into_iter().collect(),
            offer_tool: self
                .value("policy.offer_tool")
                .and_then(policy::ToolOffer::named)
                .unwrap_or_default(),
            cache_price: share("policy.cache_price"),
            expected_turns: self.number("policy.expected_turns"),
        }
    }

    /// Fails where the policy could not work with what was set: every such value of the file, or the first of the
    /// environment.
    pub(super) fn check_policy(&self) -> Result<(), ConfigError> {
        let mut problems = Vec::new();
        for policy::InvalidSetting { field, value, help } in self.context_policy().problems() {
            let key = format!("policy.{field}");
            let stated = self.settings.iter().find(|setting| setting.key == key);
            let known = known::known().find(|known| known.key == key);
            if let (Some(SettingOrigin::Environment { name }), Some(known)) =
                (stated.map(|setting| &setting.origin), known)
            {
                let (name, like) = (name.clone(), known.example());
                return Err(ConfigError::Environment { name, value, key: known.key, like });
            }
            let names = known.into_iter().flat_map(|known| known.aliases).copied();
            let place = std::iter::once(key.as_str()).chain(names).find_map(|name| self.places.find(name));
            let (line, column) = place.unwrap_or((1, 1));
            problems.push(SettingProblem {
                code: CODE,
                severity: "error",
                file: self.path.clone(),
                line,
                column,
                message: format!("{key} cannot be {value}"),
                help,
            });
        }
        if problems.is_empty() { Ok(()) } else { Err(ConfigError::Problems(problems)) }
    }

    fn upstream(&self, provider: Provider) -> Option<Upstream> {
        let name = provider.as_str();
        let base_url = self.stated(&format!("gateway.{name}"))?.to_owned();
        let variable = self.stated(&format!("gateway.{name}_key_env"));
        let file = self.stated(&format!("gateway.{name}_key_file"));
        let key = variable
            .map(|name| KeySource::Environment(name.to_owned()))
            .or_else(|| file.map(|path| KeySource::File(path.into())));
        Some(Upstream { provider, base_url, key })
    }

    pub(super) fn is_on(&self, key: &str) -> bool {
        self.value(key) == Some("true")
    }

    /// A value that somebody set.
    pub(super) fn stated(&self, key: &str) -> Option<&str> {
        self.value(key).filter(|value| !value.is_empty())
    }

    pub(super) fn names(&self, key: &str) -> Vec<String> {
        self.value(key).and_then(known::list).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn resolve(text: &str, env: crate::config::Env<'_>) -> Result<Config, ConfigError> {
        Config::resolve(text, "larder.toml", None, Path::new("."), env)
    }

    #[test]
    fn values_under_which_the_policy_cannot_work_are_all_named_with_their_places() {
        let text = "[policy]\nenabled = true\nentry_cap = 10\n  low_watermark = 0.01\n";
        let error = resolve(text, &|_| None).unwrap_err();
        let ConfigError::Problems(problems) = &error else { panic!("{error}") };
        let told: Vec<_> =
            problems.iter().map(|problem| (problem.line, problem.column, problem.message.as_str())).collect();
        assert_eq!(
            told,
            [(4, 3, "policy.low_watermark cannot be 0.01"), (3, 1, "policy.entry_cap cannot be 10")]
        );
        let words = error.to_string();
        assert!(words.contains("larder.toml:3:1\n  help: write at least 96"), "{words}");

        assert!(resolve("[policy]\nentry_cap = 96\nlow_watermark = 0.05\n", &|_| None).is_ok());
        let env = |name: &str| (name == "LARDER_ENTRY_CAP").then(|| "10".to_owned());
        let words = resolve("", &env).unwrap_err().to_string();
        assert!(
            words.starts_with("$LARDER_ENTRY_CAP is \"10\", which policy.entry_cap cannot be"),
            "{words}"
        );
    }

    #[test]
    fn a_file_that_is_no_toml_is_reported_without_an_empty_help() {
        for text in ["[policy\n", "[ask]\nmax_calls = 1\nmax_calls = 2\n"] {
            let words = resolve(text, &|_| None).unwrap_err().to_string();
            assert!(words.starts_with("error[L070]") && words.contains("larder.toml:"), "{words}");
            assert!(!words.contains("help: \n") && !words.trim_end().ends_with("help:"), "{words}");
        }
    }

    #[test]
    fn either_switch_turns_condensing_off_and_no_floor_is_a_floor() {
        let policy = |text: &str| resolve(text, &|_| None).unwrap().context_policy();
        assert!(policy("").enabled);
        assert!(!policy("[policy]\nenabled = false\n").enabled);
        assert!(!policy("[policy]\ncompression_enabled = false\n").enabled);
        let off = |name: &str| (name == "COMPRESSION_ENABLED").then(|| "false".to_owned());
        assert!(!resolve("", &off).unwrap().context_policy().enabled);

        assert_eq!(policy("").emergency_floor, None, "a share of each window");
        assert_eq!(policy("[policy]\nemergency_floor = 0\n").emergency_floor, Some(0));
        assert!(resolve("[policy]\nemergency_floor = -1\n", &|_| None).is_err());
    }
}
