//! Which crates may depend on which: the core reaches nothing that does IO, our own crates point one way only, and one
//! door leads to models.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crates that would bring an async runtime, HTTP, SQL or a command line into the core. A name that ends in `*` stands
/// for all that begin so.
const NOT_IN_CORE: [&str; 14] = [
    "async-*",
    "axum",
    "clap*",
    "futures-executor",
    "hyper*",
    "mio",
    "postgres*",
    "reqwest",
    "rusqlite",
    "rustls",
    "smol",
    "sqlx*",
    "tokio*",
    "ureq",
];

/// Crates that reach a server, which only `larder-models` may use, and `larder-store` for the buckets of `object_store`.
/// (`hyper` is not among them: the gateway is one.)
const NETWORK: [&str; 5] = ["reqwest", "rustls", "tokio-rustls", "ureq", "curl"];

/// Our crates, and those of ours that each may depend on.
const MAY_USE: [(&str, &[&str]); 7] = [
    ("larder-core", &[]),
    ("larder-models", &["larder-core"]),
    ("larder-local", &["larder-models", "larder-text"]),
    ("larder-store", &["larder-core"]),
    ("larder", &["larder-core", "larder-models", "larder-store"]),
    ("larder-server", &["larder", "larder-core", "larder-models", "larder-store"]),
    (
        "larder-cli",
        &["larder", "larder-core", "larder-local", "larder-models", "larder-server", "larder-store"],
    ),
];

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

#[test]
fn the_core_reaches_no_io() {
    let found = dependencies("larder-core", None);
    assert!(found.contains("serde"), "cargo tree lists what the core depends on: {found:?}");
    let forbidden = |name: &String| {
        NOT_IN_CORE.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == pattern,
        })
    };
    let wrong: Vec<&String> = found.iter().filter(|name| forbidden(name)).collect();
    assert!(wrong.is_empty(), "larder-core depends on {wrong:?}; find out through whom with `cargo tree -i`");
}

#[test]
fn our_crates_point_one_way() {
    for (package, allowed) in MAY_USE {
        let direct = dependencies(package, Some("1"));
        let wrong: Vec<&String> =
            direct.iter().filter(|name| is_ours(name) && !allowed.contains(&name.as_str())).collect();
        assert!(wrong.is_empty(), "{package} depends on {wrong:?}; it may use {allowed:?}");
    }
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

/// A model is asked with a `ChatRequest`, so whoever cannot name that type asks no model (invariant 8).
#[test]
fn only_the_executor_asks_a_model() {
    let mut askers = Vec::new();
    for crate_ in ["runtime", "cli"] {
        let folder = Path::new(ROOT).join("crates").join(crate_).join("src");
        for path in sources(&folder) {
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            if code.into_iter().any(|line| line.contains("ChatRequest") || line.contains("chat::*")) {
                askers.push(path.strip_prefix(&folder).unwrap().to_owned());
            }
        }
    }
    assert_eq!(
        askers,
        [Path::new("executor/call.rs")],
        "only the executor may ask a model; give it a recipe instead"
    );
}

/// Vectors are asked for by one file, and opened where the models inside this process are.
#[test]
fn one_place_asks_for_vectors() {
    let mut askers = BTreeSet::new();
    for crate_ in ["runtime", "cli", "server", "store"] {
        let folder = Path::new(ROOT).join("crates").join(crate_).join("src");
        for path in sources(&folder) {
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            // Methods of a trait object need no import.
            let asks = ["EmbeddingModel", "chat::*", "models.embedding(", "models().embedding("];
            if code.into_iter().any(|line| asks.iter().any(|word| line.contains(word))) {
                askers.insert(path.strip_prefix(ROOT).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    let allowed = ["crates/cli/src/context.rs", "crates/runtime/src/embedding.rs"];
    assert_eq!(askers, allowed.map(str::to_owned).into(), "ask `larder::embedding` instead");
}

/// What may be left running, and why: it reads lines ahead and does nothing with them, so nothing is lost with it.
const LEFT_RUNNING: [&str; 1] = ["crates/cli/src/keyboard.rs"];

/// A job that runs on behind a reply needs a queue that survives a restart (invariant 9). As long as there is none,
/// nothing may be left running: a run is its caller's future from beginning to end.
#[test]
fn nothing_is_left_running_behind_a_reply() {
    let mut left = BTreeSet::new();
    for crate_ in ["runtime", "cli", "store"] {
        for path in sources(&Path::new(ROOT).join("crates").join(crate_).join("src")) {
            if path.to_string_lossy().ends_with("tests.rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let detached = ["tokio::spawn(", "task::spawn(", "thread::spawn(", "thread::Builder"];
            if code.into_iter().any(|line| detached.iter().any(|spawn| line.contains(spawn))) {
                left.insert(path.strip_prefix(ROOT).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    // Equal, so that the list of exceptions can only shrink with what it names.
    let allowed: BTreeSet<String> = LEFT_RUNNING.map(str::to_owned).into();
    assert_eq!(left, allowed, "a detached task can outlive its reply and is lost in a crash");
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
