//! The settings of `larder serve`. Knows neither HTTP nor what the limits apply to.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use larder_models::table::Provider;
use larder_models::upstream::{KeySource, Upstream};

use super::spec::{SettingValue, positive, settings, url_or_unset};
use crate::rehydrate;

/// What recipes that are served over HTTP may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallableTools {
    /// Nothing.
    None,
    /// Tools that only read.
    Read,
    /// Those, and tools whose changes can be reverted.
    Write,
}

impl SettingValue for CallableTools {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "none" => Some(Self::None),
            "read" => Some(Self::Read),
            "write" => Some(Self::Write),
            _ => None,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::None => "none",
            Self::Read => "read",
            Self::Write => "write",
        }
        .to_owned()
    }
}

settings! {
    /// How `larder serve` listens, what it accepts, and where it forwards requests.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct GatewaySettings {
        /// Address and port that `larder serve` listens on.
        #[env("LARDER_LISTEN")]
        pub listen: SocketAddr = "gateway.listen", SocketAddr::from((Ipv4Addr::LOCALHOST, 8787));
        /// Reject requests without a key. If false, programs on this machine need none. Unset: true once a key has been
        /// created or if the address is not loopback.
        #[env("LARDER_REQUIRE_KEYS")]
        #[like("true")]
        pub require_keys: Option<bool> = "gateway.require_keys", None;
        /// Base URL for requests in OpenAI's formats whose model is not in the model table, such as
        /// `https://api.openai.com/v1`. Unset: such requests are rejected.
        #[env("LARDER_OPENAI_UPSTREAM")]
        #[like("https://api.openai.com/v1")]
        #[accept(url_or_unset)]
        pub openai: Option<String> = "gateway.openai", None;
        /// Environment variable that holds the key for `gateway.openai`. Unset: clients send their own.
        #[like("OPENAI_API_KEY")]
        pub openai_key_env: Option<String> = "gateway.openai_key_env", None;
        /// File that holds the key for `gateway.openai`, relative to larder.toml. `gateway.openai_key_env` takes
        /// precedence.
        #[like("openai.key")]
        pub openai_key_file: Option<String> = "gateway.openai_key_file", None;
        /// Base URL for requests in Anthropic's format whose model is not in the model table, such as
        /// `https://api.anthropic.com`. Unset: such requests are rejected.
        #[env("LARDER_ANTHROPIC_UPSTREAM")]
        #[like("https://api.anthropic.com")]
        #[accept(url_or_unset)]
        pub anthropic: Option<String> = "gateway.anthropic", None;
        /// Environment variable that holds the key for `gateway.anthropic`. Unset: clients send their own.
        #[like("ANTHROPIC_API_KEY")]
        pub anthropic_key_env: Option<String> = "gateway.anthropic_key_env", None;
        /// File that holds the key for `gateway.anthropic`, relative to larder.toml. `gateway.anthropic_key_env` takes
        /// precedence.
        #[like("anthropic.key")]
        pub anthropic_key_file: Option<String> = "gateway.anthropic_key_file", None;
        /// Base URL for requests in Amazon Bedrock's format whose model is not in the model table. Unset: such requests
        /// are rejected.
        #[env("LARDER_BEDROCK_UPSTREAM")]
        #[like("https://bedrock-runtime.us-east-1.amazonaws.com")]
        #[accept(url_or_unset)]
        pub bedrock: Option<String> = "gateway.bedrock", None;
        /// Environment variable that holds the Bedrock API key for `gateway.bedrock`. Unset: clients send their own.
        #[like("AWS_BEARER_TOKEN_BEDROCK")]
        pub bedrock_key_env: Option<String> = "gateway.bedrock_key_env", None;
        /// File that holds the Bedrock API key for `gateway.bedrock`, relative to larder.toml. `gateway.bedrock_key_env`
        /// takes precedence.
        #[like("bedrock.key")]
        pub bedrock_key_file: Option<String> = "gateway.bedrock_key_file", None;
        /// Profile whose AWS credentials sign requests to `gateway.bedrock`, where no key is set. `default`: the usual
        /// sources (environment, shared files, web identity, roles of containers and machines). Unset: the gateway signs
        /// nothing, and requests that their clients signed are rejected, since a signature covers the gateway's own
        /// address. Needs a build with the feature `bedrock`.
        #[env("LARDER_BEDROCK_AWS_PROFILE")]
        #[like("default")]
        pub bedrock_aws_profile: Option<String> = "gateway.bedrock_aws_profile", None;
        /// Maximum tokens of a reply, assumed when a request sets no limit and neither the model table nor the
        /// catalogue has the model. Matters only below `policy.response_reserve`.
        #[env("LARDER_DEFAULT_MAX_OUTPUT")]
        #[accept(positive)]
        pub default_max_output: usize = "gateway.default_max_output", 16_384;
        /// Maximum size of a request body, in bytes.
        #[env("LARDER_MAX_BODY_BYTES")]
        #[accept(positive)]
        pub max_body_bytes: usize = "gateway.max_body_bytes", 32 << 20;
        /// Maximum number of messages in a request.
        #[env("LARDER_MAX_MESSAGES")]
        #[accept(positive)]
        pub max_messages: usize = "gateway.max_messages", 20_000;
        /// Maximum number of concurrent requests. Clients beyond it are asked to retry.
        #[env("LARDER_MAX_REQUESTS")]
        #[accept(positive)]
        pub max_requests: usize = "gateway.max_requests", 512;
        /// Seconds for a client to send the head of a request, and how long an idle connection stays open.
        #[env("LARDER_HEADER_TIMEOUT")]
        #[accept(positive)]
        pub header_timeout: Duration = "gateway.header_timeout_s", Duration::from_secs(30);
        /// Seconds for a client to send the body of a request.
        #[env("LARDER_BODY_TIMEOUT")]
        #[accept(positive)]
        pub body_timeout: Duration = "gateway.body_timeout_s", Duration::from_secs(120);
        /// Seconds after which the connection is closed if a client does not read the reply.
        #[env("LARDER_WRITE_TIMEOUT")]
        #[accept(positive)]
        pub write_timeout: Duration = "gateway.write_timeout_s", Duration::from_secs(60);
        /// Seconds without a byte from an upstream after which the request fails.
        #[env("LARDER_UPSTREAM_TIMEOUT")]
        #[accept(positive)]
        pub upstream_timeout: Duration = "gateway.upstream_timeout_s", Duration::from_secs(600);
        /// Seconds for requests in flight to finish after SIGTERM.
        #[env("LARDER_DRAIN")]
        pub drain: Duration = "gateway.drain_s", Duration::from_secs(30);
        /// Retries of a request that the upstream certainly did not process: the connection failed, or the reply was a
        /// refusal with `retry-after`.
        #[env("LARDER_RETRIES")]
        pub retries: u32 = "gateway.retries", 2;
        /// Longest `retry-after` of a 429 or 503, in seconds, that the gateway waits for. 0: every such reply is passed to
        /// the client.
        #[env("LARDER_RETRY_AFTER_MAX")]
        pub retry_after_max: Duration = "gateway.retry_after_max_s", Duration::ZERO;
        /// How many times within one request, or one answer of a recipe, a model may read originals back. 0: the rehydrate
        /// tool is not offered, and what fits is sent whole.
        #[env("LARDER_REHYDRATE_ROUNDS")]
        pub rehydrate_rounds: u32 = "gateway.rehydrate_rounds", rehydrate::ROUNDS;
        /// Maximum tokens of one reply of the rehydrate tool.
        #[env("LARDER_REHYDRATE_TOKENS")]
        #[accept(positive)]
        pub rehydrate_tokens: usize = "gateway.rehydrate_tokens", rehydrate::ANSWER_TOKENS;
        /// Which of their tools recipes may call over HTTP: `none`, `read` (those that only read) or `write` (those whose
        /// changes can be reverted, too). Dangerous ones are never called, since there is no one to ask.
        #[env("LARDER_RECIPE_TOOLS")]
        pub recipe_tools: CallableTools = "gateway.recipe_tools", CallableTools::Read;
        /// Record each message of a conversation as received and as sent.
        #[env("LARDER_TRANSCRIPTS")]
        pub transcripts: bool = "gateway.transcripts", true;
        /// OTLP/HTTP endpoint that receives traces. Unset: no traces are sent.
        #[env("LARDER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")]
        #[like("http://127.0.0.1:4318")]
        #[accept(url_or_unset)]
        pub otlp_endpoint: Option<String> = "gateway.otlp_endpoint", None;
    }
}

impl GatewaySettings {
    /// Whether every request needs a key: as set, otherwise true if other machines can reach the address. `None`: it
    /// depends on whether a key was ever created.
    pub fn keys_required(&self) -> Option<bool> {
        self.require_keys.or((!self.listen.ip().is_loopback()).then_some(true))
    }

    /// The servers for models that are not in the model table.
    pub fn upstreams(&self) -> Vec<Upstream> {
        let upstreams = [
            (Provider::OpenAi, &self.openai, &self.openai_key_env, &self.openai_key_file),
            (Provider::Anthropic, &self.anthropic, &self.anthropic_key_env, &self.anthropic_key_file),
            (Provider::Bedrock, &self.bedrock, &self.bedrock_key_env, &self.bedrock_key_file),
        ];
        let upstream =
            |(provider, base_url, variable, file): (_, &Option<String>, &Option<String>, &Option<String>)| {
                let variable = variable.clone().map(KeySource::Environment);
                let key = variable.or_else(|| file.clone().map(|path| KeySource::File(path.into())));
                let profile = self.bedrock_aws_profile.clone().filter(|_| provider == Provider::Bedrock);
                let key = key.or_else(|| profile.map(KeySource::Aws));
                Some(Upstream { provider, base_url: base_url.clone()?, key })
            };
        upstreams.into_iter().filter_map(upstream).collect()
    }
}
