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
    #[allow(clippy::print_stdout, reason = "this is how a build script talks to cargo")]
    for argument in linker_arguments() {
        println!("cargo::rustc-link-arg-bins={argument}");
    }
}

/// What makes a release three megabytes smaller, for the linker that Rust brings along on this target: equal functions
/// and the ends of strings are kept once, and relocations are packed.
fn linker_arguments() -> Vec<&'static str> {
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    let target = "x86_64-unknown-linux-gnu";
    let chosen = env::var("CARGO_ENCODED_RUSTFLAGS").is_ok_and(|flags| flags.contains("link"));
    if !is("TARGET", target) || !is("PROFILE", "release") || chosen {
        return Vec::new();
    }
    let mut arguments = vec!["-Wl,--icf=all", "-Wl,-O2"];
    if is("HOST", target) && glibc().is_some_and(|version| version >= PACKED_RELOCATIONS) {
        arguments.push("-Wl,-z,pack-relative-relocs");
    }
    arguments
}

/// The first glibc whose loader reads packed relocations.
const PACKED_RELOCATIONS: (u32, u32) = (2, 36);

/// The version of this machine's glibc.
fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The commit in `.cargo_vcs_info.json`, which only a packaged crate has.
fn packaged_commit() -> Option<String> {
    let info = fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, rest) = info.split_once("\"sha1\"")?;
    rest.split('"').nth(1).map(str::to_owned)
}
