//! The settings of documents and turns. Knows no phase and no store.

use std::time::Duration;

use larder_models::price::Usd;

use super::spec::{positive, positive_or_unset, settings};

/// The prefix of document addresses in an object store.
const BUCKET: &str = "s3://";

/// Whether a text is an address, or meant as one: `gs://bucket`, `s3:/bucket`. A drive has one letter.
fn is_address(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, rest)| {
        scheme.len() > 1
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && (rest.starts_with('/') || scheme == "s3")
    })
}

/// Parses a folder, or a named bucket.
fn document_place(text: &str) -> Option<Option<String>> {
    let is_legal = match text.strip_prefix(BUCKET) {
        Some(bucket) => !bucket.trim_matches('/').is_empty(),
        None => !is_address(text),
    };
    is_legal.then(|| Some(text.to_owned()).filter(|text| !text.is_empty()))
}

settings! {
    /// Where documents are stored, how they are found, and who does background jobs.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub(crate) struct VaultSettings {
        /// Where turns and memory are kept as files: a folder, relative to larder.toml, or `s3://bucket/prefix`. Unset:
        /// `documents` in the home folder.
        #[env("LARDER_DOCUMENTS")]
        #[like("s3://bucket/prefix")]
        #[accept(document_place)]
        pub place: Option<String> = "documents.place", None;
        /// Embedding model of the model table with which turns also find texts that express the same in other words. It
        /// receives the queries and results of turns. Unset: turns search by words alone.
        #[env("LARDER_GATHER_EMBEDDING")]
        #[like("minilm")]
        pub embedding: Option<String> = "gather.embedding", None;
        /// Whether a command that leaves background jobs, such as the summary of a turn, starts a process that does them and
        /// outlives the command. Otherwise they wait for `larder serve` or `larder jobs work`.
        #[env("LARDER_JOBS_DETACHED")]
        pub jobs_detached: bool = "jobs.detached", true;
    }
}

settings! {
    /// The most that a turn may use. The counters of revisions and retries belong to the turn and are never reset (C68).
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct TurnLimits {
        /// Maximum rounds in which a turn decides which tools to call next.
        #[env("LARDER_TURN_MAX_ITERATIONS")]
        #[accept(positive)]
        // R1-3.44
        pub iterations: u32 = "turn.max_iterations", 10;
        /// Maximum tool calls in these rounds.
        #[env("LARDER_TURN_MAX_TOOL_CALLS")]
        // R1-3.45
        pub tool_calls: u32 = "turn.max_tool_calls", 20;
        /// Maximum times that a turn revises its answer after validation rejects it.
        #[env("LARDER_TURN_MAX_REVISIONS")]
        // R1-3.75
        pub revisions: u32 = "turn.max_revisions", 2;
        /// Maximum times that a turn plans again.
        #[env("LARDER_TURN_MAX_RETRIES")]
        // R1-3.76
        pub retries: u32 = "turn.max_retries", 1;
        /// Maximum tokens of a turn, prompts and replies of all its models and tools. Unset: no limit.
        #[env("LARDER_TURN_MAX_TOKENS")]
        #[like("200000")]
        #[accept(positive_or_unset)]
        pub tokens: Option<u64> = "turn.max_tokens", None;
        /// Maximum cost of a turn in US dollars, as far as prices are known. Unset: no limit.
        #[env("LARDER_TURN_MAX_COST")]
        #[like("0.50")]
        #[accept(positive_or_unset)]
        pub cost: Option<Usd> = "turn.max_cost", None;
        /// Maximum seconds that a turn may take. Unset: no limit.
        #[env("LARDER_TURN_MAX_TIME")]
        #[like("300")]
        #[accept(positive_or_unset)]
        pub time: Option<Duration> = "turn.max_time_s", None;
    }
}
