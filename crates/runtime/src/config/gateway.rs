//! The settings of the gateway, typed. Knows neither HTTP nor what the limits are applied to.

use std::net::SocketAddr;
use std::time::Duration;

use larder_core::policy;
use larder_models::table::Provider;
use larder_models::upstream::{KeySource, Upstream};

use super::{Config, known};

/// How `larder serve` listens, what it takes, and where it passes requests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gateway {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Whether this machine needs a key even while none has been made.
    pub require_keys: bool,
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

impl Config {
    /// The settings of the gateway.
    pub fn gateway(&self) -> Gateway {
        let number = |key: &str| self.number(key).unwrap_or_default();
        let seconds = |key: &str| self.seconds(key).unwrap_or_default();
        Gateway {
            listen: self.number("gateway.listen").unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8787))),
            require_keys: self.is_on("gateway.require_keys"),
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
    pub fn context_policy(&self) -> policy::Settings {
        let number = |key: &str| self.number(key).unwrap_or_default();
        let share = |key: &str| self.number(key).unwrap_or_default();
        policy::Settings {
            enabled: self.is_on("policy.enabled"),
            dry_run: self.is_on("policy.dry_run"),
            prompt_budget_override: self.number("policy.prompt_budget_override"),
            response_reserve: number("policy.response_reserve"),
            emergency_floor: self.number("policy.emergency_floor"),
            trace_threshold_tokens: self.number("policy.trace_threshold_tokens"),
            low_watermark: share("policy.low_watermark"),
            entry_cap: number("policy.entry_cap"),
            protect_last: number("policy.protect_last"),
            opt_out_tools: self.names("policy.opt_out_tools").into_iter().collect(),
            offer_tool: self.value("policy.offer_tool").and_then(policy::Offer::named).unwrap_or_default(),
            cache_price: share("policy.cache_price"),
            expected_turns: self.number("policy.expected_turns"),
        }
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
