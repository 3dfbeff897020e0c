//! Embeds the build information that `larder --version --verbose` prints. Runs no git: the commit comes from
//! `LARDER_COMMIT`, which release builds set, or from the file that `cargo package` adds to a packaged crate.

use std::process::Command;
use std::{env, fs};

fn main() {
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let compiler = variable("RUSTC").and_then(|rustc| Command::new(rustc).arg("--version").output().ok());
    let compiler = compiler.and_then(|output| String::from_utf8(output.stdout).ok());
    let facts = [
        ("LARDER_COMMIT", variable("LARDER_COMMIT").or_else(packaged_commit)),
        ("LARDER_TARGET", variable("TARGET")),
        ("LARDER_COMPILER", compiler.map(|version| version.trim().to_owned())),
        ("LARDER_PROFILE", variable("PROFILE")),
    ];
    #[allow(clippy::print_stdout, reason = "build scripts communicate with cargo on stdout")]
    for (name, fact) in facts {
        println!("cargo::rustc-env={name}={}", fact.as_deref().unwrap_or("unknown"));
    }
    #[allow(clippy::print_stdout, reason = "build scripts communicate with cargo on stdout")]
    for change in ["rerun-if-env-changed=LARDER_COMMIT", "rerun-if-changed=build.rs"] {
        println!("cargo::{change}");
    }
}

/// The commit in `.cargo_vcs_info.json`, which only a packaged crate has.
fn packaged_commit() -> Option<String> {
    let info = fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, rest) = info.split_once("\"sha1\"")?;
    rest.split('"').nth(1).map(str::to_owned)
}
