//! Which crates may depend on which: the core reaches nothing that does IO, and our own crates point one way only.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::collections::BTreeSet;
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

/// Our crates, and those of ours that each may depend on.
const MAY_USE: [(&str, &[&str]); 5] = [
    ("larder-core", &[]),
    ("larder-models", &["larder-core"]),
    ("larder-store", &["larder-core"]),
    ("larder", &["larder-core", "larder-models", "larder-store"]),
    ("larder-cli", &["larder", "larder-core", "larder-models", "larder-store"]),
];

/// The crates that `package` depends on when it ships, itself left out. `depth` 1 gives its direct ones only.
fn dependencies(package: &str, depth: Option<&str>) -> BTreeSet<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--offline", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}"]);
    cargo.args(["--package", package]).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    cargo.args(depth.map(|depth| ["--depth", depth]).into_iter().flatten());
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8(output.stdout).unwrap();
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
