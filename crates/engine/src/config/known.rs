//! The one settings schema (C86): every key with its environment names, help, default and what it may be. Knows no file.

mod policy;
mod tools;
mod turns;

use crate::settings::{AnswerMode, Planner};

/// A setting that can be set by file and environment.
pub(super) struct Known {
    pub key: &'static str,
    /// Older names of the key in files.
    pub aliases: &'static [&'static str],
    /// Names with the prefix come first, then the older ones.
    pub env: &'static [&'static str],
    pub help: &'static str,
    /// Empty where nothing is set unless somebody sets it.
    pub default: &'static str,
    pub check: fn(&str) -> bool,
    /// A legal value where the default is none.
    like: &'static str,
}

impl Known {
    const fn new(
        key: &'static str,
        env: &'static [&'static str],
        default: &'static str,
        check: fn(&str) -> bool,
        help: &'static str,
    ) -> Self {
        Self { key, aliases: &[], env, help, default, check, like: "1000" }
    }

    const fn also(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    const fn like(self, like: &'static str) -> Self {
        Self { like, ..self }
    }

    /// Whether a file may call it so.
    pub(super) fn is_called(&self, key: &str) -> bool {
        self.key == key || self.aliases.contains(&key)
    }

    /// A legal value, for messages.
    pub(super) const fn example(&self) -> &'static str {
        if self.default.is_empty() { self.like } else { self.default }
    }
}

fn boolean(text: &str) -> bool {
    matches!(text, "true" | "false")
}

fn optional_boolean(text: &str) -> bool {
    text.is_empty() || boolean(text)
}

fn whole(text: &str) -> bool {
    text.parse::<u32>().is_ok()
}

fn positive(text: &str) -> bool {
    text.parse::<u32>().is_ok_and(|number| number > 0)
}

fn optional(text: &str) -> bool {
    text.is_empty() || positive(text)
}

fn optional_whole(text: &str) -> bool {
    text.is_empty() || whole(text)
}

fn share(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(|number| (0.0..=1.0).contains(&number))
}

fn text(_: &str) -> bool {
    true
}

fn address(text: &str) -> bool {
    text.is_empty() || text.starts_with("http://") || text.starts_with("https://")
}

fn socket(text: &str) -> bool {
    text.parse::<std::net::SocketAddr>().is_ok()
}

fn names(text: &str) -> bool {
    list(text).is_some()
}

/// A list as a file (`["a", "b"]`) or an environment variable (`a,b`) has it.
pub(super) fn list(text: &str) -> Option<Vec<String>> {
    if !text.trim_start().starts_with('[') {
        return Some(
            text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        );
    }
    let table: toml::Table = format!("list = {text}").parse().ok()?;
    let values = table.get("list")?.as_array()?;
    values.iter().map(|value| value.as_str().map(str::to_owned)).collect()
}

/// Every setting outside `[models]` whose name is fixed.
pub(super) fn known() -> impl Iterator<Item = &'static Known> + Clone {
    policy::POLICY.iter().chain(KNOWN).chain(tools::TOOLS).chain(turns::TURNS)
}

const KNOWN: &[Known] = &[
    Known::new(
        "ask.answer",
        &["LARDER_ASK_ANSWER"],
        "auto",
        |text| AnswerMode::named(text).is_some(),
        "what answers of `larder ask` are made of: quote (sentences of the files), generate (a model's words), or auto \
         (quote with the embedded model)",
    ),
    Known::new(
        "ask.planner",
        &["LARDER_ASK_PLANNER"],
        "auto",
        |text| Planner::named(text).is_some(),
        "who decides what `larder ask` reads: auto, rules or model",
    ),
    Known::new(
        "ask.max_depth",
        &["LARDER_ASK_MAX_DEPTH"],
        "1",
        whole,
        "how deep sub-questions of `larder ask` may nest",
    ),
    Known::new(
        "ask.max_calls",
        &["LARDER_ASK_MAX_CALLS"],
        "10",
        whole,
        "calls of recipes that `larder ask` may make for one question",
    ),
    Known::new(
        "ask.max_tokens",
        &["LARDER_ASK_MAX_TOKENS"],
        "60000",
        whole,
        "tokens that these calls may take, prompts and replies",
    ),
    Known::new(
        "gateway.listen",
        &["LARDER_LISTEN"],
        "127.0.0.1:8787",
        socket,
        "the address that `larder serve` listens on",
    ),
    Known::new(
        "gateway.require_keys",
        &["LARDER_REQUIRE_KEYS"],
        "",
        optional_boolean,
        "refuse requests without a key; false: programs on this machine need none; unset: true as soon as a key has been \
         created or the address is not loopback",
    )
    .like("true"),
    Known::new(
        "gateway.openai",
        &["LARDER_OPENAI_UPSTREAM"],
        "",
        address,
        "where requests in OpenAI's formats go whose model is not in the table, such as https://api.openai.com/v1",
    )
    .like("https://api.openai.com/v1"),
    Known::new(
        "gateway.openai_key_env",
        &[],
        "",
        text,
        "the environment variable with the key for it; without one, clients bring their own",
    ),
    Known::new("gateway.openai_key_file", &[], "", text, "or the file with that key, relative to larder.toml"),
    Known::new(
        "gateway.anthropic",
        &["LARDER_ANTHROPIC_UPSTREAM"],
        "",
        address,
        "where requests in Anthropic's format go whose model is not in the table, such as https://api.anthropic.com",
    )
    .like("https://api.anthropic.com"),
    Known::new(
        "gateway.anthropic_key_env",
        &[],
        "",
        text,
        "the environment variable with the key for it; without one, clients bring their own",
    ),
    Known::new("gateway.anthropic_key_file", &[], "", text, "or the file with that key, relative to larder.toml"),
    Known::new(
        "gateway.bedrock",
        &["LARDER_BEDROCK_UPSTREAM"],
        "",
        address,
        "where requests in Amazon Bedrock's own format pass to as they are, signed by the client for that address",
    ),
    Known::new(
        "gateway.default_window",
        &["LARDER_DEFAULT_WINDOW"],
        "128000",
        positive,
        "tokens of prompt and reply that a model takes which is not in the table",
    ),
    Known::new(
        "gateway.default_max_output",
        &["LARDER_DEFAULT_MAX_OUTPUT"],
        "16384",
        positive,
        "tokens that a reply of such a model may have",
    ),
    Known::new(
        "gateway.max_body_bytes",
        &["LARDER_MAX_BODY_BYTES"],
        "33554432",
        positive,
        "bytes that the body of a request may have",
    ),
    Known::new(
        "gateway.max_messages",
        &["LARDER_MAX_MESSAGES"],
        "20000",
        positive,
        "messages that a request may hold",
    ),
    Known::new(
        "gateway.max_requests",
        &["LARDER_MAX_REQUESTS"],
        "512",
        positive,
        "requests at once; more are asked to come again",
    ),
    Known::new(
        "gateway.header_timeout_s",
        &["LARDER_HEADER_TIMEOUT"],
        "30",
        positive,
        "seconds that a client may take to send the head of a request, and stay connected without one",
    ),
    Known::new(
        "gateway.body_timeout_s",
        &["LARDER_BODY_TIMEOUT"],
        "120",
        positive,
        "seconds that a client may take to send the body of a request",
    ),
    Known::new(
        "gateway.write_timeout_s",
        &["LARDER_WRITE_TIMEOUT"],
        "60",
        positive,
        "seconds that a client may take no more of a reply that waits for it; then its connection is closed",
    ),
    Known::new(
        "gateway.upstream_timeout_s",
        &["LARDER_UPSTREAM_TIMEOUT"],
        "600",
        positive,
        "seconds that an upstream may stay silent",
    ),
    Known::new(
        "gateway.drain_s",
        &["LARDER_DRAIN"],
        "30",
        whole,
        "seconds that requests under way may take to end after SIGTERM",
    ),
    Known::new(
        "gateway.retries",
        &["LARDER_RETRIES"],
        "2",
        whole,
        "times a request is sent again that surely was not worked on: no connection, or a refusal with retry-after",
    ),
    Known::new(
        "gateway.retry_after_max_s",
        &["LARDER_RETRY_AFTER_MAX"],
        "0",
        whole,
        "the longest retry-after of a 429 or 503 that is waited for; 0 hands them all to the client",
    ),
    Known::new(
        "gateway.rehydrate_rounds",
        &["LARDER_REHYDRATE_ROUNDS"],
        "4",
        whole,
        "times within one request that a model may ask originals back; 0 offers it no way to",
    ),
    Known::new(
        "gateway.rehydrate_tokens",
        &["LARDER_REHYDRATE_TOKENS"],
        "4000",
        positive,
        "tokens that one answer to such a call may have",
    ),
    Known::new(
        "gateway.transcripts",
        &["LARDER_TRANSCRIPTS"],
        "true",
        boolean,
        // R3-4.35
        "keep each message of a conversation as it came and as it was sent",
    ),
    Known::new(
        "gateway.otlp_endpoint",
        &["LARDER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"],
        "",
        address,
        "where traces are sent by OTLP over HTTP; nothing is sent anywhere without it",
    )
    .like("http://127.0.0.1:4318"),
];

/// Whether settings stand in a table of this name.
pub(super) fn is_table(name: &str) -> bool {
    let is_of = |key: &str| key.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
    known().any(|known| is_of(known.key) || known.aliases.iter().any(|alias| is_of(alias)))
}

/// What somebody who wrote `key` may have meant.
pub(super) fn nearest(key: &str) -> String {
    let tables = ["models", "policy", "ask", "gateway", "tools", "documents", "gather", "turn"];
    let known = known().map(|known| known.key).chain(tables);
    larder_core::recipe::suggest(key, known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_legal_and_every_key_is_named_once() {
        let mut names: Vec<&str> = Vec::new();
        for known in known() {
            assert!((known.check)(known.default), "{}", known.key);
            names.push(known.key);
            names.extend(known.aliases);
            names.extend(known.env);
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn a_list_is_read_as_files_and_variables_write_it() {
        for text in ["a, b", "[\"a\", \"b\"]", "[ 'a', 'b', ]"] {
            assert_eq!(list(text), Some(vec!["a".to_owned(), "b".to_owned()]), "{text}");
        }
        assert_eq!(list(""), Some(Vec::new()));
        for wrong in ["[1]", "[\"a\"", "[[]]"] {
            assert_eq!(list(wrong), None, "{wrong}");
        }
    }
}
