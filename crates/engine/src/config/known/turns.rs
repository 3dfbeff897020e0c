//! The settings of documents and turns, as the one schema has them. Knows neither.

use larder_models::price::Usd;

use super::{Known, optional, positive, text, whole};

/// What stands before the bucket of documents that lie in an object store.
const BUCKET: &str = "s3://";

fn place(text: &str) -> bool {
    match text.strip_prefix(BUCKET) {
        Some(rest) => !rest.trim_matches('/').is_empty(),
        None => !text.contains("://"),
    }
}

fn dollars(text: &str) -> bool {
    text.is_empty() || text.parse().is_ok_and(|amount: Usd| amount > Usd::default())
}

pub(super) const TURNS: &[Known] = &[
    Known::new(
        "documents.place",
        &["LARDER_DOCUMENTS"],
        "",
        place,
        "where turns and what is remembered are kept as files: a folder, relative to larder.toml, or \
         s3://bucket/prefix; unset: documents in the home folder",
    )
    .like("s3://bucket/prefix"),
    Known::new(
        "gather.embedding",
        &["LARDER_GATHER_EMBEDDING"],
        "",
        text,
        "the model of the table by whose vectors turns also find what means the same in other words; it is sent what turns \
         ask and come to; unset: by words alone",
    )
    .like("minilm"),
    Known::new(
        "turn.max_iterations",
        &["LARDER_TURN_MAX_ITERATIONS"],
        "10",
        positive,
        // R1-3.44
        "rounds in which a turn may decide which tools it calls next",
    ),
    Known::new(
        "turn.max_tool_calls",
        &["LARDER_TURN_MAX_TOOL_CALLS"],
        "20",
        whole,
        // R1-3.45
        "calls of tools in these rounds",
    ),
    Known::new(
        "turn.max_revisions",
        &["LARDER_TURN_MAX_REVISIONS"],
        "2",
        whole,
        // R1-3.75
        "times a turn may write its answer again after it was found wanting",
    ),
    Known::new(
        "turn.max_retries",
        &["LARDER_TURN_MAX_RETRIES"],
        "1",
        whole,
        // R1-3.76
        "times a turn may plan again",
    ),
    Known::new(
        "turn.max_tokens",
        &["LARDER_TURN_MAX_TOKENS"],
        "",
        optional,
        "tokens that a turn may take, prompts and replies of all its models and tools; unset: no limit",
    )
    .like("200000"),
    Known::new(
        "turn.max_cost",
        &["LARDER_TURN_MAX_COST"],
        "",
        dollars,
        "US dollars that a turn may cost, as far as prices are known; unset: no limit",
    )
    .like("0.50"),
    Known::new(
        "turn.max_time_s",
        &["LARDER_TURN_MAX_TIME"],
        "",
        optional,
        "seconds that a turn may take; unset: no limit",
    )
    .like("300"),
];
