//! Which crates may depend on which: the pure ones reach nothing that does IO, our own crates point one way only, and one
//! door leads to models. Every rule is a function of names or text, and is tried on a planted offence as well.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crates that do no IO (invariant 12).
const PURE: [&str; 5] = ["larder-text", "larder-condense", "larder-core", "larder-vault", "larder-proxy"];

/// Crates that would bring an async runtime, HTTP, SQL, files or a command line into a pure crate. A
/// trailing `*` matches any ending.
const IO: [&str; 17] = [
    "async-*",
    "axum",
    "clap*",
    "futures-executor",
    "hyper*",
    "ignore",
    "mio",
    "object_store",
    "postgres*",
    "reqwest",
    "rusqlite",
    "rustls",
    "smol",
    "sqlx*",
    "tempfile",
    "tokio*",
    "ureq",
];

/// Crates that reach a server, which only `larder-models` may use, and `larder-store` for the buckets of `object_store`.
/// (`hyper` is not among them: the gateway is one.)
const NETWORK: [&str; 5] = ["reqwest", "rustls", "tokio-rustls", "ureq", "curl"];

/// Our crates from the bottom up, and those that each may depend on: only ones above it in this list.
const MAY_USE: [(&str, &[&str]); 19] = [
    ("larder-text", &[]),
    ("larder-condense", &["larder-text"]),
    ("larder-core", &["larder-condense", "larder-text"]),
    ("larder-vault", &["larder-text"]),
    ("larder-models", &["larder-text"]),
    ("larder-local", &["larder-models", "larder-text"]),
    ("larder-disk", &["larder-text", "larder-vault"]),
    ("larder-store", &["larder-disk", "larder-text", "larder-vault"]),
    (
        "larder-engine",
        &["larder-condense", "larder-core", "larder-models", "larder-store", "larder-text", "larder-vault"],
    ),
    ("larder-retrieval", &["larder-condense", "larder-store", "larder-text", "larder-vault"]),
    (
        "larder-conversation",
        &["larder-core", "larder-engine", "larder-retrieval", "larder-store", "larder-text"],
    ),
    (
        "larder-tools",
        &[
            "larder-condense",
            "larder-core",
            "larder-engine",
            "larder-models",
            "larder-retrieval",
            "larder-store",
            "larder-text",
            "larder-vault",
        ],
    ),
    (
        "larder-agent",
        &[
            "larder-condense",
            "larder-core",
            "larder-engine",
            "larder-models",
            "larder-retrieval",
            "larder-store",
            "larder-text",
            "larder-tools",
            "larder-vault",
        ],
    ),
    (
        "larder",
        &[
            "larder-agent",
            "larder-condense",
            "larder-conversation",
            "larder-core",
            "larder-engine",
            "larder-local",
            "larder-models",
            "larder-retrieval",
            "larder-store",
            "larder-text",
            "larder-tools",
            "larder-vault",
        ],
    ),
    ("larder-proxy", &["larder-condense", "larder-core", "larder-text"]),
    (
        "larder-mcp",
        &[
            "larder-agent",
            "larder-condense",
            "larder-core",
            "larder-engine",
            "larder-models",
            "larder-retrieval",
            "larder-store",
            "larder-text",
        ],
    ),
    (
        "larder-gateway",
        &[
            "larder-agent",
            "larder-conversation",
            "larder-core",
            "larder-engine",
            "larder-mcp",
            "larder-models",
            "larder-proxy",
            "larder-store",
            "larder-text",
            "larder-tools",
        ],
    ),
    (
        "larder-console",
        &[
            "larder-agent",
            "larder-condense",
            "larder-conversation",
            "larder-core",
            "larder-engine",
            "larder-gateway",
            "larder-models",
            "larder-proxy",
            "larder-store",
            "larder-text",
            "larder-tools",
            "larder-vault",
        ],
    ),
    (
        "larder-cli",
        &[
            "larder-agent",
            "larder-condense",
            "larder-console",
            "larder-conversation",
            "larder-core",
            "larder-engine",
            "larder-gateway",
            "larder-local",
            "larder-mcp",
            "larder-models",
            "larder-proxy",
            "larder-retrieval",
            "larder-store",
            "larder-text",
            "larder-tools",
            "larder-vault",
        ],
    ),
];

/// Folders of the crates whose work must end with the reply that it is for.
const LEAVE_NOTHING_RUNNING: [&str; 8] =
    ["engine", "retrieval", "tools", "agent", "larder", "cli", "store", "vault"];

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// What `cargo tree` prints.
fn tree(edges: &str, format: &str, more: &[&str]) -> String {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--offline", "--locked", "--prefix", "none", "--edges", edges, "--format", format]);
    let output = cargo.args(more).current_dir(ROOT).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The crates that `package` depends on when it ships, itself left out. `depth` 1 gives its direct ones only.
fn dependencies(package: &str, depth: Option<&str>) -> BTreeSet<String> {
    let mut only = vec!["--package", package];
    only.extend(depth.map(|depth| ["--depth", depth]).into_iter().flatten());
    let names = tree("normal", "{p}", &only);
    let names: BTreeSet<String> =
        names.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect();
    assert!(names.contains(package), "cargo tree does not name {package} itself");
    names.into_iter().filter(|name| name != package).collect()
}

fn is_ours(name: &str) -> bool {
    name == "larder" || name.starts_with("larder-")
}

/// Those of `found` that a pure crate may not depend on.
fn io_among(found: &BTreeSet<String>) -> Vec<&str> {
    let forbidden = |name: &str| {
        IO.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == *pattern,
        })
    };
    found.iter().map(String::as_str).filter(|name| forbidden(name)).collect()
}

/// Those of ours among `direct` that are not allowed.
fn ours_beyond<'d>(direct: &'d BTreeSet<String>, allowed: &[&str]) -> Vec<&'d str> {
    direct.iter().map(String::as_str).filter(|name| is_ours(name) && !allowed.contains(name)).collect()
}

fn planted(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn pure_crates_reach_no_io() {
    for package in PURE {
        let found = dependencies(package, None);
        assert!(found.contains("serde"), "cargo tree lists what {package} depends on: {found:?}");
        let wrong = io_among(&found);
        assert!(
            wrong.is_empty(),
            "{package} depends on {wrong:?}; find out through whom with `cargo tree -i`"
        );
    }
    assert_eq!(io_among(&planted(&["serde", "tokio-util", "ureq"])), ["tokio-util", "ureq"]);
}

#[test]
fn our_crates_point_one_way() {
    for (at, (package, allowed)) in MAY_USE.into_iter().enumerate() {
        let below: Vec<&str> = MAY_USE[..at].iter().map(|(name, _)| *name).collect();
        assert!(allowed.iter().all(|name| below.contains(name)), "{package} may use what is above it");
        let direct = dependencies(package, Some("1"));
        let wrong = ours_beyond(&direct, allowed);
        assert!(wrong.is_empty(), "{package} depends on {wrong:?}; it may use {allowed:?}");
    }
    let direct = planted(&["larder", "larder-agent", "larder-text", "serde"]);
    assert_eq!(ours_beyond(&direct, &["larder-text"]), ["larder", "larder-agent"]);
}

#[test]
fn every_crate_that_ships_has_its_place() {
    let packages = tree("normal", "{p}", &["--workspace", "--depth", "0"]);
    let names = packages.lines().filter_map(|line| line.split_whitespace().next());
    let unplaced: Vec<&str> = names
        // The last replaces a crate by others.
        .filter(|name| !["larder-evals", "larder-testkit", "crc-fast"].contains(name))
        .filter(|name| MAY_USE.iter().all(|(package, _)| package != name))
        .collect();
    assert!(unplaced.is_empty(), "give {unplaced:?} their place in MAY_USE");
}

#[test]
fn nothing_that_ships_depends_on_test_doubles() {
    for (package, _) in MAY_USE {
        assert!(!dependencies(package, None).contains("larder-testkit"), "{package} ships larder-testkit");
    }
}

#[test]
fn only_the_crate_of_models_reaches_a_server() {
    let may = ["larder-models", "larder-store"];
    for (package, _) in MAY_USE.iter().filter(|(package, _)| !may.contains(package)) {
        let direct = dependencies(package, Some("1"));
        let wrong: Vec<&str> = NETWORK.into_iter().filter(|name| direct.contains(*name)).collect();
        assert!(wrong.is_empty(), "{package} depends on {wrong:?}; only larder-models talks to servers");
    }
    assert!(dependencies("larder-models", Some("1")).contains("reqwest"), "the list names what is used");
}

/// Every Rust file under a folder of the repository.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

/// Whether code, its comments left out, holds one of these words.
fn says(text: &str, words: &[&str]) -> bool {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.into_iter().any(|line| words.iter().any(|word| line.contains(word)))
}

/// The product's files of these crates that hold one of these words.
fn that_say(crates: &[&str], words: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for crate_ in crates {
        for path in sources(&Path::new(ROOT).join("crates").join(crate_).join("src")) {
            let name = path.strip_prefix(ROOT).unwrap().to_str().unwrap().to_owned();
            if !name.ends_with("tests.rs") && says(&std::fs::read_to_string(&path).unwrap(), words) {
                found.insert(name);
            }
        }
    }
    found
}

/// Folders of all crates that ship, except those that implement models: the rest has to ask through the engine.
fn all_but_models() -> Vec<&'static str> {
    let folders = MAY_USE.map(|(package, _)| package.strip_prefix("larder-").unwrap_or(package));
    folders.into_iter().filter(|folder| !["models", "local"].contains(folder)).collect()
}

/// A model is asked with a `ChatRequest`, so what cannot name that type asks no model (invariant 8).
const ASKS_A_MODEL: [&str; 2] = ["ChatRequest", "chat::*"];

#[test]
fn only_the_executor_asks_a_model() {
    let askers = that_say(&all_but_models(), &ASKS_A_MODEL);
    let allowed = planted(&["crates/engine/src/executor/call.rs"]);
    assert_eq!(askers, allowed, "only the executor may ask a model; give it a recipe instead");
    assert!(["engine", "gateway", "mcp", "console", "cli"].iter().all(|one| all_but_models().contains(one)));
    assert!(says("use larder_models::chat::*;", &ASKS_A_MODEL));
    assert!(says("let request = ChatRequest::default();", &ASKS_A_MODEL));
    assert!(!says("  // A ChatRequest is made by the executor.", &ASKS_A_MODEL));
}

/// Methods of a trait object need no import.
const ASKS_FOR_VECTORS: [&str; 4] = ["EmbeddingModel", "chat::*", "models.embedding(", "models().embedding("];

/// Vectors are asked for by one file, and opened where the models inside this process are.
#[test]
fn one_place_asks_for_vectors() {
    let askers = that_say(&all_but_models(), &ASKS_FOR_VECTORS);
    let allowed = planted(&["crates/engine/src/embedding.rs"]);
    assert_eq!(askers, allowed, "ask `larder_engine::embedding` instead");
    assert!(says("engine.models.embedding(name)?", &ASKS_FOR_VECTORS));
}

const DETACHES: [&str; 5] =
    ["tokio::spawn(", "task::spawn(", "thread::spawn(", "thread::Builder", "blocking::spawn("];
/// What may be left running, and why: the first two read the keyboard ahead, so nothing is lost with them; the last one
/// is how the servers run work that blocks, and none of the crates below calls it.
const LEFT_RUNNING: [&str; 4] = [
    "crates/cli/src/keyboard.rs",
    "crates/cli/src/memory.rs",
    "crates/cli/src/commands/top.rs",
    "crates/engine/src/blocking.rs",
];

/// A job that runs on behind a reply belongs in the queue, which survives a restart (invariant 9). Nothing is left
/// running: a run is its caller's future from beginning to end.
#[test]
fn nothing_is_left_running_behind_a_reply() {
    // Equal, so that the list of exceptions can only shrink with what it names.
    let left = that_say(&LEAVE_NOTHING_RUNNING, &DETACHES);
    assert_eq!(left, planted(&LEFT_RUNNING), "a detached task can outlive its reply and is lost in a crash");
    assert!(says("    tokio::spawn(async move { job.run().await });", &DETACHES));
}

/// Crates that are there for tests alone may differ; what ships is compiled once for `cargo build` and `cargo test`.
#[test]
fn tests_turn_on_no_feature_that_the_build_lacks() {
    let crates = |edges: &str| -> BTreeSet<String> {
        let lines = tree(edges, "{p} [{f}]", &["--workspace"]);
        lines.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
    };
    let name = |line: &str| line.split_once(" [").map_or(line, |(name, _)| name).to_owned();
    let (build, test) = (crates("normal,build"), crates("normal,build,dev"));
    let built: BTreeSet<String> = build.iter().map(|line| name(line)).collect();
    let differ: Vec<&String> = test.difference(&build).filter(|line| built.contains(&name(line))).collect();
    assert!(differ.is_empty(), "turn these features on in crates/testkit/Cargo.toml: {differ:?}");
}

/// Distinct packages by others in the default build of the command. It only grows for what nothing in it can do.
const MAX_PACKAGES: usize = 397;

#[test]
fn the_default_build_stays_small() {
    let names = tree("normal", "{p}", &["--package", "larder-cli"]);
    let packages: BTreeSet<&str> = names
        .lines()
        .map(|line| line.trim_end_matches(" (*)"))
        .filter(|line| !line.split_whitespace().next().is_some_and(is_ours))
        .collect();
    assert!(packages.len() > 100, "cargo tree lists packages: {}", packages.len());
    assert!(
        packages.len() <= MAX_PACKAGES,
        "{} packages, {MAX_PACKAGES} allowed; docs/dependencies.md says how to count",
        packages.len()
    );
}
